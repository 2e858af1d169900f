"""The gate-model device in process: its samples, its limits and its rounds."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, ClassVar

import dimod
import numpy as np
import pytest

from qonduit.devices.conformance import DeviceConformance
from qonduit.devices.gate import Gate
from qonduit.devices.qaoa import Ansatz, probabilities, spectrum
from qonduit.devices.request import Request, Result
from qonduit.devices.settings import Settings
from qonduit.errors import DataError


class TestGateConforms(DeviceConformance):
    device_class: ClassVar[type[Any]] = Gate
    seeded: ClassVar[bool] = True


class TestGateConformsWithRounds(DeviceConformance):
    device_class: ClassVar[type[Any]] = Gate
    seeded: ClassVar[bool] = True

    @pytest.fixture
    def settings(self) -> Settings:
        return Settings("gate", options={"angles": "device", "layers": 2, "rounds": 3})


def gate(**options: Any) -> Gate:
    return Gate(Settings("gate", options=options))


def path(size: int) -> dimod.BinaryQuadraticModel:
    """A path whose second, fourth, ... vertices are heavier: the best selection is those."""
    linear = {f"v{i:02}": -1.0 - (i % 2) for i in range(size)}
    return dimod.BinaryQuadraticModel(
        linear, {(f"v{i:02}", f"v{i + 1:02}"): 40.0 for i in range(size - 1)}, 0.0, "BINARY"
    )


def run(device: Gate, request: Request) -> tuple[Result, dimod.SampleSet]:
    result = device.fetch(device.submit(request, f"{request.seed:032x}"))
    return result, device.decode(request, result)


def test_samples_come_with_the_probabilities_of_the_state_vector() -> None:
    device = gate(layers=2)
    request = device.prepare(path(5), 20_000, 1)
    _, samples = run(device, request)
    ansatz = Ansatz.from_json(request.payload)
    expected = probabilities(spectrum(ansatz.ising), ansatz.angles)
    measured = np.zeros(32)
    columns = [list(samples.variables).index(f"v{i:02}") for i in range(5)]
    for row, times in zip(samples.record.sample[:, columns], samples.record.num_occurrences, strict=True):
        measured[int(row @ 2 ** np.arange(5))] = times / 20_000
    assert np.abs(measured - expected).sum() / 2 < 0.03


@pytest.mark.parametrize(("layers", "gain"), [(1, 10), (3, 40)])
def test_the_optimum_is_measured_much_more_often_than_by_chance(layers: int, gain: float) -> None:
    device = gate(layers=layers)
    request = device.prepare(path(10), 2000, 2)
    _, samples = run(device, request)
    columns = [list(samples.variables).index(f"v{i:02}") for i in range(10)]
    is_best = (samples.record.sample[:, columns] == np.arange(10) % 2).all(axis=1)
    times = samples.record.num_occurrences[is_best].sum()
    assert times / 2000 > gain / 2**10


def test_what_was_computed_is_told() -> None:
    device = gate(layers=2)
    _, samples = run(device, device.prepare(path(4), 50, 3))
    assert samples.info["layers"] == len(samples.info["gammas"]) == len(samples.info["betas"]) == 2
    assert (samples.info["shots"], samples.info["measured"]) == (50, 50)


def test_more_variables_than_qubits_are_refused_with_both_numbers_and_another_device() -> None:
    with pytest.raises(DataError, match=r"25 variables .* 24 qubits .*'annealer'"):
        gate().prepare(path(25), 10, 0)
    with pytest.raises(DataError, match=r"4 variables .* 3 qubits"):
        gate(qubits=3).prepare(path(4), 10, 0)


def test_rounds_end_and_each_is_another_purchase() -> None:
    device = gate(angles="device", layers=2, rounds=6)
    request: Request | None = device.prepare(path(6), 200, 4)
    rounds: list[tuple[Request, Result]] = []
    while request is not None:
        rounds.append((request, run(device, request)[0]))
        request = device.refine(rounds)
    assert len(rounds) == 6
    assert len({asked.digest() for asked, _ in rounds}) == 6
    assert len({tuple(asked.payload["gammas"] + asked.payload["betas"]) for asked, _ in rounds}) == 6


def test_angles_that_were_computed_need_no_second_round() -> None:
    device = gate(layers=2)
    request = device.prepare(path(4), 20, 5)
    assert device.refine([(request, run(device, request)[0])]) is None


def test_preparing_imports_no_simulator_and_sampling_no_vendor() -> None:
    script = (
        "import sys, dimod\n"
        "from qonduit.devices.gate import Gate\n"
        "from qonduit.devices.settings import Settings\n"
        "assert 'qiskit' not in sys.modules\n"
        "device = Gate(Settings('gate'))\n"
        "qubo = dimod.BinaryQuadraticModel({'a': -1.0, 'b': -2.0}, {('a', 'b'): 3.0}, 0.0, 'BINARY')\n"
        "request = device.prepare(qubo, 10, 0)\n"
        "assert 'qiskit' not in sys.modules and 'scipy.optimize' not in sys.modules\n"
        "device.decode(request, device.fetch(device.submit(request, 'key')))\n"
        "assert not any(name.startswith('iqm') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
