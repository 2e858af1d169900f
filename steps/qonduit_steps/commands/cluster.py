"""`qonduit-cluster`: one clustering by one method, with parameters drawn for the iteration or given by hand."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from qonduit.errors import DataError, UsageError
from qonduit_steps.command import Parser, Summary, natural, number, parser, run
from qonduit_steps.loop import LINKAGES, METHODS, PRESETS
from qonduit_steps.outputs import Outputs
from qonduit_steps.parameters import draw, generator
from qonduit_steps.partition import Labels, Partition, read_npz, write_partition
from qonduit_steps.points import Floats, read_points

LARGEST = 2**31 - 1
TAKES = {"k": ("kmeans", "hierarchical"), "eps": ("dbscan",), "min_points": ("dbscan",), "linkage": ("hierarchical",)}


def main() -> None:
    run(_parser(), _work)


def _parser() -> Parser:
    made = parser(
        "qonduit-cluster",
        "Clusters the points by one method. What is not given by hand is drawn from (seed, iteration, method).",
        "qonduit-cluster --method dbscan --points points.npy --iteration 0 --seed 7 --out labels.npz",
    )
    made.add_argument("--method", choices=METHODS, required=True)
    made.add_argument("--points", type=Path, required=True, help=".npy or CSV")
    made.add_argument("--iteration", type=natural(0, LARGEST), default=0, help="the loop's iteration, from 0")
    made.add_argument("--seed", type=natural(0, LARGEST), default=0)
    made.add_argument("--preset", choices=PRESETS, default="fitted", help="ranges that fit the data, or the papers'")
    made.add_argument("--k", type=natural(1), help="clusters (kmeans, hierarchical)")
    made.add_argument("--eps", type=number(1e-300, 1e150), help="reach (dbscan)")
    made.add_argument("--min-points", type=natural(1, LARGEST), help="points that make a core point (dbscan)")
    made.add_argument("--linkage", choices=LINKAGES, help="(hierarchical)")
    made.add_argument("--tree", type=Path, help="a spanning tree from qonduit-tree, for single linkage")
    made.add_argument("--out", type=Path, required=True, help="labels.npz")
    return made


def _work(options: argparse.Namespace, outputs: Outputs) -> Summary:
    given = {name: value for name in TAKES if (value := getattr(options, name)) is not None}
    for name in given:
        if options.method not in TAKES[name]:
            raise UsageError(
                f"--{name.replace('_', '-')} is not for --method {options.method}; it is for {TAKES[name][0]}"
            )
    outputs.check(options.out, "--out")
    points = read_points(options.points)
    if given.get("k", 1) > len(points):
        raise UsageError(f"--k {given['k']} is more than the {len(points)} points; ask for fewer clusters")
    random = generator(options.seed, options.iteration, options.method)
    parameters = draw(options.method, options.preset, points, random) | given
    single = options.tree and parameters.get("linkage") == "single"
    tree = _read_tree(options.tree, points) if single else None
    labels = clustered(points, options.method, parameters, random, tree)
    partition = Partition(labels, options.method, parameters, options.iteration, options.seed)
    write_partition(outputs, options.out, partition, "--out")
    return {
        "method": options.method,
        "iteration": options.iteration,
        "parameters": parameters,
        "clusters": partition.clusters,
        "noise": partition.noise,
    }


def clustered(
    points: Floats, method: str, parameters: dict[str, Any], random: np.random.Generator, tree: Any = None
) -> Labels:
    """One method's clusters, numbered as the input meets them; `tree` spares single linkage its spanning tree."""
    if method == "kmeans":
        from qonduit_steps.kernels.kmeans import kmeans, plus_plus

        return _by_first_appearance(kmeans(points, plus_plus(points, parameters["k"], random))[0])
    if method == "dbscan":
        from qonduit_steps.kernels.dbscan import dbscan

        return _by_first_appearance(dbscan(points, parameters["eps"], parameters["min_points"])[0])
    from qonduit_steps.kernels.linkage import hierarchical

    return _by_first_appearance(hierarchical(points, parameters["k"], parameters["linkage"], tree))


def _read_tree(path: Path, points: Floats) -> Any:
    tree = read_npz(path, "--tree", ("edges", "lengths"))
    n = len(points)
    edges = tree["edges"].astype(np.int64)
    fits = edges.shape == (n - 1, 2) and edges.min() >= 0 and edges.max() < n and tree["lengths"].shape == (n - 1,)
    if not fits or not np.allclose(np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1), tree["lengths"]):
        raise DataError(f"--tree: {path} is not a tree of these {n} points; make it with qonduit-tree")
    return edges


def _by_first_appearance(labels: Any) -> Labels:
    """Clusters renamed 0, 1, … in the order in which the input meets them; noise stays −1, empty clusters go."""
    found, first, position = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.full(len(found), -1)
    real = found >= 0
    rank[np.flatnonzero(real)[np.argsort(first[real])]] = np.arange(np.count_nonzero(real))
    return rank[position].astype(np.int32)
