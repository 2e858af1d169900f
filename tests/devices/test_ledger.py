"""At most one purchase per entry and no result lost, whatever breaks between a client and its vendor.

The vendor is a model in memory that keeps its jobs over the client's crashes; the emulated servers, with real
connections and real kills, are in the tests of faults.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import dimod
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qonduit.devices.device import Capabilities
from qonduit.devices.execute import Executed, Execution, Memory
from qonduit.devices.ledger import Entry, Ledger, LedgerError, ledger_path, run_name, subject_of
from qonduit.devices.options import Number, Option
from qonduit.devices.patience import Patience
from qonduit.devices.request import Question, Request, Result
from qonduit.devices.settings import Settings
from qonduit.devices.state import State, Status
from qonduit.errors import (
    AccessError,
    AwayError,
    DataError,
    DeviceError,
    StaleError,
    UnsettledError,
    UsageError,
)

QUBO = dimod.BinaryQuadraticModel({"a": -1.0, "b": -2.0}, {("a", "b"): 3.0}, 0.0, "BINARY").to_serializable()
QUESTION = Question("model", QUBO, 5, 0)


class Crash(BaseException):
    """The client's process ends here."""


class Vendor:
    """What stays when clients come and go: the accepted jobs."""

    def __init__(self, faults: Sequence[str] = ()) -> None:
        self.faults = iter(faults)
        self.jobs: dict[str, str] = {}
        self.polls: dict[str, int] = {}
        self.calls: list[str] = []
        self.outcome = State.DONE

    def strike(self, call: str) -> str:
        self.calls.append(call)
        return next(self.faults, "")


class Client:
    """One process's device object: every call may be struck by the vendor's next fault."""

    kind: ClassVar[str] = "model"
    known_options: ClassVar[dict[str, Option]] = {}
    local: ClassVar[bool] = False

    def __init__(self, vendor: Vendor, can_find: bool = True) -> None:
        self.vendor = vendor
        self.can_find = can_find

    def capabilities(self) -> Capabilities:
        return Capabilities("model", None, "complete", online=True, queue_length=0, calibration_id=None)

    def prepare(
        self, qubo: dimod.BinaryQuadraticModel, shots: int, seed: int, starts: Sequence[Sequence[str]] = ()
    ) -> Request:
        raise AssertionError((qubo, shots, seed, starts))

    def make(self) -> Request:
        self._read("prepare")
        return Request("model", QUBO, 5, 0, {"calibration": len(self.vendor.calls)})

    def submit(self, request: Request, key: str) -> str:
        assert request.qubo == QUBO
        fault = self.vendor.strike("submit")
        if fault == "crash before":
            raise Crash
        if fault == "refused":
            raise AwayError("refused", maybe_accepted=False, retry_after_s=1.0)
        if fault == "lost before":
            raise AwayError("lost")
        if fault == "stale":
            raise StaleError("a new calibration")
        if fault == "denied":
            raise AccessError("the token is refused; renew it")
        job = f"job {len(self.vendor.jobs) + 1}"
        self.vendor.jobs[job] = key
        if fault == "crash after":
            raise Crash
        if fault == "lost after":
            raise AwayError("lost")
        return job

    def find(self, key: str) -> str | None:
        if not self.can_find:
            raise UnsettledError("the vendor cannot be asked; look on its page")
        self._read("find")
        return next((job for job, known in self.vendor.jobs.items() if known == key), None)

    def poll(self, job: str) -> Status:
        self._read("poll")
        assert job in self.vendor.jobs
        self.vendor.polls[job] = self.vendor.polls.get(job, 0) + 1
        return Status(State.RUNNING if self.vendor.polls[job] < 3 else self.vendor.outcome)

    def fetch(self, job: str) -> Result:
        self._read("fetch")
        return Result({"samples of": job})

    def cancel(self, job: str) -> None:
        self._read("cancel")
        assert job in self.vendor.jobs
        self.vendor.outcome = State.CANCELLED
        self.vendor.polls[job] = 3

    def decode(self, request: Request, result: Result) -> dimod.SampleSet:
        raise AssertionError((request, result))

    def _read(self, call: str) -> None:
        fault = self.vendor.strike(call)
        if fault.startswith("crash"):
            raise Crash
        if fault == "denied":
            raise AccessError("the token is refused; renew it")
        if fault:
            raise AwayError(fault)


def patience() -> Patience:
    """Waits for nothing: the clock goes on by what was to be slept."""
    slept: list[float] = []
    return Patience(settle_s=0.0, sleep=slept.append, clock=lambda: sum(slept))


def run(path: Path, client: Client, run_name: str = "r1", wait_s: float | None = None) -> Executed:
    ledger = Ledger(path)
    try:
        execution = Execution(client, Memory(ledger, "model at home", run_name), patience(), wait_s)
        return execution.run(QUESTION, client.make)
    finally:
        ledger.close()


FAULTS = ["", "", "crash before", "crash after", "refused", "lost before", "lost after", "stale", "denied"]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(FAULTS), max_size=25))
def test_whatever_breaks_one_purchase_is_made_and_its_result_comes_back(
    tmp_path_factory: pytest.TempPathFactory, faults: list[str]
) -> None:
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    vendor = Vendor(faults)
    for _ in range(len(faults) + 1):
        try:
            executed = run(path, Client(vendor))
            break
        except (Crash, AccessError, StaleError):
            assert len(vendor.jobs) <= 1
    assert len(vendor.jobs) == 1
    assert executed.result == Result({"samples of": "job 1"})
    calls = len(vendor.calls)
    again = run(path, Client(vendor))
    assert again.reused
    assert again.result == executed.result
    assert len(vendor.calls) == calls


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(FAULTS), max_size=25))
def test_where_the_vendor_cannot_be_asked_nothing_is_sent_twice_and_a_person_decides(
    tmp_path_factory: pytest.TempPathFactory, faults: list[str]
) -> None:
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    vendor = Vendor(faults)
    said: list[bool] = []
    for _ in range(2 * len(faults) + 2):
        try:
            executed = run(path, Client(vendor, can_find=False))
            break
        except UnsettledError as error:
            entry = Ledger(path).entries(state="sending")[0]
            said.append(f"qonduit ledger resolve {entry.key}" in str(error))
            jobs = [job for job, key in vendor.jobs.items() if key == entry.key]
            if jobs:
                Ledger(path).submitted(entry, jobs[0])
            else:
                Ledger(path).not_sent(entry)
        except (Crash, AccessError, StaleError):
            pass
        assert len(vendor.jobs) <= 1
    assert len(vendor.jobs) == 1
    assert executed.result == Result({"samples of": "job 1"})
    assert all(said)


def test_runs_with_different_names_buy_on_their_own(tmp_path: Path) -> None:
    vendor = Vendor()
    for name, jobs in (("r1", 1), ("r2", 2), ("r1", 2)):
        run(tmp_path / "ledger.db", Client(vendor), name)
        assert len(vendor.jobs) == jobs
    assert len(set(vendor.jobs.values())) == 2


def test_a_job_that_failed_is_told_with_its_reason_and_another_run_buys_anew(tmp_path: Path) -> None:
    vendor = Vendor()
    vendor.outcome = State.FAILED
    with pytest.raises(DeviceError, match="job 1 on 'model' failed"):
        run(tmp_path / "ledger.db", Client(vendor))
    vendor.outcome = State.DONE
    assert run(tmp_path / "ledger.db", Client(vendor)).job == "job 2"
    ledger = Ledger(tmp_path / "ledger.db")
    assert [(entry.attempt, entry.state) for entry in ledger.entries()] == [(1, "failed"), (2, "done")]
    assert len({entry.key for entry in ledger.entries()}) == 2


def test_a_deadline_cancels_the_job_and_says_so(tmp_path: Path) -> None:
    vendor = Vendor()
    with pytest.raises(DeviceError, match="wait_s = 0 s"):
        run(tmp_path / "ledger.db", Client(vendor), wait_s=0)
    assert vendor.calls[-2:] == ["cancel", "poll"]
    assert [entry.state for entry in Ledger(tmp_path / "ledger.db").entries()] == ["cancelled"]


def test_a_deadline_whose_cancel_does_not_arrive_leaves_the_job_for_the_next_run(tmp_path: Path) -> None:
    vendor = Vendor(["", "", "", *["away"] * 100])
    with pytest.raises(DeviceError, match="could not be cancelled"):
        run(tmp_path / "ledger.db", Client(vendor), wait_s=0)
    vendor.faults = iter(())
    assert run(tmp_path / "ledger.db", Client(vendor)).job == "job 1"
    assert len(vendor.jobs) == 1


def test_a_refused_request_is_no_purchase_and_may_be_sent_another_time(tmp_path: Path) -> None:
    class Picky(Client):
        def submit(self, request: Request, key: str) -> str:
            raise DataError(f"{request.shots} shots with {key} are too many")

    vendor = Vendor()
    with pytest.raises(DataError, match="too many"):
        run(tmp_path / "ledger.db", Picky(vendor))
    assert run(tmp_path / "ledger.db", Client(vendor)).job == "job 1"


def test_a_vendor_that_stays_away_ends_with_a_sentence(tmp_path: Path) -> None:
    vendor = Vendor(["refused"] * 10_000)
    with pytest.raises(DeviceError, match="tried for 600 s"):
        run(tmp_path / "ledger.db", Client(vendor))
    assert vendor.jobs == {}


def test_pauses_grow_and_a_vendors_own_wish_is_heeded() -> None:
    slept: list[float] = []
    tries = Patience(sleep=slept.append, clock=lambda: sum(slept)).tries()
    for _ in range(8):
        tries.again(AwayError("away"))
    assert all(0.5 * 0.1 * 2**n <= pause <= 1.5 * 0.1 * 2**n for n, pause in enumerate(slept))
    tries.again(AwayError("away", retry_after_s=77.0))
    assert slept[-1] == 77.0
    with pytest.raises(DeviceError, match="try again later"):
        tries.again(AwayError("away", retry_after_s=1000.0))


def _buy(path: Path, log: Path, name: str) -> None:
    class Logged(Client):
        def submit(self, request: Request, key: str) -> str:
            with log.open("a") as file:
                file.write(f"{key}\n")
            return super().submit(request, key)

    run(path, Logged(Vendor()), name)
    os._exit(0)


def test_processes_that_share_a_ledger_buy_once_between_them(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    processes = [
        context.Process(target=_buy, args=(tmp_path / "ledger.db", tmp_path / "log", f"run {n % 3}")) for n in range(12)
    ]
    # The vendor of each process is its own, so a process that waits for another's job would not find it there.
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    keys = (tmp_path / "log").read_text().split()
    assert len(keys) == len(set(keys)) == 3


def test_entries_are_found_by_the_beginning_of_their_key(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    entries = [ledger.plan(f"device {n}", "r", Request("model", QUBO, 5, n, {})) for n in range(40)]
    assert ledger.entry(entries[7].key[:20]) == entries[7]
    shared = next(a.key[:1] for a, b in itertools.combinations(entries, 2) if a.key[0] == b.key[0])
    for wrong, said in ((shared, "several"), ("nothing", "no entry"), ("", "no entry")):
        with pytest.raises(UsageError, match=said):
            ledger.entry(wrong)


def test_a_subject_is_the_question_not_how_it_was_prepared() -> None:
    one = Request("model", QUBO, 5, 0, {"calibration": 1})
    two = Request("model", QUBO, 5, 0, {"calibration": 2})
    assert subject_of("d", one, "r") == subject_of("d", two, "r") == subject_of("d", QUESTION, "r")
    others = {subject_of("e", one, "r"), subject_of("d", one, "s"), subject_of("d", Request("m", QUBO, 6, 0, {}), "r")}
    assert len({*others, subject_of("d", one, "r")}) == 4


def test_the_ledgers_place_does_not_move_with_the_home_that_an_engine_gives(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("QONDUIT_LEDGER", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert tmp_path not in ledger_path().parents
    monkeypatch.setenv("QONDUIT_LEDGER", str(tmp_path / "l.db"))
    assert ledger_path() == tmp_path / "l.db"
    monkeypatch.delenv("QONDUIT_RUN", raising=False)
    assert run_name() == "default"


def test_a_ledger_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no database" * 100)
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UsageError, match="QONDUIT_LEDGER"):
            Ledger(path)


def test_an_entrys_summary_is_plain_json_without_the_request(tmp_path: Path) -> None:
    vendor = Vendor()
    ledger = Ledger(tmp_path / "ledger.db")
    execution = Execution(Client(vendor), Memory(ledger, json.dumps(["model", None, {}]), "r"), patience())
    execution.run(QUESTION, Client(vendor).make)
    summary = json.loads(json.dumps(ledger.entries()[0].summary()))
    assert summary["state"] == "done"
    assert summary["shots"] == 5
    assert "request_json" not in summary


class Slow(Client):
    """A vendor that takes a submission only after the client has given it up."""

    def submit(self, request: Request, key: str) -> str:
        self.late = (super().submit(request, key), key)
        del self.vendor.jobs[self.late[0]]
        raise AwayError("no answer in time")

    def find(self, key: str) -> str | None:
        found = super().find(key)
        self.vendor.jobs.setdefault(*self.late)
        return found


def test_a_submission_that_is_listed_late_is_waited_for_from_when_it_was_given_up(tmp_path: Path) -> None:
    vendor, slept = Vendor(), list[float]()
    ledger = Ledger(tmp_path / "ledger.db")
    client = Slow(vendor)
    waits = Patience(settle_s=10.0, sleep=slept.append, clock=lambda: sum(slept))
    executed = Execution(client, Memory(ledger, "model at home", "r1"), waits).run(QUESTION, client.make)
    assert executed.job == "job 1"
    assert len(vendor.jobs) == 1
    ledger.close()


def test_only_one_process_can_begin_to_send_an_entry(tmp_path: Path) -> None:
    (tmp_path / "other").symlink_to(tmp_path)
    one, two = Ledger(tmp_path / "ledger.db"), Ledger(tmp_path / "other" / "ledger.db")
    assert one.path == two.path
    entry = one.plan("d", "r", Request("model", QUBO, 5, 0, {}))
    one.sending(entry)
    with pytest.raises(DeviceError, match="another process"):
        two.sending(entry)


def test_a_result_stays_whatever_another_process_saw(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    entry = ledger.submitted(ledger.sending(ledger.plan("d", "r", Request("model", QUBO, 5, 0, {}))), "j")
    ledger.ended(entry, "done", result=Result({"energy": float("nan"), "rows": [1.0, float("inf")]}))
    assert ledger.ended(entry, "failed", "it broke").result == Result({"energy": None, "rows": [1.0, None]})
    assert ledger.abandoned(entry).state == "cancelled"


def test_what_was_refused_is_prepared_anew_by_the_next_run(tmp_path: Path) -> None:
    class Picky(Client):
        def submit(self, request: Request, key: str) -> str:
            raise DataError(f"the machine of {request.payload} and {key} is gone")

    vendor = Vendor()
    with pytest.raises(DataError, match="gone"):
        run(tmp_path / "ledger.db", Picky(vendor))
    executed = run(tmp_path / "ledger.db", Client(vendor))
    assert executed.request.payload == {"calibration": 2}
    assert len(Ledger(tmp_path / "ledger.db").entries()) == 1


def test_a_vendor_that_asks_for_an_hour_does_not_outlast_the_deadline(tmp_path: Path) -> None:
    class Away(Client):
        def poll(self, job: str) -> Status:
            super().poll(job)
            raise AwayError("away", retry_after_s=3600.0)

    vendor, slept = Vendor(), list[float]()
    ledger = Ledger(tmp_path / "ledger.db")
    waits = Patience(settle_s=0.0, sleep=slept.append, clock=lambda: sum(slept))
    execution = Execution(Away(vendor), Memory(ledger, "model at home", "r"), waits, wait_s=5.0)
    with pytest.raises(DeviceError, match="wait_s = 5 s"):
        execution.run(QUESTION, Client(vendor).make)
    assert sum(slept) < 60
    assert vendor.calls.count("poll") < 40


def _open(path: Path, count: int) -> None:
    for number in range(count):
        Ledger(path / f"{number}.db").close()
    os._exit(0)


def test_processes_that_make_a_ledger_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_open, args=(tmp_path, 40)) for _ in range(6)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 6
    assert {path.stat().st_mode & 0o777 for path in tmp_path.glob("*.db")} == {0o600}


def test_a_disk_that_is_full_after_the_vendor_took_the_job_names_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Ledger, entry: Entry, job: str) -> Entry:
        raise LedgerError(f"the ledger {self.path} cannot be used for {entry.key} and {job}")

    vendor = Vendor()
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "submitted", full)
        with pytest.raises(UnsettledError, match=r"resolve .* --job job 1"):
            run(tmp_path / "ledger.db", Client(vendor))
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.submitted(ledger.entries(state="sending")[0], "job 1")
    assert run(tmp_path / "ledger.db", Client(vendor)).job == "job 1"
    assert len(vendor.jobs) == 1


def test_a_device_is_the_same_one_however_long_it_is_waited_for() -> None:
    known: dict[str, Option] = {"mode": Number(1, 0, 9), "timeout_s": Number(30, 1, 99, waiting=True)}
    plain = Settings("model", url="http://here").identity(known)
    for options in ({"timeout_s": 60}, {"mode": 1}):
        assert Settings("model", options=options, url="http://here", wait_s=5).identity(known) == plain
    assert Settings("model", options={"mode": 2}, url="http://here").identity(known) != plain
