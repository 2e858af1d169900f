"""`qonduit-score`: the clustering that the selected clusters make, and its exact mean silhouette."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from qonduit.errors import DataError
from qonduit_steps.command import Parser, Summary, parser, read_json, record, run
from qonduit_steps.outputs import Outputs
from qonduit_steps.partition import read_partition, write_npz
from qonduit_steps.points import read_points
from qonduit_steps.problem import Problem, read_problem
from qonduit_steps.selection import assemble, mean_silhouette


def main() -> None:
    run(_parser(), _work)


def _parser() -> Parser:
    made = parser(
        "qonduit-score",
        "Turns the selected clusters into a clustering of all points and computes its exact mean silhouette.",
        "qonduit-score --points points.npy --labels a.npz b.npz c.npz --problem problem.json --samples samples.json "
        "--out score.json --labels-out best.npz",
    )
    made.add_argument("--points", type=Path, required=True, help=".npy or CSV")
    made.add_argument("--labels", type=Path, nargs="+", required=True, help="as for qonduit-aggregate", metavar="NPZ")
    made.add_argument("--samples", type=Path, required=True, help="from qonduit-solve")
    made.add_argument("--problem", type=Path, help="from qonduit-aggregate; default: problem.json beside --samples")
    made.add_argument("--out", type=Path, required=True, help="score.json")
    made.add_argument("--labels-out", type=Path, required=True, help="best.npz: labels and which were assigned")
    made.add_argument("--keep", type=Path, metavar="DIR", help="also gather the iteration's files in this folder")
    made.add_argument("--earlier", type=Path, nargs="+", metavar="FILE", help="the records of the steps before")
    return made


def _work(options: argparse.Namespace, outputs: Outputs) -> Summary:
    for path, option in ((options.out, "--out"), (options.labels_out, "--labels-out")):
        outputs.check(path, option)
    folder = outputs.folder(options.keep, "--keep") if options.keep else None
    problem_path = options.problem or options.samples.parent / "problem.json"
    points = read_points(options.points)
    partitions = [read_partition(path, "--labels", len(points)) for path in options.labels]
    problem = read_problem(problem_path, "--problem")
    given = [(part.method, part.iteration) for part in partitions]
    if len(points) != problem.points or given != [(part.method, problem.iteration) for part in problem.partitions]:
        raise DataError(f"--problem: {problem_path} is not of these points and labels; use files of one iteration")
    selected = _selected(options.samples, problem)
    labels, assigned = assemble(points, partitions, problem, selected)
    score = {
        "score": mean_silhouette(points, labels),
        "iteration": problem.iteration,
        "clusters": int(labels.max()) + 1,
        "assigned_points": int(assigned.sum()),
        "selected": selected,
    }
    outputs.write_json(options.out, score, "--out")
    write_npz(outputs, options.labels_out, "--labels-out", labels=labels, assigned=assigned)
    summary = {key: score[key] for key in ("iteration", "score", "clusters", "assigned_points")}
    if folder:
        outputs.write_json(folder / "score.json", score, "--keep")
        write_npz(outputs, folder / "best.npz", "--keep", labels=labels, assigned=assigned)
        copies = {"problem.json": problem_path, "samples.json": options.samples}
        copies |= {f"labels-{number}.npz": path for number, path in enumerate(options.labels)}
        for name, path in copies.items():
            outputs.copy(path, folder / name, "--keep")
        outputs.write_json(folder / "record.json", record(options, summary), "--keep")
    return summary


def _selected(path: Path, problem: Problem) -> list[str]:
    samples: Any = read_json(path, "--samples")
    try:
        selected = samples["best"]["variables"]
        iteration = samples["iteration"]
    except (KeyError, TypeError):
        raise DataError(f"--samples: {path} names no best sample; make it with qonduit-solve") from None
    known = {cluster.variable for cluster in problem.clusters}
    if not isinstance(selected, list) or not set(selected) <= known or iteration != problem.iteration:
        raise DataError(f"--samples: {path} does not belong to this problem; use files of one iteration")
    return [cluster.variable for cluster in problem.clusters if cluster.variable in set(selected)]
