"""The graph behind a QUBO, and what makes a set of its vertices a solution: the check and the repair.

Pure functions on vertex numbers, used by `decode` of every kind of device. A QUBO here is
f(x) = -sum w_i x_i + sum over edges of a penalty x_i x_j, so a solution is an independent set.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qonduit.errors import DataError

if TYPE_CHECKING:
    import dimod


@dataclass(frozen=True)
class Graph:
    """Vertices are numbered as the QUBO's variables; `weights` are what selecting each of them gains."""

    weights: tuple[float, ...]
    neighbours: tuple[frozenset[int], ...]

    def edges(self) -> list[tuple[int, int]]:
        return [(u, v) for u, beside in enumerate(self.neighbours) for v in sorted(beside) if u < v]

    def weight(self, chosen: Iterable[int]) -> float:
        return sum(self.weights[v] for v in sorted(chosen))


@dataclass(frozen=True)
class Repair:
    """What was taken from a selection and put into it; the outcome is a maximal independent set."""

    removed: tuple[int, ...]
    added: tuple[int, ...]


def graph_of(bqm: dimod.BinaryQuadraticModel) -> Graph:
    """The graph whose edges are the QUBO's couplings; a QUBO that rewards a pair has none and is refused."""
    number = {variable: index for index, variable in enumerate(bqm.variables)}
    neighbours: list[set[int]] = [set() for _ in number]
    if bqm.vartype.name != "BINARY":
        raise DataError("the QUBO's variables must be binary, not spins")
    for u, v, bias in bqm.iter_quadratic():
        if bias < 0:
            raise DataError(f"the QUBO rewards selecting {u} together with {v}; couplings must be penalties")
        neighbours[number[u]].add(number[v])
        neighbours[number[v]].add(number[u])
    weights = tuple(-float(bqm.linear[variable]) for variable in number)
    return Graph(weights, tuple(frozenset(beside) for beside in neighbours))


def independent(graph: Graph, chosen: Set[int]) -> bool:
    return all(graph.neighbours[v].isdisjoint(chosen) for v in chosen)


def heaviest(graph: Graph) -> float:
    """The weight of the best independent set, by branching on the vertex with most neighbours: for small graphs."""
    known: dict[frozenset[int], float] = {frozenset(): 0.0}

    def best(left: frozenset[int]) -> float:
        if left not in known:
            vertex = max(left, key=lambda v: (len(graph.neighbours[v] & left), v))
            without = best(left - {vertex})
            known[left] = max(without, graph.weights[vertex] + best(left - {vertex} - graph.neighbours[vertex]))
        return known[left]

    return best(frozenset(v for v, weight in enumerate(graph.weights) if weight > 0))


def repair(graph: Graph, chosen: Set[int]) -> Repair:
    """Removes the lightest vertex that overlaps another until none does, then adds what fits and gains, heaviest first.

    With a sufficient penalty each of these moves lowers the energy.
    """
    kept = set(chosen)
    removed = []
    for v in sorted(chosen, key=lambda v: (graph.weights[v], v)):
        if not graph.neighbours[v].isdisjoint(kept):
            kept.remove(v)
            removed.append(v)
    added = []
    for v in sorted(range(len(graph.weights)), key=lambda v: (-graph.weights[v], v)):
        if graph.weights[v] > 0 and v not in kept and graph.neighbours[v].isdisjoint(kept):
            kept.add(v)
            added.append(v)
    return Repair(tuple(sorted(removed)), tuple(sorted(added)))


def repaired(graph: Graph, chosen: Set[int]) -> frozenset[int]:
    change = repair(graph, chosen)
    return frozenset((set(chosen) - set(change.removed)) | set(change.added))
