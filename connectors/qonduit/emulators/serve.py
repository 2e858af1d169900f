"""Runs one emulated device until it is told to stop: `qonduit emulate`.

Its folder holds the token, the jobs and a device file that fits, and is its own: a second server on it is refused.
Beside the vendor's API there is `control`, through which tests read the jobs and set faults.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from aiohttp import web

from qonduit.emulators.control import control_routes
from qonduit.emulators.credential import Token
from qonduit.emulators.emulator import Config, Emulator
from qonduit.emulators.faults import Rule
from qonduit.emulators.store import JobStore
from qonduit.errors import DeviceError, UsageError

VENDORS = {"iqm": "IqmEmulator", "pasqal": "PasqalEmulator", "dwave": "DwaveEmulator"}
HOST = "127.0.0.1"
REOPEN_LIMIT_S, REOPEN_PAUSE_S = 10.0, 0.1


@dataclass(frozen=True)
class Ready:
    """What a client needs to know of a running server."""

    vendor: str
    url: str
    token_file: str
    device_file: str
    home: str
    pid: int


def emulator_class(vendor: str) -> type[Emulator]:
    if vendor not in VENDORS:
        raise UsageError(f"there is no emulated device '{vendor}'; choose one of {', '.join(VENDORS)}")
    try:
        module = import_module(f"qonduit.emulators.{vendor}")
    except ImportError as error:
        raise DeviceError(
            f"the emulated '{vendor}' cannot be loaded ({error}); pip install qonduit[{vendor}]"
        ) from None
    found: type[Emulator] = getattr(module, VENDORS[vendor])
    return found


def serve(
    vendor: str,
    home: Path,
    port: int | None,
    config: Config,
    rules: Sequence[Rule],
    announce: Callable[[Ready], None],
) -> None:
    """Serves until SIGINT or SIGTERM; calls `announce` once it takes connections."""
    kind = emulator_class(vendor)
    home = home.resolve()
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _owned(home):
        asyncio.run(_serve(kind, home, kind.port if port is None else port, config, rules, announce))


@contextlib.contextmanager
def _owned(home: Path) -> Iterator[None]:
    with (home / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(f"another emulated device runs in {home}; stop it or give another --home") from None
        yield


async def _serve(
    kind: type[Emulator],
    home: Path,
    port: int,
    config: Config,
    rules: Sequence[Rule],
    announce: Callable[[Ready], None],
) -> None:
    jobs = JobStore(home / "jobs.db")
    emulator = kind(config, jobs, Token(home / "token"))
    emulator.script.add(rules)
    app = emulator.application(control_routes(emulator, Token(home / "control")))
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    door = Door(runner, port)
    emulator.refuse = door.refuse
    await door.open()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    announce(_ready(emulator, home, door.port))
    tasks = [asyncio.ensure_future(wait) for wait in (emulator.work(), stop.wait(), door.broken)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await runner.cleanup()
        jobs.close()


class Door:
    """The listening socket, which can be shut for a while so that connections are refused."""

    def __init__(self, runner: web.AppRunner, port: int) -> None:
        self.port = port
        self._runner = runner
        self._site: web.BaseSite | None = None
        self._task: asyncio.Task[None] | None = None
        # Ends with an error if the door cannot be opened again, and not otherwise.
        self.broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def open(self) -> None:
        site = web.TCPSite(self._runner, HOST, self.port, reuse_address=True)
        try:
            await site.start()
        except OSError as error:
            await site.stop()
            raise UsageError(f"port {self.port} cannot be used ({error.strerror}); give another --port") from None
        self._site = site
        if not self.port:
            self.port = int(self._runner.addresses[0][1])

    async def refuse(self, seconds: float) -> None:
        """Shut when it returns; it opens again by itself."""
        if self._site is None:
            return
        site, self._site = self._site, None
        await site.stop()
        # Answers under way are finished; what is kept alive would be a way around a shut door.
        for connection in list(self._runner.server.connections if self._runner.server else ()):
            connection.close()
        self._task = asyncio.create_task(self._open_after(seconds))

    async def _open_after(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        until = time.monotonic() + REOPEN_LIMIT_S
        while self._site is None:
            try:
                await self.open()
            except UsageError as error:
                # Somebody took the port meanwhile and may leave it again.
                if time.monotonic() > until:
                    self.broken.set_exception(error)
                    return
                await asyncio.sleep(REOPEN_PAUSE_S)


def _ready(emulator: Emulator, home: Path, port: int) -> Ready:
    url = f"http://{HOST}:{port}{emulator.path}"
    device_file = home / "device.json"
    content = {"kind": emulator.vendor, "url": url, "token_file": "token", "options": emulator.device_options()}
    fresh = device_file.with_suffix(".new")
    fresh.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    fresh.replace(device_file)
    return Ready(emulator.vendor, url, str(emulator.token.path), str(device_file), str(home), os.getpid())
