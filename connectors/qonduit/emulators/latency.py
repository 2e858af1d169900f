"""How long an emulated device takes: presets of the order of public machines, or a JSON file.

The figures are round ones for teaching and tests, not a vendor's promise.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from qonduit.errors import DataError, UsageError


@dataclass(frozen=True)
class Latency:
    """Seconds that a job waits before it may start, to set it up, and for each shot."""

    queue_s: float = 0.0
    setup_s: float = 0.0
    shot_s: float = 0.0

    def run_s(self, shots: int) -> float:
        return self.setup_s + shots * self.shot_s


PRESETS = {
    "none": Latency(),
    "superconducting": Latency(queue_s=0.5, setup_s=1.0, shot_s=3e-4),
    "neutral-atom": Latency(queue_s=1.0, setup_s=2.0, shot_s=0.25),
    "annealer": Latency(queue_s=0.05, setup_s=0.02, shot_s=2e-4),
}


def latency_named(name: str) -> Latency:
    """A preset, or the file of that name."""
    if name in PRESETS:
        return PRESETS[name]
    path = Path(name)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        presets = ", ".join(PRESETS)
        raise UsageError(f"--latency: {path} cannot be read ({error.strerror}); name a file or {presets}") from None
    except ValueError as error:
        raise DataError(f"{path}: this is not JSON ({error}); write an object with queue_s, setup_s, shot_s") from None
    known = set(asdict(Latency()))
    numbers = isinstance(content, dict) and all(
        isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e6
        for value in content.values()
    )
    if not numbers or not set(content) <= known:
        raise DataError(f"{path}: a latency is an object of {', '.join(sorted(known))}, in seconds")
    return Latency(**content)
