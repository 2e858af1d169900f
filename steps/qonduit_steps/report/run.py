"""Everything that the report shows, read from a run folder and checked once.

Called by `qonduit-report`; the drawings and the page take a `Run` and can trust it.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qonduit.errors import DataError, UsageError
from qonduit_steps.command import existing
from qonduit_steps.partition import Labels, Partition, read_npz, read_partition
from qonduit_steps.points import read_points


@dataclass(frozen=True)
class Step:
    """What one step of an iteration left behind: its times and its own summary."""

    name: str
    process_s: float
    cpu_s: float
    peak_mb: float
    started: float
    summary: Mapping[str, Any]


@dataclass(frozen=True)
class Iteration:
    number: int
    score: float
    steps: tuple[Step, ...]

    def summary(self, step: str) -> Mapping[str, Any]:
        """The summary of the named step, empty where the step left no record."""
        return next((made.summary for made in self.steps if made.name == step), {})

    @property
    def inputs(self) -> list[Mapping[str, Any]]:
        return [made.summary for made in self.steps if made.name == "cluster"]


@dataclass(frozen=True)
class Vertex:
    """A cluster of the overlap graph; `members` are (input, cluster) pairs, several if methods found the same."""

    variable: str
    members: tuple[tuple[int, int], ...]
    size: int
    weight: float
    in_objective: bool
    selected: bool


@dataclass(frozen=True)
class Run:
    points: npt.NDArray[np.float64]
    best: Labels
    assigned_points: int
    inputs: tuple[Partition, ...]
    iterations: tuple[Iteration, ...]
    best_index: int
    passed: bool
    threshold: float
    max_iterations: int
    seconds: float
    weights: str
    penalty: float
    device: str
    energy: float
    source: str
    proved_optimal: bool
    vertices: tuple[Vertex, ...]
    edges: tuple[tuple[int, int], ...] = field(repr=False)

    @property
    def best_iteration(self) -> Iteration:
        return self.iterations[self.best_index]

    @property
    def best_score(self) -> float:
        return self.best_iteration.score

    @property
    def clusters(self) -> int:
        return len(np.unique(self.best))


def read_run(folder: Path, points_path: Path | None = None) -> Run:
    """Reads the whole folder; anything missing or broken is one sentence that names the file."""
    if not folder.is_dir():
        raise UsageError(f"--run: there is no folder {folder}; name the results of a run")
    points = read_points(points_path or folder / "points.npy", "--points" if points_path else "--run")
    inputs = _read_inputs(folder, len(points))
    best, assigned_points = _read_best(folder / "best.npz", len(points))
    summary = _File(folder / "summary.json")
    iterations = _iterations(summary, _File(folder / "history.json"))
    problem, samples = _File(folder / "problem.json"), _File(folder / "samples.json")
    found = samples.value("best", dict)
    vertices, edges = _graph(problem, samples, inputs)
    best_index = int(summary.number("best_iteration"))
    if not 0 <= best_index < len(iterations) or iterations[best_index].score != summary.number("best_score"):
        raise summary.wrong("best_iteration and best_score do not fit its scores")
    return Run(
        points=points,
        best=best,
        assigned_points=assigned_points,
        inputs=inputs,
        iterations=iterations,
        best_index=best_index,
        passed=bool(summary.value("passed", bool)),
        threshold=summary.number("threshold"),
        max_iterations=int(summary.number("max_iterations")),
        seconds=summary.number("seconds"),
        weights=str(problem.value("weights", str)),
        penalty=problem.number("value", problem.value("penalty", dict)),
        device=str(samples.value("kind", str, samples.value("device", dict))),
        energy=samples.number("energy", found),
        source=str(samples.value("source", str, found)),
        proved_optimal=bool(samples.value("proved_optimal", bool, found)),
        vertices=vertices,
        edges=edges,
    )


def _read_inputs(folder: Path, points: int) -> tuple[Partition, ...]:
    try:
        matches = [re.fullmatch(r"labels-(\d+)\.npz", name) for name in os.listdir(folder)]
    except OSError as failure:
        raise UsageError(f"--run: {folder} cannot be read ({failure.strerror}); check its permissions") from None
    count = max((int(match[1]) + 1 for match in matches if match), default=1)
    return tuple(read_partition(folder / f"labels-{number}.npz", "--run", points) for number in range(count))


def _read_best(path: Path, points: int) -> tuple[Labels, int]:
    fields = read_npz(path, "--run", ("labels", "assigned"))
    labels, assigned = fields["labels"], fields["assigned"]
    if labels.shape != (points,) or assigned.shape != (points,) or assigned.dtype != np.bool_:
        raise DataError(f"--run: {path} does not label the {points} points; use files of one run")
    if labels.dtype.kind != "i" or labels.min() < 0 or labels.max() >= points:
        raise DataError(f"--run: {path} holds no clusters 0, 1, 2, …; make it again with qonduit-score")
    return labels.astype(np.int32), int(assigned.sum())


class _File:
    """A JSON file and the sentences about what is wrong with it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.content: Any = json.loads(existing(path, "--run").read_bytes(), parse_constant=self._no_constant)
        except (ValueError, RecursionError):
            raise self.wrong("it is not JSON") from None

    def wrong(self, what: str) -> DataError:
        return DataError(f"--run: {self.path} cannot be used: {what}; make the run again")

    def value(self, key: str, kind: type | tuple[type, ...], within: Any = None) -> Any:
        content = self.content if within is None else within
        found = content.get(key) if isinstance(content, dict) else None
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
            raise self.wrong(f"'{key}' is missing or of the wrong kind")
        return found

    def number(self, key: str, within: Any = None) -> float:
        found = self.value(key, (int, float), within)
        try:
            number = float(found)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self.wrong(f"'{key}' is not finite")
        return number

    def _no_constant(self, name: str) -> Any:
        raise self.wrong(f"it holds {name}")


def _iterations(summary: _File, history: _File) -> tuple[Iteration, ...]:
    scores = summary.value("scores", list)
    records = history.content
    if not isinstance(records, list) or not records or len(records) != len(scores):
        raise history.wrong(f"it must be a list of {len(scores) or 'at least one'} records, one for each score")
    iterations = tuple(_iteration(history, record, index) for index, record in enumerate(records))
    if [one.score for one in iterations] != scores:
        raise summary.wrong("its scores are not those of history.json")
    return iterations


def _iteration(history: _File, record: Any, index: int) -> Iteration:
    own = history.value("summary", dict, record)
    earlier = history.value("earlier", list, record) if "earlier" in record else []
    steps = tuple(_step(history, made) for made in [*earlier, record])
    number = history.number("iteration", own) if "iteration" in own else index
    return Iteration(int(number), history.number("score", own), steps)


def _step(history: _File, record: Any) -> Step:
    return Step(
        name=str(history.value("step", str, record)),
        process_s=history.number("process_seconds", record),
        cpu_s=history.number("cpu_seconds", record),
        peak_mb=history.number("peak_mb", record),
        started=history.number("started", record),
        summary=history.value("summary", dict, record),
    )


def _graph(
    problem: _File, samples: _File, inputs: tuple[Partition, ...]
) -> tuple[tuple[Vertex, ...], tuple[tuple[int, int], ...]]:
    selected = samples.value("variables", list, samples.value("best", dict))
    vertices = tuple(_vertex(problem, cluster, selected, inputs) for cluster in problem.value("clusters", list))
    place = {vertex.variable: index for index, vertex in enumerate(vertices)}
    if not all(isinstance(name, str) and name in place for name in selected):
        raise samples.wrong("it selects a variable that problem.json does not have")
    try:
        edges = tuple((place[one], place[other]) for one, other in problem.value("edges", list))
    except (KeyError, TypeError, ValueError):
        raise problem.wrong("an edge does not join two of its clusters") from None
    return vertices, edges


def _vertex(problem: _File, cluster: Any, selected: list[Any], inputs: tuple[Partition, ...]) -> Vertex:
    members = tuple(
        (int(problem.number("input", member)), int(problem.number("cluster", member)))
        for member in problem.value("members", list, cluster)
    )
    if not members or not all(0 <= i < len(inputs) and 0 <= c < inputs[i].clusters for i, c in members):
        raise problem.wrong("a cluster is in none of the labels-N.npz")
    variable = str(problem.value("variable", str, cluster))
    return Vertex(
        variable=variable,
        members=members,
        size=int(problem.number("size", cluster)),
        weight=problem.number("weight", cluster),
        in_objective=bool(problem.value("in_objective", bool, cluster)),
        selected=variable in selected,
    )
