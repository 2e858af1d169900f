"""Sums of distances from many points to many points in the plane, in linear time: a black-box fast multipole method.

The distance |x−y| of points in two boxes that are far apart is replaced by its Chebyshev interpolant of `ORDER`
nodes an axis; near boxes are summed pair by pair. The relative error of a far pair is below 5e-10 (4e-10 is the worst
that was found), whatever the data, and far less in a sum.
"""

from __future__ import annotations

import math

import numpy as np

from qonduit_steps.kernels import kdtree
from qonduit_steps.kernels.compiled import fast_kernel, kernel
from qonduit_steps.kernels.distance import total_in_plane
from qonduit_steps.kernels.kdtree import Floats, Ints, KDTree

ORDER = 13
# Boxes are far apart if the sum of their radii is less than this part of the distance of their middles.
SEPARATION = 0.45
LEAF = 96

_ANGLES = (2 * np.arange(ORDER) + 1) * np.pi / (2 * ORDER)
NODES: Floats = np.cos(_ANGLES)
# The barycentric weights of the Chebyshev nodes.
WEIGHTS: Floats = np.sin(_ANGLES) * np.where(np.arange(ORDER) % 2, -1.0, 1.0)


def distance_sums(sources: Floats, targets: Floats) -> Floats:
    """For each target the sum of its distances to all sources; both (n, 2), of magnitude about 1."""
    # From the middle of the sources: coordinates far from the origin would leave the nodes too few digits.
    middle = 0.5 * (sources.min(axis=0) + sources.max(axis=0))
    source, target = kdtree.build(sources - middle, LEAF), kdtree.build(targets - middle, LEAF)
    source_grid, target_grid = _grid(source.low, source.high), _grid(target.low, target.high)
    sx, sy = np.ascontiguousarray(source.points.T)
    tx, ty = np.ascontiguousarray(target.points.T)
    charges = _gather_charges(sx, sy, source.start, source.end, source.child, *source_grid, NODES, WEIGHTS)
    local = np.zeros((len(target.start), ORDER * ORDER))
    sums = np.zeros(len(targets))
    _interact(
        sx, sy, *_ranges(source), *source_grid, charges, tx, ty, *_ranges(target), *target_grid, local, sums, SEPARATION
    )
    _spread(tx, ty, *_ranges(target), *target_grid, local, sums, NODES, WEIGHTS)
    result = np.empty(len(targets))
    result[target.order] = sums
    return result


def _ranges(tree: KDTree) -> tuple[Ints, Ints, Ints]:
    return tree.start, tree.end, tree.child


def _grid(low: Floats, high: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Middles and half sides of the boxes, and the coordinates of their interpolation nodes, a row a box."""
    middle = 0.5 * (low + high)
    half = np.maximum(0.5 * (high - low), 1e-300)
    x = np.repeat(middle[:, :1] + half[:, :1] * NODES, ORDER, axis=1)
    y = np.tile(middle[:, 1:] + half[:, 1:] * NODES, (1, ORDER))
    return middle, half, np.ascontiguousarray(x), np.ascontiguousarray(y)


@kernel
def _lagrange(t: float, nodes: Floats, weights: Floats, values: Floats) -> None:
    """The values at t of the polynomials that are 1 at one node and 0 at the others."""
    total = 0.0
    for a in range(len(nodes)):
        gap = t - nodes[a]
        if abs(gap) < 1e-15:
            gap = 1e-15
        values[a] = weights[a] / gap
        total += values[a]
    for a in range(len(nodes)):
        values[a] /= total


@kernel
def _gather_charges(
    sx: Floats, sy: Floats, start: Ints, end: Ints, child: Ints,
    middle: Floats, half: Floats, gx: Floats, gy: Floats, nodes: Floats, weights: Floats,
) -> Floats:  # fmt: skip
    """Upward: the charges on a box's nodes that stand for its points, from the leaves to the root."""
    p = len(nodes)
    charges = np.zeros((len(start), p * p))
    along = np.empty((p, p))
    across = np.empty((p, p))
    row = np.empty((p, p))
    for box in range(len(start) - 1, -1, -1):
        charge = charges[box]
        first = child[box]
        if first < 0:
            for i in range(start[box], end[box]):
                _lagrange((sx[i] - middle[box, 0]) / half[box, 0], nodes, weights, along[0])
                _lagrange((sy[i] - middle[box, 1]) / half[box, 1], nodes, weights, across[0])
                for a in range(p):
                    for b in range(p):
                        charge[a * p + b] += along[0, a] * across[0, b]
            continue
        for part in range(first, first + 2):
            for a in range(p):
                _lagrange((gx[part, a * p] - middle[box, 0]) / half[box, 0], nodes, weights, along[a])
                _lagrange((gy[part, a] - middle[box, 1]) / half[box, 1], nodes, weights, across[a])
            for a in range(p):
                for b in range(p):
                    total = 0.0
                    for q in range(p):
                        total += charges[part, a * p + q] * across[q, b]
                    row[a, b] = total
            for a in range(p):
                for b in range(p):
                    total = 0.0
                    for q in range(p):
                        total += along[q, a] * row[q, b]
                    charge[a * p + b] += total
    return charges


@fast_kernel
def _weighted_sum(x: float, y: float, sx: Floats, sy: Floats, charge: Floats) -> float:
    total = 0.0
    for j in range(len(sx)):
        dx = sx[j] - x
        dy = sy[j] - y
        total += charge[j] * math.sqrt(dx * dx + dy * dy)
    return total


@kernel
def _interact(
    sx: Floats, sy: Floats, s_start: Ints, s_end: Ints, s_child: Ints,
    s_middle: Floats, s_half: Floats, s_gx: Floats, s_gy: Floats, charges: Floats,
    tx: Floats, ty: Floats, t_start: Ints, t_end: Ints, t_child: Ints,
    t_middle: Floats, t_half: Floats, t_gx: Floats, t_gy: Floats, local: Floats, sums: Floats, separation: float,
) -> None:  # fmt: skip
    """Walks pairs of boxes: far ones act through their nodes, near small ones point by point, others are split."""
    many = charges.shape[1]
    stack = np.empty(2048, np.int64)
    stack[0] = 0
    stack[1] = 0
    top = 2
    while top > 0:
        top -= 2
        t = stack[top]
        s = stack[top + 1]
        a = s_start[s]
        b = s_end[s]
        if (t_end[t] - t_start[t]) * (b - a) <= many * many or (t_child[t] < 0 and s_child[s] < 0):
            for i in range(t_start[t], t_end[t]):
                sums[i] += total_in_plane(tx[i], ty[i], sx[a:b], sy[a:b])
            continue
        s_radius = math.hypot(s_half[s, 0], s_half[s, 1])
        t_radius = math.hypot(t_half[t, 0], t_half[t, 1])
        apart = math.hypot(t_middle[t, 0] - s_middle[s, 0], t_middle[t, 1] - s_middle[s, 1])
        if s_radius + t_radius < separation * apart:
            for node in range(many):
                local[t, node] += _weighted_sum(t_gx[t, node], t_gy[t, node], s_gx[s], s_gy[s], charges[s])
        elif t_child[t] >= 0 and (t_radius >= s_radius or s_child[s] < 0):
            for part in range(2):
                stack[top] = t_child[t] + part
                stack[top + 1] = s
                top += 2
        else:
            for part in range(2):
                stack[top] = t
                stack[top + 1] = s_child[s] + part
                top += 2


@kernel
def _spread(
    tx: Floats, ty: Floats, start: Ints, end: Ints, child: Ints,
    middle: Floats, half: Floats, gx: Floats, gy: Floats, local: Floats, sums: Floats, nodes: Floats, weights: Floats,
) -> None:  # fmt: skip
    """Downward: what reached a box's nodes is interpolated to its parts' nodes and at last to its points."""
    p = len(nodes)
    along = np.empty((p, p))
    across = np.empty((p, p))
    row = np.empty((p, p))
    for box in range(len(start)):
        field = local[box]
        first = child[box]
        if first < 0:
            for i in range(start[box], end[box]):
                _lagrange((tx[i] - middle[box, 0]) / half[box, 0], nodes, weights, along[0])
                _lagrange((ty[i] - middle[box, 1]) / half[box, 1], nodes, weights, across[0])
                total = 0.0
                for a in range(p):
                    for b in range(p):
                        total += along[0, a] * across[0, b] * field[a * p + b]
                sums[i] += total
            continue
        for part in range(first, first + 2):
            for a in range(p):
                _lagrange((gx[part, a * p] - middle[box, 0]) / half[box, 0], nodes, weights, along[a])
                _lagrange((gy[part, a] - middle[box, 1]) / half[box, 1], nodes, weights, across[a])
            for a in range(p):
                for b in range(p):
                    total = 0.0
                    for q in range(p):
                        total += field[a * p + q] * across[b, q]
                    row[a, b] = total
            for a in range(p):
                for b in range(p):
                    total = 0.0
                    for q in range(p):
                        total += along[a, q] * row[q, b]
                    local[part, a * p + b] += total
