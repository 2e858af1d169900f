"""Hierarchical clustering cut at k clusters: single, Ward, complete and average linkage.

Single linkage comes from the spanning tree and Ward from a chain of nearest neighbours, both in linear memory. Complete
and average linkage need all n² distances, from SciPy; beyond the memory that is free they are refused before any work.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from qonduit.errors import UsageError
from qonduit_steps.kernels.compiled import kernel
from qonduit_steps.kernels.distance import add_squares
from qonduit_steps.kernels.kdtree import Floats, Ints
from qonduit_steps.kernels.spanning_tree import cut, spanning_tree


def hierarchical(points: Floats, clusters: int, linkage: str, tree: Ints | None = None) -> Ints:
    """Labels 0 … clusters−1 by first appearance; `tree`: a spanning tree's edges, for single linkage."""
    if linkage == "single":
        return cut(spanning_tree(points)[0] if tree is None else tree, len(points), clusters)
    return cut(merges(points, linkage), len(points), clusters)


def merges(points: Floats, linkage: str) -> Ints:
    """The n−1 merges, lowest first, as pairs of points: one of each of the two clusters that are merged."""
    if linkage == "ward":
        pairs, heights = _ward_chain(np.ascontiguousarray(points.T))
        return pairs[np.argsort(heights, kind="stable")]
    _check_memory(len(points), linkage)
    from scipy.cluster.hierarchy import linkage as scipy_linkage

    rows = scipy_linkage(points, linkage)[:, :2].astype(np.int64)
    return _members(rows, len(points))


def _check_memory(n: int, linkage: str) -> None:
    needed = n * (n - 1) / 2 * 8 * 2  # SciPy works on a copy of the distances
    free = int(Path("/proc/meminfo").read_text().partition("MemAvailable:")[2].split()[0]) * 1024
    if needed > free:
        raise UsageError(
            f"--linkage {linkage} of {n} points needs {needed / 2**30:.0f} GB of memory and "
            f"{free / 2**30:.0f} GB are free; use --linkage single or ward, or fewer points"
        )


@kernel
def _members(rows: Ints, n: int) -> Ints:
    """SciPy numbers merged clusters n, n+1, …; any point of theirs will do to name them."""
    member = np.empty(2 * n, np.int64)
    member[:n] = np.arange(n)
    pairs = np.empty((n - 1, 2), np.int64)
    for step in range(n - 1):
        pairs[step, 0] = member[rows[step, 0]]
        pairs[step, 1] = member[rows[step, 1]]
        member[n + step] = member[rows[step, 0]]
    return pairs


@kernel
def _ward_chain(columns: Floats) -> tuple[Ints, Floats]:
    """Follows nearest neighbours until two clusters are each other's and merges them; the rest of the chain stands."""
    n = columns.shape[1]
    centres = columns.copy()
    sizes = np.ones(n)
    name = np.arange(n)  # slot → a point of the cluster there; slots 0 … left−1 are in use
    place = np.arange(n)  # that point → slot
    pairs = np.empty((n - 1, 2), np.int64)
    heights = np.empty(n - 1)
    costs = np.empty(n)
    chain = np.empty(n, np.int64)
    length = 0
    left = n
    while left > 1:
        if length == 0:
            chain[0] = name[0]
            length = 1
        here = place[chain[length - 1]]
        _merge_costs(centres, sizes, here, left, costs)
        costs[here] = np.inf
        nearest = here
        least = np.inf
        if length > 1:  # on a tie, back: or the chain could run in circles
            nearest = place[chain[length - 2]]
            least = costs[nearest]
        for i in range(left):
            if costs[i] < least:
                least = costs[i]
                nearest = i
        if length > 1 and name[nearest] == chain[length - 2]:
            step = n - left
            pairs[step, 0] = name[here]
            pairs[step, 1] = name[nearest]
            heights[step] = least
            length -= 2
            left -= 1
            _merge_slots(centres, sizes, name, place, here, nearest, left)
        else:
            chain[length] = name[nearest]
            length += 1
    return pairs, heights


@kernel
def _merge_costs(centres: Floats, sizes: Floats, here: int, left: int, costs: Floats) -> None:
    costs[:left] = 0.0
    for j in range(len(centres)):
        add_squares(centres[j][:left], centres[j, here], costs[:left])
    _weigh(sizes[:left], sizes[here], costs[:left])


@kernel
def _weigh(sizes: Floats, size: float, costs: Floats) -> None:
    for i in range(len(costs)):
        costs[i] *= sizes[i] * size / (sizes[i] + size)


@kernel
def _merge_slots(centres: Floats, sizes: Floats, name: Ints, place: Ints, a: int, b: int, last: int) -> None:
    """The merged cluster takes slot a; the last slot in use moves to slot b."""
    total = sizes[a] + sizes[b]
    for j in range(len(centres)):
        centres[j, a] = (sizes[a] * centres[j, a] + sizes[b] * centres[j, b]) / total
        centres[j, b] = centres[j, last]
    sizes[a] = total
    sizes[b] = sizes[last]
    name[b] = name[last]
    place[name[b]] = b
