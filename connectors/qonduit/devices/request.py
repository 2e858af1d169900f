"""What goes to a device and what comes back, as values that survive a file: `Request` and `Result`.

A device's `prepare` makes the request and its `decode` reads the result; whoever carries them in between needs
to understand neither payload.
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
class Request:
    """A QUBO made ready for one kind of device; `qubo` is dimod's serialisation, `payload` the kind's own."""

    kind: str
    qubo: Mapping[str, Any]
    shots: int
    seed: int
    payload: Mapping[str, Any]

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Request:
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise DataError(f"this is no request to a device ({error}); prepare it again") from None

    def digest(self) -> str:
        """The same for the same request, in every process: what tells that shots were already bought."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def bqm(self) -> dimod.BinaryQuadraticModel:
        import dimod

        return dimod.BinaryQuadraticModel.from_serializable(dict(self.qubo))


@dataclass(frozen=True)
class Result:
    """What a device answered, before anything is believed of it."""

    payload: Mapping[str, Any]
