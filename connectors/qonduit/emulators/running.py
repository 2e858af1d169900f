"""An emulated device beside a program or a test, as a process of its own: `with running("iqm") as server: ...`.

The server listens on a free port of this machine, in a folder of its own, and ends with the block.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from qonduit.devices.settings import Settings
from qonduit.emulators.control import HEADER
from qonduit.errors import DeviceError

START_LIMIT_S = 120.0
STOP_LIMIT_S = 30.0


class Server:
    """A running emulated device."""

    def __init__(self, vendor: str, home: Path, options: Sequence[str]) -> None:
        self.vendor = vendor
        self.home = home
        self._options = list(options)
        self._port = "0"
        self._process: subprocess.Popen[str] | None = None

    @property
    def token_file(self) -> Path:
        return self.home / "token"

    @property
    def device_file(self) -> Path:
        return self.home / "device.json"

    def start(self) -> None:
        command = [sys.executable, "-m", "qonduit.emulators", self.vendor, "--json"]
        command += ["--home", str(self.home), "--port", self._port, *self._options]
        with (self.home / "log").open("a") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._process.stdout.close()
            raise DeviceError(f"the emulated '{self.vendor}' did not start; see {self.home / 'log'}")
        self.url: str = json.loads(line)["url"]
        self._port = str(urlsplit(self.url).port)

    def stop(self, kill: bool = False) -> None:
        if self._process is None:
            return
        (self._process.kill if kill else self._process.terminate)()
        try:
            self._process.wait(timeout=STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None

    def restart(self, kill: bool = True) -> None:
        """The same server again: same port, same token, same jobs."""
        self.stop(kill)
        self.start()

    def settings(self, shots: int | None = None, wait_s: float | None = None, **options: Any) -> Settings:
        """What a device file for this server says, with more options."""
        known = json.loads(self.device_file.read_text(encoding="utf-8"))["options"]
        return Settings(
            self.vendor, shots, {**known, **options}, self.token_file, str(self.device_file), self.url, wait_s
        )

    def jobs(self) -> list[dict[str, Any]]:
        """Every submission that the server accepted, oldest first."""
        found: list[dict[str, Any]] = self._control("GET", "jobs")
        return found

    def forget(self) -> None:
        self._control("DELETE", "jobs")

    def inject(self, *faults: dict[str, Any]) -> None:
        self._control("POST", "faults", list(faults))

    def clear(self) -> None:
        self._control("DELETE", "faults")

    def calls(self) -> list[str]:
        """The log: one line a call."""
        return (self.home / "log").read_text(encoding="utf-8").splitlines()

    def _control(self, method: str, what: str, content: object = None) -> Any:
        token = (self.home / "control").read_text(encoding="utf-8").strip()
        headers = {HEADER: token, "Content-Type": "application/json"}
        body = None if content is None else json.dumps(content).encode()
        address = urlsplit(self.url)
        request = Request(f"http://{address.netloc}/_emulator/{what}", body, headers, method=method)
        until = time.monotonic() + START_LIMIT_S
        while True:
            try:
                with build_opener(ProxyHandler({})).open(request, timeout=30) as answer:
                    return json.loads(answer.read())
            except HTTPError:
                raise
            except OSError:
                # The server may be refusing connections for a while, as it was told to.
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)


@contextlib.contextmanager
def running(
    vendor: str,
    *,
    home: Path | None = None,
    qubits: int | None = None,
    topology: str | None = None,
    noise: bool = True,
    seed: int = 0,
    latency: str | None = None,
    faults: Sequence[dict[str, Any]] = (),
) -> Iterator[Server]:
    """Starts an emulated device and stops it at the end of the block."""
    with contextlib.ExitStack() as stack:
        if home is None:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="qonduit-")))
        home.mkdir(parents=True, exist_ok=True)
        options = ["--seed", str(seed), "--noise" if noise else "--no-noise"]
        options += [] if qubits is None else ["--qubits", str(qubits)]
        options += [] if topology is None else ["--topology", topology]
        options += [] if latency is None else ["--latency", latency]
        if faults:
            (home / "faults.json").write_text(json.dumps(list(faults)), encoding="utf-8")
            options += ["--faults", str(home / "faults.json")]
        server = Server(vendor, home, options)
        stack.callback(server.stop)
        server.start()
        yield server
