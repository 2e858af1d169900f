"""The report's colours: two themes for charts, one palette for clusters, and which cluster gets which.

The themes' names are CSS variables in the page and plain colours in the PNG files. The palette for clusters is
of middle lightness, so that one picture serves on white and on black.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

METHODS = 6
LIGHT = {
    "page": "#f6f7f9",
    "surface": "#ffffff",
    "ink": "#14181f",
    "muted": "#566070",
    "line": "#d9dee6",
    "edge": "#76808f",
    "accent": "#1d5fc2",
    "good": "#0a7a4b",
    "bad": "#a63d00",
    "on-method": "#ffffff",
    "method-0": "#1d5fc2",
    "method-1": "#b45309",
    "method-2": "#0f766e",
    "method-3": "#6d3fd4",
    "method-4": "#9d174d",
    "method-5": "#5b6600",
    "aggregate": "#94a3b8",
    "solve": "#c026a3",
    "score": "#475569",
}
DARK = {
    "page": "#0e1116",
    "surface": "#171b22",
    "ink": "#eceff4",
    "muted": "#a3adbb",
    "line": "#2c333e",
    "edge": "#7b8696",
    "accent": "#7fb2ff",
    "good": "#5bd69b",
    "bad": "#ffa566",
    "on-method": "#0e1116",
    "method-0": "#7fb2ff",
    "method-1": "#f5a34d",
    "method-2": "#4fd1c0",
    "method-3": "#b79cff",
    "method-4": "#ff8fb8",
    "method-5": "#c5cf5a",
    "aggregate": "#6b7a90",
    "solve": "#f27ad8",
    "score": "#cbd5e1",
}

NOISE = (138, 145, 156)
CLUSTERS = (
    (47, 118, 214),
    (230, 126, 20),
    (22, 160, 122),
    (214, 62, 118),
    (136, 98, 214),
    (193, 152, 8),
    (30, 168, 200),
    (166, 98, 62),
    (112, 158, 36),
    (196, 90, 196),
)
# Beyond this many clusters nobody tells neighbours apart by colour, and choosing with care would cost k² time.
_CHOSEN_WITH_CARE = 300

Colours = npt.NDArray[np.intp]
Points = npt.NDArray[np.float64]


def method_colour(number: int) -> str:
    return f"method-{number % METHODS}"


def spread(centres: Points, sizes: npt.NDArray[np.intp], fixed: Colours | None = None) -> Colours:
    """A palette index for each cluster, so that clusters of one colour lie far apart; −1 in `fixed` is still free."""
    colours = np.full(len(centres), -1, np.intp) if fixed is None else fixed.copy()
    free = np.flatnonzero(colours < 0)
    free = free[np.argsort(-sizes[free], kind="stable")]
    for cluster in free[:_CHOSEN_WITH_CARE]:
        gaps = [_gap(centres, colours == colour, cluster) for colour in range(len(CLUSTERS))]
        colours[cluster] = int(np.argmax(gaps))
    rest = free[_CHOSEN_WITH_CARE:]
    colours[rest] = np.arange(len(rest)) % len(CLUSTERS)
    return colours


def _gap(centres: Points, same: npt.NDArray[np.bool_], cluster: int) -> float:
    return float(np.square(centres[same] - centres[cluster]).sum(axis=1).min(initial=np.inf))


def follow(labels: npt.NDArray[np.int32], best: npt.NDArray[np.int32], colours: Colours, clusters: int) -> Colours:
    """Gives each cluster the colour of its greatest overlap in the best clustering, −1 where that is taken."""
    kept = labels >= 0
    codes, shared = np.unique(labels[kept].astype(np.int64) * len(colours) + best[kept], return_counts=True)
    result = np.full(clusters, -1, np.intp)
    taken: set[int] = set()
    for code in codes[np.argsort(-shared, kind="stable")].tolist():
        cluster, partner = divmod(code, len(colours))
        if result[cluster] < 0 and partner not in taken:
            result[cluster] = colours[partner]
            taken.add(partner)
    return result
