"""What the benchmarks share: a row, how it is printed, and the file that holds the rows of one run."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).parent
Part = Callable[[], Iterable["Row"]]


@dataclass(frozen=True)
class Row:
    """`ratio` is how many times better we are: the peer's value over ours, or ours over the peer's if more is better.

    Where nothing was set as a goal, the figure is only reported: `goal` and `met` are then None.
    """

    name: str
    unit: str
    ours: float
    peer: str | None
    peer_value: float | None
    ratio: float | None
    goal: str | None
    met: bool | None


def faster(name: str, ours: float, peer: str, theirs: float, times: float, unit: str = "CPU s") -> Row:
    return Row(name, unit, ours, peer, theirs, theirs / ours, f"ratio ≥ {times:g}", theirs / ours >= times)


def below(name: str, unit: str, ours: float, limit: float) -> Row:
    return Row(name, unit, ours, None, None, None, f"< {limit:g}", ours < limit)


def reported(name: str, unit: str, ours: float, peer: str | None = None, theirs: float | None = None) -> Row:
    ratio = None if not theirs else ours / theirs
    return Row(name, unit, ours, peer, theirs, ratio, None, None)


def run(name: str, description: str | None, parts: Mapping[str, Part]) -> None:
    """Runs the chosen parts; when all were, results/NAME.json is written anew."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("parts", nargs="*", choices=[[], *parts], help="default: all, and write the results")
    chosen = parser.parse_args().parts or list(parts)
    rows = []
    for part in chosen:
        for row in parts[part]():
            rows.append(row)
            versus = "" if row.peer is None else f"  {row.peer} {row.peer_value:.4g}"
            ratio = "" if row.ratio is None else f"  ratio {row.ratio:.1f}"
            mark = "    " if row.met is None else "met " if row.met else "MISS"
            goal = "" if row.goal is None else f"  ({row.goal})"
            print(f"{mark}  {row.name}: {row.ours:.4g} {row.unit}{versus}{ratio}{goal}", flush=True)
    if len(chosen) == len(parts):
        result = {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
            "rows": [asdict(row) for row in rows],
        }
        (HERE / "results").mkdir(exist_ok=True)
        (HERE / "results" / f"{name}.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
