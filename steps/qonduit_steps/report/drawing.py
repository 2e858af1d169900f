"""Drawings made of a few kinds of shapes, and their SVG.

A chart is drawn once and comes out twice: as SVG in the page, whose colours follow the reader's theme, and as
a PNG file (`qonduit_steps.report.picture`). Colours are names from `qonduit_steps.report.colours`.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from html import escape
from typing import Literal

Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True)
class Path:
    """A line through points; closed and filled if `fill` names a colour."""

    points: tuple[tuple[float, float], ...]
    fill: str = ""
    stroke: str = ""
    width: float = 1.0
    opacity: float = 1.0
    title: str = ""


@dataclass(frozen=True)
class Disc:
    x: float
    y: float
    radius: float
    fill: str = ""
    stroke: str = ""
    width: float = 1.0
    title: str = ""


@dataclass(frozen=True)
class Text:
    """One line of text; `y` is its baseline. A halo keeps it readable on top of a picture."""

    x: float
    y: float
    text: str
    size: float = 12.0
    anchor: Anchor = "start"
    fill: str = "ink"
    bold: bool = False
    halo: bool = False


@dataclass(frozen=True)
class Picture:
    x: float
    y: float
    width: float
    height: float
    png: bytes


Shape = Path | Disc | Text | Picture


@dataclass(frozen=True)
class Drawing:
    width: float
    height: float
    shapes: tuple[Shape, ...]
    label: str

    def moved(self, x: float, y: float) -> tuple[Shape, ...]:
        """The shapes at another place, to put several drawings on one sheet."""
        return tuple(_moved(shape, x, y) for shape in self.shapes)


def line(x1: float, y1: float, x2: float, y2: float, stroke: str, width: float = 1.0, opacity: float = 1.0) -> Path:
    return Path(((x1, y1), (x2, y2)), stroke=stroke, width=width, opacity=opacity)


def box(x: float, y: float, width: float, height: float, fill: str, title: str = "") -> Path:
    return Path(((x, y), (x + width, y), (x + width, y + height), (x, y + height)), fill=fill, title=title)


def text_width(text: str, size: float) -> float:
    """About as wide as the text will be: enough to set legends and margins without any font."""
    return size * sum(0.76 if sign.isupper() else 0.6 for sign in text)


def svg(drawing: Drawing, style: str = "") -> str:
    body = "".join(_element(shape) for shape in drawing.shapes)
    return (
        f'<svg class="{escape(style)}" viewBox="0 0 {_n(drawing.width)} {_n(drawing.height)}" role="img" '
        f'aria-label="{escape(drawing.label)}">{body}</svg>'
    )


def _moved(shape: Shape, x: float, y: float) -> Shape:
    if isinstance(shape, Path):
        return replace(shape, points=tuple((a + x, b + y) for a, b in shape.points))
    return replace(shape, x=shape.x + x, y=shape.y + y)


def _element(shape: Shape) -> str:
    match shape:
        case Path():
            points = " ".join(f"{_n(x)},{_n(y)}" for x, y in shape.points)
            tag = "polygon" if shape.fill else "polyline"
            return _tag(tag, f'points="{points}"', _paint(shape, shape.opacity), shape.title)
        case Disc():
            where = f'cx="{_n(shape.x)}" cy="{_n(shape.y)}" r="{_n(shape.radius)}"'
            return _tag("circle", where, _paint(shape, 1.0), shape.title)
        case Text():
            style = "".join((' class="halo"' if shape.halo else "", ' font-weight="600"' if shape.bold else ""))
            return (
                f'<text x="{_n(shape.x)}" y="{_n(shape.y)}" font-size="{_n(shape.size)}" text-anchor="{shape.anchor}" '
                f'style="fill:var(--{shape.fill})"{style}>{escape(shape.text)}</text>'
            )
        case Picture():
            data = base64.b64encode(shape.png).decode()
            return (
                f'<image x="{_n(shape.x)}" y="{_n(shape.y)}" width="{_n(shape.width)}" height="{_n(shape.height)}" '
                f'href="data:image/png;base64,{data}"/>'
            )


def _paint(shape: Path | Disc, opacity: float) -> str:
    fill = f"fill:var(--{shape.fill})" if shape.fill else "fill:none"
    stroke = f";stroke:var(--{shape.stroke});stroke-width:{_n(shape.width)}" if shape.stroke else ""
    return fill + stroke + (f";opacity:{_n(opacity)}" if opacity < 1 else "")


def _tag(name: str, where: str, style: str, title: str) -> str:
    inside = f"<title>{escape(title)}</title>" if title else ""
    return f'<{name} {where} style="{style}">{inside}</{name}>'


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
