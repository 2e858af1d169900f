"""The exact device: the best independent set with a proof, by tree decomposition or else by HiGHS.

It says when it could not prove its answer within its time limit. The optimum is that among independent sets, so it
is right even where a QUBO's penalty is too small.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from qonduit.devices.independence import Graph, graph_of, independent, repaired
from qonduit.devices.local import LocalDevice, Rows
from qonduit.devices.options import Number, Option
from qonduit.devices.request import Request
from qonduit.devices.swaps import swap_search
from qonduit.errors import DeviceError

if TYPE_CHECKING:
    import dimod

# A table of 2^width numbers is kept per eliminated vertex; wider graphs go to HiGHS.
WIDEST = 16
# HiGHS stops at an absolute gap of 1e-6: with the heaviest vertex at this weight, that is below rounding.
HEAVIEST = 1e5
SWAPS = 10_000


class Exact(LocalDevice):
    kind = "exact"
    known_options: ClassVar[dict[str, Option]] = {
        "time_limit_s": Number(60.0, 0.001, 1e7, about="When HiGHS stops to look for a proof.")
    }

    def payload(self, qubo: dimod.BinaryQuadraticModel, shots: int, starts: Sequence[Sequence[str]]) -> dict[str, Any]:  # noqa: ARG002
        return {"time_limit_s": self.options["time_limit_s"]}

    def compute(self, request: Request) -> tuple[Rows, dict[str, Any]]:
        graph = graph_of(request.bqm())
        order = elimination_order(graph, WIDEST)
        if order is None:
            method = "HiGHS"
            chosen, proved = _by_packing(graph, request.payload["time_limit_s"])
        else:
            method = "tree decomposition"
            chosen, proved = _by_tree(graph, order), True
        rows = np.zeros((1, len(graph.weights)), dtype=np.int8)
        rows[0, sorted(chosen)] = 1
        return rows, {"method": method, "proved_optimal": proved and independent(graph, chosen)}


def elimination_order(graph: Graph, widest: int) -> list[int] | None:
    """Vertices in order of least degree, each joining its neighbours as it goes; None if that gets too wide."""
    beside = {vertex: set(near) for vertex, near in enumerate(graph.neighbours)}
    order = []
    while beside:
        vertex = min(beside, key=lambda v: len(beside[v]))
        near = beside.pop(vertex)
        if len(near) > widest:
            return None
        for other in near:
            beside[other] |= near
            beside[other] -= {other, vertex}
        order.append(vertex)
    return order


def clique_cover(graph: Graph) -> list[list[int]]:
    """Cliques that hold every edge: as constraints they are tighter than the edges one by one."""
    cliques = []
    covered: set[tuple[int, int]] = set()
    for u, v in graph.edges():
        if (u, v) in covered:
            continue
        clique, fitting = [u, v], graph.neighbours[u] & graph.neighbours[v]
        while fitting:
            clique.append(max(fitting, key=lambda w: (len(graph.neighbours[w] & fitting), w)))
            fitting &= graph.neighbours[clique[-1]]
        clique.sort()
        covered.update((a, b) for i, a in enumerate(clique) for b in clique[i + 1 :])
        cliques.append(clique)
    return cliques


def _by_tree(graph: Graph, order: list[int]) -> Set[int]:
    import dimod
    from dwave.samplers import TreeDecompositionSolver

    # Twice what any overlap can gain, whatever the QUBO's own penalty is.
    penalty = 2 * max([1.0, *graph.weights])
    bqm = dimod.BinaryQuadraticModel(dimod.BINARY)
    bqm.add_linear_from((vertex, -weight) for vertex, weight in enumerate(graph.weights))
    bqm.add_quadratic_from((u, v, penalty) for u, v in graph.edges())
    found = TreeDecompositionSolver().sample(bqm, elimination_order=list(order))  # type: ignore[no-untyped-call]
    return {vertex for vertex, bit in found.first.sample.items() if bit}


def _by_packing(graph: Graph, time_limit_s: float) -> tuple[Set[int], bool]:
    """Set packing as a mixed-integer programme: the best selection found and whether it is proved best."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    weights = np.array(graph.weights)
    cliques = clique_cover(graph)
    rows = np.repeat(np.arange(len(cliques)), [len(clique) for clique in cliques])
    columns = np.concatenate(cliques)
    packing = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(cliques), len(weights)))
    found = milp(
        -weights * (HEAVIEST / (np.abs(weights).max() or 1.0)),
        integrality=np.ones(len(weights)),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(packing, ub=1),
        options={"time_limit": time_limit_s, "mip_rel_gap": 0},
    )
    if found.status not in (0, 1):
        raise DeviceError(f"HiGHS failed ({found.message}); use the device kind 'annealer'")
    chosen = frozenset() if found.x is None else frozenset(np.flatnonzero(found.x > 0.5).tolist())
    if found.status == 0:
        return chosen, True
    # What HiGHS holds before it is done is often far from good, even to the eye.
    return swap_search(graph, repaired(graph, chosen), SWAPS, np.random.default_rng(0)), False
