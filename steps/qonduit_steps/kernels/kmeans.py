"""Lloyd's k-means, exact: from the same start it ends where any Lloyd ends.

Points are held by column and treated in blocks that fit the first-level cache, so that the search for the nearest
centre runs on vector units; a centre's sum is changed only by the points that change their label.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qonduit_steps.kernels.compiled import fast_kernel, kernel
from qonduit_steps.kernels.distance import add_squares
from qonduit_steps.kernels.kdtree import Floats, Ints

BLOCK = 1024

Labels = npt.NDArray[np.int32]


def kmeans(
    points: Floats, start: Floats, most_rounds: int = 300, tolerance: float = 1e-4
) -> tuple[Labels, Floats, int]:
    """Labels, centres, rounds; ends when no label changes or the centres move less than `tolerance` of the variance."""
    columns = np.ascontiguousarray(points.T)
    centres = np.array(start, dtype=np.float64)
    labels, rounds = _lloyd(columns, centres, most_rounds, tolerance * _variance(columns))
    return labels, centres, rounds


def plus_plus(points: Floats, k: int, generator: np.random.Generator) -> Floats:
    """k-means++: each next centre is drawn in proportion to the squared distance to the nearest so far."""
    centres = np.empty((k, points.shape[1]))
    centres[0] = points[generator.integers(len(points))]
    nearest = np.full(len(points), np.inf)
    for c in range(1, k):
        total = np.cumsum(_shrink(points, centres[c - 1], nearest))
        pick = np.searchsorted(total, generator.random() * total[-1], side="right")
        centres[c] = points[min(int(pick), len(points) - 1)]
    return centres


@kernel
def nearest_centres(points: Floats, centres: Floats) -> Ints:
    """For each point the number of its nearest centre; the first of equals."""
    labels = np.zeros(len(points), np.int64)
    for i in range(len(points)):
        best = np.inf
        for c in range(len(centres)):
            square = 0.0
            for j in range(points.shape[1]):
                square += (points[i, j] - centres[c, j]) ** 2
            if square < best:
                best = square
                labels[i] = c
    return labels


@kernel
def _shrink(points: Floats, centre: Floats, nearest: Floats) -> Floats:
    for i in range(len(points)):
        square = 0.0
        for c in range(points.shape[1]):
            delta = points[i, c] - centre[c]
            square += delta * delta
        nearest[i] = min(nearest[i], square)
    return nearest


@fast_kernel
def _variance(columns: Floats) -> float:
    """The mean over the dimensions of the variance."""
    d, n = columns.shape
    total = 0.0
    for j in range(d):
        column = columns[j]
        middle = 0.0
        for i in range(n):
            middle += column[i]
        middle /= n
        for i in range(n):
            total += (column[i] - middle) * (column[i] - middle)
    return float(total / (n * d))


@kernel
def _lloyd(columns: Floats, centres: Floats, most_rounds: int, enough: float) -> tuple[Labels, int]:
    """Moves the centres in place."""
    d, n = columns.shape
    k = len(centres)
    labels = np.full(n, -1, np.int32)
    sums = np.zeros((k, d))
    counts = np.zeros(k, np.int64)
    rounds = 0
    while rounds < most_rounds:
        rounds += 1
        changed = _assign(columns, centres, labels, sums, counts)
        if changed:
            _fill_empty(columns, centres, labels, sums, counts)
        if not changed or _move(centres, sums, counts) <= enough:
            # A far point that came and went has left its rounding in the sums: they must hold when summed afresh.
            _sum_afresh(columns, labels, sums, counts)
            if _move(centres, sums, counts) <= enough:
                break
    _assign(columns, centres, labels, sums, counts)
    return labels, rounds


@kernel
def _sum_afresh(columns: Floats, labels: Labels, sums: Floats, counts: Ints) -> None:
    d, n = columns.shape
    sums[:] = 0.0
    counts[:] = 0
    for i in range(n):
        counts[labels[i]] += 1
        for j in range(d):
            sums[labels[i], j] += columns[j, i]


@kernel
def _assign(columns: Floats, centres: Floats, labels: Labels, sums: Floats, counts: Ints) -> bool:
    d, n = columns.shape
    nearest = np.empty(BLOCK)
    fresh = np.empty(BLOCK)  # new labels, as floats: one vector type for distances and labels
    square = np.empty(BLOCK)
    changed = np.empty(BLOCK, np.int64)
    nowhere = np.full(d, np.inf)
    any_changed = False
    for first in range(0, n, BLOCK):
        size = min(BLOCK, n - first)
        nearest[:] = np.inf
        # The innermost slices are whole runs of memory: only then do they reach the vector units.
        if d == 2:
            x = columns[0][first : first + size]
            y = columns[1][first : first + size]
            for c in range(0, len(centres), 2):
                other = centres[c + 1] if c + 1 < len(centres) else nowhere
                _closest_of_two(x, y, centres[c], other, float(c), nearest[:size], fresh[:size])
        else:
            for c in range(len(centres)):
                square[:] = 0.0
                for j in range(d):
                    add_squares(columns[j][first : first + size], centres[c, j], square[:size])
                _closer(square[:size], float(c), nearest[:size], fresh[:size])
        if _change_labels(columns, first, fresh[:size], labels[first : first + size], sums, counts, changed):
            any_changed = True
    return any_changed


@kernel
def _change_labels(
    columns: Floats, first: int, fresh: Floats, labels: Labels, sums: Floats, counts: Ints, changed: Ints
) -> bool:
    """Moves the points whose label changes, and their share of the sums, to their new cluster."""
    d = columns.shape[0]
    many = 0
    for i in range(len(labels)):  # without a branch, which would be guessed wrong half of the time
        changed[many] = i
        many += np.int32(fresh[i]) != labels[i]
    for m in range(many):
        i = changed[m]
        after = np.int32(fresh[i])
        before = labels[i]
        labels[i] = after
        counts[after] += 1
        for j in range(d):
            sums[after, j] += columns[j, first + i]
        if before >= 0:
            counts[before] -= 1
            for j in range(d):
                sums[before, j] -= columns[j, first + i]
    return many > 0


@kernel
def _closer(square: Floats, label: float, nearest: Floats, fresh: Floats) -> None:
    for i in range(len(square)):
        # Read all, then write: so the compiler sees that it may use vectors.
        mine = square[i]
        least = nearest[i]
        before = fresh[i]
        fresh[i] = label if mine < least else before
        nearest[i] = mine if mine < least else least


@kernel
def _closest_of_two(x: Floats, y: Floats, a: Floats, b: Floats, label: float, nearest: Floats, fresh: Floats) -> None:
    """Both of the above at once, for two centres in the plane: the usual case, in a third of the time."""
    ax = a[0]
    ay = a[1]
    bx = b[0]
    by = b[1]
    for i in range(len(nearest)):
        one = (x[i] - ax) * (x[i] - ax) + (y[i] - ay) * (y[i] - ay)
        two = (x[i] - bx) * (x[i] - bx) + (y[i] - by) * (y[i] - by)
        least = nearest[i]
        before = fresh[i]
        name = label if one < least else before
        least = one if one < least else least
        fresh[i] = label + 1.0 if two < least else name
        nearest[i] = two if two < least else least


@kernel
def _move(centres: Floats, sums: Floats, counts: Ints) -> float:
    """Puts each centre in the middle of its points; the sum of the squares of how far they moved."""
    total = 0.0
    for c in range(len(centres)):
        if counts[c] > 0:
            for j in range(centres.shape[1]):
                x = sums[c, j] / counts[c]
                total += (x - centres[c, j]) ** 2
                centres[c, j] = x
    return total


@kernel
def _fill_empty(columns: Floats, centres: Floats, labels: Labels, sums: Floats, counts: Ints) -> None:
    """An empty cluster gets the point that is farthest from its centre, if there are enough distinct points."""
    d, n = columns.shape
    for empty in range(len(centres)):
        if counts[empty] > 0:
            continue
        far = -1
        farthest = 0.0
        for i in range(n):
            square = 0.0
            for j in range(d):
                square += (columns[j, i] - centres[labels[i], j]) ** 2
            if square > farthest and counts[labels[i]] > 1:
                farthest = square
                far = i
        if far < 0:
            return
        before = labels[far]
        counts[before] -= 1
        counts[empty] = 1
        for j in range(d):
            sums[before, j] -= columns[j, far]
            sums[empty, j] = columns[j, far]
            centres[empty, j] = columns[j, far]
        labels[far] = empty
