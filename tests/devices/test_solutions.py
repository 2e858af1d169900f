"""The solutions of every local device against brute force and a set-packing programme that share no code with them."""

from __future__ import annotations

import itertools
from typing import Any

import dimod
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from qonduit.devices import exact
from qonduit.devices.annealer import Annealer
from qonduit.devices.answer import Answer, choose, energy_of
from qonduit.devices.device import Device
from qonduit.devices.exact import Exact, clique_cover, elimination_order
from qonduit.devices.execute import execute
from qonduit.devices.independence import Graph, graph_of, independent, repair, repaired
from qonduit.devices.samples import sample_set
from qonduit.devices.settings import Settings
from qonduit.devices.swaps import swap_search
from qonduit.errors import DataError, DeviceError

relaxed = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
Weights = list[float]
Edges = list[tuple[int, int]]


@st.composite
def instances(draw: st.DrawFn, most: int = 12) -> tuple[Weights, Edges]:
    """Any graph; weights from a thousandth to those of a sum over a hundred thousand points, often equal."""
    size = draw(st.integers(1, most))
    weight = st.one_of(st.floats(1e-3, 1e5), st.integers(1, 3).map(float))
    weights = draw(st.lists(weight, min_size=size, max_size=size))
    pairs = list(itertools.combinations(range(size), 2))
    return weights, draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []


def overlaps_of_partitions(seed: int, points: int = 300, methods: int = 3) -> tuple[Weights, Edges, list[list[str]]]:
    """The application's kind of graph: clusters of several random partitions, an edge where two share a point."""
    rng = np.random.default_rng(seed)
    clusters: dict[frozenset[int], float] = {}
    partitions = []
    for _ in range(methods):
        cuts = np.sort(rng.choice(np.arange(1, points), rng.integers(3, 9), replace=False))
        parts = [frozenset(part.tolist()) for part in np.split(np.arange(points), cuts)]
        clusters.update({part: clusters.get(part, len(part) * rng.uniform(50, 300)) for part in parts})
        partitions.append(parts)
    number = {part: index for index, part in enumerate(clusters)}
    edges = [(number[a], number[b]) for a, b in itertools.combinations(clusters, 2) if a & b]
    return list(clusters.values()), edges, [[f"c{number[part]}" for part in parts] for parts in partitions]


def qubo(weights: Weights, edges: Edges, penalty: float | None = None) -> dimod.BinaryQuadraticModel:
    """Named variables, with a penalty just above what is needed unless another is given."""
    needed = max((min(weights[u], weights[v]) for u, v in edges), default=1.0)
    bqm = dimod.BinaryQuadraticModel(dimod.BINARY)
    for index, weight in enumerate(weights):
        bqm.add_variable(f"c{index}", -weight)
    for u, v in edges:
        bqm.add_quadratic(f"c{u}", f"c{v}", needed * 1.0001 if penalty is None else penalty)
    return bqm


def brute_force(weights: Weights, edges: Edges) -> float:
    """The greatest weight of an independent set, by looking at all sets."""
    bits = np.array(list(itertools.product((0, 1), repeat=len(weights))), dtype=bool)
    for u, v in edges:
        bits = bits[~(bits[:, u] & bits[:, v])]
    return float((bits * np.array(weights)).sum(axis=1).max())


def packing(weights: Weights, edges: Edges) -> float:
    """The same by HiGHS, one constraint an edge."""
    rows = np.zeros((max(1, len(edges)), len(weights)))
    for row, (u, v) in enumerate(edges):
        rows[row, [u, v]] = 1
    found = milp(
        -np.array(weights),
        integrality=np.ones(len(weights)),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(rows, ub=1),
        options={"mip_rel_gap": 0},
    )
    assert found.status == 0
    return float(-found.fun)


def solve(
    device: Device,
    bqm: dimod.BinaryQuadraticModel,
    known: list[list[str]] | None = None,
    shots: int = 20,
    seed: int = 0,
) -> tuple[dimod.SampleSet, Answer]:
    request = device.prepare(bqm, shots, seed, known or [])
    samples = device.decode(request, execute(device, request))
    return samples, choose(bqm, samples, known or [])


def is_independent(bqm: dimod.BinaryQuadraticModel, chosen: tuple[str, ...]) -> bool:
    return not any(u in chosen and v in chosen for u, v in bqm.quadratic)


@relaxed
@given(instances(14))
def test_exact_finds_the_optimum_of_brute_force_and_says_that_it_is_proved(instance: tuple[Weights, Edges]) -> None:
    bqm = qubo(*instance)
    _, answer = solve(Exact(Settings("exact")), bqm)
    assert -answer.energy == pytest.approx(brute_force(*instance), rel=1e-12)
    assert answer.proved_optimal
    assert is_independent(bqm, answer.variables)


@relaxed
@given(instances(14))
def test_the_lowest_energy_of_the_qubo_is_the_heaviest_set_packing(instance: tuple[Weights, Edges]) -> None:
    lowest = dimod.ExactSolver().sample(qubo(*instance)).first.energy  # type: ignore[no-untyped-call]
    assert -lowest == pytest.approx(packing(*instance), rel=1e-7)


@relaxed
@given(instances(14))
def test_exact_by_highs_agrees_with_brute_force(instance: tuple[Weights, Edges]) -> None:
    assume(instance[1])
    graph = graph_of(qubo(*instance))
    chosen, proved = exact._by_packing(graph, 60)
    assert proved
    assert independent(graph, chosen)
    assert graph.weight(chosen) == pytest.approx(brute_force(*instance), rel=1e-9)


@pytest.mark.parametrize("penalty", [0.0, 0.1])
def test_exact_is_right_even_where_the_penalty_is_too_small(penalty: float) -> None:
    bqm = qubo([3.0, 2.0, 2.0], [(0, 1), (0, 2)], penalty)
    _, answer = solve(Exact(Settings("exact")), bqm)
    assert answer.variables == ("c1", "c2")
    assert answer.proved_optimal


def wide_graph(vertices: int, density: float) -> tuple[Weights, Edges]:
    rng = np.random.default_rng(1)
    edges = [pair for pair in itertools.combinations(range(vertices), 2) if rng.random() < density]
    return rng.uniform(1, 1e5, vertices).tolist(), edges


def test_exact_proves_a_graph_that_is_too_wide_for_a_tree_decomposition() -> None:
    weights, edges = wide_graph(60, 0.5)
    samples, answer = solve(Exact(Settings("exact")), qubo(weights, edges))
    assert samples.info["method"] == "HiGHS"
    assert answer.proved_optimal
    assert -answer.energy == pytest.approx(packing(weights, edges), rel=1e-9)


@pytest.mark.parametrize("seed", [11, 31])
def test_highs_tells_sets_apart_whose_weights_nearly_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    edges = [pair for pair in itertools.combinations(range(30), 2) if rng.random() < 0.3]
    weights = (1e4 + rng.uniform(0, 0.1, 30)).tolist()
    graph = graph_of(qubo(weights, edges))
    chosen, _ = exact._by_packing(graph, 60)
    assert graph.weight(chosen) == pytest.approx(packing(weights, edges), rel=1e-9)
    assert graph.weight(chosen) == pytest.approx(graph.weight(exact._by_tree(graph, list(range(30)))), rel=1e-12)


@pytest.mark.parametrize("time_limit_s", [0.001, 0.5])
def test_exact_does_not_claim_a_proof_when_its_time_is_over(time_limit_s: float) -> None:
    bqm = qubo(*wide_graph(250, 0.15))
    known = [["c0"]]
    _, answer = solve(Exact(Settings("exact", options={"time_limit_s": time_limit_s})), bqm, known)
    assert (answer.source, answer.proved_optimal) == ("device", False)
    assert is_independent(bqm, answer.variables)
    assert answer.energy <= energy_of(bqm, known[0])


def test_a_proof_is_not_believed_when_something_better_is_known() -> None:
    bqm = qubo([1.0, 5.0], [(0, 1)])
    samples = sample_set(bqm, np.array([[1, 0]], dtype=np.int8), {"proved_optimal": True})
    answer = choose(bqm, samples, [["c1"]])
    assert (answer.variables, answer.source, answer.proved_optimal) == (("c1",), "partition", False)


@relaxed
@given(instances(14), st.integers(0, 20))
def test_an_elimination_order_holds_all_vertices_and_keeps_to_its_width(
    instance: tuple[Weights, Edges], widest: int
) -> None:
    order = elimination_order(graph_of(qubo(*instance)), widest)
    if order is None:
        assert widest < len(instance[0]) - 1
        return
    assert sorted(order) == list(range(len(instance[0])))
    edges = {frozenset(edge) for edge in instance[1]}
    for vertex in order:
        near = {end for edge in edges if vertex in edge for end in edge} - {vertex}
        assert len(near) <= widest
        edges = {edge for edge in edges if vertex not in edge} | {frozenset(p) for p in itertools.combinations(near, 2)}


@relaxed
@given(instances())
def test_a_clique_cover_has_all_edges_and_nothing_else(instance: tuple[Weights, Edges]) -> None:
    cliques = clique_cover(graph_of(qubo(*instance)))
    assert {pair for clique in cliques for pair in itertools.combinations(clique, 2)} == set(instance[1])


@settings(relaxed, max_examples=30)
@given(instances(), st.integers(0, 2**70), st.integers(1, 30))
def test_the_annealer_finds_the_optimum_of_small_problems(
    instance: tuple[Weights, Edges], seed: int, shots: int
) -> None:
    bqm = qubo(*instance)
    samples, answer = solve(Annealer(Settings("annealer")), bqm, shots=shots, seed=seed)
    assert -answer.energy == pytest.approx(brute_force(*instance), rel=1e-9)
    assert samples.record.num_occurrences.sum() == shots
    assert not answer.proved_optimal


@pytest.mark.parametrize("seed", range(10))
def test_the_annealer_finds_the_optimum_of_overlapping_partitions(seed: int) -> None:
    weights, edges, partitions = overlaps_of_partitions(seed)
    _, answer = solve(Annealer(Settings("annealer")), qubo(weights, edges), partitions, shots=100, seed=seed)
    assert -answer.energy == pytest.approx(packing(weights, edges), rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_annealer_finds_the_optimum_of_thirty_partitions_pooled(seed: int) -> None:
    weights, edges, partitions = overlaps_of_partitions(seed, methods=30)
    _, answer = solve(Annealer(Settings("annealer")), qubo(weights, edges), partitions, shots=100, seed=seed)
    assert -answer.energy == pytest.approx(packing(weights, edges), rel=1e-9)


@pytest.mark.parametrize("kind", [Annealer, Exact])
def test_the_same_request_gives_the_same_samples_in_any_order_of_requests(kind: type[Annealer] | type[Exact]) -> None:
    weights, edges, partitions = overlaps_of_partitions(5)
    bqm = qubo(weights, edges)
    first = solve(kind(Settings("any")), bqm, partitions, seed=3)
    device = kind(Settings("any"))
    solve(device, bqm, partitions, seed=4)
    again = solve(device, bqm, partitions, seed=3)
    assert first[1] == again[1]
    assert np.array_equal(first[0].record, again[0].record)


def test_another_seed_gives_the_annealer_other_samples() -> None:
    weights, edges, partitions = overlaps_of_partitions(5, methods=12)
    one, two = (solve(Annealer(Settings("a")), qubo(weights, edges), partitions, seed=seed)[0] for seed in (1, 2))
    assert not np.array_equal(one.record, two.record)


@pytest.mark.parametrize("starts", [0, 3])
def test_the_annealer_without_swaps_still_gives_as_many_reads_as_shots(starts: int) -> None:
    weights, edges, partitions = overlaps_of_partitions(2)
    device = Annealer(Settings("annealer", options={"sweeps": 1, "swaps": 0}))
    samples, answer = solve(device, qubo(weights, edges), partitions[:starts], shots=7)
    assert samples.record.num_occurrences.sum() == 7
    assert samples.info == {"sweeps": 1, "swaps": 0}
    assert is_independent(qubo(weights, edges), answer.variables)


@relaxed
@given(instances(), st.data())
def test_swaps_stay_independent_and_never_lose_weight(instance: tuple[Weights, Edges], data: st.DataObject) -> None:
    graph = graph_of(qubo(*instance))
    start = repaired(graph, data.draw(st.sets(st.integers(0, len(instance[0]) - 1))))
    found = swap_search(graph, start, data.draw(st.integers(0, 50)), np.random.default_rng(0))
    assert independent(graph, found)
    assert graph.weight(found) >= graph.weight(start) * (1 - 1e-12)


def test_swaps_pass_through_worse_sets_to_exchange_one_heavy_vertex_for_three_light_ones() -> None:
    graph = graph_of(qubo([3.0, 1.1, 1.1, 1.1], [(0, 1), (0, 2), (0, 3)]))
    assert swap_search(graph, {0}, 20, np.random.default_rng(0)) == {1, 2, 3}


@relaxed
@given(instances(), st.data())
def test_a_repair_gives_a_maximal_independent_set_and_lowers_the_energy(
    instance: tuple[Weights, Edges], data: st.DataObject
) -> None:
    bqm = qubo(*instance)
    graph = graph_of(bqm)
    chosen = data.draw(st.sets(st.integers(0, len(instance[0]) - 1)))
    change = repair(graph, chosen)
    after = repaired(graph, chosen)
    assert set(change.removed) <= chosen
    assert after == (chosen - set(change.removed)) | set(change.added)
    assert independent(graph, after)
    assert all(graph.neighbours[vertex] & after for vertex in set(range(len(instance[0]))) - after)
    energies = [energy_of(bqm, [f"c{vertex}" for vertex in members]) for members in (chosen, after)]
    assert energies[1] < energies[0] or not (change.removed or change.added)


def test_a_repair_removes_the_lighter_of_two_that_overlap_then_fills_up() -> None:
    graph = graph_of(qubo([5.0, 4.0, 1.0, -2.0], [(0, 1), (1, 2)]))
    change = repair(graph, {0, 1})
    assert (change.removed, change.added) == ((1,), (2,))


@relaxed
@given(instances(), st.data())
def test_the_answer_is_the_best_of_samples_repairs_and_known_solutions(
    instance: tuple[Weights, Edges], data: st.DataObject
) -> None:
    bqm = qubo(*instance)
    graph = graph_of(bqm)
    subsets = st.sets(st.integers(0, len(instance[0]) - 1))
    row = st.lists(st.integers(0, 1), min_size=len(instance[0]), max_size=len(instance[0]))
    rows = np.array(data.draw(st.lists(row, min_size=1, max_size=6)), dtype=np.int8)
    known = [[f"c{v}" for v in sorted(repaired(graph, data.draw(subsets)))] for _ in range(2)]
    samples = sample_set(bqm, rows, {})
    answer = choose(bqm, samples, known)
    assert is_independent(bqm, answer.variables)
    assert answer.energy == energy_of(bqm, answer.variables)
    assert answer.energy <= min(answer.known_energies)
    assert answer.known_energies == tuple(energy_of(bqm, variables) for variables in known)
    for item in answer.repairs:
        before = {name for name, bit in zip(samples.variables, samples.record.sample[item.sample], strict=True) if bit}
        after = tuple((before - set(item.removed)) | set(item.added))
        assert item.energy_before == energy_of(bqm, before)
        assert item.energy_after == energy_of(bqm, after)
        assert is_independent(bqm, after)
        assert answer.energy <= item.energy_after


@relaxed
@given(instances(), st.data())
def test_energies_and_feasibility_of_samples_are_those_of_the_qubo(
    instance: tuple[Weights, Edges], data: st.DataObject
) -> None:
    weights, edges = instance
    bqm = qubo(weights, edges, penalty=7.5)
    row = st.lists(st.integers(0, 1), min_size=len(weights), max_size=len(weights))
    rows = data.draw(st.lists(row, max_size=8))
    samples = sample_set(bqm, np.array(rows, dtype=np.int8).reshape(-1, len(weights)), {})
    assert samples.record.num_occurrences.sum() == len(rows)
    for sample, energy, times, feasible in samples.record.tolist():
        broken = sum(sample[u] and sample[v] for u, v in edges)
        expected = 7.5 * broken - sum(weight for weight, bit in zip(weights, sample, strict=True) if bit)
        assert energy == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert times == sum(list(sample) == other for other in rows)
        assert feasible == (broken == 0)


def test_a_known_solution_that_overlaps_is_never_chosen() -> None:
    bqm = qubo([1.0, 1.0], [(0, 1)], penalty=0.1)
    samples = sample_set(bqm, np.array([[1, 0]], dtype=np.int8), {})
    assert choose(bqm, samples, [["c0", "c1"]]).variables == ("c0",)


def test_no_sample_and_no_known_solution_is_an_error_and_not_an_empty_answer() -> None:
    bqm = qubo([1.0], [])
    with pytest.raises(DeviceError, match="no sample"):
        choose(bqm, sample_set(bqm, np.zeros((0, 1), dtype=np.int8), {}), [])


@pytest.mark.parametrize(
    ("bqm", "said"),
    [
        (dimod.BinaryQuadraticModel({"a": -1.0, "b": -1.0}, {("a", "b"): -2.0}, 0.0, "BINARY"), "rewards"),
        (dimod.BinaryQuadraticModel({"a": -1.0}, {}, 0.0, "SPIN"), "binary"),
    ],
)
def test_a_qubo_that_is_no_selection_of_vertices_is_refused(bqm: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        graph_of(bqm)


def test_vertices_that_gain_nothing_are_left_out_by_every_kind() -> None:
    bqm = qubo([4.0, -1.0, 0.0], [])
    for device in (Annealer(Settings("annealer")), Exact(Settings("exact"))):
        assert solve(device, bqm)[1].energy == -4.0


def test_a_graph_counts_each_edge_once() -> None:
    assert Graph((1.0, 1.0), (frozenset({1}), frozenset({0}))).edges() == [(0, 1)]
