"""QAOA's Ising model, its closed form and its angles, against state vectors made of plain matrices."""

from __future__ import annotations

from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

from qonduit.devices.angles import OPTIONS, choose_angles, lengthened, next_angles, one_layer, several_layers
from qonduit.devices.independence import Graph, independent
from qonduit.devices.qaoa import (
    Angles,
    Ansatz,
    Floats,
    Ising,
    energies_of,
    ising_of,
    one_layer_energy,
    probabilities,
    spectrum,
    tail_mean,
)
from qonduit.errors import DataError

X, Z, I2 = np.array([[0, 1], [1, 0]]), np.array([[1, 0], [0, -1]]), np.eye(2)
ANGLE = st.floats(-3, 3)


@st.composite
def graphs(draw: st.DrawFn, most: int = 6) -> Graph:
    size = draw(st.integers(1, most))
    weights = draw(st.lists(st.floats(0.05, 9), min_size=size, max_size=size))
    pairs = [(i, j) for j in range(size) for i in range(j)]
    edges = draw(st.sets(st.sampled_from(pairs))) if pairs else set()
    return graph(weights, edges)


def graph(weights: list[float], edges: Any) -> Graph:
    beside: list[set[int]] = [set() for _ in weights]
    for i, j in edges:
        beside[i].add(j)
        beside[j].add(i)
    return Graph(tuple(weights), tuple(frozenset(near) for near in beside))


def on(qubit: int, matrix: Any, qubits: int) -> Any:
    """The matrix on one qubit, the first of which is the last factor, so that bit i of an index is qubit i."""
    return reduce(np.kron, [matrix if other == qubit else I2 for other in reversed(range(qubits))])


def by_matrices(ising: Ising, angles: Angles) -> Floats:
    size = len(ising.fields)
    hamiltonian = sum(ising.fields[i] * on(i, Z, size) for i in range(size))
    for i, j in ising.pairs():
        hamiltonian = hamiltonian + ising.couplings[i, j] * on(i, Z, size) @ on(j, Z, size)
    mixer = sum(on(i, X, size) for i in range(size))
    state = np.full(2**size, 2 ** (-size / 2), dtype=complex)
    for gamma, beta in zip(angles.gammas, angles.betas, strict=True):
        state = expm(-1j * beta * mixer) @ expm(-1j * gamma * hamiltonian) @ state
    chances: Floats = np.abs(state) ** 2
    return chances


def best_of(problem: Graph) -> set[int]:
    """Numbers of the bit strings that are heaviest independent sets."""
    rows = list(product((0, 1), repeat=len(problem.weights)))
    weights = {
        sum(bit << i for i, bit in enumerate(row)): problem.weight(chosen)
        for row in rows
        if independent(problem, chosen := {i for i, bit in enumerate(row) if bit})
    }
    heaviest = max(weights.values())
    return {number for number, weight in weights.items() if np.isclose(weight, heaviest, rtol=1e-9, atol=0)}


@given(graphs(4), st.lists(st.tuples(ANGLE, ANGLE), min_size=1, max_size=3))
def test_probabilities_are_those_of_the_matrices(problem: Graph, layers: list[tuple[float, float]]) -> None:
    ising = ising_of(problem)
    gammas, betas = zip(*layers, strict=True)
    angles = Angles(gammas, betas)
    assert np.allclose(probabilities(spectrum(ising), angles), by_matrices(ising, angles), atol=1e-10)


@given(graphs(), ANGLE, ANGLE)
def test_the_closed_form_is_the_energy_of_the_state_vector(problem: Graph, gamma: float, beta: float) -> None:
    ising = ising_of(problem)
    energies = spectrum(ising)
    expected = probabilities(energies, Angles((gamma,), (beta,))) @ energies
    assert one_layer_energy(ising, gamma, beta) == pytest.approx(float(expected), abs=1e-9)


@given(graphs(), st.floats(1.001, 3))
def test_the_ground_states_are_the_heaviest_independent_sets(problem: Graph, factor: float) -> None:
    energies = spectrum(ising_of(problem, factor))
    lowest = int(energies.argmin())
    assert lowest in best_of(problem)


@given(graphs())
def test_the_energy_of_measured_bits_is_that_of_the_spectrum(problem: Graph) -> None:
    ising = ising_of(problem)
    size = len(problem.weights)
    rows = np.array([[number >> i & 1 for i in range(size)] for number in range(2**size)], dtype=np.int8)
    assert np.allclose(energies_of(ising, rows), spectrum(ising))


@given(graphs(), st.floats(1e-6, 1e6))
def test_the_unit_of_the_weights_does_not_matter(problem: Graph, unit: float) -> None:
    scaled = Graph(tuple(weight * unit for weight in problem.weights), problem.neighbours)
    assert np.allclose(ising_of(problem).fields, ising_of(scaled).fields)
    assert one_layer(ising_of(problem)).gammas == pytest.approx(one_layer(ising_of(scaled)).gammas, rel=1e-3)


@settings(max_examples=30)
@given(graphs())
def test_no_angles_within_the_range_are_much_better_than_those_chosen(problem: Graph) -> None:
    ising = ising_of(problem)
    chosen = one_layer(ising)
    reached = one_layer_energy(ising, chosen.gammas[0], chosen.betas[0])
    others = [
        one_layer_energy(ising, gamma / ising.scale(), beta)
        for gamma in np.linspace(0.01, 1, 23)
        for beta in np.linspace(-1.6, 1.6, 23)
    ]
    assert reached <= min(others) + 1e-3


@given(graphs(), st.integers(1, 4))
def test_a_circuit_survives_a_file(problem: Graph, layers: int) -> None:
    ansatz = Ansatz(ising_of(problem), lengthened(Angles((0.3,), (-0.2,)), layers))
    again = Ansatz.from_json(ansatz.to_json())
    assert again.angles == ansatz.angles
    assert np.array_equal(again.ising.couplings, ansatz.ising.couplings)
    assert np.array_equal(again.ising.fields, ansatz.ising.fields)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=20), st.floats(0.05, 1))
def test_the_mean_of_the_best_shots_lies_between_the_least_and_the_mean(values: list[float], share: float) -> None:
    energies, chances = np.array(values), np.full(len(values), 1 / len(values))
    tail = tail_mean(energies, chances, share)
    assert energies.min() - 1e-9 <= tail <= energies.mean() + 1e-9
    assert tail_mean(energies, chances, 1.0) == pytest.approx(energies.mean())


def application_like(count: int, seed: int) -> list[Graph]:
    """Overlap graphs of three clusterings of the same points that split, merge and move some of them."""
    random = np.random.default_rng(seed)
    found: list[Graph] = []
    while len(found) < count:
        clusters = int(random.integers(2, 5))
        truth = random.integers(0, clusters, 200)
        sets: dict[frozenset[int], float] = {}
        for _ in range(3):
            labels = truth.copy()
            a, b = random.choice(clusters, 2, replace=False)
            labels[(labels == a) & (random.random(200) < random.uniform(0, 0.5))] = random.choice([b, clusters])
            for label in np.unique(labels):
                members = frozenset(np.flatnonzero(labels == label).tolist())
                sets[members] = len(members) * float(random.uniform(0.25, 0.8))
        names = list(sets)
        edges = [(i, j) for j in range(len(names)) for i in range(j) if names[i] & names[j]]
        if 4 <= len(names) <= 12 and edges:
            found.append(graph([sets[name] for name in names], edges))
    return found


def test_the_optimum_is_much_more_likely_than_by_chance_and_more_so_with_layers() -> None:
    gains: list[list[float]] = []
    for problem in application_like(12, 3):
        ising = ising_of(problem)
        energies, best = spectrum(ising), sorted(best_of(problem))
        by_chance = len(best) / len(energies)
        each = [one_layer(ising), several_layers(ising, 2)]
        gains.append([float(probabilities(energies, angles)[best].sum()) / by_chance for angles in each])
    means = np.exp(np.log(gains).mean(axis=0))
    assert means[0] > 5
    assert means[1] > 1.5 * means[0]


def test_angles_of_several_layers_are_the_same_each_time() -> None:
    ising = ising_of(application_like(1, 5)[0])
    assert several_layers(ising, 3) == several_layers(ising, 3)


def test_many_layers_on_many_variables_are_refused_unless_the_device_finds_the_angles() -> None:
    ising = ising_of(graph([1.0] * 17, [(i, i + 1) for i in range(16)]))
    options = {name: option.default for name, option in OPTIONS.items()} | {"layers": 2}
    with pytest.raises(DataError, match="2 layers on 17 variables"):
        choose_angles(ising, options)
    assert choose_angles(ising, options | {"angles": "device"}).layers == 2
    assert choose_angles(ising, options | {"layers": 1}).layers == 1


def test_rounds_on_a_device_lower_the_energy() -> None:
    ising = ising_of(application_like(1, 8)[0])
    energies = spectrum(ising)

    def measured(angles: Angles) -> float:
        return float(probabilities(energies, angles) @ energies)

    start = lengthened(one_layer(ising), 2)
    tried = [(start, measured(start))]
    while len(tried) < 40:
        angles = next_angles(ising, tried)
        assert angles == next_angles(ising, tried)
        tried.append((angles, measured(angles)))
    assert len({angles for angles, _ in tried}) == len(tried)
    best_by_far = float(energies.min())
    assert min(energy for _, energy in tried) < tried[0][1] - 0.2 * (tried[0][1] - best_by_far)


def test_a_problem_without_edges_or_with_equal_weights_has_angles() -> None:
    for problem in (graph([1.0], []), graph([2.0, 2.0], [(0, 1)]), graph([0.0, 0.0], []), graph([1.0] * 3, [])):
        angles = one_layer(ising_of(problem))
        assert np.isfinite([*angles.gammas, *angles.betas]).all()
