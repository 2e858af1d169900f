"""`qonduit-solve`: selects clusters that do not overlap, on the device that QONDUIT_DEVICE names."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qonduit.devices.registry import open_device
from qonduit.devices.settings import MOST_SHOTS, Settings, settings_from_environment
from qonduit.errors import DataError
from qonduit_steps.command import Summary, natural, parser, run
from qonduit_steps.outputs import Outputs
from qonduit_steps.problem import Problem, read_problem

if TYPE_CHECKING:
    from qonduit.devices.solve import Solved

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
    from qonduit.devices.solve import Solver
    from qonduit.devices.spool import spool_from_environment

    outputs.check(options.out, "--out")
    settings = settings_from_environment()
    device = open_device(settings)
    problem = read_problem(options.problem)
    shots = options.shots or settings.shots or SHOTS
    solver = Solver(device, settings, spool_from_environment(), say=_say)
    try:
        solved = solver.solve(
            problem.bqm(), shots, options.seed, [partition.variables for partition in problem.partitions]
        )
    except DataError as error:
        raise DataError(f"--problem: {error}") from None
    outputs.write_json(options.out, content(problem, settings, shots, options.seed, solved), "--out")
    return _summary(problem, settings, solved)


def _say(sentence: str) -> None:
    print(f"qonduit-solve: {sentence}", file=sys.stderr)


def content(problem: Problem, settings: Settings, shots: int, seed: int, solved: Solved) -> dict[str, Any]:
    """What samples.json holds."""
    answer, samples = solved.answer, solved.samples
    energies = zip(problem.partitions, answer.known_energies, strict=True)
    return {
        "format": FORMAT,
        "iteration": problem.iteration,
        "device": {"kind": settings.kind, "options": dict(settings.options)},
        "jobs": list(solved.jobs),
        "seed": seed,
        "shots": shots,
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
            "optimum_energy": answer.optimum_energy,
            "optimum_raw": answer.optimum_raw,
            "optimum_repaired": answer.optimum_repaired,
        },
        "timing": solved.timing,
    }


def _summary(problem: Problem, settings: Settings, solved: Solved) -> Summary:
    answer = solved.answer
    return {
        "iteration": problem.iteration,
        "device": settings.kind,
        "energy": answer.energy,
        "selected": len(answer.variables),
        "source": answer.source,
        "proved_optimal": answer.proved_optimal,
        **({"reused": True} if solved.reused else {}),
    }
