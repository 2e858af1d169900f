"""How often and how long to try again what a device did not answer: backoff with jitter, and its own Retry-After."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from qonduit.errors import AwayError, DeviceError

T = TypeVar("T")


@dataclass(frozen=True)
class Patience:
    """`limit_s` bounds the tries of one call; `settle_s` is how long a vendor may take to list what it accepted."""

    limit_s: float = 600.0
    settle_s: float = 20.0
    first_pause_s: float = 0.1
    longest_pause_s: float = 30.0
    poll_s: float = 5.0
    sleep: Callable[[float], object] = time.sleep
    clock: Callable[[], float] = time.monotonic
    chance: random.Random = field(default_factory=random.Random)

    def read(self, call: Callable[[], T], say: Callable[[str], object] = lambda _: None) -> T:
        """What the call returns; while the device is away, again and again until the limit."""
        tries = self.tries()
        while True:
            try:
                return call()
            except AwayError as error:
                tries.again(error, say)

    def within(self, seconds: float) -> Patience:
        return replace(self, limit_s=min(self.limit_s, seconds))

    def tries(self) -> Tries:
        return Tries(self)


class Tries:
    """The tries of one call, with growing pauses."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._until = patience.clock() + patience.limit_s
        self._pause_s = patience.first_pause_s

    def again(self, error: AwayError, say: Callable[[str], object] = lambda _: None) -> None:
        """Waits before the next try, or raises the error when the limit would be passed."""
        patience = self._patience
        pause_s = max(error.retry_after_s or 0.0, self._pause_s * patience.chance.uniform(0.5, 1.5))
        if patience.clock() + pause_s > self._until:
            raise DeviceError(f"{error} (tried for {patience.limit_s:g} s); try again later") from error
        say(f"{error}; again in {pause_s:.1f} s")
        patience.sleep(pause_s)
        self._pause_s = min(2 * self._pause_s, patience.longest_pause_s)
