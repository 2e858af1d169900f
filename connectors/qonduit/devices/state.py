"""The states of a job on a device, with their order.

A job only moves forward: queued, running, then one of three ends. `unknown` is a state too: the device did not
say, so it is no end, no success, and neither before nor after any other state.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class State(Enum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"

    @property
    def final(self) -> bool:
        return self in (State.DONE, State.FAILED, State.CANCELLED)

    def __lt__(self, other: State) -> bool:
        """Whether a job in this state can still come to `other`."""
        if State.UNKNOWN in (self, other) or self.final:
            return False
        return other.final or (self is State.QUEUED and other is State.RUNNING)


@dataclass(frozen=True)
class Status:
    """A job's state, with how many jobs are before it and what the device says of it, where it says so."""

    state: State
    position: int | None = None
    reason: str = ""
