"""The best clustering and the inputs it was made of, as scatter plots that share one view and one set of colours.

A cluster of an input has the colour of the best clustering's cluster that it mostly became, so that a difference
between two panels is a difference between two clusterings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qonduit_steps.partition import Labels
from qonduit_steps.report.axis import ticks
from qonduit_steps.report.colours import Colours, follow, spread
from qonduit_steps.report.drawing import Drawing, Path, Picture, Shape, Text, line, text_width
from qonduit_steps.report.projection import View
from qonduit_steps.report.raster import Raster
from qonduit_steps.report.run import Run

_NUMBERED = 30  # clusters; more numbers than this would hide the points
_NAMES = {"kmeans": "k-means", "dbscan": "DBSCAN", "hierarchical": "Hierarchical"}


@dataclass(frozen=True)
class Panel:
    title: str
    detail: str
    png: bytes
    numbers: tuple[tuple[float, float, str], ...]
    view: View

    def draw(self, width: float, size: float, axes: bool) -> Drawing:
        """The plot with its clusters' numbers; `axes` adds a few ticks along two sides."""
        left, bottom = (_left(self.view), 24.0) if axes else (0.0, 0.0)
        wide, high = width - left, (width - left) * self.view.aspect
        shapes: list[Shape] = []
        if axes:
            shapes += _axes(self.view, left, wide, high)
        shapes.append(Picture(left, 0.0, wide, high, self.png))
        shapes += [
            Text(left + x * wide, (1 - y) * high + size / 3, number, size, "middle", bold=True, halo=True)
            for x, y, number in self.numbers
        ]
        return Drawing(width, high + bottom, tuple(shapes), f"Scatter plot. {self.title}: {self.detail}")


def method_name(method: str) -> str:
    return _NAMES.get(method, method)


def input_names(methods: list[str]) -> list[str]:
    """What the inputs are called: their methods, numbered where one method comes more than once."""
    names = [method_name(method) for method in methods]
    earlier = [names[:place].count(name) for place, name in enumerate(names)]
    return [f"{name} {n + 1}" if names.count(name) > 1 else name for name, n in zip(names, earlier, strict=True)]


def parameter_text(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{key.replace('_', ' ')} {value_text(value)}" for key, value in parameters.items())


def value_text(value: object) -> str:
    """A value as a person reads it: floats short, counts with separators, nothing as a dash."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    if isinstance(value, float):
        return f"{value:,.5g}".replace("-", "−")
    return str(value)


def panels(run: Run, view: View) -> list[Panel]:
    """The best clustering first, then every input."""
    raster = Raster(view)
    best = run.best
    centres, sizes = _centres(view.xy, best, int(best.max()) + 1)
    colours = spread(centres, sizes)
    moved = f", {_count(run.assigned_points, 'point')} put to the nearest" if run.assigned_points else ""
    detail = f"{_count(run.clusters, 'cluster')}{moved}"
    made = [_panel("Best clustering", detail, best, colours, raster, view)]
    names = input_names([given.method for given in run.inputs])
    for name, given in zip(names, run.inputs, strict=True):
        own = follow(given.labels, best, colours, given.clusters)
        own = spread(*_centres(view.xy, given.labels, given.clusters), fixed=own)
        noise = f", {given.noise:,} noise" if given.noise else ""
        detail = f"{parameter_text(given.parameters)} · {_count(given.clusters, 'cluster')}{noise}".removeprefix(" · ")
        made.append(_panel(name, detail, given.labels, own, raster, view))
    return made


def sheet(made: list[Panel]) -> Drawing:
    """All panels on one sheet: the best large at the left, the inputs in two columns beside it."""
    wide, gap, head = 520.0, 20.0, 40.0
    small = (wide - head / made[0].view.aspect - gap) / 2
    small = max(small, 200.0)
    row = small * made[0].view.aspect + head + gap
    shapes: list[Shape] = [*_titled(made[0], gap, gap, wide, 15.0)]
    for place, panel in enumerate(made[1:]):
        x = 2 * gap + wide + (place % 2) * (small + gap)
        shapes += _titled(panel, x, gap + (place // 2) * row, small, 11.0)
    columns = min(len(made) - 1, 2)
    height = max(wide * made[0].view.aspect + head + 2 * gap, gap + row * ((len(made)) // 2))
    return Drawing(2 * gap + wide + columns * (small + gap), height, tuple(shapes), "Best clustering beside the inputs")


def _titled(panel: Panel, x: float, y: float, width: float, size: float) -> list[Shape]:
    drawn = panel.draw(width, size, axes=False)
    top = y + 40.0
    frame = [(x, top), (x + width, top), (x + width, top + drawn.height), (x, top + drawn.height), (x, top)]
    return [
        Text(x, y + 14, panel.title, 14, bold=True),
        Text(x, y + 31, panel.detail, 10.5, fill="muted"),
        Path(tuple(frame), stroke="line"),
        *drawn.moved(x, top),
    ]


def _panel(title: str, detail: str, labels: Labels, colours: Colours, raster: Raster, view: View) -> Panel:
    painted = np.append(colours, -1)[labels]
    numbers = _numbers(view.xy, labels, len(colours)) if len(colours) <= _NUMBERED else ()
    return Panel(title, detail, raster.png(painted), numbers, view)


def _numbers(xy: npt.NDArray[np.float64], labels: Labels, clusters: int) -> tuple[tuple[float, float, str], ...]:
    """Each cluster's number at the point nearest to its centre, as the centre itself may lie in another cluster."""
    centres, sizes = _centres(xy, labels, clusters)
    kept = np.flatnonzero(labels >= 0)
    distance = np.square(xy[kept] - centres[labels[kept]]).sum(axis=1)
    nearest = np.full(clusters, np.inf)
    np.minimum.at(nearest, labels[kept], distance)
    hits = kept[distance == nearest[labels[kept]]]
    first = hits[np.unique(labels[hits], return_index=True)[1]]
    return tuple(
        (min(max(x, 0.03), 0.97), min(max(y, 0.04), 0.96), str(labels[point]))
        for point, (x, y) in zip(first, xy[first].tolist(), strict=True)
        if sizes[labels[point]] > 0.002 * len(labels)
    )


def _centres(
    xy: npt.NDArray[np.float64], labels: Labels, clusters: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.intp]]:
    kept = labels >= 0
    sizes = np.bincount(labels[kept], minlength=clusters)
    sums = [np.bincount(labels[kept], xy[kept, axis], minlength=clusters) for axis in (0, 1)]
    return np.column_stack(sums) / np.maximum(sizes, 1)[:, None], sizes


def _axes(view: View, left: float, wide: float, high: float) -> list[Shape]:
    shapes: list[Shape] = []
    for value, text in ticks(*view.x, 5):
        x = left + wide * (value - view.x[0]) / (view.x[1] - view.x[0])
        shapes += [line(x, 0, x, high, "line"), Text(x, high + 15, text, 11, "middle", "muted")]
    for value, text in ticks(*view.y, 5) if view.y else []:
        y = high - high * (value - view.y[0]) / (view.y[1] - view.y[0]) if view.y else 0.0
        shapes += [line(left, y, left + wide, y, "line"), Text(left - 6, y + 4, text, 11, "end", "muted")]
    return shapes


def _left(view: View) -> float:
    """Room for the longest tick, at the size that a phone's style sheet gives it."""
    texts = [text for _, text in ticks(*view.y, 5)] if view.y else []
    return 8.0 + max((text_width(text, 17) for text in texts), default=0.0)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
