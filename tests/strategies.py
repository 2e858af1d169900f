"""Points and labellings as nasty as real data: duplicates, lines, grids, far clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@st.composite
def points(draw: st.DrawFn, least: int = 2, most: int = 60, dimensions: tuple[int, int] = (1, 5)) -> Floats:
    n = draw(st.integers(least, most))
    d = draw(st.integers(*dimensions))
    kind = draw(st.sampled_from(["normal", "grid", "line", "duplicates", "far", "tiny", "skewed"]))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    made = random.normal(size=(n, d))
    if kind == "grid":
        made = random.integers(0, 4, size=(n, d)).astype(float)
    elif kind == "line":
        made = np.outer(random.integers(0, 20, n), np.arange(1, d + 1)).astype(float)
    elif kind == "duplicates":
        made = made[random.integers(0, max(2, n // 4), n)]
    elif kind == "far":
        made = made + random.integers(0, 3, size=(n, 1)) * 1e3 + 1e5
    elif kind == "tiny":
        made *= 1e-12
    elif kind == "skewed":
        made *= 10.0 ** np.arange(d)
    return np.ascontiguousarray(made)


@st.composite
def labelled_points(draw: st.DrawFn, most: int = 60) -> tuple[Floats, Ints]:
    """Points with labels 0 … k−1, 2 ≤ k < n, none empty; singletons included."""
    made = draw(points(least=3, most=most))
    n = len(made)
    k = draw(st.integers(2, n - 1))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    labels = np.concatenate((np.arange(k), random.integers(0, k, n - k)))
    return made, random.permutation(labels)


def same_partition(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    """Do two labellings group the points alike, whatever the names?"""
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    return len(pairs) == len(set(a.tolist())) == len(set(b.tolist()))
