"""The parameters of a clustering, drawn anew for every iteration of the loop.

The generator is NumPy's `default_rng([seed, iteration, m])` with m = 0 for k-means, 1 for DBSCAN and 2 for hierarchical
clustering: PCG64, the same numbers on any machine. A drawn parameter that is given by hand is still drawn, so that
fixing one does not change the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from qonduit_steps.loop import METHODS
from qonduit_steps.points import Floats

K_RANGE = (4, 10)
PAPERS_EPS = (1.2, 4.5)
PAPERS_MIN_POINTS = 10
SAMPLE = 1000  # points whose neighbourhoods tell the scale of the data


def generator(seed: int, iteration: int, method: str) -> np.random.Generator:
    return np.random.default_rng([seed, iteration, METHODS.index(method)])


def draw(method: str, preset: str, points: Floats, random: np.random.Generator) -> dict[str, Any]:
    """The parameters of one method: {"k"}, {"eps", "min_points"} or {"linkage", "k"}."""
    if method == "dbscan":
        return _draw_dbscan(preset, points, random)
    k = min(int(random.integers(K_RANGE[0], K_RANGE[1] + 1)), len(points))
    return {"k": k} if method == "kmeans" else {"linkage": "single", "k": k}


def _draw_dbscan(preset: str, points: Floats, random: np.random.Generator) -> dict[str, Any]:
    share = float(random.random())
    if preset == "papers":
        low, high = PAPERS_EPS
        return {"eps": low + share * (high - low), "min_points": PAPERS_MIN_POINTS}
    min_points = min(max(10, 2 * points.shape[1]), len(points))
    low, high = eps_range(points, min_points)
    return {"eps": low * (high / low) ** share, "min_points": min_points}


def eps_range(points: Floats, min_points: int) -> tuple[float, float]:
    """From the reach that makes nine points of ten core points to a tenth of the data's extent, both positive."""
    from scipy.spatial import cKDTree

    sample = points[:: max(1, len(points) // SAMPLE)]
    distances, _ = cKDTree(points).query(sample, k=[min_points])
    spread = np.subtract(*np.quantile(points, [0.99, 0.01], axis=0))
    high = max(0.1 * float(np.linalg.norm(spread)), 1e-9 * float(np.linalg.norm(np.ptp(points, axis=0))))
    low = float(np.quantile(distances, 0.9))
    return (min(low, high) if low > 0 else 0.01 * high), max(low, high)
