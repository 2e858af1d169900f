"""Minor embedding against its definition: chains, couplings and energies are checked by counting them out."""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Mapping
from itertools import combinations, product
from typing import Any

import dimod
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qonduit.devices.dwave import Dwave
from qonduit.devices.embedding import WorkingGraph, embed, find_chains, unembedded
from qonduit.emulators import annealing, qp

WEIGHTS = st.floats(0.1, 50.0)


def machine(topology: str, qubits: int) -> dict[str, Any]:
    graph, made = annealing.working_graph(topology, qubits, 3)
    return annealing.properties(graph, made, topology)


MACHINES = {"pegasus": machine("pegasus", 120), "chimera": machine("chimera", 120)}


def complete(size: int) -> dimod.BinaryQuadraticModel:
    names = [f"c{v}" for v in range(size)]
    couplings = dict.fromkeys(combinations(names, 2), 2.0)
    return dimod.BinaryQuadraticModel(dict.fromkeys(names, -1.0), couplings, 0.0, dimod.BINARY)


@st.composite
def problems(draw: st.DrawFn, most: int = 8) -> dimod.BinaryQuadraticModel:
    """Selections with names that sort otherwise than they were made, and some variables without a coupling."""
    size = draw(st.integers(1, most))
    names = draw(st.permutations([f"c{v}" for v in range(size)]))
    bqm = dimod.BinaryQuadraticModel({name: -draw(WEIGHTS) for name in names}, {}, 0.0, dimod.BINARY)
    for u, v in combinations(names, 2):
        if draw(st.booleans()):
            bqm.add_quadratic(u, v, draw(WEIGHTS))
    return bqm


@given(bqm=problems(), topology=st.sampled_from(sorted(MACHINES)), seed=st.integers(0, 2**31 - 1))
@settings(max_examples=30)
def test_chains_hang_together_and_are_apart_and_every_coupling_has_a_coupler(
    bqm: dimod.BinaryQuadraticModel, topology: str, seed: int
) -> None:
    graph = WorkingGraph.of(MACHINES[topology])
    chains = find_chains(bqm, graph, seed, 3)
    assert chains is not None
    hardware = nx.Graph(graph.couplers)
    used = [qubit for chain in chains for qubit in chain]
    assert len(used) == len(set(used))
    assert set(used) <= set(graph.qubits)
    assert all(nx.is_connected(hardware.subgraph(chain)) for chain in chains)
    chain_of = dict(zip(bqm.variables, chains, strict=True))
    for u, v in bqm.quadratic:
        assert any(hardware.has_edge(p, q) for p, q in product(chain_of[u], chain_of[v]))
    assert find_chains(bqm, graph, seed, 3) == chains


@given(bqm=problems(6), topology=st.sampled_from(sorted(MACHINES)), factor=st.floats(0.1, 5.0))
@settings(max_examples=30)
def test_whole_chains_have_the_qubos_energies_in_the_machines_ranges(
    bqm: dimod.BinaryQuadraticModel, topology: str, factor: float
) -> None:
    described = MACHINES[topology]
    graph = WorkingGraph.of(described)
    chains = find_chains(bqm, graph, 1, 3)
    assert chains is not None
    embedded = embed(bqm, chains, graph, factor, described)
    differences: list[float] = []
    for bits in product((0, 1), repeat=bqm.num_variables):
        spin = {qubit: 2 * bit - 1 for chain, bit in zip(chains, bits, strict=True) for qubit in chain}
        programmed = sum(bias * spin[qubit] for qubit, bias in embedded.h.items())
        programmed += sum(bias * spin[u] * spin[v] for (u, v), bias in embedded.j.items())
        energy = bqm.energy(dict(zip(bqm.variables, bits, strict=True)))
        differences.append(float(programmed / embedded.scale - energy))
    assert max(differences) - min(differences) < 1e-6 * max(1.0, *map(abs, differences))
    assert in_range(embedded.h, embedded.j, described)


def in_range(h: Mapping[int, float], j: Mapping[tuple[int, int], float], described: Mapping[str, Any]) -> bool:
    sums = {qubit: sum(bias for pair, bias in j.items() if qubit in pair) for qubit in h}
    parts = (("h_range", h), ("extended_j_range", j), ("per_qubit_coupling_range", sums))
    return all(described[name][0] <= value <= described[name][1] for name, part in parts for value in part.values())


@given(
    rows=st.lists(st.lists(st.integers(0, 1), min_size=7, max_size=7), min_size=1, max_size=5),
    order=st.permutations(range(10, 17)),
)
def test_a_chain_votes_and_a_tie_selects_nothing(rows: list[list[int]], order: list[int]) -> None:
    chains = [order[:1], order[1:3], order[3:7]]
    columns = {qubit: column for column, qubit in enumerate(range(10, 17))}
    got, broken = unembedded(np.array(rows, dtype=np.int8), columns, chains)
    votes = [[[row[columns[qubit]] for qubit in chain] for chain in chains] for row in rows]
    assert got.tolist() == [[int(sum(vote) > len(vote) / 2) for vote in row] for row in votes]
    assert broken == sum(len(set(vote)) > 1 for row in votes for vote in row) / (3 * len(rows))


@pytest.mark.parametrize("topology", sorted(MACHINES))
def test_a_dense_problem_takes_no_more_qubits_than_a_clique_and_one_too_large_finds_no_place(topology: str) -> None:
    graph = WorkingGraph.of(MACHINES[topology])
    clique, chosen = find_chains(complete(12), graph, 1, 0), find_chains(complete(12), graph, 1, 3)
    assert clique is not None
    assert chosen is not None
    assert sum(map(len, chosen)) <= sum(map(len, clique))
    assert find_chains(complete(40), graph, 1, 1) is None


SMALL_CLIQUES = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
import dwave.graphs
from qonduit.devices.embedding import WorkingGraph, _clique
for name, size, shape in (("chimera", 4, (4, 4, 4)), ("pegasus", 4, (4,)), ("zephyr", 3, (3, 4))):
    lattice = getattr(dwave.graphs, name + "_graph")(size)
    graph = WorkingGraph(tuple(sorted(lattice)), tuple(sorted(lattice.edges)), name, shape)
    print([len(_clique(variables, graph) or ()) for variables in range(1, 13)])
"""


def test_small_cliques_are_found_on_every_lattice_in_little_memory() -> None:
    # In a process with a limit, since what this guards against would take all the memory there is.
    done = subprocess.run([sys.executable, "-c", SMALL_CLIQUES], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(list(range(1, 13)))] * 3


def test_ranges_of_groups_of_couplers_are_kept_too() -> None:
    described = {**MACHINES["pegasus"], "per_group_coupling_range": [-3.0, 2.0]}
    del described["per_qubit_coupling_range"]
    graph = WorkingGraph.of(described)
    bqm = complete(10)
    chains = find_chains(bqm, graph, 0, 3)
    assert chains is not None
    embedded = embed(bqm, chains, graph, 1.0, described)
    for qubit in embedded.h:
        ends = [bias for pair, bias in embedded.j.items() if qubit in pair]
        assert sum(min(bias, 0.0) for bias in ends) >= -3.0
        assert sum(max(bias, 0.0) for bias in ends) <= 2.0


def test_the_vendors_own_encoder_writes_the_same_problem() -> None:
    from dwave.cloud.coders import encode_problem_as_qp

    from qonduit.devices.dwave import _encoded

    class Solver:
        _encoding_qubits = MACHINES["pegasus"]["qubits"]
        _encoding_couplers = tuple((u, v) for u, v in MACHINES["pegasus"]["couplers"])

    bqm = complete(6)
    graph = WorkingGraph.of(MACHINES["pegasus"])
    chains = find_chains(bqm, graph, 0, 3)
    assert chains is not None
    embedded = embed(bqm, chains, graph, 1.0, MACHINES["pegasus"])
    theirs: Any = encode_problem_as_qp(Solver(), embedded.h, embedded.j)  # type: ignore[arg-type, no-untyped-call, unused-ignore]
    ours = _encoded(graph, embedded.h, embedded.j)
    for part in ("lin", "quad"):
        one, other = (np.frombuffer(base64.b64decode(encoded[part]), "<f8") for encoded in (theirs, ours))
        assert np.array_equal(one, other, equal_nan=True)
    h, j = qp.decoded(ours, MACHINES["pegasus"])
    assert h == embedded.h
    assert sum(bias for _, _, bias in j) == pytest.approx(sum(embedded.j.values()))


def test_the_chain_strength_option_is_what_the_vendors_recommendation_is_multiplied_by() -> None:
    assert Dwave.known_options["chain_strength"].default == 1.0
    graph = WorkingGraph.of(MACHINES["pegasus"])
    chains = [[qubit] for qubit in triangle(graph)]
    strengths = [embed(complete(3), chains, graph, factor, MACHINES["pegasus"]).chain_strength for factor in (1, 3)]
    # The couplings of the Ising problem are 2/4 and every variable has two of them.
    assert strengths == pytest.approx([0.5 * 2**0.5, 3 * 0.5 * 2**0.5])


def triangle(graph: WorkingGraph) -> tuple[int, ...]:
    hardware = nx.Graph(graph.couplers)
    return next((u, v, w) for u, v in hardware.edges for w in nx.common_neighbors(hardware, u, v))
