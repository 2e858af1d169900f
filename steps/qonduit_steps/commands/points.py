"""`qonduit-points`: makes test data, or turns a CSV or .npy file into the points.npy that every other step reads."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from qonduit.errors import UsageError
from qonduit_steps.blobs import PAPERS, blobs
from qonduit_steps.command import Parser, Summary, add_common, natural, number, run
from qonduit_steps.outputs import Outputs
from qonduit_steps.points import check_points, read_points


def main() -> None:
    run(_parser(), _work)


def _parser() -> Parser:
    made = Parser(
        prog="qonduit-points",
        description="Makes points or converts them to .npy: a row a point, any number of dimensions.",
        epilog="examples:\n  qonduit-points blobs --out points.npy\n"
        "  qonduit-points csv data.csv --columns x y --out points.npy",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    kinds = made.add_subparsers(dest="kind", required=True, metavar="blobs|csv|npy|convert")
    make = kinds.add_parser("blobs", help="Gaussian blobs; by default the papers' 80,000 points", allow_abbrev=False)
    make.add_argument("--points", type=natural(2), default=PAPERS["points"], metavar="N", help="how many (%(default)s)")
    make.add_argument("--centres", type=natural(1), default=PAPERS["centres"], metavar="N", help="blobs (%(default)s)")
    make.add_argument("--dimensions", type=natural(1), default=PAPERS["dimensions"], metavar="N", help="(%(default)s)")
    make.add_argument(
        "--spread", type=number(1e-9, 1e9), default=PAPERS["spread"], help="standard deviation of a blob (1)"
    )
    make.add_argument(
        "--half-box", type=number(0, 1e9), default=PAPERS["half_box"], help="centres lie in [-H, H] (20)", metavar="H"
    )
    make.add_argument("--seed", type=natural(0, 2**32 - 1), default=PAPERS["seed"], help="the papers': %(default)s")
    helps = {
        "csv": "text, with or without a header line",
        "npy": "a NumPy file",
        "convert": "either, by its suffix; without a file the papers' points",
    }
    for kind, text in helps.items():
        convert = kinds.add_parser(kind, help=text, allow_abbrev=False)
        convert.add_argument("file", type=Path, nargs="?" if kind == "convert" else None)
        convert.add_argument(
            "--columns", nargs="+", metavar="NAME", help="the columns to use, by name or number from 1"
        )
    for sub in kinds.choices.values():
        sub.add_argument("--out", type=Path, required=True, help="the .npy file to write")
        add_common(sub)
    return made


def _work(options: argparse.Namespace, outputs: Outputs) -> Summary:
    outputs.check(options.out, "--out")
    if options.kind == "blobs":
        points = check_points(blobs(**{name: getattr(options, name) for name in PAPERS}), options.out, "blobs")
    elif options.file is None:
        points = blobs(**PAPERS)
    else:
        if options.kind == "npy" and options.file.suffix != ".npy":
            raise UsageError(f"{options.file} does not end in .npy; use qonduit-points csv for text")
        points = read_points(options.file, "file", options.columns)
    outputs.write(options.out, "--out", lambda stream: np.save(stream, points, allow_pickle=False))
    return {"points": len(points), "dimensions": points.shape[1]}
