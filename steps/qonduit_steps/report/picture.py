"""Drawings as PNG files, in the light theme, for slides and for readers without a browser.

Pillow draws at twice the size and shrinks, which smooths the edges; its own font needs no files.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from qonduit_steps.report.colours import LIGHT
from qonduit_steps.report.drawing import Disc, Drawing, Path, Picture, Text

if TYPE_CHECKING:
    from PIL.Image import Image as Canvas
    from PIL.ImageDraw import ImageDraw as Pen

_SMOOTH = 2
_MARGIN = 16.0
_ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}
_PLAIN = str.maketrans({"−": "-", "–": "-", "‑": "-"})  # signs that Pillow's own font lacks


def png(drawing: Drawing, scale: float = 2.0) -> bytes:
    """The drawing on white with a margin, `scale` pixels to its unit."""
    from PIL import Image, ImageDraw

    zoom = scale * _SMOOTH
    size = round((drawing.width + 2 * _MARGIN) * zoom), round((drawing.height + 2 * _MARGIN) * zoom)
    canvas = Image.new("RGB", size, LIGHT["surface"])
    pen = ImageDraw.Draw(canvas, "RGBA")
    for shape in drawing.moved(_MARGIN, _MARGIN):
        match shape:
            case Path():
                _path(pen, shape, zoom)
            case Disc():
                _disc(pen, shape, zoom)
            case Text():
                _text(pen, shape, zoom)
            case Picture():
                _paste(canvas, shape, zoom)
    stream = io.BytesIO()
    canvas.reduce(_SMOOTH).save(stream, "PNG", compress_level=7)
    return stream.getvalue()


def _colour(name: str, opacity: float = 1.0) -> tuple[int, int, int, int]:
    code = LIGHT[name]
    return int(code[1:3], 16), int(code[3:5], 16), int(code[5:7], 16), round(255 * opacity)


def _path(pen: Pen, shape: Path, zoom: float) -> None:
    points = [(x * zoom, y * zoom) for x, y in shape.points]
    if shape.fill:
        pen.polygon(points, fill=_colour(shape.fill, shape.opacity))
        points.append(points[0])
    if shape.stroke:
        pen.line(points, _colour(shape.stroke, shape.opacity), width=max(round(shape.width * zoom), 1), joint="curve")


def _disc(pen: Pen, shape: Disc, zoom: float) -> None:
    radius = (shape.radius + (shape.width / 2 if shape.stroke else 0.0)) * zoom
    x, y = shape.x * zoom, shape.y * zoom
    pen.ellipse(
        [x - radius, y - radius, x + radius, y + radius],
        fill=_colour(shape.fill) if shape.fill else None,
        outline=_colour(shape.stroke) if shape.stroke else None,
        width=round(shape.width * zoom),
    )


def _text(pen: Pen, shape: Text, zoom: float) -> None:
    from PIL import ImageFont

    pen.text(
        (shape.x * zoom, shape.y * zoom),
        shape.text.translate(_PLAIN),
        fill=_colour(shape.fill),
        font=ImageFont.load_default(shape.size * zoom),
        anchor=_ANCHORS[shape.anchor],
        stroke_width=round(0.17 * shape.size * zoom) if shape.halo else 0.025 * shape.size * zoom * shape.bold,
        stroke_fill=_colour("surface" if shape.halo else shape.fill),
    )


def _paste(canvas: Canvas, shape: Picture, zoom: float) -> None:
    from PIL import Image

    size = round(shape.width * zoom), round(shape.height * zoom)
    layer = Image.open(io.BytesIO(shape.png)).convert("RGBA").resize(size, Image.Resampling.BICUBIC)
    canvas.paste(layer, (round(shape.x * zoom), round(shape.y * zoom)), layer)
