"""`qonduit-solve`: selects clusters that do not overlap, on the device that QONDUIT_DEVICE names."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from qonduit.devices.registry import open_device
from qonduit.devices.settings import MOST_SHOTS, Settings, settings_from_environment
from qonduit.errors import DataError, DeviceError
from qonduit_steps.command import Summary, natural, parser, run
from qonduit_steps.outputs import Outputs
from qonduit_steps.problem import Problem, read_problem

if TYPE_CHECKING:
    import dimod

    from qonduit.devices.answer import Answer
    from qonduit.devices.device import Device

FORMAT = "qonduit-samples/1"
SHOTS = 100


def main() -> None:
    made = parser(
        "qonduit-solve",
        "Solve an aggregation problem on the device that the variable QONDUIT_DEVICE names: a device file (JSON with\n"
        "kind, shots, options, token_file) or a kind (annealer, exact). Without it: the annealer on this machine.",
        "QONDUIT_DEVICE=exact qonduit-solve --problem problem.json --out samples.json",
    )
    made.add_argument("--problem", type=Path, required=True, metavar="FILE", help="problem of qonduit-aggregate")
    made.add_argument("--out", type=Path, required=True, metavar="FILE", help="samples and the solution, as JSON")
    made.add_argument(
        "--shots", type=natural(1, MOST_SHOTS), metavar="N", help=f"default: the device file's, else {SHOTS}"
    )
    made.add_argument(
        "--seed", type=natural(), default=0, metavar="S", help="default: 0; the same seed, the same samples"
    )
    run(made, solve)


def solve(options: argparse.Namespace, outputs: Outputs) -> Summary:
    outputs.check(options.out, "--out")
    settings = settings_from_environment()
    device = open_device(settings)
    problem = read_problem(options.problem)
    shots = options.shots or settings.shots or SHOTS
    bqm = problem.bqm()
    samples, timing = _sample(device, bqm, problem, shots, options.seed)

    from qonduit.devices.answer import choose

    begun = perf_counter()
    answer = choose(bqm, samples, [partition.variables for partition in problem.partitions])
    timing["decode_s"] += perf_counter() - begun
    content = {
        "format": FORMAT,
        "iteration": problem.iteration,
        "device": {"kind": settings.kind, "options": dict(settings.options)},
        "seed": options.seed,
        "shots": shots,
        **_content(problem, samples, answer),
        "timing": timing,
    }
    outputs.write_json(options.out, content, "--out")
    return _summary(problem, settings, answer)


def _sample(
    device: Device, bqm: dimod.BinaryQuadraticModel, problem: Problem, shots: int, seed: int
) -> tuple[dimod.SampleSet, dict[str, float]]:
    """The device's samples, and the seconds that preparing, executing and decoding took."""
    from qonduit.devices.execute import execute

    if not bqm.num_variables:
        return _nothing_to_select(bqm), {"prepare_s": 0.0, "execute_s": 0.0, "decode_s": 0.0}
    _check_fits(device, bqm.num_variables)
    times = [perf_counter()]
    request = device.prepare(bqm, shots, seed, [partition.variables for partition in problem.partitions])
    times.append(perf_counter())
    result = execute(device, request)
    times.append(perf_counter())
    samples = device.decode(request, result)
    times.append(perf_counter())
    spans = [later - earlier for earlier, later in pairwise(times)]
    return samples, dict(zip(("prepare_s", "execute_s", "decode_s"), spans, strict=True))


def _nothing_to_select(bqm: dimod.BinaryQuadraticModel) -> dimod.SampleSet:
    """The empty selection, for which no device need be asked."""
    import numpy as np

    from qonduit.devices.samples import sample_set

    return sample_set(bqm, np.zeros((1, 0), dtype=np.int8), {"proved_optimal": True})


def _check_fits(device: Device, variables: int) -> None:
    can = device.capabilities()
    if not can.online:
        raise DeviceError(f"the device '{can.kind}' is offline; try later or set QONDUIT_DEVICE to another")
    if can.qubits is not None and variables > can.qubits:
        raise DataError(
            f"--problem: {variables} variables do not fit the {can.qubits} qubits of '{can.kind}'; use another device"
        )


def _content(problem: Problem, samples: dimod.SampleSet, answer: Answer) -> dict[str, Any]:
    energies = zip(problem.partitions, answer.known_energies, strict=True)
    return {
        "best": {
            "variables": list(answer.variables),
            "energy": answer.energy,
            "source": answer.source,
            "proved_optimal": answer.proved_optimal,
        },
        "samples": samples.to_serializable(),  # type: ignore[no-untyped-call]
        "repairs": [asdict(item) for item in answer.repairs],
        "partitions": [{"method": partition.method, "energy": energy} for partition, energy in energies],
        "statistics": {
            "feasible_fraction": answer.feasible_fraction,
            "best_raw_energy": answer.best_raw_energy,
            "best_repaired_energy": answer.best_repaired_energy,
        },
    }


def _summary(problem: Problem, settings: Settings, answer: Answer) -> Summary:
    return {
        "iteration": problem.iteration,
        "device": settings.kind,
        "energy": answer.energy,
        "selected": len(answer.variables),
        "source": answer.source,
        "proved_optimal": answer.proved_optimal,
    }
