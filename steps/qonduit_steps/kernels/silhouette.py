"""Exact silhouettes: a point's mean distances a to its own cluster and b to the nearest other, as (b−a)/max(a, b).

Most clusters cannot be a point's nearest: the mean distance of x to a cluster with centroid c and variance v lies
between |x−c| and √(|x−c|²+v), so only one or two other clusters a point are summed. Large clusters in the plane are
summed by the fast multipole method.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from qonduit_steps.kernels.compiled import fast_kernel, in_threads, kernel
from qonduit_steps.kernels.distance import add_squares, total_in_plane
from qonduit_steps.kernels.kdtree import Floats, Ints
from qonduit_steps.kernels.multipole import distance_sums

# Bounds are computed with rounding: clusters that lose by less than this are summed all the same.
SLACK = 1e-9
BLOCK = 2048
# From this many pairs on, summing a cluster by the multipole method is faster than pair by pair.
MULTIPOLE_PAIRS = 1e8


class Clusters(NamedTuple):
    """The points grouped by cluster, held by column, and what bounds the distances to each cluster."""

    order: Ints
    columns: Floats
    start: Ints
    centroids: Floats
    variances: Floats


def silhouette_samples(points: Floats, labels: Ints) -> Floats:
    """One value in [−1, 1] a point; 0 in clusters of one point. Labels are 0 … k−1, none empty, k ≥ 2."""
    clusters = _group(points, labels)
    if points.shape[1] == 2 and _pairs(clusters) >= MULTIPOLE_PAIRS:
        own, other = _by_cluster(clusters)
    else:
        own, other = _by_point(clusters)
    largest = np.maximum(own, other)
    values = np.divide(other - own, largest, out=np.zeros(len(points)), where=largest > 0)
    values[np.diff(clusters.start)[_numbers(clusters.start)] == 1] = 0.0
    result = np.empty(len(points))
    result[clusters.order] = values
    return result


def _group(points: Floats, labels: Ints) -> Clusters:
    scale = np.ldexp(1.0, -int(np.frexp(np.abs(points).max())[1]))  # a power of two: exact, and squares stay finite
    order = np.argsort(labels, kind="stable")
    columns = np.ascontiguousarray(points[order].T) * scale
    start = np.concatenate(([0], np.cumsum(np.bincount(labels))))
    sizes = np.diff(start)
    centroids = np.add.reduceat(columns, start[:-1], axis=1) / sizes
    deviations = columns - np.repeat(centroids, sizes, axis=1)
    variances = np.add.reduceat((deviations**2).sum(axis=0), start[:-1]) / sizes
    return Clusters(order, columns, start, np.ascontiguousarray(centroids.T), variances)


def _numbers(start: Ints) -> Ints:
    return np.repeat(np.arange(len(start) - 1), np.diff(start))


def _pairs(clusters: Clusters) -> float:
    """Of the largest cluster with itself: what summing costs at least."""
    return float(np.diff(clusters.start).max()) ** 2


def _by_point(clusters: Clusters) -> tuple[Floats, Floats]:
    n = clusters.columns.shape[1]
    own, other = np.empty(n), np.empty(n)
    numbers = _numbers(clusters.start)

    def work(block: int) -> None:
        first, last = block * BLOCK, min((block + 1) * BLOCK, n)
        _means(*clusters[1:], numbers, first, last, own, other)

    for _ in in_threads(work, range((n + BLOCK - 1) // BLOCK)):
        pass
    return own, other


@kernel
def _means(
    columns: Floats,
    start: Ints,
    centroids: Floats,
    variances: Floats,
    numbers: Ints,
    first: int,
    last: int,
    own: Floats,
    other: Floats,
) -> None:
    d = columns.shape[0]
    k = len(variances)
    low = np.empty(k)
    x = np.empty(d)
    buffer = np.empty(512)
    for i in range(first, last):
        for c in range(d):
            x[c] = columns[c, i]
        mine = numbers[i]
        size = start[mine + 1] - start[mine]
        own[i] = _total(columns, start[mine], start[mine + 1], x, buffer) / max(size - 1, 1)
        likeliest = -1
        least = np.inf
        for c in range(k):
            square = 0.0
            for j in range(d):
                square += (x[j] - centroids[c, j]) ** 2
            low[c] = square
            if c != mine and square + variances[c] < least:
                least = square + variances[c]
                likeliest = c
        best = _mean(columns, start, likeliest, x, buffer)
        for c in range(k):
            if c != mine and c != likeliest and low[c] <= best * best * (1.0 + SLACK) + SLACK * SLACK:
                best = min(best, _mean(columns, start, c, x, buffer))
        other[i] = best


@kernel
def _mean(columns: Floats, start: Ints, c: int, x: Floats, buffer: Floats) -> float:
    return float(_total(columns, start[c], start[c + 1], x, buffer) / (start[c + 1] - start[c]))


@kernel
def _total(columns: Floats, first: int, last: int, x: Floats, buffer: Floats) -> float:
    """The sum of the distances of x to the points first … last−1."""
    if len(x) == 2:
        return total_in_plane(x[0], x[1], columns[0][first:last], columns[1][first:last])
    total = 0.0
    for a in range(first, last, len(buffer)):
        size = min(len(buffer), last - a)
        buffer[:size] = 0.0
        for c in range(len(x)):
            add_squares(columns[c][a : a + size], x[c], buffer[:size])
        total += _sum_of_roots(buffer[:size])
    return total


@fast_kernel
def _sum_of_roots(square: Floats) -> float:
    total = 0.0
    for j in range(len(square)):
        total += math.sqrt(square[j])
    return total


def _by_cluster(clusters: Clusters) -> tuple[Floats, Floats]:
    """A cluster at a time: its own points and those that it may be the nearest other cluster of, together."""
    start, sizes = clusters.start, np.diff(clusters.start)
    points = np.ascontiguousarray(clusters.columns.T)
    numbers = _numbers(start)
    ceiling = _least_upper_bounds(points, clusters.centroids, clusters.variances, numbers)
    own, other = np.zeros(len(points)), np.full(len(points), np.inf)

    def work(c: int) -> tuple[Ints, Floats]:
        asked = _candidates(points, clusters.centroids[c], ceiling, start[c], start[c + 1])
        return asked, _sums(points[start[c] : start[c + 1]], points[asked])

    for c, (asked, sums) in enumerate(in_threads(work, range(len(sizes)))):
        mine = numbers[asked] == c
        own[asked[mine]] = sums[mine] / max(sizes[c] - 1, 1)
        rest = asked[~mine]
        other[rest] = np.minimum(other[rest], sums[~mine] / sizes[c])
    return own, other


def _sums(sources: Floats, targets: Floats) -> Floats:
    if len(sources) * len(targets) >= MULTIPOLE_PAIRS:
        return distance_sums(sources, targets)
    return _direct_sums(np.ascontiguousarray(sources.T), targets)


@kernel
def _direct_sums(columns: Floats, targets: Floats) -> Floats:
    sums = np.empty(len(targets))
    for i in range(len(targets)):
        sums[i] = total_in_plane(targets[i, 0], targets[i, 1], columns[0], columns[1])
    return sums


@kernel
def _least_upper_bounds(points: Floats, centroids: Floats, variances: Floats, numbers: Ints) -> Floats:
    """For each point the square of a distance that the nearest other cluster's mean distance cannot exceed."""
    ceiling = np.full(len(points), np.inf)
    for i in range(len(points)):
        for c in range(len(variances)):
            if c != numbers[i]:
                dx = points[i, 0] - centroids[c, 0]
                dy = points[i, 1] - centroids[c, 1]
                ceiling[i] = min(ceiling[i], dx * dx + dy * dy + variances[c])
    return ceiling


@kernel
def _candidates(points: Floats, centroid: Floats, ceiling: Floats, first: int, last: int) -> Ints:
    """The points of the cluster itself and those that the cluster may be the nearest other one of."""
    found = np.empty(len(points), np.int64)
    count = 0
    for i in range(len(points)):
        dx = points[i, 0] - centroid[0]
        dy = points[i, 1] - centroid[1]
        if first <= i < last or dx * dx + dy * dy <= ceiling[i] * (1.0 + SLACK) + SLACK * SLACK:
            found[count] = i
            count += 1
    return found[:count].copy()
