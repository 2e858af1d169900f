"""Points of any dimension laid on a rectangle that is worth looking at.

Two dimensions are shown as they are, more through their first two principal components, one as a strip.
Far outliers are moved to the rectangle's edge, and the note says how many.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
_ROWS = 65536


@dataclass(frozen=True)
class View:
    """`xy` in [0, 1]², y upwards; `aspect` is height over width; `x` and `y` are the shown ranges in data units."""

    xy: Array
    aspect: float
    x: tuple[float, float]
    y: tuple[float, float] | None
    names: tuple[str, str]
    notes: tuple[str, ...]


def project(points: Array) -> View:
    scale = float(max(abs(points.min()), abs(points.max()))) or 1.0  # squares of 1e200 must not overflow
    dimensions = points.shape[1]
    if dimensions == 1:
        return _strip(np.asarray(points[:, 0]) / scale, scale)
    if dimensions == 2:
        return _plane(np.asarray(points) / scale, scale, ("x", "y"), ())
    flat, share = _principal(points, scale)
    note = f"{dimensions} dimensions, seen along the two principal components, which hold {share:.0%} of the variance."
    return _plane(flat, scale, ("component 1", "component 2"), (note,))


def _strip(values: Array, scale: float) -> View:
    low, high = _window(values)
    x, outside = _place(values, low, high)
    # Multiples of the golden ratio fill the height evenly without any random number.
    y = 0.06 + 0.88 * (np.arange(len(values)) * 0.6180339887498949 % 1.0)
    notes = ("The points have one dimension: their height only spreads them out.", *_outside(outside))
    return View(np.column_stack((x, y)), 0.4, (low * scale, high * scale), None, ("x", ""), notes)


def _plane(flat: Array, scale: float, names: tuple[str, str], notes: tuple[str, ...]) -> View:
    x, y = _window(flat[:, 0]), _window(flat[:, 1])
    ratio = (y[1] - y[0]) / (x[1] - x[0])
    aspect = min(max(ratio, 0.62), 1.2)
    if 0.2 <= ratio <= 5.0:
        if ratio < aspect:
            y = _widen(y, aspect * (x[1] - x[0]))
        else:
            x = _widen(x, (y[1] - y[0]) / aspect)
    else:
        aspect = 0.8
        notes = (*notes, "The two axes have different scales.")
    across, outside_x = _place(flat[:, 0], *x)
    up, outside_y = _place(flat[:, 1], *y)
    notes = (*notes, *_outside(outside_x | outside_y))
    return View(
        np.column_stack((across, up)), aspect, (x[0] * scale, x[1] * scale), (y[0] * scale, y[1] * scale), names, notes
    )


def _principal(points: Array, scale: float) -> tuple[Array, float]:
    blocks = [slice(start, start + _ROWS) for start in range(0, len(points), _ROWS)]
    mean = sum((points[block] / scale).sum(axis=0) for block in blocks) / len(points)
    covariance = np.zeros((points.shape[1], points.shape[1]))
    for block in blocks:
        centred = points[block] / scale - mean
        covariance += centred.T @ centred
    variances, directions = np.linalg.eigh(covariance)
    first = directions[:, :-3:-1]
    # An eigenvector's sign is arbitrary; fixing it keeps pictures of one data set the same everywhere.
    first = first * np.sign(first[np.abs(first).argmax(axis=0), [0, 1]])
    flat = np.concatenate([(points[block] / scale - mean) @ first for block in blocks])
    total = float(variances.sum())
    return flat, float(variances[-2:].sum()) / total if total > 0 else 1.0


def _window(values: Array) -> tuple[float, float]:
    """The range to show: all of it, unless a few points lie further out than the others are wide."""
    low, high = np.quantile(values, (0.005, 0.995)).tolist()
    reach = high - low
    near = values[(values >= low - reach) & (values <= high + reach)] if reach > 0 else values
    lowest, highest = float(near.min()), float(near.max())
    if lowest == highest:
        return lowest - 0.5, highest + 0.5
    margin = 0.04 * (highest - lowest)
    return lowest - margin, highest + margin


def _widen(window: tuple[float, float], length: float) -> tuple[float, float]:
    centre = (window[0] + window[1]) / 2
    return centre - length / 2, centre + length / 2


def _place(values: Array, low: float, high: float) -> tuple[Array, npt.NDArray[np.bool_]]:
    placed = (values - low) / (high - low)
    return placed.clip(0.0, 1.0), (placed < 0.0) | (placed > 1.0)


def _outside(outside: npt.NDArray[np.bool_]) -> tuple[str, ...]:
    count = int(outside.sum())
    if not count:
        return ()
    return (f"{count:,} far {'point is' if count == 1 else 'points are'} drawn at the edge.",)
