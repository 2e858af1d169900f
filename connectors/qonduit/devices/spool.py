"""The spool: where a step leaves its request and exits with 75 instead of waiting for a device.

Whoever runs the step (a connector) sends `request.json` to the device, puts the answer beside it as `result.json` and
runs the same command again, which goes on from there. `rounds.json` keeps what was answered before, since a
variational step asks more than once.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

from qonduit.devices.ledger import plain
from qonduit.devices.request import Question, Request, Result
from qonduit.errors import DataError, QonduitError, UsageError

VARIABLE = "QONDUIT_SPOOL"

Round = tuple[Request, Result]


class WaitingError(QonduitError):
    """Not an error of the step's: it goes on when it is run again with the result."""

    exit_code = 75


class Spool:
    def __init__(self, folder: Path) -> None:
        self._request, self._result, self._rounds = (
            folder / name for name in ("request.json", "result.json", "rounds.json")
        )
        if not folder.is_dir():
            raise UsageError(f"{VARIABLE}: {folder} is no folder; make it before the step runs")

    def rounds(self, question: Question) -> list[Round]:
        """What was asked and answered so far, the newest answer included; what belongs to another question is gone."""
        rounds = self._kept()
        asked = Request.from_json(self._request.read_text(encoding="utf-8")) if self._request.exists() else None
        first = rounds[0][0] if rounds else asked
        if first is not None and first.digest() != question.digest():
            for path in (self._request, self._result, self._rounds):
                path.unlink(missing_ok=True)
            return []
        if asked is not None and self._result.exists():
            # A step that was stopped right here has the answer in its rounds already.
            if all(asked != known for known, _ in rounds):
                rounds.append((asked, Result(self._answer())))
                self._write(self._rounds, [[asdict(request), dict(result.payload)] for request, result in rounds])
            self._result.unlink()
            self._request.unlink()
        return rounds

    def _kept(self) -> list[Round]:
        try:
            return [(Request(**asked), Result(answered)) for asked, answered in self._read(self._rounds) or []]
        except (TypeError, ValueError):
            raise DataError(f"{self._rounds}: these are no rounds; remove it to ask the device again") from None

    def ask(self, request: Request) -> NoReturn:
        """Leaves the request for the device; the step ends here and goes on another time."""
        self._result.unlink(missing_ok=True)
        self._write(self._request, asdict(request))
        raise WaitingError(f"the request waits in {self._request} for its device; run again with {self._result.name}")

    def _answer(self) -> dict[str, Any]:
        content = self._read(self._result)
        if not isinstance(content, dict):
            raise DataError(f"{self._result}: a result is one JSON object; remove it to ask the device again")
        return content

    def _read(self, path: Path) -> Any:
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise DataError(f"{path}: this is not JSON ({error}); remove it to ask the device again") from None

    def _write(self, path: Path, content: object) -> None:
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(plain(content), sort_keys=True, allow_nan=False), encoding="utf-8")
        fresh.replace(path)


def spool_from_environment() -> Spool | None:
    value = os.environ.get(VARIABLE)
    return Spool(Path(value)) if value else None
