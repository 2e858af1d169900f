"""The time that the steps on the critical path of a run took, from the run's own history and StreamFlow's log.

The steps of an iteration are measured by themselves, from the start of the process to its end (`process_seconds`); the
few steps around the loop, which run one after the other, by the time between the log's lines at their start and end.
"""

from __future__ import annotations

import os
import re
from datetime import datetime
from typing import Any

LINE = re.compile(
    r"^(?P<time>\S+ \S+) INFO +(?:EXECUTING step (?P<step>\S+) \(job|qonduit-(?P<said>\w+):)", re.MULTILINE
)
AROUND = {
    "/start": "loop",
    "/convert": "points",
    "/tree": "tree",
    "/loop/gate": "loop",
    "/select": "loop",
    "/render": "report",
}


def critical_path_s(log: str, history: list[dict[str, Any]]) -> float:
    return sum(_iteration_s(record) for record in history) + sum(_around_s(log))


def _iteration_s(record: dict[str, Any]) -> float:
    """Methods run side by side on as many slots as there are cores, the other steps one after the other."""
    slots = [0.0] * (os.cpu_count() or 1)
    total = float(record["process_seconds"])
    for step in record["earlier"]:
        if step["step"] == "cluster":
            slots[slots.index(min(slots))] += step["process_seconds"]
        else:
            total += step["process_seconds"]
    return total + max(slots)


def _around_s(log: str) -> list[float]:
    spans = []
    waiting: tuple[str, datetime] | None = None
    for line in LINE.finditer(log):
        at = datetime.fromisoformat(line["time"])
        if line["step"] in AROUND:
            waiting = (AROUND[line["step"]], at)
        elif waiting and line["said"] == waiting[0]:
            spans.append((at - waiting[1]).total_seconds())
            waiting = None
    return spans
