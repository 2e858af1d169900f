"""`qonduit-report`: a page and pictures of a finished run.

The last step of the workflow; also run by hand on the results of any run.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import IO

from qonduit_steps.command import Summary, parser, run
from qonduit_steps.outputs import Outputs

PICTURES = ("scatter.png", "scores.png", "graph.png", "times.png")


def main(argv: Sequence[str] | None = None) -> None:
    made = parser(
        "qonduit-report",
        "Writes one self-contained HTML page about a run, and its pictures as PNG files.",
        "qonduit-report --run results/clustering-aggregation --out report.html",
    )
    made.add_argument("--run", metavar="DIR", type=Path, required=True, help="folder with the results of a run")
    made.add_argument("--out", metavar="FILE", type=Path, required=True, help="the page to write")
    made.add_argument("--points", metavar="FILE", type=Path, help="the points (default: points.npy in --run)")
    made.add_argument("--pictures", metavar="DIR", type=Path, help="folder for the PNG files (default: that of --out)")
    run(made, report, argv)


def report(options: argparse.Namespace, outputs: Outputs) -> Summary:
    folder = options.pictures if options.pictures else options.out.parent
    outputs.check(options.out, "--out")
    for name in PICTURES:
        outputs.check(folder / name, "--pictures")

    from qonduit_steps.report import graph, scores, times
    from qonduit_steps.report.page import page
    from qonduit_steps.report.picture import png
    from qonduit_steps.report.projection import project
    from qonduit_steps.report.run import read_run
    from qonduit_steps.report.scatter import panels, sheet

    shown = read_run(options.run, options.points)
    view = project(shown.points)
    made = panels(shown, view)
    outputs.write_text(options.out, page(shown, view, made), "--out")
    drawings = (
        sheet(made),
        scores.draw(shown, 640, 380),
        graph.draw(shown, view, 1000, 640),
        times.draw(shown, 640, 380),
    )
    for name, drawing in zip(PICTURES, drawings, strict=True):
        picture = png(drawing)
        outputs.write(folder / name, "--pictures", partial(_copy, picture))
    return {"score": shown.best_score, "iterations": len(shown.iterations), "points": len(shown.points)}


def _copy(content: bytes, stream: IO[bytes]) -> None:
    stream.write(content)
