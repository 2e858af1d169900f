"""Exact DBSCAN: labels equal to scikit-learn's up to rounding at exactly eps, border points and numbering included.

Up to three dimensions the points are sorted into cells whose diagonal is eps. Points in a cell of at least `min_points`
are core without any distance, the core points of a cell share a cluster, and only pairs of neighbouring cells that are
not yet connected are looked at. Above three dimensions SciPy's k-d tree finds the neighbours, a block at a time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qonduit_steps.kernels.compiled import kernel, threads
from qonduit_steps.kernels.distance import find, square
from qonduit_steps.kernels.envelope import within_reach
from qonduit_steps.kernels.kdtree import Floats, Ints

GRID_DIMENSIONS = 3
MOST_CELLS = 2.0**24  # along an axis: rounding must stay far below a cell
# Pairs that two cells may cost for each of their points before a better method than trying them all takes over.
PATIENCE = 64

Flags = npt.NDArray[np.bool_]


def dbscan(points: Floats, eps: float, min_points: int) -> tuple[Ints, Flags]:
    """Labels (−1 is noise; clusters numbered by their first core point) and which points are core points."""
    scale = np.ldexp(1.0, -int(np.frexp(max(np.abs(points).max(), eps))[1]))
    scaled, reach = np.ascontiguousarray(points * scale), eps * scale
    cells = _grid(scaled, reach) if points.shape[1] <= GRID_DIMENSIONS else None
    if cells is None:
        return _by_tree(scaled, reach, min_points)
    order, start, keys, shape = cells
    return _by_cells(scaled[order], order, start, keys, _rows(shape, 1), _rows(shape, 2), reach, min_points)


def _grid(points: Floats, eps: float) -> tuple[Ints, Ints, Ints, Ints] | None:
    """Points by cell: their order, where each occupied cell starts in it, the cells' keys, the grid's shape."""
    d = points.shape[1]
    if np.ptp(points, axis=0).max() / eps > MOST_CELLS / 4:
        points = np.stack([_closed_gaps(column, eps) for column in points.T], axis=1)
    low = points.min(axis=0)
    # A hair less than eps/√d: two points of one cell are within eps of each other whatever the rounding.
    side = eps / np.sqrt(d) * (1 - 1e-8)
    # Two empty rows on each side, so that a neighbour's key never wraps round into another row.
    shape = np.floor((points.max(axis=0) - low) / side) + 5
    if np.prod(shape) > 2.0**62 or shape.max() > MOST_CELLS:
        return None
    shape = shape.astype(np.int64)
    keys = _cell_keys(points, low, side, shape)
    cells = int(np.prod(shape))
    order = _counting_sort(keys, cells) if cells <= 8 * len(keys) + 1024 else np.argsort(keys, kind="stable")
    keys = keys[order]
    start = np.flatnonzero(np.diff(keys, prepend=-1))
    return order, np.append(start, len(keys)), keys[start], shape


def _closed_gaps(column: Floats, eps: float) -> Floats:
    """Coordinates for the cells alone, without empty stretches above 3 eps: an outlier must not cost cells."""
    order = np.argsort(column, kind="stable")
    steps = np.minimum(np.diff(column[order], prepend=column[order[0]]), 3 * eps)
    closed = np.empty(len(column))
    closed[order] = np.cumsum(steps)
    return closed


def _rows(shape: Ints, span: int) -> Ints:
    """The rows of cells within `span` of a cell: how far the key of a row's first cell is from the cell's own."""
    jumps = np.zeros(1, np.int64)
    for size in shape[1:]:
        jumps = (jumps[:, None] + np.arange(-span, span + 1)).ravel() * size
    return jumps - span


@kernel
def _cell_keys(points: Floats, low: Floats, side: float, shape: Ints) -> Ints:
    n, d = points.shape
    keys = np.empty(n, np.int64)
    for i in range(n):
        key = 0
        for c in range(d):
            key = key * shape[c] + 2 + int((points[i, c] - low[c]) / side)
        keys[i] = key
    return keys


@kernel
def _counting_sort(keys: Ints, cells: int) -> Ints:
    place = np.zeros(cells + 1, np.int64)
    for i in range(len(keys)):
        place[keys[i] + 1] += 1
    for k in range(cells):
        place[k + 1] += place[k]
    order = np.empty(len(keys), np.int64)
    for i in range(len(keys)):
        order[place[keys[i]]] = i
        place[keys[i]] += 1
    return order


@kernel
def _around(cell: int, keys: Ints, rows: Ints, span: int, fingers: Ints, found: Ints) -> int:
    """Writes the occupied cells around a cell to `found`; call with ascending cells, since the fingers only move on."""
    count = 0
    for r in range(len(rows)):
        wanted = keys[cell] + rows[r]
        finger = fingers[r]
        while finger < len(keys) and keys[finger] < wanted:
            finger += 1
        fingers[r] = finger
        while finger < len(keys) and keys[finger] <= wanted + 2 * span:
            if finger != cell:
                found[count] = finger
                count += 1
            finger += 1
    return count


@kernel
def _by_cells(
    points: Floats, order: Ints, start: Ints, keys: Ints, beside: Ints, around: Ints, eps: float, min_points: int
) -> tuple[Ints, Flags]:
    n = len(points)
    cells = len(keys)
    core = _core_points(points, start, keys, around, eps * eps, min_points)
    # Core points come first in their cell, so that what follows reads them in a row.
    cores = np.empty(cells, np.int64)
    for cell in range(cells):
        cores[cell] = _cores_first(points, order, core, start[cell], start[cell + 1])
    parent = np.arange(cells)
    _connect(points, start, keys, beside, 1, cores, parent, eps)
    _connect(points, start, keys, around, 2, cores, parent, eps)
    number = _number_clusters(order, start, cores, parent, n)
    labels = np.full(n, -1, np.int64)
    flags = np.zeros(n, np.bool_)
    fingers = np.zeros(len(around), np.int64)
    found = np.empty(5 * len(around) + 1, np.int64)
    for cell in range(cells):
        for i in range(start[cell], start[cell] + cores[cell]):
            labels[order[i]] = number[cell]
            flags[order[i]] = True
        many = _around(cell, keys, around, 2, fingers, found)
        found[many] = cell
        for i in range(start[cell] + cores[cell], start[cell + 1]):
            labels[order[i]] = _border(points, i, start, cores, number, found[: many + 1], eps * eps)
    return labels, flags


@kernel
def _core_points(points: Floats, start: Ints, keys: Ints, around: Ints, reach: float, min_points: int) -> Flags:
    core = np.zeros(len(points), np.bool_)
    fingers = np.zeros(len(around), np.int64)
    found = np.empty(5 * len(around) + 1, np.int64)
    for cell in range(len(keys)):
        inside = start[cell + 1] - start[cell]
        if inside >= min_points:
            core[start[cell] : start[cell + 1]] = True
            continue
        many = _around(cell, keys, around, 2, fingers, found)
        for i in range(start[cell], start[cell + 1]):
            count = inside
            for o in range(many):
                for j in range(start[found[o]], start[found[o] + 1]):
                    if square(points, i, j) <= reach:
                        count += 1
                        if count >= min_points:
                            break
                if count >= min_points:
                    break
            core[i] = count >= min_points
    return core


@kernel
def _connect(
    points: Floats, start: Ints, keys: Ints, rows: Ints, span: int, cores: Ints, parent: Ints, eps: float
) -> None:
    fingers = np.zeros(len(rows), np.int64)
    found = np.empty(5 * len(rows), np.int64)
    for cell in range(len(keys)):
        many = _around(cell, keys, rows, span, fingers, found)
        for o in range(many):
            other = found[o]
            if other < cell or cores[cell] == 0 or cores[other] == 0:
                continue
            a = find(parent, cell)
            b = find(parent, other)
            if a != b and _cells_touch(points, start[cell], cores[cell], start[other], cores[other], eps):
                parent[max(a, b)] = min(a, b)


@kernel
def _cores_first(points: Floats, order: Ints, core: Flags, a: int, b: int) -> int:
    left = a
    for i in range(a, b):
        if core[i]:
            if i != left:
                for c in range(points.shape[1]):
                    points[i, c], points[left, c] = points[left, c], points[i, c]
                order[i], order[left] = order[left], order[i]
                core[i], core[left] = core[left], core[i]
            left += 1
    return left - a


@kernel
def _cells_touch(points: Floats, a: int, many_a: int, b: int, many_b: int, eps: float) -> bool:
    """Is a core point of one cell within eps of a core point of the other?"""
    reach = eps * eps
    budget = PATIENCE * (many_a + many_b)
    # The point of one cell that is nearest to the middle of the other's box is the likeliest to have a partner.
    i = _toward(points, a, many_a, b, many_b)
    for j in range(b, b + many_b):
        if square(points, i, j) <= reach:
            return True
    j = _toward(points, b, many_b, a, many_a)
    for i in range(a, a + many_a):
        if square(points, i, j) <= reach:
            return True
    if many_a * many_b <= budget:
        for i in range(a, a + many_a):
            for j in range(b, b + many_b):
                if square(points, i, j) <= reach:
                    return True
        return False
    return within_reach(points[a : a + many_a], points[b : b + many_b], eps)


@kernel
def _toward(points: Floats, a: int, many_a: int, b: int, many_b: int) -> int:
    d = points.shape[1]
    middle = np.empty(d)
    for c in range(d):
        least = np.inf
        most = -np.inf
        for j in range(b, b + many_b):
            least = min(least, points[j, c])
            most = max(most, points[j, c])
        middle[c] = 0.5 * (least + most)
    found = a
    best = np.inf
    for i in range(a, a + many_a):
        total = 0.0
        for c in range(d):
            delta = points[i, c] - middle[c]
            total += delta * delta
        if total < best:
            best = total
            found = i
    return found


@kernel
def _number_clusters(order: Ints, start: Ints, cores: Ints, parent: Ints, n: int) -> Ints:
    """A cell's cluster number; clusters are numbered in the order of their first core point in the input."""
    cells = len(cores)
    root = np.full(n, -1, np.int64)
    for cell in range(cells):
        for i in range(start[cell], start[cell] + cores[cell]):
            root[order[i]] = find(parent, cell)
    number = np.full(cells, -1, np.int64)
    count = 0
    for i in range(n):
        if root[i] >= 0 and number[root[i]] < 0:
            number[root[i]] = count
            count += 1
    for cell in range(cells):
        if cores[cell] > 0:
            number[cell] = number[find(parent, cell)]
    return number


@kernel
def _border(points: Floats, i: int, start: Ints, cores: Ints, number: Ints, near: Ints, reach: float) -> int:
    """The lowest-numbered cluster with a core point within reach of point i, or −1: noise."""
    best = -1
    for o in range(len(near)):
        other = near[o]
        if other < 0 or cores[other] == 0 or (best >= 0 and number[other] >= best):
            continue
        for j in range(start[other], start[other] + cores[other]):
            if square(points, i, j) <= reach:
                best = number[other]
                break
    return best


def _by_tree(points: Floats, eps: float, min_points: int) -> tuple[Ints, Flags]:
    """The library path for many dimensions; memory stays bounded because neighbours are found a block at a time."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    n = len(points)
    tree = cKDTree(points)
    counts = tree.query_ball_point(points, eps, return_length=True, workers=threads())
    core = counts >= min_points
    inside = np.flatnonzero(core)
    labels = np.full(n, -1, np.int64)
    if len(inside) == 0:
        return labels, core
    core_tree = cKDTree(points[inside])
    component = np.arange(len(inside))
    for block in _blocks(counts[inside]):
        rows, found = _pairs(core_tree, points[inside[block]], eps)
        links = coo_matrix(
            (np.ones(len(rows), np.int8), (component[block][rows], component[found])), shape=(len(inside),) * 2
        )
        component = connected_components(links, directed=False)[1][component]
    _, first = np.unique(component, return_index=True)
    number = np.empty(component.max() + 1, np.int64)
    number[component[np.sort(first)]] = np.arange(len(first))
    labels[inside] = number[component]
    others = np.flatnonzero(~core)
    for block in _blocks(counts[others]):
        rows, found = _pairs(core_tree, points[others[block]], eps)
        lowest = np.full(len(block), len(first))
        np.minimum.at(lowest, rows, labels[inside[found]])
        labels[others[block]] = np.where(lowest < len(first), lowest, -1)
    return labels, core


def _blocks(counts: Ints, most: int = 4_000_000) -> list[Ints]:
    """Consecutive numbers in blocks that together have at most about `most` neighbours."""
    if len(counts) == 0:
        return []
    parts = np.cumsum(counts) // most
    return np.split(np.arange(len(counts)), np.flatnonzero(np.diff(parts)) + 1)


def _pairs(tree: object, queries: Floats, eps: float) -> tuple[Ints, Ints]:
    found = tree.query_ball_point(queries, eps, workers=threads())  # type: ignore[attr-defined]
    lengths = np.fromiter(map(len, found), np.int64, len(found))
    return np.repeat(np.arange(len(found)), lengths), np.concatenate([np.asarray(f, np.int64) for f in found])
