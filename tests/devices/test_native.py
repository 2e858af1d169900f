"""Circuits in native gates: where they are put, what they cost, and that they do what was meant."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qonduit.devices.native import native_circuit, prx, split
from qonduit.devices.qaoa import Angles, Floats, Ising, probabilities, spectrum
from qonduit.devices.routing import Machine, best_course, largest_part

LINE3 = Machine(("QB1", "QB2", "QB3"), frozenset({(0, 1), (1, 2)}))


def star(leaves: int) -> Machine:
    return Machine(tuple(f"QB{i}" for i in range(leaves + 1)), frozenset((0, leaf) for leaf in range(1, leaves + 1)))


def grid(rows: int, columns: int) -> Machine:
    across = {(r * columns + c, r * columns + c + 1) for r in range(rows) for c in range(columns - 1)}
    down = {(r * columns + c, (r + 1) * columns + c) for r in range(rows - 1) for c in range(columns)}
    return Machine(tuple(f"QB{i}" for i in range(rows * columns)), frozenset(across | down))


MACHINES = {
    "star": star(5),
    "grid": grid(2, 4),
    "line": Machine(tuple("abcdef"), frozenset((i, i + 1) for i in range(5))),
}


@st.composite
def isings(draw: st.DrawFn, most: int = 6) -> Ising:
    size = draw(st.integers(1, most))
    fields = np.array(draw(st.lists(st.floats(-1, 1), min_size=size, max_size=size)))
    couplings = np.zeros((size, size))
    for j in range(size):
        for i in range(j):
            couplings[i, j] = couplings[j, i] = draw(st.sampled_from([0.0, 0.0, 0.3, -0.4, 0.25]))
    return Ising(fields, couplings)


def measured(circuit: list[dict[str, Any]]) -> Floats:
    """What the instructions lead to, by a state vector of the qubits they use; bit i is the i-th measured qubit."""
    used = sorted({qubit for instruction in circuit for qubit in instruction["locus"]})
    axis = {qubit: number for number, qubit in enumerate(used)}
    state = np.zeros([2] * len(used), dtype=complex)
    state[(0,) * len(used)] = 1
    for instruction in circuit[:-1]:
        axes = [axis[qubit] for qubit in instruction["locus"]]
        if instruction["name"] == "prx":
            turn = prx(instruction["args"]["angle"], instruction["args"]["phase"])
            state = np.moveaxis(np.tensordot(turn, state, axes=([1], axes)), 0, axes[0])
        else:
            assert instruction["name"] == "cz"
            both = tuple(1 if number in axes else slice(None) for number in range(len(used)))
            state[both] *= -1
    assert circuit[-1]["name"] == "measure"
    last = [axis[qubit] for qubit in circuit[-1]["locus"]]
    rest = tuple(number for number in range(len(used)) if number not in last)
    chances = np.moveaxis(np.abs(state) ** 2, last[::-1], range(len(last)))
    flat: Floats = chances.reshape([2] * len(last) + [-1]).sum(axis=-1).ravel()
    assert len(rest) == len(used) - len(last)
    return flat


@settings(max_examples=60)
@given(isings(), st.sampled_from(sorted(MACHINES)), st.lists(st.tuples(st.floats(-2, 2), st.floats(-2, 2)), max_size=3))
def test_a_compiled_circuit_measures_what_the_circuit_does(
    ising: Ising, name: str, layers: list[tuple[float, float]]
) -> None:
    machine = MACHINES[name]
    angles = Angles(tuple(gamma for gamma, _ in layers), tuple(beta for _, beta in layers))
    course = best_course(ising.pairs(), len(ising.fields), machine, seed=1)
    circuit = native_circuit(ising, angles, course, machine)
    couplers = {frozenset((machine.qubits[a], machine.qubits[b])) for a, b in machine.couplers}
    assert all(frozenset(one["locus"]) in couplers for one in circuit if one["name"] == "cz")
    assert [one["name"] for one in circuit].count("cz") == course.gates * len(layers)
    assert np.allclose(measured(circuit), probabilities(spectrum(ising), angles), atol=1e-9)


@given(*(st.floats(-7, 7) for _ in range(4)))
def test_any_turn_is_one_prx_and_a_turn_about_z(a: float, b: float, c: float, d: float) -> None:
    turn = prx(a, b) @ prx(c, d)
    after, angle, phase = split(turn)
    made = np.diag(np.exp([-0.5j * after, 0.5j * after])) @ prx(angle, phase)
    assert abs(np.trace(made.conj().T @ turn)) == pytest.approx(2, abs=1e-7)


def test_pairs_that_are_neighbours_cost_two_cz_each() -> None:
    course = best_course([(0, 1), (0, 2), (0, 3), (0, 4)], 5, star(4), seed=0)
    assert (course.swaps, course.gates) == (0, 8)


def test_a_swap_of_two_that_have_a_term_costs_one_more_cz() -> None:
    course = best_course([(0, 1), (0, 2), (1, 2)], 3, LINE3, seed=0)
    assert (course.swaps, course.gates) == (1, 2 + 3 + 2)


def test_all_pairs_of_five_qubits_on_a_star_take_three_swaps() -> None:
    pairs = [(i, j) for j in range(5) for i in range(j)]
    course = best_course(pairs, 5, star(4), seed=0)
    assert (course.swaps, course.gates) == (3, 2 * 10 + 3)


def test_the_same_seed_gives_the_same_course() -> None:
    pairs = [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)]
    assert best_course(pairs, 4, grid(3, 3), seed=5) == best_course(pairs, 4, grid(3, 3), seed=5)


def test_bad_couplers_and_bad_qubits_are_avoided() -> None:
    ring = Machine(("a", "b", "c", "d"), frozenset({(0, 1), (1, 2), (2, 3), (0, 3)}))
    gates = {(0, 1): 0.5, (1, 2): 0.2, (2, 3): 0.01, (0, 3): 0.2}
    course = best_course([(0, 1)], 2, Machine(ring.qubits, ring.couplers, gates), seed=0)
    assert set(course.start) == {2, 3}
    readouts = {0: 0.2, 1: 0.01, 2: 0.2, 3: 0.3}
    assert best_course([], 1, Machine(ring.qubits, ring.couplers, {}, readouts), seed=0).end == (1,)


def test_only_the_largest_connected_part_of_a_machine_is_used() -> None:
    broken = Machine(tuple("abcdef"), frozenset({(0, 1), (2, 3), (3, 5)}), {(3, 5): 0.1, (0, 1): 0.2}, {5: 0.3, 0: 0.4})
    part = largest_part(broken)
    assert part == Machine(("c", "d", "f"), frozenset({(0, 1), (1, 2)}), {(1, 2): 0.1}, {2: 0.3})
    assert largest_part(Machine((), frozenset())).qubits == ()
