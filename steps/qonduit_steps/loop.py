"""The loop's rules: which iterations run next, which of them count, which is the best, and when to stop.

Pure functions without files or engines. `qonduit-loop` applies them inside the workflow; every other way to run
the same iterations can ask them too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

METHODS = ("kmeans", "dbscan", "hierarchical")
PRESETS = ("fitted", "papers")
WEIGHTS = ("silhouette", "size")
LINKAGES = ("single", "complete", "average", "ward")


@dataclass(frozen=True)
class Limits:
    """A score strictly greater than `threshold` ends the loop, as do `max_iterations`; `width` of them run at once."""

    threshold: float
    max_iterations: int
    width: int = 1


@dataclass(frozen=True)
class Verdict:
    """What a pass came to: so many of its iterations count, one is the best, and these run next (none: the end)."""

    counted: int
    best: int
    passed: bool
    next_indices: tuple[int, ...]


def indices(first: int, limits: Limits) -> tuple[int, ...]:
    """The iterations of the pass that starts at `first`, clipped at the limit."""
    return tuple(range(first, min(first + limits.width, limits.max_iterations)))


def judge(first: int, scores: Sequence[float], limits: Limits) -> Verdict:
    """The verdict on a pass whose iterations, from `first` on, got these scores.

    The first iteration in order that passes ends the loop. Later ones of its pass ran only because they were
    started beside it, so they do not count: the result is the same for every width.
    """
    winner = next((place for place, score in enumerate(scores) if score > limits.threshold), None)
    counted = len(scores) if winner is None else winner + 1
    following = indices(first + len(scores), limits) if winner is None else ()
    return Verdict(counted, first + best(scores[:counted]), winner is not None, following)


def best(scores: Sequence[float]) -> int:
    """The place of the greatest score; the earliest of equals."""
    return max(range(len(scores)), key=lambda place: (scores[place], -place))
