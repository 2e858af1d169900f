"""Points and their files: `.npy`, or CSV with or without a header line.

Everything that a step is given passes through here, so that bad data stops before any work, with a sentence that names
the line.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from qonduit.errors import DataError, UsageError
from qonduit_steps.command import existing

Floats = npt.NDArray[np.float64]
LARGEST = 1e150  # squares of distances must stay finite
DELIMITERS = (",", ";", "\t", " ")


def read_points(path: Path, option: str = "--points", columns: Sequence[str] | None = None) -> Floats:
    """Reads `.npy` or CSV by the file's suffix and checks that the points can be clustered."""
    if existing(path, option).stat().st_size == 0:
        raise DataError(f"{option}: {path} is empty; it must hold one point a line")
    if path.suffix == ".npy":
        array = _read_npy(path, option)
        return check_points(array[:, _chosen(columns, [], array.shape[1], path)], path, option)
    return check_points(_read_csv(path, option, columns), path, option)


def check_points(points: Floats, path: Path, option: str) -> Floats:
    finite = np.isfinite(points)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise DataError(
            f"{option}: {path} has {points[row, column]} in column {column + 1} of point {row + 1}; "
            "remove or replace such points"
        )
    if len(points) < 2:
        raise DataError(
            f"{option}: {path} holds {len(points)} point{'s' * (len(points) != 1)}; at least two are needed"
        )
    if np.abs(points).max() > LARGEST:
        raise DataError(f"{option}: {path} has numbers beyond {LARGEST:g}; rescale the data")
    if (points == points[0]).all():
        raise DataError(f"{option}: all {len(points)} points of {path} are equal; there is nothing to cluster")
    if np.ptp(points, axis=0).max() < 1 / LARGEST:
        raise DataError(f"{option}: the points of {path} differ by less than {1 / LARGEST:g}; rescale the data")
    return np.ascontiguousarray(points, dtype=np.float64)


def _read_npy(path: Path, option: str) -> Floats:
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        raise DataError(f"{option}: {path} is not a whole .npy file; make it again") from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu" or array.ndim not in (1, 2):
        raise DataError(f"{option}: {path} must hold numbers, a row a point and a column a dimension")
    if array.size == 0:
        raise DataError(f"{option}: {path} holds no points")
    return np.asarray(array.reshape(len(array), -1), dtype=np.float64)


def _read_csv(path: Path, option: str, columns: Sequence[str] | None) -> Floats:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{option}: {path} is not text; give a CSV or an .npy file") from None
    numbered = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not numbered:
        raise DataError(f"{option}: {path} is empty; it must hold one point a line")
    delimiter = next((mark for mark in DELIMITERS if mark in numbered[0][1].strip()), ",")
    header = _fields(numbered[0][1], delimiter)
    names = [] if any(_is_number(field) for field in header) else header
    rows = numbered[1:] if names else numbered
    if not rows:
        raise DataError(f"{option}: {path} has a header line but no points; add one point a line")
    chosen = _chosen(columns, names, len(header), path)
    return _numbers(rows, delimiter, len(header), chosen, path, option)


def _numbers(
    rows: list[tuple[int, str]], delimiter: str, width: int, chosen: list[int], path: Path, option: str
) -> Floats:
    lines = [" ".join(line.split()) if delimiter == " " else line for _, line in rows]
    for (number, _), line in zip(rows, lines, strict=True):
        if line.count(delimiter) != width - 1:
            found = line.count(delimiter) + 1
            raise DataError(
                f"{option}: {path} line {number} has {found} columns instead of {width}; make all lines alike"
            )
    try:
        return np.loadtxt(lines, delimiter=delimiter, usecols=chosen, ndmin=2, comments=None, quotechar='"')
    except ValueError:
        for (number, _), line in zip(rows, lines, strict=True):
            fields = _fields(line, delimiter)
            for wrong in (fields[column] for column in chosen if not _is_number(fields[column])):
                raise DataError(
                    f"{option}: {path} line {number}: '{wrong}' is not a number; mend it, or choose others by --columns"
                ) from None
        raise DataError(f"{option}: {path} has quotes that do not match; remove them") from None


def _fields(line: str, delimiter: str) -> list[str]:
    return [field.strip().strip('"') for field in line.strip().split(None if delimiter == " " else delimiter)]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _chosen(columns: Sequence[str] | None, names: Sequence[str], width: int, path: Path) -> list[int]:
    """The numbers, from 0, of the columns that were chosen by name or by number from 1; all if none were."""
    if not columns:
        return list(range(width))
    chosen = []
    for column in columns:
        if column in names:
            chosen.append(list(names).index(column))
        elif column.isdecimal() and 1 <= int(column) <= width:
            chosen.append(int(column) - 1)
        else:
            known = ", ".join(names) if names else f"1 to {width}"
            raise UsageError(f"--columns: {path} has no column '{column}'; it has {known}")
    return chosen
