"""Scatter plots as small pictures: points are counted in pixels, so a million cost about as much as a thousand.

Each pixel takes the colour of the cluster with most points in it and is the more opaque the more points there are;
the background stays transparent.
"""

from __future__ import annotations

import io
import math

import numpy as np
import numpy.typing as npt

from qonduit_steps.report.colours import CLUSTERS, NOISE
from qonduit_steps.report.projection import View

WIDTH = 640
_LEVELS = 21  # opacities; with 11 colours and the background they fill a PNG's palette of 256
_COLOURS = (*CLUSTERS, NOISE)


class Raster:
    """The pixel of every point, found once and used for each clustering."""

    def __init__(self, view: View) -> None:
        points = len(view.xy)
        self._radius = min(max(7.0 * (100.0 / points) ** 0.25, 0.5), 8.0)
        self._opacity_of_one = min(max(1.1 - 0.12 * math.log10(points), 0.35), 0.9)
        self._margin = math.ceil(self._radius)
        self.width, self.height = WIDTH, round(WIDTH * view.aspect)
        self._stride = self.width + 2 * self._margin
        self._cells = self._stride * (self.height + 2 * self._margin)
        column = (view.xy[:, 0] * (self.width - 1)).round().astype(np.int64) + self._margin
        row = ((1.0 - view.xy[:, 1]) * (self.height - 1)).round().astype(np.int64) + self._margin
        self._pixel = row * self._stride + column

    def png(self, colours: npt.NDArray[np.intp]) -> bytes:
        """The picture in which point i has the palette's colour `colours[i]`, −1 being noise."""
        shape = (len(_COLOURS), self.height + 2 * self._margin, self._stride)
        inner = slice(self._margin, -self._margin)
        planes = self._dots(colours % len(_COLOURS)).reshape(shape)[:, inner, inner]
        amount = planes.sum(axis=0)
        index = 1 + planes.argmax(axis=0) * _LEVELS + self._level(amount)
        return _encode(np.where(amount > 0, index, 0).astype(np.uint8))

    def _dots(self, colours: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
        """How much of each colour covers each pixel: a disc for each point, drawn once for all points of a pixel."""
        counts = np.bincount(colours * self._cells + self._pixel, minlength=len(_COLOURS) * self._cells)
        occupied = np.flatnonzero(counts)
        reach = np.arange(-self._margin, self._margin + 1)
        cover = (self._radius + 0.5 - np.hypot(reach[:, None], reach[None, :])).clip(0.0, 1.0).ravel()
        shift = (reach[:, None] * self._stride + reach[None, :]).ravel()
        shift, cover = shift[cover > 0], cover[cover > 0]
        where = (occupied[:, None] + shift).ravel()
        amounts: npt.NDArray[np.float64] = (counts[occupied, None] * cover).ravel()
        return np.bincount(where, amounts, minlength=len(counts)).astype(np.float64, copy=False)

    def _level(self, amount: npt.NDArray[np.float64]) -> npt.NDArray[np.intp]:
        most = max(float(np.quantile(amount[amount > 0], 0.995)), math.e)
        one = self._opacity_of_one
        dense = one + (1.0 - one) * np.log(amount.clip(1.0)) / math.log(most)
        opacity = np.where(amount < 1.0, one * amount, dense.clip(0.0, 1.0))
        return np.asarray((opacity * (_LEVELS - 1)).round().astype(np.intp))


def _encode(index: npt.NDArray[np.uint8]) -> bytes:
    from PIL import Image

    palette = [(0, 0, 0), *(colour for colour in _COLOURS for _ in range(_LEVELS))]
    opacity = [0, *(round(255 * level / (_LEVELS - 1)) for _ in _COLOURS for level in range(_LEVELS))]
    picture = Image.frombytes("P", (index.shape[1], index.shape[0]), index.tobytes())
    picture.putpalette([part for colour in palette for part in colour])
    stream = io.BytesIO()
    picture.save(stream, "PNG", transparency=bytes(opacity), compress_level=9)
    return stream.getvalue()
