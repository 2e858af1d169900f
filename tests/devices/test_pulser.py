"""Neutral atoms in process: the sweep against a simulation that shares no code with it, and what is refused."""

from __future__ import annotations

import itertools
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import dimod
import numpy as np
import numpy.typing as npt
import pytest
from scipy.interpolate import PchipInterpolator

from qonduit.devices.execute import execute
from qonduit.devices.independence import graph_of
from qonduit.devices.pulser import Pulser
from qonduit.devices.request import Request
from qonduit.devices.settings import Settings
from qonduit.errors import DataError, UsageError

SHOTS = 500
Edges = list[tuple[int, int]]


def device(**options: Any) -> Pulser:
    return Pulser(Settings("pulser", options=options))


def qubo(weights: list[float], edges: Edges) -> dimod.BinaryQuadraticModel:
    """Names that sort otherwise than they were added, as `kmeans:0` comes before `dbscan:0` in a problem."""
    names = [f"{'zyxwvuts'[v % 8]}{v}" for v in range(len(weights))]
    bqm = dimod.BinaryQuadraticModel(dict(zip(names, (-w for w in weights), strict=True)), {}, 0.0, "BINARY")
    bqm.add_quadratic_from((names[u], names[v], 1.1 * max(weights)) for u, v in edges)
    return bqm


# As overlaps of three clusterings are: a cluster against its parts, twins that share their parts, chains, parts alone.
PROBLEMS = {
    "one cluster against its three parts": qubo([2.0, 0.9, 0.8, 0.5], [(0, 1), (0, 2), (0, 3)]),
    "one cluster that is worth more than its four parts": qubo(
        [4.0, 0.9, 0.8, 0.5, 0.3], [(0, v) for v in range(1, 5)]
    ),
    "twins over two parts": qubo([1.6, 2.4, 0.7, 0.9], [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)]),
    "a chain": qubo([1.0, 1.6, 1.2, 0.7, 1.1], [(0, 1), (1, 2), (2, 3), (3, 4)]),
    "two clusters against their parts": qubo(
        [2.0, 1.2, 1.1, 3.0, 1.1, 1.0, 0.4], [(0, 1), (0, 2), (3, 4), (3, 5), (3, 6)]
    ),
}


def optimum(bqm: dimod.BinaryQuadraticModel) -> float:
    every = np.array(list(itertools.product((0, 1), repeat=bqm.num_variables)), dtype=np.int8)
    return float(bqm.energies((every, list(bqm.variables))).min())


def chance_of_optimum(bqm: dimod.BinaryQuadraticModel, samples: dimod.SampleSet) -> float:
    record = samples.record
    best = record.energy <= optimum(bqm) + 1e-9
    return float(record.num_occurrences[best].sum() / record.num_occurrences.sum())


def evolved(request: Request) -> npt.NDArray[np.float64]:
    """Chances of all bit strings by small steps of the Schrödinger equation, from the request's own figures."""
    places, sweep = np.array(request.payload["coordinates_um"]), request.payload["sweep"]
    weights = np.array(graph_of(request.bqm()).weights)
    atoms, coefficient = len(weights), 5420158.53  # rad/µs µm^6, of Rydberg level 70
    bits = np.array(list(itertools.product((0, 1), repeat=atoms)), dtype=float)
    energy = sum(
        coefficient / np.linalg.norm(places[u] - places[v]) ** 6 * bits[:, u] * bits[:, v]
        for u, v in itertools.combinations(range(atoms), 2)
    )
    steps = 40_000
    amplitude = PchipInterpolator([0, 0.2, 0.8, 1], [0, sweep["amplitude"], sweep["amplitude"], 0])
    rise = PchipInterpolator([0, 0.15, 0.85, 1], [0, 0, 1, 1])
    first, last = sweep["first_detuning"], sweep["last_detuning"]
    times = (np.arange(steps) + 0.5) / steps
    step = sweep["duration_us"] / steps
    state = np.zeros(2**atoms, dtype=complex)
    state[0] = 1
    for drive, up in zip(amplitude(times), rise(times), strict=True):
        detuning = first + (last - first) * up - last * (1 - weights / weights.max()) * up
        half = np.exp(-0.5j * step * (energy - bits @ detuning))
        state = state * half
        stays, flips = np.cos(drive * step / 2), -1j * np.sin(drive * step / 2)
        turn = np.array([[stays, flips], [flips, stays]])
        for atom in range(atoms):
            state = np.einsum("ab,xby->xay", turn, state.reshape(2**atom, 2, -1)).reshape(-1)
        state = state * half
    chances: npt.NDArray[np.float64] = np.abs(state) ** 2
    return chances


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS.keys())
def test_the_optimum_is_measured_far_more_often_than_by_chance(problem: dimod.BinaryQuadraticModel) -> None:
    made = device()
    request = made.prepare(problem, SHOTS, 1)
    samples = made.decode(request, execute(made, request))
    assert samples.info["embedding"]["missing_edges"] == samples.info["embedding"]["false_edges"] == []
    assert samples.info["sweep"]["weights"] == "detuning map"
    assert samples.record.num_occurrences.sum() == SHOTS
    assert chance_of_optimum(problem, samples) > 0.4


def test_the_samples_follow_the_schroedinger_equation() -> None:
    problem = PROBLEMS["one cluster against its three parts"]
    made, shots = device(duration_us=0.5), 20_000
    request = made.prepare(problem, shots, 3)
    rows = np.array(execute(made, request).payload["rows"])
    measured = np.bincount(rows @ (2 ** np.arange(rows.shape[1])[::-1]), minlength=2 ** rows.shape[1]) / shots
    expected = evolved(request)
    assert expected.max() < 0.95, "a sweep this fast must leave more than one outcome to compare"
    assert np.abs(measured - expected).max() < 5 * 0.5 / np.sqrt(shots) + 1e-3


def test_the_same_request_gives_the_same_samples_and_another_seed_others() -> None:
    problem = PROBLEMS["a chain"]
    requests = [device(duration_us=0.5).prepare(problem, SHOTS, seed) for seed in (1, 1, 2)]
    assert requests[0] == requests[1]
    first, again, other = (execute(device(), request).payload["rows"] for request in requests)
    assert first == again
    assert first != other


def test_a_device_without_a_detuning_map_says_that_weights_are_ignored() -> None:
    made = device(device="AnalogDevice", duration_us=1)
    request = made.prepare(qubo([1.0, 1.2, 0.9], [(0, 1), (1, 2)]), 50, 1)
    samples = made.decode(request, execute(made, request))
    assert samples.info["sweep"]["weights"] == "ignored"
    assert samples.info["sweep"]["amplitude"] <= 4 * np.pi + 1e-9


def test_a_device_without_limits_works_too() -> None:
    made = device(device="MockDevice", duration_us=1)
    request = made.prepare(qubo([1.0, 1.2], [(0, 1)]), 50, 1)
    assert made.decode(request, execute(made, request)).record.num_occurrences.sum() == 50


def test_more_variables_than_are_simulated_are_refused_with_both_numbers() -> None:
    with pytest.raises(DataError, match=r"5 variables are more than the 4 atoms.*annealer"):
        device(max_atoms=4).prepare(PROBLEMS["a chain"], 10, 1)


def test_a_graph_that_does_not_embed_is_refused_unless_approximation_was_asked_for() -> None:
    star = qubo([2.0] + [0.5] * 6, [(0, leaf) for leaf in range(1, 7)])
    with pytest.raises(DataError, match=r"\d edges would be missing and \d false; use the kind.*approximate"):
        device().prepare(star, 10, 1)
    made = device(approximate=True, duration_us=0.5)
    request = made.prepare(star, 20, 1)
    info = made.decode(request, execute(made, request)).info["embedding"]
    assert info["missing_edges"] or info["false_edges"]


def test_a_simulator_that_is_not_installed_is_named_with_its_extra() -> None:
    made = device(simulator="emu-sv")
    request = made.prepare(qubo([1.0], []), 10, 1)
    if find_spec("emu_sv") is not None:
        assert len(execute(made, request).payload["rows"]) == 10
        return
    with pytest.raises(UsageError, match=r"qonduit\[emu-sv\]"):
        execute(made, request)


def test_a_problem_without_variables_has_the_empty_solution() -> None:
    made = device()
    request = made.prepare(dimod.BinaryQuadraticModel("BINARY"), 3, 1)
    assert made.decode(request, execute(made, request)).record.num_occurrences.sum() == 3


def test_importing_the_kinds_loads_no_vendor_package() -> None:
    script = (
        "import sys, qonduit.devices.pulser, qonduit.devices.pasqal, qonduit.devices.register, qonduit.devices.sweep\n"
        "assert not {'pulser', 'pasqal_cloud', 'scipy', 'requests', 'dimod'} & set(sys.modules), sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
