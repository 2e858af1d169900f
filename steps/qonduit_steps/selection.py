"""From selected clusters to a clustering of all points, and its silhouette."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from qonduit.errors import DataError
from qonduit_steps.partition import Labels, Partition
from qonduit_steps.points import Floats
from qonduit_steps.problem import Problem

Flags = npt.NDArray[np.bool_]


def assemble(
    points: Floats, partitions: Sequence[Partition], problem: Problem, selected: Sequence[str]
) -> tuple[Labels, Flags]:
    """Labels of all points, and which points are in no selected cluster and went to the nearest centroid."""
    clusters = {cluster.variable: cluster for cluster in problem.clusters}
    labels = np.full(len(points), -1, np.int32)
    for number, variable in enumerate(selected):
        member = clusters[variable].members[0]
        inside = partitions[member.input].labels == member.cluster
        if inside.sum() != clusters[variable].size or (labels[inside] >= 0).any():
            raise DataError(f"the selected cluster {variable} is not that of the labels; use files of one iteration")
        labels[inside] = number
    assigned = labels < 0
    if not selected:
        labels[:] = 0
    elif assigned.any():
        from qonduit_steps.kernels.kmeans import nearest_centres

        centres = np.stack([points[labels == number].mean(axis=0) for number in range(len(selected))])
        labels[assigned] = nearest_centres(points[assigned], centres)
    return labels, assigned


def mean_silhouette(points: Floats, labels: Labels) -> float:
    """Exact; −1 if there are fewer than two clusters."""
    if labels.max(initial=-1) < 1:
        return -1.0
    from qonduit_steps.kernels.silhouette import silhouette_samples

    return float(silhouette_samples(points, labels.astype(np.int64)).mean())
