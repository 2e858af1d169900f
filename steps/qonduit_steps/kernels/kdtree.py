"""A k-d tree over points of any dimension, as plain arrays that other kernels walk.

Nodes are numbered level by level; node 0 is the root and the children of node i are `child[i]` and `child[i] + 1`,
or `child[i]` is −1 for a leaf. Points are reordered so that each node owns a contiguous range of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from qonduit_steps.kernels.compiled import kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class KDTree(NamedTuple):
    points: Floats
    order: Ints  # order[i] is the input index of the tree's point i
    start: Ints  # node i owns points[start[i]:end[i]]
    end: Ints
    child: Ints
    low: Floats  # corners of the tight box around a node's points
    high: Floats


def build(points: Floats, leaf: int) -> KDTree:
    """Splits at the median of the longest side until a node holds at most `leaf` points, or only equal ones."""
    ordered = np.ascontiguousarray(points, dtype=np.float64).copy()
    order = np.arange(len(ordered), dtype=np.int64)
    return KDTree(ordered, order, *_split(ordered, order, leaf))


@kernel
def _split(points: Floats, order: Ints, leaf: int) -> tuple[Ints, Ints, Ints, Floats, Floats]:
    n, d = points.shape
    most = 4 * (n // (leaf + 1) + 1) + 3
    start = np.empty(most, np.int64)
    end = np.empty(most, np.int64)
    child = np.full(most, -1, np.int64)
    low = np.empty((most, d))
    high = np.empty((most, d))
    start[0] = 0
    end[0] = n
    count = 1
    node = 0
    while node < count:
        a = start[node]
        b = end[node]
        axis = 0
        widest = -1.0
        for j in range(d):
            least = points[a, j]
            most_ = least
            for i in range(a + 1, b):
                x = points[i, j]
                if x < least:
                    least = x
                elif x > most_:
                    most_ = x
            low[node, j] = least
            high[node, j] = most_
            if most_ - least > widest:
                widest = most_ - least
                axis = j
        if b - a > leaf and widest > 0.0:
            middle = (a + b) >> 1
            _select(points, order, axis, a, b, middle)
            child[node] = count
            start[count] = a
            end[count] = middle
            start[count + 1] = middle
            end[count + 1] = b
            count += 2
        node += 1
    return start[:count].copy(), end[:count].copy(), child[:count].copy(), low[:count].copy(), high[:count].copy()


@kernel
def _select(points: Floats, order: Ints, axis: int, a: int, b: int, k: int) -> None:
    """Quickselect: afterwards no point in [a, k) is above, none in [k, b) below, the point at k along the axis."""
    left = a
    right = b - 1
    while left < right:
        x = points[left, axis]
        y = points[(left + right) >> 1, axis]
        z = points[right, axis]
        pivot = max(min(x, y), min(max(x, y), z))
        i = left
        j = right
        while i <= j:
            while points[i, axis] < pivot:
                i += 1
            while points[j, axis] > pivot:
                j -= 1
            if i <= j:
                for c in range(points.shape[1]):
                    points[i, c], points[j, c] = points[j, c], points[i, c]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if k <= j:
            right = j
        elif k >= i:
            left = i
        else:
            return
