"""Running one question on a device to its end: buy once, wait, fetch, whatever breaks in between.

With a memory (a ledger and a run's name) a finished purchase is used again without any call, a submitted one is
waited for, and one that may have been sent is looked up at the vendor. A submission is only tried again when it is
certain that it was not accepted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from qonduit.devices import ledger as states
from qonduit.devices.device import Device
from qonduit.devices.ledger import Entry, Ledger, LedgerError, subject_of
from qonduit.devices.patience import Patience
from qonduit.devices.request import Question, Request, Result
from qonduit.devices.state import State, Status
from qonduit.errors import AccessError, AwayError, DataError, DeviceError, QonduitError, StaleError, UnsettledError

FIRST_POLL_S = 0.02
MOST_PREPARATIONS = 3
CANCEL_S = 30.0

Watch = Callable[[Status], object]
Say = Callable[[str], object]


@dataclass(frozen=True)
class Memory:
    """Where purchases are written down: `device` is the settings' identity, `run` the name of the run."""

    ledger: Ledger
    device: str
    run: str


@dataclass(frozen=True)
class Executed:
    """`reused` says that the result was in the ledger; seconds are as seen from here."""

    request: Request
    result: Result
    job: str
    key: str
    reused: bool = False
    prepare_s: float = 0.0
    queue_s: float = 0.0
    execute_s: float = 0.0


@dataclass(frozen=True)
class Execution:
    """How to run questions on one device; `watch` hears every state, `say` what is tried again."""

    device: Device
    memory: Memory | None = None
    patience: Patience = field(default_factory=Patience)
    wait_s: float | None = None
    watch: Watch = lambda _: None
    say: Say = lambda _: None

    def run(self, question: Question, make: Callable[[], Request]) -> Executed:
        """`make` prepares the request; it is not called for what was bought before."""
        begun = time.perf_counter()
        prepared = 0.0

        def timed() -> Request:
            nonlocal prepared
            since = time.perf_counter()
            try:
                return make()
            finally:
                prepared += time.perf_counter() - since

        if self.memory is None:
            request = timed()
            key = request.digest()[:32]
            job = self.device.submit(request, key)
            result, seen = self.finish(job)
            spent = time.perf_counter() - begun - prepared - seen
            return Executed(request, result, job, key, False, prepared, seen, spent)
        entry = self._purchase(self.memory, question, timed)
        job = entry.job or ""
        if entry.state == states.DONE:
            return Executed(entry.request, entry.result, job, entry.key, reused=True)
        bought = time.perf_counter()
        result, queue_s = self.finish(job, entry)
        execute_s = time.perf_counter() - bought - queue_s
        return Executed(entry.request, result, job, entry.key, False, prepared, queue_s, execute_s)

    @property
    def _patience(self) -> Patience:
        """For a purchase: no longer than the whole job may take."""
        return self.patience if self.wait_s is None else self.patience.within(self.wait_s)

    def finished(self, question: Question) -> bool:
        """Whether the result is in the ledger."""
        if self.memory is None:
            return False
        entry = self.memory.ledger.latest(subject_of(self.memory.device, question, self.memory.run))
        return entry is not None and entry.state == states.DONE

    def _purchase(self, memory: Memory, question: Question, make: Callable[[], Request]) -> Entry:
        """An entry that is submitted or done. The lock makes two processes buy one after the other, not twice."""
        ledger, subject = memory.ledger, subject_of(memory.device, question, memory.run)
        with ledger.hold(subject):
            entry = ledger.latest(subject)
            if entry is not None and entry.state in (states.SUBMITTED, states.DONE):
                return entry
            if entry is not None and entry.state == states.SENDING:
                job = self._look_up(entry)
                entry = ledger.not_sent(entry) if job is None else ledger.submitted(entry, job)
                if job is not None:
                    return entry
            request = self._patience.read(make, self.say)
            if entry is None or entry.state in (states.FAILED, states.CANCELLED):
                entry = ledger.plan(memory.device, memory.run, request)
            else:
                entry = ledger.replan(entry, request)
            return self._send(ledger, entry, make)

    def _send(self, ledger: Ledger, entry: Entry, make: Callable[[], Request]) -> Entry:
        tries, preparations = self._patience.tries(), 1
        while True:
            entry = ledger.sending(entry)
            try:
                return self._submitted(ledger, entry, self.device.submit(entry.request, entry.key))
            except StaleError as error:
                ledger.not_sent(entry, str(error))
                if preparations == MOST_PREPARATIONS:
                    raise
                preparations += 1
                self.say(f"{error}; prepared again")
                entry = ledger.replan(entry, self._patience.read(make, self.say))
            except AwayError as error:
                if error.maybe_accepted and (job := self._look_up(entry)) is not None:
                    return self._submitted(ledger, entry, job)
                entry = ledger.not_sent(entry, str(error))
                tries.again(error, self.say)
            except (AccessError, DataError) as error:
                ledger.not_sent(entry, str(error))
                raise

    def _submitted(self, ledger: Ledger, entry: Entry, job: str) -> Entry:
        try:
            return ledger.submitted(entry, job)
        except LedgerError as error:
            raise UnsettledError(
                f"{error}; the device took the request as job {job}: "
                f"then run: qonduit ledger resolve {entry.key} --job {job}"
            ) from None

    def _look_up(self, entry: Entry) -> str | None:
        """The job of a request that may have been sent; None when the vendor had time to list it and does not.

        The time is counted from now, since the request may have been on its way until now.
        """
        until = self.patience.clock() + self.patience.settle_s
        try:
            while True:
                job = self._patience.read(lambda: self.device.find(entry.key), self.say)
                left_s = until - self.patience.clock()
                if job is not None or left_s <= 0:
                    return job
                self.patience.sleep(min(left_s, self.patience.settle_s / 5))
        except UnsettledError as error:
            raise UnsettledError(
                f"{error}; then run: qonduit ledger resolve {entry.key} --job ID, or with --not-sent if there is none"
            ) from None

    def finish(self, job: str, entry: Entry | None = None) -> tuple[Result, float]:
        """The result and the seconds in the queue; the ledger knows the end before the caller does."""
        status, queue_s = self._wait(job)
        if status.state is not State.DONE:
            self._record(entry, status)
            reason = f": {status.reason}" if status.reason else ""
            raise DeviceError(f"job {job} on '{self.device.kind}' {_ended(status.state)}{reason}; run again to retry")
        result = self.patience.read(lambda: self.device.fetch(job), self.say)
        if self.memory is not None and entry is not None:
            self.memory.ledger.ended(entry, states.DONE, result=result)
        return result, queue_s

    def _wait(self, job: str) -> tuple[Status, float]:
        begun = heard = self.patience.clock()
        queue_s, pause_s = 0.0, FIRST_POLL_S
        while True:
            status, asked_s = self._poll(job)
            now = self.patience.clock()
            self.watch(status)
            if status.state is State.QUEUED:
                queue_s = now - begun
            if status.state.final:
                return status, queue_s
            if status.state is not State.UNKNOWN:
                heard = now
            elif now - heard > self.patience.limit_s:
                raise DeviceError(
                    f"the state of job {job} on '{self.device.kind}' stays unknown; "
                    "run again to go on waiting, nothing is sent twice"
                )
            if self.wait_s is not None and now - begun >= self.wait_s:
                return self._give_up(job), queue_s
            wished_s = max(asked_s, pause_s * self.patience.chance.uniform(0.8, 1.2))
            left_s = self.patience.limit_s if self.wait_s is None else max(0.0, self.wait_s - (now - begun))
            self.patience.sleep(min(wished_s, left_s))
            pause_s = min(1.5 * pause_s, self.patience.poll_s)

    def _poll(self, job: str) -> tuple[Status, float]:
        """The job's state, unknown while the device is away, and how long the device asks to be left alone."""
        try:
            return self.device.poll(job), 0.0
        except AwayError as error:
            return Status(State.UNKNOWN, reason=str(error)), error.retry_after_s or 0.0

    def _give_up(self, job: str) -> Status:
        """The deadline is over: cancel, and see what became of it. A job that got done meanwhile is not lost."""
        late = f"job {job} on '{self.device.kind}' was not done within wait_s = {self.wait_s:g} s"
        short = replace(self.patience, limit_s=CANCEL_S)
        try:
            short.read(lambda: self.device.cancel(job), self.say)
            until, pause_s = self.patience.clock() + CANCEL_S, FIRST_POLL_S
            while not (status := self._poll(job)[0]).state.final and self.patience.clock() < until:
                self.patience.sleep(pause_s)
                pause_s = min(1.5 * pause_s, self.patience.poll_s)
        except QonduitError as error:
            raise DeviceError(f"{late} and could not be cancelled ({error}); run again to go on waiting") from None
        if not status.state.final:
            raise DeviceError(f"{late}; it was asked to stop but is {status.state.value}; run again to go on waiting")
        if status.state is State.CANCELLED:
            return Status(State.CANCELLED, reason=f"it was not done within wait_s = {self.wait_s:g} s")
        return status

    def _record(self, entry: Entry | None, status: Status) -> None:
        if self.memory is not None and entry is not None:
            self.memory.ledger.ended(entry, status.state.value, status.reason)


def _ended(state: State) -> str:
    return "was cancelled" if state is State.CANCELLED else state.value


def execute(device: Device, request: Request) -> Result:
    """The result of one request on a device, with nothing written down."""
    return Execution(device).run(request, lambda: request).result
