"""`qonduit-tree`: the spanning tree that single linkage is cut from; made once, cut by every iteration."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from qonduit_steps.command import Parser, Summary, parser, run
from qonduit_steps.outputs import Outputs
from qonduit_steps.partition import write_npz
from qonduit_steps.points import read_points


def main() -> None:
    run(_parser(), _work)


def _parser() -> Parser:
    made = parser(
        "qonduit-tree",
        "Computes the exact Euclidean minimum spanning tree of the points, for qonduit-cluster --tree.",
        "qonduit-tree --points points.npy --out tree.npz",
    )
    made.add_argument("--points", type=Path, required=True, help=".npy or CSV")
    made.add_argument("--out", type=Path, required=True, help="tree.npz: edges and lengths, shortest first")
    return made


def _work(options: argparse.Namespace, outputs: Outputs) -> Summary:
    outputs.check(options.out, "--out")
    points = read_points(options.points)
    from qonduit_steps.kernels.spanning_tree import spanning_tree

    edges, lengths = spanning_tree(points)
    write_npz(outputs, options.out, "--out", edges=edges.astype(np.int32), lengths=lengths)
    return {"points": len(points), "longest_edge": float(lengths[-1])}
