"""The ledger of what was bought: one entry for each submission to a vendor, in a SQLite file that processes share.

An entry is `planned`, then `sending` from just before a request leaves until its job's id is known, then `submitted`,
and ends as `done`, `failed` or `cancelled`. Every step is on disk before the next begins, so that whoever comes after
a crash knows what may have been bought.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import math
import os
import pwd
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from qonduit.devices.request import Question, Request, Result
from qonduit.errors import DataError, DeviceError, UsageError

VARIABLE, RUN_VARIABLE = "QONDUIT_LEDGER", "QONDUIT_RUN"
PLANNED, SENDING, SUBMITTED, DONE, FAILED, CANCELLED = "planned", "sending", "submitted", "done", "failed", "cancelled"
STATES = (PLANNED, SENDING, SUBMITTED, DONE, FAILED, CANCELLED)
BUSY_S = 60.0
TABLE = """
CREATE TABLE IF NOT EXISTS entries (
    key TEXT PRIMARY KEY, subject TEXT NOT NULL, attempt INTEGER NOT NULL, state TEXT NOT NULL,
    device TEXT NOT NULL, run TEXT NOT NULL, digest TEXT NOT NULL, request TEXT NOT NULL,
    job TEXT, result TEXT, reason TEXT NOT NULL DEFAULT '',
    created_at REAL NOT NULL, sent_at REAL, submitted_at REAL, ended_at REAL,
    UNIQUE (subject, attempt)
)
"""
COLUMNS = (
    "key, subject, attempt, state, device, run, digest, request, job, result, reason, "
    "created_at, sent_at, submitted_at, ended_at"
)


class LedgerError(UsageError):
    """The ledger's file cannot be read or written."""


@dataclass(frozen=True)
class Entry:
    """One purchase, or the plan of one. `key` is what the vendor's label carries; times are Unix seconds."""

    key: str
    subject: str
    attempt: int
    state: str
    device: str
    run: str
    digest: str
    request_json: str
    job: str | None
    result_json: str | None
    reason: str
    created_at: float
    sent_at: float | None
    submitted_at: float | None
    ended_at: float | None

    @property
    def request(self) -> Request:
        return Request.from_json(self.request_json)

    @property
    def result(self) -> Result:
        if self.result_json is None:
            raise DataError(f"the ledger's entry {self.key} has no result; it is {self.state}")
        return Result(json.loads(self.result_json))

    def summary(self) -> dict[str, Any]:
        """Everything but the request and the result, which may be large."""
        content = asdict(self)
        for name in ("subject", "request_json", "result_json"):
            del content[name]
        return {**content, "device": json.loads(self.device), "shots": self.request.shots}


class Ledger:
    def __init__(self, path: Path) -> None:
        # One spelling, so that all who share the ledger share its locks.
        self.path = path.resolve()
        with self._told():
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Requests and results are nobody else's.
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        # SQLite does not wait for another process that makes the same new file ready.
        with self.hold("open"), self._told():
            self._rows = sqlite3.connect(self.path, isolation_level=None, timeout=BUSY_S, check_same_thread=False)
            self._rows.execute("PRAGMA journal_mode=WAL")
            self._rows.execute("PRAGMA synchronous=FULL")
            self._rows.execute(TABLE)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """A full disk, a damaged file or somebody else's is one sentence."""
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise LedgerError(
                f"the ledger {self.path} cannot be used ({error}); make room, or set {VARIABLE} to another path"
            ) from None

    def close(self) -> None:
        self._rows.close()

    @contextlib.contextmanager
    def hold(self, subject: str) -> Iterator[None]:
        """Only one process at a time decides on a subject; the lock ends with the process, however it ends."""
        folder = self.path.with_name(self.path.name + ".locks")
        path = folder / subject
        while True:
            with self._told():
                folder.mkdir(exist_ok=True, mode=0o700)
                opened = path.open("w")
            with opened as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                # Whoever held it before has removed the file: then this is the lock of nothing.
                if not _same_file(lock.fileno(), path):
                    continue
                try:
                    yield
                finally:
                    path.unlink(missing_ok=True)
                return

    def latest(self, subject: str) -> Entry | None:
        found = self._select("WHERE subject = ? ORDER BY attempt DESC LIMIT 1", subject)
        return found[0] if found else None

    def plan(self, device: str, run: str, request: Request) -> Entry:
        """A new entry for the subject: its next attempt."""
        subject = subject_of(device, request, run)
        last = self.latest(subject)
        attempt = 1 if last is None else last.attempt + 1
        key = _digest(subject, attempt)
        self._change(
            "INSERT INTO entries (key, subject, attempt, state, device, run, digest, request, created_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (key, subject, attempt, PLANNED, device, run, request.digest(), request.to_json(), time.time()),
        )
        return self.entry(key)

    def replan(self, entry: Entry, request: Request) -> Entry:
        """The same purchase, prepared anew; it has certainly not been sent."""
        return self._set(entry.key, state=PLANNED, request=request.to_json())

    def sending(self, entry: Entry) -> Entry:
        """From here on it may have been sent; only one process can get here from `planned`."""
        change = "UPDATE entries SET state = ?, sent_at = ? WHERE key = ? AND state = ?"
        if not self._change(change, (SENDING, time.time(), entry.key, PLANNED)):
            raise DeviceError(f"another process is sending the entry {entry.key}; run again to get its result")
        return self.entry(entry.key)

    def not_sent(self, entry: Entry, reason: str = "") -> Entry:
        return self._set(entry.key, state=PLANNED, reason=reason)

    def submitted(self, entry: Entry, job: str) -> Entry:
        return self._set(entry.key, state=SUBMITTED, job=job, submitted_at=time.time(), reason="")

    def ended(self, entry: Entry, state: str, reason: str = "", result: Result | None = None) -> Entry:
        """A result that is here stays, whatever another process saw of the job."""
        text = None if result is None else json.dumps(plain(dict(result.payload)), allow_nan=False)
        change = "UPDATE entries SET state = ?, reason = ?, result = ?, ended_at = ? WHERE key = ? AND state <> ?"
        self._change(change, (state, reason, text, time.time(), entry.key, DONE))
        return self.entry(entry.key)

    def abandoned(self, entry: Entry) -> Entry:
        """Closed by a person: the next run buys anew, even after a result."""
        return self._set(entry.key, state=CANCELLED, reason="abandoned by a person", ended_at=time.time())

    def entry(self, key: str) -> Entry:
        """The entry with this key, or with the only key that begins so."""
        found = self._select("WHERE substr(key, 1, ?) = ? LIMIT 2", len(key), key) if key else []
        if len(found) != 1:
            few = "several entries begin" if found else "no entry begins"
            raise UsageError(f"in the ledger {self.path} {few} with '{key}'; see: qonduit ledger list")
        return found[0]

    def entries(self, run: str | None = None, state: str | None = None) -> list[Entry]:
        clause = "WHERE (?1 IS NULL OR run = ?1) AND (?2 IS NULL OR state = ?2) ORDER BY created_at, key"
        return self._select(clause, run, state)

    def _set(self, key: str, **values: object) -> Entry:
        names = ", ".join(f"{name} = ?" for name in values)
        self._change(f"UPDATE entries SET {names} WHERE key = ?", (*values.values(), key))
        return self.entry(key)

    def _change(self, statement: str, values: Sequence[object]) -> int:
        with self._told():
            return self._rows.execute(statement, values).rowcount

    def _select(self, clause: str, *values: object) -> list[Entry]:
        with self._told():
            return [Entry(*row) for row in self._rows.execute(f"SELECT {COLUMNS} FROM entries {clause}", values)]


def subject_of(device: str, question: Question, run: str) -> str:
    """What may be bought once: this question, on this device, in this run."""
    return _digest(device, question.digest(), run)


def ledger_path() -> Path:
    """The variable's, or below the user's own home: engines give their steps another HOME, which does not last."""
    if value := os.environ.get(VARIABLE):
        return Path(value)
    try:
        home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        home = Path.home()
    return home / ".local" / "state" / "qonduit" / "ledger.db"


def run_name() -> str:
    return os.environ.get(RUN_VARIABLE) or "default"


def plain(value: Any) -> Any:
    """JSON as it should be: a vendor's NaN, which Python reads but no standard knows, becomes null."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
