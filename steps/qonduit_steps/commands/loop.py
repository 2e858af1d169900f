"""`qonduit-loop`: the loop's three decisions as commands, so that the workflow needs no JavaScript.

`start` checks the settings and names the first iterations, `gate` judges a pass and names the next ones, `select`
makes the run folder from the best iteration of all passes. Each writes a CWL output object.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from qonduit.devices.settings import MOST_SHOTS
from qonduit.errors import DataError, UsageError
from qonduit_steps import command, loop
from qonduit_steps.outputs import Outputs

PASS_FILE = "pass.json"
LABELS = re.compile(r"labels-(\d+)\.npz")


@dataclass(frozen=True)
class Iteration:
    """What the gate needs to know of an iteration folder."""

    folder: Path
    index: int
    score: float
    record: dict[str, Any]


@dataclass(frozen=True)
class Pass:
    """A pass folder: the files of its best iteration, and the scores and records of all that count."""

    folder: Path
    first: int
    scores: list[float]
    records: list[dict[str, Any]]


def main(argv: Sequence[str] | None = None) -> None:
    made = command.parser(
        "qonduit-loop",
        "Decides what a loop over iterations does next: start, gate (after a pass), select (at the end).",
        "qonduit-loop gate --iterations iteration-0 --threshold 0.8 --max-iterations 10 --keep pass --out next.json",
    )
    actions = made.add_subparsers(metavar="start|gate|select", required=True)
    _add_start(actions)
    _add_gate(actions)
    _add_select(actions)
    command.run(made, lambda options, outputs: options.work(options, outputs), argv)


def _add_start(actions: Any) -> None:
    made = _action(
        actions,
        "start",
        "Checks the settings before any work and names the first iterations.",
        "qonduit-loop start --methods kmeans dbscan --max-iterations 10 --settings settings.json --out next.json",
    )
    made.add_argument("--methods", nargs="+", required=True, choices=loop.METHODS, help="the clustering methods to use")
    # What later steps will be given: a mistake shall show before any work.
    made.add_argument("--preset", choices=loop.PRESETS, help="where the methods' parameters are drawn from")
    made.add_argument("--weights", choices=loop.WEIGHTS, help="what a cluster is worth")
    made.add_argument("--penalty", type=command.penalty, metavar="λ", help="what an overlap costs: auto, n or a number")
    made.add_argument("--seed", type=command.natural(0, 2**31 - 1), metavar="N", help="what all draws follow from")
    made.add_argument("--shots", type=command.natural(1, MOST_SHOTS), metavar="N", help="samples of the solver")
    made.add_argument(
        "--settings", type=Path, required=True, metavar="FILE", help="where to write the checked settings"
    )
    made.set_defaults(work=start)


def _add_gate(actions: Any) -> None:
    made = _action(
        actions,
        "gate",
        "Judges a pass: which iterations count, which is the best, and which run next.",
        "qonduit-loop gate --iterations iteration-0 --threshold 0.8 --max-iterations 10 --keep pass --out next.json",
    )
    made.add_argument(
        "--iterations",
        nargs="+",
        type=Path,
        required=True,
        metavar="DIR",
        help="the pass's iteration folders, in order",
    )
    made.add_argument(
        "--keep", type=Path, required=True, metavar="DIR", help="folder to make: the pass's best iteration"
    )
    made.set_defaults(work=gate)


def _add_select(actions: Any) -> None:
    made = _action(
        actions,
        "select",
        "Makes the run folder from the best iteration of all passes.",
        "qonduit-loop select --passes pass-* --threshold 0.8 --max-iterations 10 --folder results --out select.json",
    )
    made.add_argument("--passes", nargs="+", type=Path, required=True, metavar="DIR", help="what the gates kept")
    made.add_argument("--folder", type=Path, required=True, metavar="DIR", help="existing folder for the run's results")
    made.set_defaults(work=select)


def _action(actions: Any, name: str, description: str, example: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = actions.add_parser(
        name,
        description=description,
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument(
        "--threshold",
        type=command.number(-1, 1),
        default=0.8,
        metavar="SCORE",
        help="a strictly greater score ends the loop (default 0.8)",
    )
    made.add_argument(
        "--max-iterations", type=command.natural(1), default=10, metavar="N", help="stop after so many (default 10)"
    )
    made.add_argument(
        "--width", type=command.natural(1), default=1, metavar="N", help="iterations that run at once (default 1)"
    )
    made.add_argument("--out", type=Path, required=True, metavar="FILE", help="CWL output object: what comes next")
    command.add_common(made)
    return made


def start(options: argparse.Namespace, outputs: Outputs) -> command.Summary:
    for method in options.methods:
        if options.methods.count(method) > 1:
            raise UsageError(f"--methods: {method} is named twice; name each method once")
    limits = _limits(options)
    others = {name: getattr(options, name) for name in ("preset", "weights", "penalty", "seed", "shots")}
    outputs.write_json(options.settings, {"methods": options.methods, **asdict(limits), **others}, "--settings")
    first = list(loop.indices(0, limits))
    outputs.write_json(options.out, {"indices": first, "settings": _file(options.settings)}, "--out")
    return {"next": first}


def gate(options: argparse.Namespace, outputs: Outputs) -> command.Summary:
    ran = [_read_iteration(folder) for folder in options.iterations]
    first = ran[0].index
    if [iteration.index for iteration in ran] != list(range(first, first + len(ran))):
        raise UsageError("--iterations: the folders are not consecutive iterations; name them in order")
    verdict = loop.judge(first, [iteration.score for iteration in ran], _limits(options))
    counted = ran[: verdict.counted]
    scores = [iteration.score for iteration in counted]
    kept = outputs.folder(options.keep, "--keep")
    for file in sorted(file for file in ran[verdict.best - first].folder.iterdir() if file.is_file()):
        outputs.copy(file, kept / file.name, "--keep")
    records = [iteration.record for iteration in counted]
    outputs.write_json(kept / PASS_FILE, {"first": first, "scores": scores, "records": records}, "--keep")
    going = list(verdict.next_indices)
    outputs.write_json(
        options.out,
        {"go": bool(going), "indices": going, "kept": {"class": "Directory", "path": str(options.keep)}},
        "--out",
    )
    return {"scores": scores, "best_iteration": verdict.best, "passed": verdict.passed, "next": going}


def select(options: argparse.Namespace, outputs: Outputs) -> command.Summary:
    # A shell lists pass-10 before pass-2, so the order is taken from the files.
    passes = sorted((_read_pass(folder) for folder in options.passes), key=lambda one: one.first)
    scores: list[float] = []
    for one in passes:
        if one.first != len(scores):
            raise UsageError(f"--passes: iteration {len(scores)} is missing or there twice; name each pass once")
        scores += one.scores
    best = loop.best(scores)
    source = next(one.folder for one in passes if one.first <= best < one.first + len(one.scores))
    records = [record for one in passes for record in one.records]
    summary = {
        "best_score": scores[best],
        "best_iteration": best,
        "scores": scores,
        "passed": scores[-1] > options.threshold,
        "threshold": options.threshold,
        "max_iterations": options.max_iterations,
        "width": options.width,
        "labels": "labels.csv",
        "report": "report.html",
        "seconds": time.time() - _started(records),
    }
    files = _write_run(options.folder, source, summary, records, outputs)
    found = {key: summary[key] for key in ("best_score", "best_iteration", "scores")}
    outputs.write_json(options.out, {**found, **files}, "--out")
    return {**found, "passed": summary["passed"]}


def _write_run(
    folder: Path, source: Path, summary: dict[str, Any], records: list[dict[str, Any]], outputs: Outputs
) -> dict[str, Any]:
    """Writes the run folder and returns its files as CWL outputs."""
    option = "--folder"
    labels = sorted(
        (name for name in (file.name for file in source.iterdir()) if LABELS.fullmatch(name)),
        key=lambda name: int(name[len("labels-") : -len(".npz")]),
    )
    for name in ("best.npz", "problem.json", "samples.json", *labels):
        outputs.copy(command.existing(source / name, "--passes"), folder / name, option)
    outputs.write_json(folder / "summary.json", summary, option)
    outputs.write_json(folder / "history.json", records, option)
    outputs.write_text(folder / "labels.csv", _labels_csv(source / "best.npz"), option)
    return {
        "labels": _file(folder / "labels.csv"),
        "best": _file(folder / "best.npz"),
        "summary": _file(folder / "summary.json"),
        "history": _file(folder / "history.json"),
        "problem": _file(folder / "problem.json"),
        "samples": _file(folder / "samples.json"),
        "partitions": [_file(folder / name) for name in labels],
    }


def _labels_csv(path: Path) -> str:
    """One integer a line, one line a point in input order."""
    import zipfile

    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as archive:
            labels = archive["labels"]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        raise DataError(f"--passes: {path} holds no labels; run the score step again") from None
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or (labels < 0).any():
        raise DataError(f"--passes: {path} has labels that are not whole numbers from 0; run the score step again")
    return "".join(f"{label}\n" for label in labels.tolist())


def _read_iteration(folder: Path) -> Iteration:
    path = folder / "score.json"
    value = _read_json(path, "--iterations")
    index: Any = value.get("iteration")
    score: Any = value.get("score")
    if not _whole(index) or not _finite(score):
        raise DataError(f"--iterations: {path} has no whole 'iteration' and finite 'score'; run the score step again")
    return Iteration(folder, index, float(score), _read_json(folder / "record.json", "--iterations"))


def _read_pass(folder: Path) -> Pass:
    path = folder / PASS_FILE
    value = _read_json(path, "--passes")
    first: Any = value.get("first")
    scores: Any = value.get("scores")
    records: Any = value.get("records")
    lists = isinstance(scores, list) and isinstance(records, list) and 0 < len(scores) == len(records)
    if not lists or not _whole(first) or not all(map(_finite, scores)):
        raise DataError(f"--passes: {path} was not written by qonduit-loop gate; name the folders that it kept")
    return Pass(folder, first, scores, records)


def _started(records: list[dict[str, Any]]) -> float:
    """When the run's first recorded step began."""
    everything = [step for record in records for step in (record, *record.get("earlier", []))]
    return min((step["started"] for step in everything if "started" in step), default=time.time())


def _read_json(path: Path, option: str) -> dict[str, Any]:
    try:
        value = json.loads(command.existing(path, option).read_bytes())
    except ValueError:
        raise DataError(f"{option}: {path} is not JSON; run the step that wrote it again") from None
    if not isinstance(value, dict):
        raise DataError(f"{option}: {path} is not a JSON object; run the step that wrote it again")
    return value


def _limits(options: argparse.Namespace) -> loop.Limits:
    return loop.Limits(options.threshold, options.max_iterations, options.width)


def _file(path: Path) -> dict[str, str]:
    return {"class": "File", "path": str(path)}


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
