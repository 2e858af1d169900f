"""Scripted faults of an emulated device: a list of rules, each with the phase it strikes in and how often.

A rule is `{"fault": NAME, "on": PHASE, "times": 1, "skip": 0, "probability": 1, "seconds": S, "accepted": false}`.
Chances are drawn from the server's seed, so that the same calls meet the same faults.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from qonduit.errors import DataError, UsageError

PHASES = ("auth", "discover", "submit", "find", "poll", "fetch", "cancel", "other")
STATUSES = (401, 403, 408, 423, 425, 429, 500, 502, 503)
CONNECTION = {
    "refuse": "after its answer the server takes no connection for `seconds`",
    "reset-before": "the connection is reset before the call is carried out",
    "reset-after": "the call is carried out and the connection is reset before the answer",
    "hang": "no answer for `seconds`",
    "malformed": "the call is carried out and its answer is cut off",
    **{f"http-{status}": f"answered with {status}" for status in STATUSES},
}
SERVICE = {
    "token-expires": "the token in use is refused from now on; the token file gets a new one",
    "calibration-changes": "the device is calibrated anew before the call is carried out",
    "maintenance": "every call is answered with 503 for `seconds`",
}
JOB = {
    "job-fails": "the job ends as failed",
    "job-cancelled": "the operator cancels the job",
    "stays-queued": "the job never leaves the queue",
    "infeasible-samples": "the result holds only samples in which everything is selected",
    "missing-shots": "the result holds fewer shots than were asked",
}
NAMES = {**CONNECTION, **SERVICE, **JOB}


@dataclass(frozen=True)
class Rule:
    """`skip` matching calls are let through first, then `times` of them are struck, each with `probability`.

    With `accepted`, the call is carried out before `hang` or a status strikes.
    """

    fault: str
    on: str = "any"
    times: int = 1
    skip: int = 0
    probability: float = 1.0
    seconds: float = 3600.0
    retry_after_s: float | None = None
    accepted: bool = False

    @property
    def status(self) -> int | None:
        return int(self.fault.removeprefix("http-")) if self.fault.startswith("http-") else None


def read_rules(path: Path) -> list[Rule]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"--faults: {path} cannot be read ({error.strerror}); check the path") from None
    except ValueError as error:
        raise DataError(f"{path}: this is not JSON ({error}); write a list of faults") from None
    return rules_from(content, str(path))


def rules_from(content: object, source: str) -> list[Rule]:
    if not isinstance(content, list):
        raise DataError(f"{source}: faults are a JSON list of objects")
    return [_rule(item, source) for item in content]


def _rule(item: object, source: str) -> Rule:
    known = {field.name: field for field in fields(Rule)}
    if not isinstance(item, Mapping) or item.get("fault") not in list(NAMES):
        raise DataError(f"{source}: each fault needs a 'fault', one of {', '.join(NAMES)}")
    for key, value in item.items():
        if key not in known:
            raise DataError(f"{source}: a fault has no key '{key}'; use {', '.join(known)}")
        if key in ("probability", "seconds", "retry_after_s") and not _natural(value):
            raise DataError(f"{source}: a fault's '{key}' must be a number that is not negative")
        if key in ("times", "skip") and not (_natural(value) and isinstance(value, int)):
            raise DataError(f"{source}: a fault's '{key}' must be a whole number that is not negative")
        if key == "accepted" and not isinstance(value, bool):
            raise DataError(f"{source}: a fault's 'accepted' must be true or false")
    if item.get("on", "any") not in (*PHASES, "any"):
        raise DataError(f"{source}: a fault's 'on' must be any or one of {', '.join(PHASES)}")
    return Rule(**item)


def _natural(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


class Script:
    """The rules in force, and how often each has been met."""

    def __init__(self, rules: Iterable[Rule], seed: int) -> None:
        self._random = random.Random(seed)
        self._left: list[list[Any]] = []
        self.add(rules)

    def add(self, rules: Iterable[Rule]) -> None:
        self._left += [[rule, rule.skip, rule.times] for rule in rules]

    def clear(self) -> None:
        self._left.clear()

    def on_call(self, phase: str) -> Rule | None:
        """The fault that strikes a call of this phase, if one does."""
        return self._draw(phase, set(CONNECTION) | set(SERVICE))

    def on_job(self) -> str | None:
        """The fault that an accepted job carries, if it does."""
        rule = self._draw("submit", set(JOB))
        return rule.fault if rule else None

    def _draw(self, phase: str, names: set[str]) -> Rule | None:
        for entry in self._left:
            rule, skip, times = entry
            applies = rule.fault in names and (rule.fault in JOB or rule.on in (phase, "any"))
            if not applies or times <= 0:
                continue
            if skip > 0:
                entry[1] -= 1
                continue
            if rule.probability < 1 and self._random.random() >= rule.probability:
                continue
            entry[2] -= 1
            found: Rule = rule
            return found
        return None
