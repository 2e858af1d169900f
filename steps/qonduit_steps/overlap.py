"""The overlap graph of several clusterings of the same points, and the aggregation problem on it.

Clusters are vertices, two that share a point are joined, and identical clusters are one vertex. Choosing disjoint
clusters of the largest total weight is the maximum-weight independent set that the quantum step solves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from qonduit_steps.partition import Labels, Partition
from qonduit_steps.points import Floats
from qonduit_steps.problem import Cluster, InputPartition, Member, Penalty, Problem

Ints = npt.NDArray[np.int64]
ABOVE = 1.01  # how far `auto` stays above the least penalty that forbids overlaps


def aggregation_problem(points: Floats, partitions: Sequence[Partition], weights: str, penalty: str | float) -> Problem:
    sizes = [np.bincount(part.labels[part.labels >= 0], minlength=part.clusters) for part in partitions]
    weigh = silhouette_weights if weights == "silhouette" else size_weights
    weight = [weigh(points, part.labels, part.clusters) for part in partitions]
    shared = {
        (a, b): overlaps(partitions[a].labels, partitions[b].labels)
        for a in range(len(partitions))
        for b in range(a + 1, len(partitions))
    }
    leader = _merge_identical(sizes, shared)
    names = _names(partitions, sizes)
    clusters = _clusters(partitions, sizes, weight, leader, names)
    edges = _edges(shared, leader, names)
    return Problem(
        points=len(points),
        iteration=partitions[0].iteration,
        weights=weights,
        penalty=_penalty(penalty, clusters, edges, 1.0 if weights == "size" else float(len(points))),
        clusters=clusters,
        edges=edges,
        partitions=_partitions(partitions, clusters),
    )


def silhouette_weights(points: Floats, labels: Labels, clusters: int) -> Floats:
    """The sum of each cluster's silhouette samples, noise left out; 0 if there is but one cluster."""
    if clusters < 2:
        return np.zeros(clusters)
    from qonduit_steps.kernels.silhouette import silhouette_samples

    inside = labels >= 0
    samples = silhouette_samples(points[inside], labels[inside].astype(np.int64))
    return np.bincount(labels[inside], weights=samples, minlength=clusters).astype(np.float64)


def size_weights(points: Floats, labels: Labels, clusters: int) -> Floats:
    """The papers' weights: each cluster's share of all points."""
    return np.bincount(labels[labels >= 0], minlength=clusters) / len(points)


def overlaps(a: Labels, b: Labels) -> Ints:
    """Rows (cluster of a, cluster of b, points in both), for those that share a point."""
    both = (a >= 0) & (b >= 0)
    width = int(b.max(initial=-1)) + 1
    cells = a[both].astype(np.int64) * width + b[both]
    if (int(a.max(initial=-1)) + 1) * width <= 4 * len(a):
        counts = np.bincount(cells)
        found = np.flatnonzero(counts)
        counts = counts[found]
    else:
        found, counts = np.unique(cells, return_counts=True)
    return np.stack((found // max(width, 1), found % max(width, 1), counts), axis=1)


Vertex = tuple[int, int]  # (input, cluster)


def _merge_identical(sizes: Sequence[Ints], shared: dict[Vertex, Ints]) -> dict[Vertex, Vertex]:
    """Each cluster's leader: the same points in the first input that has them."""
    leader = {(part, c): (part, c) for part, counts in enumerate(sizes) for c in range(len(counts))}
    for (a, b), rows in shared.items():
        for i, j, common in rows.tolist():
            if common == sizes[a][i] == sizes[b][j]:
                leader[b, j] = leader[a, i]
    return leader


def _names(partitions: Sequence[Partition], sizes: Sequence[Ints]) -> dict[Vertex, str]:
    """`kmeans:3`; the second clustering by one method is `kmeans#2:3`."""
    names = {}
    for part, partition in enumerate(partitions):
        nth = sum(other.method == partition.method for other in partitions[: part + 1])
        for c in range(len(sizes[part])):
            names[part, c] = f"{partition.method}{f'#{nth}' if nth > 1 else ''}:{c}"
    return names


def _clusters(
    partitions: Sequence[Partition],
    sizes: Sequence[Ints],
    weight: Sequence[Floats],
    leader: dict[Vertex, Vertex],
    names: dict[Vertex, str],
) -> tuple[Cluster, ...]:
    members: dict[Vertex, list[Vertex]] = {}
    for vertex, first in leader.items():
        members.setdefault(first, []).append(vertex)
    made = []
    for (part, c), group in members.items():
        # Were they apart, only the heavier of two identical clusters would ever be chosen.
        heaviest = max(float(weight[p][i]) for p, i in group)
        made.append(
            Cluster(
                variable=names[part, c],
                members=tuple(Member(p, partitions[p].method, i) for p, i in group),
                size=int(sizes[part][c]),
                weight=heaviest,
                in_objective=heaviest > 0,
            )
        )
    return tuple(made)


def _edges(
    shared: dict[Vertex, Ints], leader: dict[Vertex, Vertex], names: dict[Vertex, str]
) -> tuple[tuple[str, str], ...]:
    edges = {
        tuple(sorted((leader[a, i], leader[b, j])))
        for (a, b), rows in shared.items()
        for i, j, _ in rows.tolist()
        if leader[a, i] != leader[b, j]
    }
    return tuple((names[u], names[v]) for u, v in sorted(edges))


def _penalty(rule: str | float, clusters: Sequence[Cluster], edges: Sequence[tuple[str, str]], unit: float) -> Penalty:
    """`auto`: just above what is needed. `n`: the papers' number of clusters, in units of the weight of all points."""
    weight = {cluster.variable: cluster.weight for cluster in clusters}
    needed = max((max(min(weight[u], weight[v]), 0.0) for u, v in edges), default=0.0)
    if rule == "auto":
        return Penalty("auto", needed * ABOVE if needed > 0 else unit, needed)
    if rule == "n":
        return Penalty("n", len(clusters) * unit, needed)
    return Penalty("given", float(rule), needed)


def _partitions(partitions: Sequence[Partition], clusters: Sequence[Cluster]) -> tuple[InputPartition, ...]:
    return tuple(
        InputPartition(
            part,
            partition.method,
            tuple(
                cluster.variable
                for cluster in clusters
                if cluster.in_objective and any(member.input == part for member in cluster.members)
            ),
        )
        for part, partition in enumerate(partitions)
    )
