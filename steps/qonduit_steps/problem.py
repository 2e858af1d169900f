"""The aggregation problem that `qonduit-aggregate` writes and `qonduit-solve` and `qonduit-score` read.

A `Problem` cannot be made inconsistent: it checks itself. Its QUBO follows from its clusters, edges and penalty, and
the copy in the file, in dimod's own serialisation, must agree with them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qonduit.errors import DataError
from qonduit_steps.command import existing

if TYPE_CHECKING:
    import dimod

FORMAT = "qonduit-problem/1"


@dataclass(frozen=True)
class Member:
    """A cluster of one input; identical clusters of several inputs are one variable."""

    input: int
    method: str
    cluster: int


@dataclass(frozen=True)
class Cluster:
    variable: str
    members: tuple[Member, ...]
    size: int
    weight: float
    in_objective: bool


@dataclass(frozen=True)
class Penalty:
    """`needed` is the maximum over edges of the lighter end's weight; any value above it is sufficient."""

    rule: str
    value: float
    needed: float


@dataclass(frozen=True)
class InputPartition:
    """One input's own clusters, as far as they are in the objective: a known feasible solution."""

    input: int
    method: str
    variables: tuple[str, ...]


@dataclass(frozen=True)
class Problem:
    points: int
    iteration: int
    weights: str
    penalty: Penalty
    clusters: tuple[Cluster, ...]
    edges: tuple[tuple[str, str], ...]
    partitions: tuple[InputPartition, ...]

    def __post_init__(self) -> None:
        _check_clusters(self)
        _check_edges(self)
        _check_partitions(self)

    def bqm(self) -> dimod.BinaryQuadraticModel:
        """f(x) = -sum w_i x_i + penalty * sum over edges x_i x_j, over the clusters in the objective."""
        import dimod

        bqm = dimod.BinaryQuadraticModel(dimod.BINARY)
        bqm.add_linear_from((cluster.variable, -cluster.weight) for cluster in self.clusters if cluster.in_objective)
        inside = set(bqm.variables)
        bqm.add_quadratic_from((u, v, self.penalty.value) for u, v in self.edges if u in inside and v in inside)
        return bqm


def problem_to_json(problem: Problem) -> dict[str, Any]:
    """The content of problem.json, for `Outputs.write_json`."""
    return {"format": FORMAT, **asdict(problem), "bqm": problem.bqm().to_serializable()}


def read_problem(path: Path, option: str = "--problem") -> Problem:
    """The problem in a file, or one sentence that says what is wrong with it."""
    try:
        content = json.loads(existing(path, option).read_bytes())
    except (ValueError, RecursionError) as error:
        raise DataError(f"{option}: {path} is not JSON ({error}); make it with qonduit-aggregate") from None
    try:
        return _problem_from(content)
    except DataError as error:
        raise DataError(f"{option}: {path}: {error}; make it again with qonduit-aggregate") from None


def _problem_from(content: Any) -> Problem:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DataError(f"the format is not {FORMAT}")
    problem = Problem(
        points=_get(content, "points", int),
        iteration=_get(content, "iteration", int),
        weights=_get(content, "weights", str),
        penalty=_penalty(_get(content, "penalty", dict)),
        clusters=tuple(_cluster(item) for item in _get(content, "clusters", list)),
        edges=tuple(_edge(item) for item in _get(content, "edges", list)),
        partitions=tuple(_partition(item) for item in _get(content, "partitions", list)),
    )
    _check_stored(_get(content, "bqm", dict), problem)
    return problem


def _check_stored(stored: Mapping[str, Any], problem: Problem) -> None:
    """Compares the file's QUBO without dimod, which starts slowly and crashes on an index out of range."""
    try:
        labels = stored["variable_labels"]
        linear = dict(zip(labels, stored["linear_biases"], strict=True))
        ends = zip(stored["quadratic_head"], stored["quadratic_tail"], stored["quadratic_biases"], strict=True)
        quadratic = {frozenset((labels[head], labels[tail])): bias for head, tail, bias in ends}
        found = (stored["type"], stored["variable_type"], stored["offset"], linear, quadratic)
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise DataError(f"the bqm cannot be read ({type(error).__name__}: {error})") from None
    weights = {cluster.variable: -cluster.weight for cluster in problem.clusters if cluster.in_objective}
    inside = {frozenset(edge): problem.penalty.value for edge in problem.edges if weights.keys() >= set(edge)}
    if found != ("BinaryQuadraticModel", "BINARY", 0, weights, inside):
        raise DataError("the bqm does not agree with the clusters, edges and penalty")


def _get(item: Any, name: str, kind: Any) -> Any:
    """A field of the right type; whole numbers pass as floats, but True does not pass as 1."""
    if not isinstance(item, Mapping) or name not in item:
        raise DataError(f"the field '{name}' is missing")
    value = item[name]
    if isinstance(value, bool) is not (kind is bool) or not isinstance(value, int | float if kind is float else kind):
        raise DataError(f"the field '{name}' has a value of the wrong type")
    if isinstance(value, int) and abs(value) >= 2**53:
        raise DataError(f"the field '{name}' is too large a number")
    return float(value) if kind is float else value


def _penalty(item: Any) -> Penalty:
    return Penalty(_get(item, "rule", str), _get(item, "value", float), _get(item, "needed", float))


def _cluster(item: Any) -> Cluster:
    members = _get(item, "members", list)
    return Cluster(
        variable=_get(item, "variable", str),
        members=tuple(
            Member(_get(one, "input", int), _get(one, "method", str), _get(one, "cluster", int)) for one in members
        ),
        size=_get(item, "size", int),
        weight=_get(item, "weight", float),
        in_objective=_get(item, "in_objective", bool),
    )


def _edge(item: Any) -> tuple[str, str]:
    if not (isinstance(item, list) and len(item) == 2 and all(isinstance(end, str) for end in item)):
        raise DataError("an edge is not a pair of variables")
    return item[0], item[1]


def _partition(item: Any) -> InputPartition:
    variables = _get(item, "variables", list)
    if not all(isinstance(variable, str) for variable in variables):
        raise DataError("a partition's variables are not all names")
    return InputPartition(_get(item, "input", int), _get(item, "method", str), tuple(variables))


def _check_clusters(problem: Problem) -> None:
    if problem.points < 1 or problem.iteration < 0:
        raise DataError("there must be at least one point, and the iteration must not be negative")
    if not (
        math.isfinite(problem.penalty.value) and math.isfinite(problem.penalty.needed) and problem.penalty.value >= 0
    ):
        raise DataError("the penalty must be a number that is not negative")
    seen: set[str] = set()
    for cluster in problem.clusters:
        if cluster.variable in seen:
            raise DataError(f"two clusters are called {cluster.variable}")
        if not math.isfinite(cluster.weight):
            raise DataError(f"the weight of {cluster.variable} is not a finite number")
        seen.add(cluster.variable)


def _check_edges(problem: Problem) -> None:
    known = {cluster.variable for cluster in problem.clusters}
    seen: set[frozenset[str]] = set()
    for edge in problem.edges:
        for end in edge:
            if end not in known:
                raise DataError(f"an edge names {end}, which is no cluster")
        if edge[0] == edge[1] or frozenset(edge) in seen:
            raise DataError(f"the edge {edge[0]}, {edge[1]} is there twice or joins a cluster to itself")
        seen.add(frozenset(edge))


def _check_partitions(problem: Problem) -> None:
    inside = {cluster.variable for cluster in problem.clusters if cluster.in_objective}
    for partition in problem.partitions:
        chosen = set(partition.variables)
        for variable in partition.variables:
            if variable not in inside:
                raise DataError(f"the partition of {partition.method} names {variable}, which is not in the objective")
        for u, v in problem.edges:
            if u in chosen and v in chosen:
                raise DataError(f"the partition of {partition.method} is not feasible: {u} overlaps {v}")
