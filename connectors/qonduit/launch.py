"""`qonduit run`: starts StreamFlow on a workflow, shows what it does, and leaves results that are whole or not there.

Inputs are checked by the workflow's own first steps before the engine starts, so that a mistake is answered by one
sentence at once. The engine's whole log is kept beside the results.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import yaml
from rich.console import Console

from qonduit.devices.ledger import RUN_VARIABLE as RUN
from qonduit.devices.ledger import VARIABLE as LEDGER
from qonduit.devices.ledger import ledger_path
from qonduit.devices.registry import open_device
from qonduit.devices.settings import VARIABLE, settings_from_environment
from qonduit.errors import DataError, QonduitError, UsageError

STARTED = re.compile(r"INFO +EXECUTING step (?P<step>\S+) \(job")
FAILED = re.compile(r"ERROR +FAILED Job (?P<job>\S+) with error:")
SCORED = re.compile(
    r"INFO +qonduit-score: iteration (?P<iteration>\d+), score (?P<score>\S+), clusters (?P<clusters>\d+)"
)


class WorkflowError(QonduitError):
    """A step failed while the workflow ran."""

    exit_code = 1


class InterruptedRunError(QonduitError):
    """The user or the system ended the run."""

    exit_code = 130


@dataclass
class Launch:
    file: Path
    points: Path | None
    outdir: Path
    settings: list[str]
    name: str | None
    quiet: bool

    def run(self) -> None:
        started = time.monotonic()
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends a run in the same way as Ctrl-C
        self.console = Console(stderr=True, quiet=self.quiet, highlight=False)
        outdir = _writable(self.outdir)
        log = outdir.with_name(f"{outdir.name}.log")
        with tempfile.TemporaryDirectory(prefix="qonduit-") as temporary:
            scratch = Path(temporary)
            file = self._prepare(scratch)
            partial = _beside_results(outdir)
            try:
                self._stream(file, partial, log, scratch)
                summary = self._publish(partial, outdir, time.monotonic() - started)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
        if self.quiet:
            print(json.dumps(summary))
        else:
            self._show(summary)

    def _prepare(self, scratch: Path) -> Path:
        """The StreamFlow file to run: the user's own, or a copy in which points and settings are replaced."""
        config = _read_yaml(self.file)
        try:
            ((_, workflow),) = config["workflows"].items()
            cwl = workflow["config"]
            base = self.file.resolve().parent
            known = _read_yaml(base / cwl["file"])["inputs"]
            job = base / cwl["settings"] if "settings" in cwl else None
        except (KeyError, TypeError, ValueError, AttributeError):
            raise UsageError(f"{self.file} does not describe exactly one CWL workflow; mend it") from None
        inputs = _absolute(_read_yaml(job), job.parent) if job else {}
        for name in inputs:
            _check_name(name, known, str(job))
        if self.points:
            inputs["preset"] = "fitted"  # the file's own preset was chosen for other points
        inputs |= dict(_setting(text, known) for text in self.settings)
        _check_settings(inputs, known, scratch)
        open_device(settings_from_environment())
        if self.points:
            matrix = scratch / "points.npy"
            _step(["qonduit-points", "convert", str(self.points), "--out", str(matrix)])
            inputs["points"] = {"class": "File", "path": str(matrix)}
        if not self.points and not self.settings:
            return self.file
        elsewhere = scratch / "job.yml"
        elsewhere.write_text(yaml.safe_dump(inputs))
        workflow["config"] = cwl | {"file": str(base / cwl["file"]), "settings": str(elsewhere)}
        (scratch / self.file.name).write_text(yaml.safe_dump(config))
        return scratch / self.file.name

    def _stream(self, file: Path, outdir: Path, log: Path, scratch: Path) -> None:
        """Runs the engine; its working folders go with the scratch folder."""
        command = [_beside("streamflow"), "run", str(file), "--outdir", str(outdir)]
        command += ["--name", self.name] if self.name else []
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
        environment = {**os.environ, "PATH": path, "TMPDIR": str(scratch)}
        device = Path(environment.get(VARIABLE, ""))
        if device.is_file():  # every job has a working folder of its own
            environment[VARIABLE] = str(device.resolve())
        environment[LEDGER] = str(ledger_path().resolve())
        if self.name:
            environment.setdefault(RUN, self.name)
        with (
            log.open("w") as record,
            subprocess.Popen(
                command,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,  # a group of its own, so that its steps can be ended with it
            ) as engine,
        ):
            assert engine.stderr is not None
            try:
                failure = self._follow(engine.stderr, record)
                # After a failure inside a loop StreamFlow waits for ever: it is ended, with all its steps.
                code = engine.wait() if failure is None else _end(engine)
            except KeyboardInterrupt:
                _end(engine)
                raise InterruptedRunError("interrupted; nothing was written") from None
        if failure is not None or code != 0:
            raise WorkflowError(f"{(failure or 'StreamFlow failed').rstrip('.')} (the whole log is in {log})")

    def _follow(self, lines: IO[str], record: IO[str]) -> str | None:
        """Shows progress; returns the first failed step's own sentence."""
        failure = None
        with self.console.status("starting StreamFlow ...") as status:
            for line in lines:
                record.write(line)
                if failure is not None:
                    return line.strip() or failure
                if found := FAILED.search(line):
                    failure = f"the step {found['job']} failed"
                elif found := STARTED.search(line):
                    status.update(f"{found['step'].removeprefix('/').replace('/', ' · ')} ...")
                elif found := SCORED.search(line):
                    number, score, clusters = found["iteration"], float(found["score"]), found["clusters"]
                    self.console.print(f"  iteration {number}: score {score:.4f}, {clusters} clusters")
        return failure

    def _publish(self, partial: Path, outdir: Path, seconds: float) -> dict[str, Any]:
        """Completes the summary and puts the new results in the old ones' place at once."""
        try:
            summary: dict[str, Any] = json.loads((partial / "summary.json").read_text())
        except (OSError, ValueError):
            raise WorkflowError("the workflow ended without a summary.json") from None
        summary["seconds"] = seconds
        (partial / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
        partial.chmod(0o755)
        if outdir.exists():
            os.replace(outdir, partial.with_name(f"{partial.name}.old"))
        os.replace(partial, outdir)
        shutil.rmtree(partial.with_name(f"{partial.name}.old"), ignore_errors=True)
        return summary

    def _show(self, summary: dict[str, Any]) -> None:
        passed = "passed" if summary["passed"] else "not passed"
        lines = {
            "best score": f"{summary['best_score']:.4f} in iteration {summary['best_iteration']}",
            "threshold": f"{summary['threshold']:g}, {passed} after {_count(summary['scores'])}",
            "time": f"{summary['seconds']:.1f} s",
            "labels": self.outdir / summary["labels"],
            "report": self.outdir / summary["report"],
        }
        for name, value in lines.items():
            self.console.print(f"{name:<12}{value}", soft_wrap=True, markup=False)


def _count(scores: list[float]) -> str:
    return "1 iteration" if len(scores) == 1 else f"{len(scores)} iterations"


def _writable(outdir: Path) -> Path:
    outdir = outdir.absolute()
    try:
        outdir.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--outdir: {outdir.parent} cannot be made ({error.strerror}); choose another") from None
    if outdir.exists() and not (outdir.is_dir() and (_is_ours(outdir) or not any(outdir.iterdir()))):
        raise UsageError(f"--outdir: {outdir} holds something else than results; choose another")
    if not os.access(outdir.parent, os.W_OK | os.X_OK):
        raise UsageError(f"--outdir: {outdir.parent} cannot be written; choose another")
    return outdir


def _beside_results(outdir: Path) -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=f".{outdir.name}.", dir=outdir.parent))
    except OSError as error:
        raise UsageError(f"--outdir: {outdir.parent} cannot be written ({error.strerror}); choose another") from None


def _is_ours(outdir: Path) -> bool:
    return (outdir / "summary.json").is_file() and (outdir / "report.html").is_file()


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text())
    except OSError:
        raise UsageError(f"there is no readable file {path}; name a StreamFlow file") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise DataError(f"{path} is not YAML; mend it") from None
    if not isinstance(content, dict):
        raise DataError(f"{path} must hold names and values")
    return content


def _setting(text: str, known: dict[str, Any]) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--set: '{text}' is not NAME=VALUE, such as threshold=0.7")
    _check_name(name, known, "--set")
    if name == "points":
        raise UsageError("--set: points are given by --points FILE")
    if known[name]["type"] == "string":
        return name, value
    try:
        parsed = yaml.safe_load(value)
    except yaml.YAMLError:
        raise UsageError(f"--set: '{value}' is not a value of YAML") from None
    return name, [parsed] if known[name]["type"] == "string[]" and not isinstance(parsed, list) else parsed


def _check_name(name: str, known: Collection[str], where: str) -> None:
    if name not in known:
        raise UsageError(f"{where}: the workflow has no input '{name}'; it has {', '.join(sorted(known))}")


def _absolute(inputs: dict[str, Any], base: Path) -> dict[str, Any]:
    """Files of a job file are relative to it; their names must hold wherever the job file is copied to."""
    for value in inputs.values():
        if isinstance(value, dict) and value.get("class") == "File":
            for key in value.keys() & {"path", "location"}:
                value[key] = value[key] if "://" in value[key] else str(base / value[key])
    return inputs


def _check_settings(inputs: dict[str, Any], known: dict[str, Any], scratch: Path) -> None:
    """The workflow's own first step checks all settings but the points."""
    command = ["qonduit-loop", "start", f"--out={scratch / 'start.json'}", f"--settings={scratch / 'checked.json'}"]
    for name in sorted(known.keys() - {"points"}):
        value = inputs.get(name, known[name].get("default"))
        option = f"--{name.replace('_', '-')}"
        command += [option, *map(str, value)] if isinstance(value, list) else [f"{option}={value}"]
    _step(command)


def _step(command: list[str]) -> None:
    """Runs a step's command for its checks; its sentence and exit code become ours."""
    done = subprocess.run([_beside(command[0]), *command[1:]], capture_output=True, text=True)
    if done.returncode != 0:
        sentence = re.sub(r"^qonduit-[a-z ]+: (file: )?", "", done.stderr.strip())
        error = QonduitError(sentence or f"{command[0]} failed")
        error.exit_code = done.returncode
        raise error


def _end(engine: subprocess.Popen[str]) -> int:
    """Ends the engine and every step that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(engine.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            engine.wait(timeout=5)
    return engine.wait()


def _beside(program: str) -> str:
    """A program of the same environment, whether or not it is activated."""
    beside = Path(sys.executable).with_name(program)
    return str(beside) if beside.exists() else program
