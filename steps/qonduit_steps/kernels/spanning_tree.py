"""Exact Euclidean minimum spanning trees, which single linkage is cut from.

Up to `TREE_DIMENSIONS` dimensions: Borůvka's rounds on a k-d tree, where a point asks for its nearest point outside its
component only if its last answer does not hold any more. Above: Prim's algorithm, n² distances in linear memory.
Duplicates, collinear points and ties are ordinary cases for both.
"""

from __future__ import annotations

import numpy as np

from qonduit_steps.kernels import kdtree
from qonduit_steps.kernels.compiled import fast_kernel, inlined, kernel
from qonduit_steps.kernels.distance import find, square
from qonduit_steps.kernels.kdtree import Floats, Ints

TREE_DIMENSIONS = 8
LEAF = 12


def spanning_tree(points: Floats) -> tuple[Ints, Floats]:
    """The n−1 edges (pairs of point numbers) and their lengths, shortest first; ties in a fixed order."""
    if len(points) < 2:
        return np.empty((0, 2), np.int64), np.empty(0)
    scale = np.ldexp(1.0, -int(np.frexp(np.abs(points).max())[1]))  # a power of two: exact, and squares stay finite
    scaled = points * scale
    if points.shape[1] <= TREE_DIMENSIONS:
        tree = kdtree.build(scaled, LEAF)
        edges, squares = _boruvka(tree.points, tree.start, tree.end, tree.child, tree.low, tree.high)
        edges = tree.order[edges]
    else:
        edges, squares = _prim(np.ascontiguousarray(scaled.T))
    edges.sort(axis=1)
    ranked = np.lexsort((edges[:, 1], edges[:, 0], squares))
    return edges[ranked], np.sqrt(squares[ranked]) / scale


def cut(edges: Ints, n: int, clusters: int) -> Ints:
    """Labels 0 … clusters−1, in order of first appearance, after the longest clusters−1 edges are removed."""
    return _components(edges[: n - clusters], n)


@kernel
def _components(edges: Ints, n: int) -> Ints:
    parent = np.arange(n)
    for e in range(len(edges)):
        a = find(parent, edges[e, 0])
        b = find(parent, edges[e, 1])
        # The smallest number leads a component, so that naming below is one pass.
        if a < b:
            parent[b] = a
        else:
            parent[a] = b
    labels = np.empty(n, np.int64)
    count = 0
    for i in range(n):
        root = find(parent, i)
        if root == i:
            labels[i] = count
            count += 1
        else:
            labels[i] = labels[root]
    return labels


@inlined
def _box_square(points: Floats, i: int, low: Floats, high: Floats, node: int) -> float:
    total = 0.0
    for c in range(points.shape[1]):
        x = points[i, c]
        delta = max(low[node, c] - x, x - high[node, c])
        if delta > 0.0:
            total += delta * delta
    return total


@kernel
def _nearest_outside(
    i: int,
    bound: float,
    points: Floats,
    start: Ints,
    end: Ints,
    child: Ints,
    low: Floats,
    high: Floats,
    owner: Ints,
    uniform: Ints,
    stack: Ints,
    reach: Floats,
) -> tuple[int, float]:
    """The nearest point to i in another component, closer than `bound` (squared); −1 and `bound` if there is none."""
    mine = owner[i]
    found = -1
    top = 0
    stack[0] = 0
    reach[0] = 0.0
    while top >= 0:
        node = stack[top]
        squared = reach[top]
        top -= 1
        if squared >= bound or uniform[node] == mine:
            continue
        first = child[node]
        if first < 0:
            for j in range(start[node], end[node]):
                if owner[j] != mine:
                    distance = square(points, i, j)
                    if distance < bound:
                        bound = distance
                        found = j
                        if distance == 0.0:  # nothing is nearer; a leaf of many equal points must not cost n²
                            return found, bound
            continue
        near = _box_square(points, i, low, high, first)
        far = _box_square(points, i, low, high, first + 1)
        second = first + 1
        if far < near:
            first, second = second, first
            near, far = far, near
        if far < bound:
            top += 1
            stack[top] = second
            reach[top] = far
        if near < bound:
            top += 1
            stack[top] = first
            reach[top] = near
    return found, bound


@kernel
def _boruvka(points: Floats, start: Ints, end: Ints, child: Ints, low: Floats, high: Floats) -> tuple[Ints, Floats]:
    n = len(points)
    nodes = len(start)
    parent = np.arange(n)
    owner = np.arange(n)
    uniform = np.full(nodes, -1, np.int64)
    partner = np.full(n, -1, np.int64)  # the nearest point outside the component, when it was last asked for
    least = np.zeros(n)  # its squared distance: a lower bound for ever, since components only grow
    edges = np.empty((n - 1, 2), np.int64)
    squares = np.empty(n - 1)
    best = np.empty(n)
    best_from = np.empty(n, np.int64)
    stack = np.empty(256, np.int64)
    reach = np.empty(256)
    count = 0
    while count < n - 1:
        best[:] = np.inf
        for i in range(n):
            if partner[i] >= 0 and owner[partner[i]] != owner[i] and least[i] < best[owner[i]]:
                best[owner[i]] = least[i]
                best_from[owner[i]] = i
        for i in range(n):
            mine = owner[i]
            if least[i] >= best[mine] or (partner[i] >= 0 and owner[partner[i]] != mine):
                continue
            found, squared = _nearest_outside(
                i, best[mine], points, start, end, child, low, high, owner, uniform, stack, reach
            )
            least[i] = squared
            partner[i] = found
            if found >= 0:
                best[mine] = squared
                best_from[mine] = i
        for c in range(n):
            if owner[c] != c or best[c] == np.inf:
                continue
            i = best_from[c]
            a = find(parent, i)
            b = find(parent, partner[i])
            if a != b:
                if a < b:
                    parent[b] = a
                else:
                    parent[a] = b
                edges[count, 0] = i
                edges[count, 1] = partner[i]
                squares[count] = best[c]
                count += 1
        for i in range(n):
            owner[i] = find(parent, i)
        for node in range(nodes - 1, -1, -1):
            first = child[node]
            if first >= 0:
                same = uniform[first] == uniform[first + 1]
                uniform[node] = uniform[first] if same else -1
            else:
                common = owner[start[node]]
                for i in range(start[node] + 1, end[node]):
                    if owner[i] != common:
                        common = -1
                        break
                uniform[node] = common
    return edges, squares


@fast_kernel
def _prim(columns: Floats) -> tuple[Ints, Floats]:
    d, n = columns.shape
    edges = np.empty((n - 1, 2), np.int64)
    squares = np.empty(n - 1)
    waiting = np.arange(1, n)  # the points outside the tree, kept together with their columns for straight reads
    rest = columns[:, 1:].copy()
    nearest = np.zeros(n - 1, np.int64)
    closest = np.full(n - 1, np.inf)
    distance = np.empty(n - 1)
    current = 0
    for count in range(n - 1):
        left = n - 1 - count
        distance[:left] = 0.0
        for c in range(d):
            x = columns[c, current]
            column = rest[c]
            for i in range(left):
                delta = column[i] - x
                distance[i] += delta * delta
        for i in range(left):
            if distance[i] < closest[i]:
                closest[i] = distance[i]
                nearest[i] = current
        pick = 0
        for i in range(1, left):
            if closest[i] < closest[pick]:
                pick = i
        current = waiting[pick]
        edges[count, 0] = nearest[pick]
        edges[count, 1] = current
        squares[count] = closest[pick]
        last = left - 1
        waiting[pick] = waiting[last]
        nearest[pick] = nearest[last]
        closest[pick] = closest[last]
        for c in range(d):
            rest[c, pick] = rest[c, last]
    return edges, squares
