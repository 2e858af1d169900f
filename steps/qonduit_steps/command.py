"""The frame around every step's command: options, one-sentence errors, exit codes, the record of a run.

Each module in `qonduit_steps.commands` makes a parser with `parser()` and hands its function to `run()`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from qonduit.errors import DataError, QonduitError, UsageError
from qonduit_steps.outputs import Outputs

Summary = dict[str, Any]
Work = Callable[[argparse.Namespace, Outputs], Summary]


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose errors are one sentence instead of a page of usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def parser(prog: str, description: str, example: str) -> Parser:
    """A parser with what all steps share: an example, `--json` and `--record`."""
    made = Parser(
        prog=prog,
        description=description,
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_common(made)
    return made


def add_common(to: argparse.ArgumentParser) -> None:
    to.add_argument("--json", action="store_true", help="print the summary as JSON on standard output")
    to.add_argument("--record", metavar="FILE", type=Path, help="also write times and memory of this step as JSON")


def run(made: argparse.ArgumentParser, work: Work, argv: Sequence[str] | None = None) -> NoReturn:
    """Parses, works, publishes the outputs whole, and exits with a code that means something."""
    options = made.parse_args(argv)
    options.step = made.prog.removeprefix("qonduit-")
    options.started, options.clock = time.time(), time.perf_counter()
    try:
        with Outputs() as outputs:
            if options.record:
                outputs.check(options.record, "--record")
            summary = work(options, outputs)
            if options.record:
                outputs.write_json(options.record, record(options, summary), "--record")
    except QonduitError as error:
        print(f"{made.prog}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print(f"{made.prog}: interrupted, nothing was written", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(141)
    except MemoryError:
        print(f"{made.prog}: not enough memory; use fewer points or a machine with more", file=sys.stderr)
        sys.exit(71)
    if options.json:
        print(json.dumps(summary, allow_nan=False))
    else:
        print(f"{made.prog}: {sentence(summary)} in {time.perf_counter() - options.clock:.2f} s", file=sys.stderr)
    sys.exit(0)


def sentence(summary: Mapping[str, Any]) -> str:
    """The summary as a person reads it: `method kmeans, clusters 7, …`."""
    return ", ".join(f"{key.replace('_', ' ')} {_short(value)}" for key, value in summary.items())


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return "(" + sentence(value) + ")"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_short(item) for item in value) + "]"
    return str(value)


def record(options: argparse.Namespace, summary: Summary) -> dict[str, Any]:
    """What this step did and what it cost so far, for `--record`, the run's history and the report."""
    earlier = [read_json(path, "--earlier") for path in getattr(options, "earlier", None) or []]
    return {
        "step": options.step,
        "started": options.started,
        "seconds": time.perf_counter() - options.clock,
        "process_seconds": time.clock_gettime(time.CLOCK_BOOTTIME) - _process_start(),
        "cpu_seconds": time.process_time(),
        "peak_mb": peak_mb(),
        "summary": summary,
        **({"earlier": earlier} if earlier else {}),
    }


def peak_mb() -> float:
    """The most memory that this program has used; `ru_maxrss` would include what its parent had before exec."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def _process_start() -> float:
    """When the kernel started this process, in seconds since boot: the imports count too."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def number(low: float, high: float) -> Callable[[str], Any]:
    """An argparse type: a finite number in [low, high]."""

    def parse(text: str) -> Any:
        try:
            value = float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number") from None
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text} is outside [{low:g}, {high:g}]")
        return value

    return parse


def natural(low: int = 0, high: float = math.inf) -> Callable[[str], Any]:
    """An argparse type: a whole number from `low` to `high`."""

    def parse(text: str) -> Any:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number") from None
        if value < low:
            raise argparse.ArgumentTypeError(f"{text} is less than {low}")
        if value > high:
            raise argparse.ArgumentTypeError(f"{text} is more than {high:g}")
        return value

    return parse


def penalty(text: str) -> str | float:
    """An argparse type: what an overlap costs."""
    if text in ("auto", "n"):
        return text
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is neither auto nor n nor a number") from None
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def read_json(path: Path, option: str) -> Any:
    """The JSON in a file, or one sentence that says what is wrong with it."""
    try:
        return json.loads(existing(path, option).read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError):
        raise DataError(f"{option}: {path} is not a whole JSON file; make it again") from None


def existing(path: Path, option: str) -> Path:
    """The path, if it is a readable file; else a sentence that names the option."""
    if not path.exists():
        raise UsageError(f"{option}: there is no file {path}; check the path")
    if path.is_dir():
        raise UsageError(f"{option}: {path} is a folder; name a file in it")
    if not os.access(path, os.R_OK):
        raise UsageError(f"{option}: {path} cannot be read; check its permissions")
    return path
