"""Minor embedding: a QUBO's variables as chains of an annealer's qubits, and measured qubits as variables again.

Pure functions on a working graph, used by the device `dwave`. The same graph and seed give the same chains.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import dimod

Chains = list[list[int]]
Rows = npt.NDArray[np.int8]
# No chain search of a real problem takes as long: it only keeps a hopeless one from never ending.
SEARCH_LIMIT_S = 300
# For some smaller cliques the search of minorminer 0.2.22 takes memory without end: three and four on a Chimera, five
# to eight on a Zephyr lattice (with shores of four, as all machines have). A part of a clique is one, so ask for more.
LEAST_CLIQUE, SHORE = 9, 4


@dataclass(frozen=True)
class WorkingGraph:
    """The qubits and couplers that work, in the order in which the vendor writes problems."""

    qubits: tuple[int, ...]
    couplers: tuple[tuple[int, int], ...]
    topology: str
    shape: tuple[int, ...]

    @classmethod
    def of(cls, properties: Mapping[str, Any]) -> WorkingGraph:
        topology = properties.get("topology", {})
        return cls(
            tuple(properties["qubits"]),
            tuple((u, v) for u, v in properties["couplers"]),
            str(topology.get("type", "unknown")),
            tuple(topology.get("shape", ())),
        )


@dataclass(frozen=True)
class Embedded:
    """An Ising problem on qubits, times `scale` to fit what the device can set; the strength is before that."""

    h: dict[int, float]
    j: dict[tuple[int, int], float]
    chain_strength: float
    scale: float


def find_chains(qubo: dimod.BinaryQuadraticModel, graph: WorkingGraph, seed: int, tries: int) -> Chains | None:
    """A chain of qubits for each variable, in their order; None if there is no room for them.

    A search finds short chains for a sparse problem, a clique's are the better ones for a dense one, if slow to find.
    """
    size = qubo.num_variables
    found = [_searched(qubo, graph, seed, tries)]
    if found == [None] or 4 * qubo.num_interactions > size * (size - 1):
        found.append(_clique(size, graph))
    return min(filter(None, found), key=lambda chains: (sum(map(len, chains)), max(map(len, chains))), default=None)


def _searched(qubo: dimod.BinaryQuadraticModel, graph: WorkingGraph, seed: int, tries: int) -> Chains | None:
    size = qubo.num_variables
    # What cannot fit is not searched for: a search of no avail is the slowest one.
    if not tries or size > len(graph.qubits) or qubo.num_interactions > len(graph.couplers):
        return None
    from minorminer.minorminer import find_embedding

    number = {variable: index for index, variable in enumerate(qubo.variables)}
    source = sorted(tuple(sorted((number[u], number[v]))) for u, v in qubo.quadratic)
    source += [(v, v) for v in range(size)]
    target = [*graph.couplers, *((q, q) for q in graph.qubits)]
    chains = find_embedding(source, target, random_seed=seed, tries=tries, timeout=SEARCH_LIMIT_S, threads=1)
    return [sorted(chains[v]) for v in range(size)] if chains else None


def _clique(size: int, graph: WorkingGraph) -> Chains | None:
    """Chains that couple every variable with every other."""
    hardware = _hardware(graph)
    if hardware is None or max(size, LEAST_CLIQUE) > len(graph.qubits):
        return None
    from minorminer.busclique import find_clique_embedding  # type: ignore[import-not-found]

    # Without its cache, which would be written into the user's home.
    chains = find_clique_embedding(max(size, LEAST_CLIQUE), hardware, seed=0, use_cache=False)
    return [sorted(chains[v]) for v in range(size)] if chains else None


def _hardware(graph: WorkingGraph) -> Any:
    """The graph as the clique search knows it; None for a topology that it does not know."""
    import dwave.graphs

    if graph.topology not in ("chimera", "pegasus", "zephyr") or not graph.shape:
        return None
    if graph.topology != "pegasus" and graph.shape[-1] != SHORE:
        return None
    maker = getattr(dwave.graphs, f"{graph.topology}_graph")
    return maker(*graph.shape, node_list=graph.qubits, edge_list=graph.couplers)


def embed(
    qubo: dimod.BinaryQuadraticModel, chains: Chains, graph: WorkingGraph, factor: float, properties: Mapping[str, Any]
) -> Embedded:
    """The QUBO on its chains; `factor` times what balances the couplings' torque holds a chain together."""
    import dimod
    from dwave.embedding.chain_strength import uniform_torque_compensation
    from dwave.embedding.transforms import embed_bqm

    spins = qubo.change_vartype(dimod.SPIN, inplace=False)
    spins.relabel_variables_as_integers()  # type: ignore[no-untyped-call]
    strength = float(uniform_torque_compensation(spins, prefactor=factor))  # type: ignore[no-untyped-call]
    neighbours: dict[int, set[int]] = {qubit: set() for qubit in graph.qubits}
    for u, v in graph.couplers:
        neighbours[u].add(v)
        neighbours[v].add(u)
    target = embed_bqm(spins, dict(enumerate(chains)), neighbours, chain_strength=strength)  # type: ignore[no-untyped-call]
    h = {int(qubit): float(bias) for qubit, bias in target.linear.items()}
    j = {(int(u), int(v)): float(bias) for u, v, bias in target.iter_quadratic()}
    scale = _scale(h, j, properties)
    return Embedded(
        {qubit: scale * bias for qubit, bias in h.items()},
        {pair: scale * bias for pair, bias in j.items()},
        strength,
        scale,
    )


def _scale(h: Mapping[int, float], j: Mapping[tuple[int, int], float], properties: Mapping[str, Any]) -> float:
    """The largest factor with which every bias, coupling and sum of a qubit's couplings stays in its range."""
    attracting, repelling = dict.fromkeys(h, 0.0), dict.fromkeys(h, 0.0)
    for pair, bias in j.items():
        for qubit in pair:
            attracting[qubit] += min(bias, 0.0)
            repelling[qubit] += max(bias, 0.0)
    limits: list[tuple[Sequence[float], Iterable[float]]] = [
        (properties["h_range"], h.values()),
        (properties.get("extended_j_range") or properties["j_range"], j.values()),
    ]
    if limit := properties.get("per_qubit_coupling_range"):
        limits.append((limit, [attracting[qubit] + repelling[qubit] for qubit in h]))
    # A group is a part of one qubit's couplers: what holds for all of one sign holds for any part.
    if limit := properties.get("per_group_coupling_range"):
        limits += [(limit, attracting.values()), (limit, repelling.values())]
    # A hair less, so that rounding does not carry a sum over its limit.
    factors = [
        (1 - 1e-9) * (high if value > 0 else low) / value for (low, high), values in limits for value in values if value
    ]
    return min(factors, default=1.0)


def unembedded(qubits: Rows, columns: Mapping[int, int], chains: Sequence[Sequence[int]]) -> tuple[Rows, float]:
    """A majority vote in each chain, and the fraction of chains that were broken; `columns` finds a qubit's column."""
    rows = np.empty((len(qubits), len(chains)), dtype=np.int8)
    broken = 0
    for variable, chain in enumerate(chains):
        votes = qubits[:, [columns[qubit] for qubit in chain]].sum(axis=1, dtype=np.intp)
        # A tie selects nothing: where the penalty is sufficient that is the safer side.
        rows[:, variable] = 2 * votes > len(chain)
        broken += int(np.count_nonzero((votes > 0) & (votes < len(chain))))
    return rows, broken / max(1, rows.size)
