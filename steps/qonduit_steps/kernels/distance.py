"""The distances that several kernels compute, and the union-find forest that two of them grow."""

from __future__ import annotations

import math

from qonduit_steps.kernels.compiled import fast_kernel, inlined, kernel
from qonduit_steps.kernels.kdtree import Floats, Ints


@inlined
def square(points: Floats, i: int, j: int) -> float:
    """The squared distance of two points."""
    total = 0.0
    for c in range(points.shape[1]):
        delta = points[i, c] - points[j, c]
        total += delta * delta
    return total


@kernel
def add_squares(column: Floats, x: float, squares: Floats) -> None:
    """Adds one dimension's share to the squared distances of many points to one."""
    for i in range(len(squares)):
        delta = column[i] - x
        squares[i] += delta * delta


@fast_kernel
def total_in_plane(x: float, y: float, xs: Floats, ys: Floats) -> float:
    """The sum of the distances of a point in the plane to many."""
    total = 0.0
    for j in range(len(xs)):
        dx = xs[j] - x
        dy = ys[j] - y
        total += math.sqrt(dx * dx + dy * dy)
    return total


@kernel
def find(parent: Ints, i: int) -> int:
    """The leader of i's tree; paths are halved on the way."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i
