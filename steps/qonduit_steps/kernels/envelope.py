"""Are two groups of points, a grid line apart, within reach of each other? Without trying all pairs.

DBSCAN asks this of two dense cells. In two dimensions the answer costs O(m log m) for any data: discs of one radius
around points below a line have arcs above it that cross at most once, so the disc that reaches highest above u moves to
the right as u does, and halving the queries halves the candidates. In other dimensions a k-d tree answers.
"""

from __future__ import annotations

import numpy as np

from qonduit_steps.kernels.compiled import inlined, kernel
from qonduit_steps.kernels.kdtree import Floats, Ints, _split


@kernel
def within_reach(a: Floats, b: Floats, eps: float) -> bool:
    """Is some point of `a` within eps of some point of `b`?"""
    if a.shape[1] != 2:
        return _by_tree(a, b, eps)
    for across in range(2):
        if _is_below(a, b, across):
            return _by_discs(a, b, 1 - across, across, eps)
        if _is_below(b, a, across):
            return _by_discs(b, a, 1 - across, across, eps)
    return _by_tree(a, b, eps)


@kernel
def _is_below(a: Floats, b: Floats, axis: int) -> bool:
    top = -np.inf
    for i in range(len(a)):
        top = max(top, a[i, axis])
    for j in range(len(b)):  # noqa: SIM110  (numba knows no all() of a generator)
        if b[j, axis] < top:
            return False
    return True


@kernel
def _by_discs(below: Floats, above: Floats, along: int, across: int, eps: float) -> bool:
    reach = eps * eps
    discs = _ranking(below[:, along])
    queries = _ranking(above[:, along])
    stack = np.empty(512, np.int64)  # four numbers an entry: queries from and to, discs from and to
    top = _push(stack, 0, 0, len(queries), 0, len(discs))
    while top > 0:
        top -= 4
        first = stack[top]
        last = stack[top + 1]
        left = stack[top + 2]
        right = stack[top + 3]
        middle = (first + last) >> 1
        u = above[queries[middle], along]
        v = above[queries[middle], across]
        pick = left
        least_excess = np.inf
        highest = -np.inf
        for k in range(left, right):
            offset = abs(u - below[discs[k], along])
            excess = max(offset - eps, 0.0)
            if excess > least_excess:
                continue
            height = below[discs[k], across]
            if excess == 0.0:
                height += np.sqrt(reach - offset * offset)
            if excess < least_excess or height > highest:
                least_excess = excess
                highest = height
                pick = k
        du = u - below[discs[pick], along]
        dv = v - below[discs[pick], across]
        if du * du + dv * dv <= reach:
            return True
        if middle > first:
            top = _push(stack, top, first, middle, left, pick + 1)
        if middle + 1 < last:
            top = _push(stack, top, middle + 1, last, pick, right)
    return False


@inlined
def _push(stack: Ints, top: int, first: int, last: int, left: int, right: int) -> int:
    stack[top] = first
    stack[top + 1] = last
    stack[top + 2] = left
    stack[top + 3] = right
    return top + 4


@kernel
def _ranking(values: Floats) -> Ints:
    """Merge sort of the indices; numba's own argsort takes seconds to compile."""
    n = len(values)
    order = np.arange(n)
    other = np.empty(n, np.int64)
    width = 1
    while width < n:
        for left in range(0, n, 2 * width):
            middle = min(left + width, n)
            right = min(left + 2 * width, n)
            i = left
            j = middle
            for k in range(left, right):
                if i < middle and (j >= right or values[order[i]] <= values[order[j]]):
                    other[k] = order[i]
                    i += 1
                else:
                    other[k] = order[j]
                    j += 1
        order, other = other, order
        width *= 2
    return order


@kernel
def _by_tree(a: Floats, b: Floats, eps: float) -> bool:
    if len(a) > len(b):
        a, b = b, a
    reach = eps * eps
    points = b.copy()
    start, end, child, low, high = _split(points, np.arange(len(points)), 16)
    stack = np.empty(256, np.int64)
    for i in range(len(a)):
        top = 0
        stack[0] = 0
        while top >= 0:
            node = stack[top]
            top -= 1
            gap = 0.0
            for c in range(a.shape[1]):
                delta = max(low[node, c] - a[i, c], a[i, c] - high[node, c])
                if delta > 0.0:
                    gap += delta * delta
            if gap > reach:
                continue
            if child[node] >= 0:
                stack[top + 1] = child[node]
                stack[top + 2] = child[node] + 1
                top += 2
                continue
            for j in range(start[node], end[node]):
                square = 0.0
                for c in range(a.shape[1]):
                    delta = a[i, c] - points[j, c]
                    square += delta * delta
                if square <= reach:
                    return True
    return False
