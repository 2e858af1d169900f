"""`qonduit-aggregate`: the overlap graph of several clusterings and the QUBO that merges them."""

from __future__ import annotations

import argparse
from pathlib import Path

from qonduit_steps.command import Parser, Summary, parser, penalty, run
from qonduit_steps.loop import WEIGHTS
from qonduit_steps.outputs import Outputs
from qonduit_steps.overlap import aggregation_problem
from qonduit_steps.partition import read_partition
from qonduit_steps.points import read_points
from qonduit_steps.problem import problem_to_json


def main() -> None:
    run(_parser(), _work)


def _parser() -> Parser:
    made = parser(
        "qonduit-aggregate",
        "Builds the overlap graph of the clusterings and the QUBO  −Σ w x + λ Σ x x  of merging them.",
        "qonduit-aggregate --points points.npy --labels kmeans.npz dbscan.npz hierarchical.npz --out problem.json",
    )
    made.add_argument("--points", type=Path, required=True, help=".npy or CSV")
    made.add_argument("--labels", type=Path, nargs="+", required=True, help="files of qonduit-cluster", metavar="NPZ")
    made.add_argument("--weights", choices=WEIGHTS, default="silhouette", help="silhouettes, or the papers' size")
    made.add_argument("--penalty", type=penalty, default="auto", help="auto, n (the papers') or a number", metavar="λ")
    made.add_argument("--out", type=Path, required=True, help="problem.json")
    return made


def _work(options: argparse.Namespace, outputs: Outputs) -> Summary:
    outputs.check(options.out, "--out")
    points = read_points(options.points)
    partitions = [read_partition(path, "--labels", len(points)) for path in options.labels]
    problem = aggregation_problem(points, partitions, options.weights, options.penalty)
    outputs.write_json(options.out, problem_to_json(problem), "--out")
    summary: Summary = {
        "iteration": problem.iteration,
        "variables": sum(cluster.in_objective for cluster in problem.clusters),
        "edges": len(problem.edges),
        "penalty": problem.penalty.value,
    }
    if problem.penalty.value <= problem.penalty.needed:
        summary["warning"] = f"overlaps are cheap: a penalty above {problem.penalty.needed:.6g} forbids them"
    return summary
