"""The overlap graph: clusters are vertices, an edge joins two that share points, the selected set is filled.

A vertex starts at its cluster's centre in the scatter plot and is pushed aside until no two discs touch, so the
graph looks like the data, and the same data always give the same graph.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from qonduit_steps.report.colours import method_colour
from qonduit_steps.report.drawing import Disc, Drawing, Path, Shape, Text, box, line, text_width
from qonduit_steps.report.projection import View
from qonduit_steps.report.run import Run, Vertex
from qonduit_steps.report.scatter import input_names

MOST = 300  # vertices drawn; more are a stain, not a graph
_LABELLED = 80

Places = npt.NDArray[np.float64]


def shown(run: Run) -> list[int]:
    """The vertices that are drawn: all, or the selected and then the heaviest."""
    order = sorted(range(len(run.vertices)), key=lambda i: (not run.vertices[i].selected, -run.vertices[i].weight, i))
    return sorted(order[:MOST])


def draw(run: Run, view: View, width: float, height: float) -> Drawing:
    kept = shown(run)
    legend, below = _legend(run, width)
    frame = (10.0, below + 16.0, width - 10.0, height - 10.0)
    radii = _radii([run.vertices[i] for i in kept], frame)
    settled = _settle(_anchors(run, view, kept, frame), radii, frame)
    places = [(float(x), float(y)) for x, y in settled]
    at = {vertex: place for place, vertex in enumerate(kept)}
    lines = [(at[one], at[other]) for one, other in run.edges if one in at and other in at]
    opacity = min(1.0, max(0.25, 12 / math.sqrt(len(lines) + 1)))
    shapes: list[Shape] = list(legend)
    shapes += [line(*places[one], *places[other], "edge", 1.4, opacity) for one, other in lines]
    short = short_names([given.method for given in run.inputs])
    for place, index in enumerate(kept):
        vertex = run.vertices[index]
        shapes += _vertex(vertex, *places[place], float(radii[place]))
        if len(kept) <= _LABELLED:
            shapes.append(_name(vertex, short, *places[place], float(radii[place])))
    return Drawing(width, height, tuple(shapes), _label(run))


def short_names(methods: list[str]) -> list[str]:
    """A letter for each input: its method's initial, or A, B, C, … where two would be the same."""
    initials = [method[:1].upper() for method in methods]
    if all(initials) and len(set(initials)) == len(initials):
        return initials
    return [chr(ord("A") + place) if place < 26 else f"{place}." for place in range(len(methods))]


def _radii(vertices: list[Vertex], frame: tuple[float, float, float, float]) -> Places:
    weights = np.array([max(vertex.weight, 0.0) for vertex in vertices])
    room = (frame[2] - frame[0]) * (frame[3] - frame[1])
    largest = min(30.0, 0.36 * math.sqrt(room / max(len(vertices), 1)))
    least = min(11.0, 0.6 * largest)
    top = weights.max(initial=0.0) or 1.0
    return least + (largest - least) * np.sqrt(weights / top)


def _anchors(run: Run, view: View, kept: list[int], frame: tuple[float, float, float, float]) -> Places:
    """Where the clusters' centres are, inputs slightly apart so that equal centres know where to go."""
    centres = []
    for given in run.inputs:
        inside = given.labels >= 0
        sizes = np.bincount(given.labels[inside], minlength=given.clusters)
        sums = [np.bincount(given.labels[inside], view.xy[inside, axis], minlength=given.clusters) for axis in (0, 1)]
        centres.append(np.column_stack(sums) / sizes[:, None])
    anchors = np.empty((len(kept), 2))
    for place, index in enumerate(kept):
        number, cluster = run.vertices[index].members[0]
        angle = 2 * math.pi * (number / len(run.inputs) + 0.25) + 0.003 * index
        anchors[place] = centres[number][cluster] + 0.02 * np.array((math.cos(angle), math.sin(angle)))
    if len(kept):
        low, span = anchors.min(axis=0), np.ptp(anchors, axis=0)
        anchors = np.where(span > 0.05, (anchors - low) / np.maximum(span, 0.05), 0.5 + anchors - anchors.mean(axis=0))
    corner, size = np.array(frame[:2]), np.array((frame[2] - frame[0], frame[3] - frame[1]))
    return np.asarray(corner + size * (0.08 + 0.84 * (anchors * (1, -1) + (0, 1))))


def _settle(anchors: Places, radii: Places, frame: tuple[float, float, float, float]) -> Places:
    """Pushes touching discs apart and pulls all gently back to their anchors, keeping them inside the frame."""
    places = anchors.copy()
    gap = 0.9 * float(radii.mean()) if len(radii) else 0.0
    wanted = radii[:, None] + radii[None, :] + gap
    np.fill_diagonal(wanted, 0.0)
    low, high = np.array(frame[:2]) + radii[:, None], np.array(frame[2:]) - radii[:, None]
    turns = max(60, min(240, 20000 // max(len(radii), 1)))
    for turn in range(turns):
        apart = places[:, None, :] - places[None, :, :]
        distance = np.maximum(np.hypot(apart[..., 0], apart[..., 1]), 1e-9)
        push = (np.maximum(wanted - distance, 0.0) / distance)[..., None] * apart
        pull = 0.06 * (anchors - places) if 3 * turn < 2 * turns else 0.0
        places = (places + 0.3 * push.sum(axis=1) + pull).clip(low, np.maximum(low, high))
    return places


def _vertex(vertex: Vertex, x: float, y: float, radius: float) -> list[Shape]:
    inputs = [number for number, _ in vertex.members]
    state = "selected" if vertex.selected else "not selected" if vertex.in_objective else "kept out of the objective"
    title = f"{vertex.variable}: {vertex.size:,} points, weight {vertex.weight:,.5g}, {state}"
    shapes: list[Shape] = []
    if vertex.selected:
        shapes.append(Disc(x, y, radius + 3.5, "surface", "ink", 2.2))
    fill = method_colour(inputs[0]) if vertex.selected else "surface"
    stroke = method_colour(inputs[0]) if vertex.in_objective else "line"
    shapes.append(Disc(x, y, radius - 1, fill, stroke, 2, title))
    for place, number in enumerate(inputs[1:], start=1):
        share = place / len(inputs), (place + 1) / len(inputs)
        arc = _arc(x, y, radius if vertex.selected else radius - 1, *share)
        if vertex.selected:
            shapes.append(Path(((x, y), *arc), fill=method_colour(number), title=title))
        else:
            shapes.append(Path(arc, stroke=method_colour(number) if vertex.in_objective else "line", width=2))
    return shapes


def _arc(x: float, y: float, radius: float, start: float, end: float) -> tuple[tuple[float, float], ...]:
    steps = max(2, round(48 * (end - start)))
    turns = [2 * math.pi * (start + (end - start) * step / steps - 0.25) for step in range(steps + 1)]
    return tuple((x + radius * math.cos(turn), y + radius * math.sin(turn)) for turn in turns)


def _name(vertex: Vertex, short: list[str], x: float, y: float, radius: float) -> Text:
    number, cluster = vertex.members[0]
    text = f"{short[number]}{cluster}" if len(vertex.members) == 1 else "".join(short[i] for i, _ in vertex.members)
    size = min(12.0, 1.7 * radius / max(0.72 * len(text), 1.0))
    fill = "on-method" if vertex.selected else "ink" if vertex.in_objective else "muted"
    return Text(x, y + 0.36 * size, text, size, "middle", fill, bold=vertex.selected)


def _legend(run: Run, width: float) -> tuple[list[Shape], float]:
    methods = [given.method for given in run.inputs]
    names = zip(short_names(methods), input_names(methods), strict=True)
    entries = [(f"{short}  {name}", method_colour(place), False) for place, (short, name) in enumerate(names)]
    entries += [("selected", "edge", True), ("not selected", "edge", False)]
    shapes: list[Shape] = []
    x, y = 8.0, 14.0
    for place, (text, colour, filled) in enumerate(entries):
        length = 20 + text_width(text, 12) + 12
        if x > 8.0 and x + length > width:
            x, y = 8.0, y + 22
        if place < len(methods):
            shapes.append(box(x - 2, y - 10, 12, 12, colour))
        elif filled:
            shapes += [Disc(x + 4, y - 4, 7.5, "surface", "ink", 1.8), Disc(x + 4, y - 4, 4.5, colour)]
        else:
            shapes.append(Disc(x + 4, y - 4, 6, "surface", colour, 2))
        shapes.append(Text(x + 16, y, text, 12))
        x += length
    return shapes, y


def _label(run: Run) -> str:
    chosen = ", ".join(vertex.variable for vertex in run.vertices if vertex.selected)
    return (
        f"Overlap graph of {len(run.vertices)} clusters with {len(run.edges)} overlaps. Selected: {chosen or 'none'}."
    )
