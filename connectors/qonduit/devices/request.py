"""What is asked of a device, what goes to it and what comes back: `Question`, `Request` and `Result`.

All survive a file. A device's `prepare` makes the request and its `decode` reads the result; whoever carries them in
between needs to understand neither payload.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from qonduit.errors import DataError

if TYPE_CHECKING:
    import dimod


@dataclass(frozen=True)
class Question:
    """A QUBO and how often to sample it; `qubo` is dimod's serialisation."""

    kind: str
    qubo: Mapping[str, Any]
    shots: int
    seed: int

    def digest(self) -> str:
        """The same for the same question, in every process: what tells that shots were already bought.

        How a device prepared it is left out, since a new calibration must not make a second purchase of a restart.
        """
        asked = [self.kind, self.qubo, self.shots, self.seed]
        return hashlib.sha256(json.dumps(asked, sort_keys=True, allow_nan=False).encode()).hexdigest()


@dataclass(frozen=True)
class Request(Question):
    """A question made ready for one kind of device; `payload` is the kind's own."""

    payload: Mapping[str, Any]

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Request:
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise DataError(f"this is no request to a device ({error}); prepare it again") from None

    def bqm(self) -> dimod.BinaryQuadraticModel:
        import dimod

        return dimod.BinaryQuadraticModel.from_serializable(dict(self.qubo))


def seed_of_round(seed: int, number: int) -> int:
    """The seed of a variational device's round, which makes it a question of its own; round 0 is the first request."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{number}".encode()).digest()[:8], "big")


@dataclass(frozen=True)
class Result:
    """What a device answered, before anything is believed of it: plain JSON."""

    payload: Mapping[str, Any]
