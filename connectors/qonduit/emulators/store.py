"""The jobs of an emulated device, in a SQLite file: accepted once, kept over a restart.

All calls come from the server's event loop. A job is an accepted submission as soon as `add` returns, whatever
becomes of the answer to the client; counting the rows counts what a vendor would have charged for.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ENDED = ("done", "failed", "cancelled")
TABLE = """
CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, state TEXT NOT NULL, body TEXT NOT NULL,
    answer TEXT, error TEXT, label TEXT, shots INTEGER NOT NULL, fault TEXT,
    created_at REAL NOT NULL, started_at REAL, ended_at REAL
);
CREATE INDEX IF NOT EXISTS by_label ON jobs (label);
CREATE INDEX IF NOT EXISTS by_state ON jobs (state);
"""
COLUMNS = "id, number, state, body, answer, error, label, shots, fault, created_at, started_at, ended_at"


@dataclass(frozen=True)
class Job:
    """An accepted submission; times are Unix seconds, `fault` is what the script has in store for it."""

    id: str
    number: int
    state: str
    body: dict[str, Any]
    answer: dict[str, Any] | None
    error: str | None
    label: str | None
    shots: int
    fault: str | None
    created_at: float
    started_at: float | None
    ended_at: float | None

    @property
    def ended(self) -> bool:
        return self.state in ENDED


class JobStore:
    def __init__(self, path: Path) -> None:
        self._rows = sqlite3.connect(path, isolation_level=None)
        self._rows.execute("PRAGMA journal_mode=WAL")
        self._rows.execute("PRAGMA synchronous=NORMAL")
        self._rows.executescript(TABLE)
        # What was running when the server stopped is run again: a restart loses no job.
        self._rows.execute("UPDATE jobs SET state = 'queued', started_at = NULL WHERE state = 'running'")
        self._change = asyncio.Event()

    @property
    def calibration(self) -> int:
        """How often the device was calibrated, in the one number that SQLite keeps for its user."""
        return int(self._rows.execute("PRAGMA user_version").fetchone()[0])

    @calibration.setter
    def calibration(self, number: int) -> None:
        self._rows.execute(f"PRAGMA user_version = {number:d}")

    def add(self, body: dict[str, Any], label: str | None, shots: int, fault: str | None = None) -> Job:
        name = str(uuid.uuid4())
        self._rows.execute(
            "INSERT INTO jobs (id, state, body, label, shots, fault, created_at) VALUES (?, 'queued', ?, ?, ?, ?, ?)",
            (name, json.dumps(body), label, shots, fault, time.time()),
        )
        self._changed()
        return self._known(name)

    def get(self, name: str) -> Job | None:
        found = self._select("WHERE id = ?", name)
        return found[0] if found else None

    def find(self, label: str) -> list[Job]:
        return self._select("WHERE label = ? ORDER BY number", label)

    def all(self) -> list[Job]:
        return self._select("ORDER BY number")

    def position(self, name: str) -> int | None:
        """How many jobs are before a queued one; None for any other."""
        job = self.get(name)
        if job is None or job.state != "queued":
            return None
        query = "SELECT count(*) FROM jobs WHERE state IN ('queued', 'running') AND number < ?"
        return int(self._rows.execute(query, (job.number,)).fetchone()[0])

    def waiting(self) -> int:
        query = "SELECT count(*) FROM jobs WHERE state IN ('queued', 'running')"
        return int(self._rows.execute(query).fetchone()[0])

    def next(self) -> Job | None:
        """The oldest job that may run."""
        query = "WHERE state = 'queued' AND fault IS NOT 'stays-queued' ORDER BY number LIMIT 1"
        found = self._select(query)
        return found[0] if found else None

    def start(self, name: str) -> Job:
        self._rows.execute("UPDATE jobs SET state = 'running', started_at = ? WHERE id = ?", (time.time(), name))
        self._changed()
        return self._known(name)

    def end(self, name: str, state: str, answer: dict[str, Any] | None = None, error: str | None = None) -> None:
        """Ends a job that has not ended: a job that was cancelled meanwhile stays so."""
        self._rows.execute(
            "UPDATE jobs SET state = ?, answer = ?, error = ?, ended_at = ? "
            "WHERE id = ? AND state IN ('queued', 'running')",
            (state, None if answer is None else json.dumps(answer), error, time.time(), name),
        )
        self._changed()

    def cancel(self, name: str) -> None:
        self.end(name, "cancelled")

    def delete(self, name: str) -> None:
        self._rows.execute("DELETE FROM jobs WHERE id = ?", (name,))
        self._changed()

    def clear(self) -> None:
        self._rows.execute("DELETE FROM jobs")
        self._changed()

    async def changed(self, name: str, timeout_s: float) -> Job | None:
        """The job once it has ended, or as it is when the time is over: for long polls."""
        until = time.monotonic() + timeout_s
        while (job := self.get(name)) is not None and not job.ended and time.monotonic() < until:
            await self.change(until - time.monotonic())
        return job

    async def change(self, timeout_s: float | None = None) -> None:
        """Returns after the next change of any job, or when the time is over."""
        waited = self._change
        try:
            await asyncio.wait_for(waited.wait(), timeout_s)
        except TimeoutError:
            return

    def close(self) -> None:
        self._rows.close()

    def _changed(self) -> None:
        self._change.set()
        self._change = asyncio.Event()

    def _known(self, name: str) -> Job:
        return self._select("WHERE id = ?", name)[0]

    def _select(self, clause: str, *values: object) -> list[Job]:
        rows = self._rows.execute(f"SELECT {COLUMNS} FROM jobs {clause}", values).fetchall()
        return [_job(*row) for row in rows]


def _job(name: str, number: int, state: str, body: str, answer: str | None, *rest: Any) -> Job:
    return Job(name, number, state, json.loads(body), None if answer is None else json.loads(answer), *rest)
