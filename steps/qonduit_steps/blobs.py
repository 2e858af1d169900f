"""Gaussian blobs: the papers' test data, the same numbers as scikit-learn's `make_blobs` without needing it."""

from __future__ import annotations

from typing import Any

import numpy as np

from qonduit_steps.points import Floats

PAPERS: dict[str, Any] = {
    "points": 80_000,
    "centres": 8,
    "dimensions": 2,
    "spread": 1.0,
    "half_box": 20.0,
    "seed": 0x1337,
}


def blobs(points: int, centres: int, dimensions: int, spread: float, half_box: float, seed: int) -> Floats:
    """`points` points around `centres` centres drawn from a box, shuffled."""
    # The legacy generator's stream is frozen: these are the papers' points on any version of NumPy.
    generator = np.random.RandomState(seed)
    middles = generator.uniform(-half_box, half_box, size=(centres, dimensions))
    sizes = [points // centres + (centre < points % centres) for centre in range(centres)]
    data = np.concatenate(
        [generator.normal(middle, spread, size=(size, dimensions)) for middle, size in zip(middles, sizes, strict=True)]
    )
    order = np.arange(points)
    generator.shuffle(order)
    return data[order]
