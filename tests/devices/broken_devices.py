"""Devices that are wrong in one way each, and one that is right, all on a toy cloud; `test_conformance.py` runs them.

pytest does not collect this file by itself: nearly everything in it is there to fail.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import dimod
import numpy as np
import pytest

from qonduit.devices import conformance
from qonduit.devices.conformance import DeviceConformance
from qonduit.devices.device import Capabilities
from qonduit.devices.independence import graph_of
from qonduit.devices.options import Number, Option
from qonduit.devices.request import Request, Result
from qonduit.devices.samples import sample_set
from qonduit.devices.settings import Settings
from qonduit.devices.state import State, Status
from qonduit.errors import AccessError, AwayError, DataError, DeviceError, UnsettledError

TOKEN = "tok-4f1d0c7e9ab3-marked"
ADDRESS, QUBITS = "https://toy.example", 12


@dataclass
class Job:
    rows: list[list[int]]
    key: str
    states: list[State] = field(default_factory=lambda: [State.QUEUED, State.RUNNING, State.DONE])

    def next(self) -> State:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]


CLOUD: dict[str, Job] = {}


class Right:
    """A device on a cloud whose jobs take three polls; the base of all that is wrong."""

    kind: ClassVar[str] = "toy"
    known_options: ClassVar[dict[str, Option]] = {"sweeps": Number(8, 1, 1e3, whole=True, about="How long it looks.")}
    local: ClassVar[bool] = False

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.options = settings.checked(self.known_options)

    def enter(self) -> None:
        if self.settings.url != ADDRESS:
            raise AwayError("nobody listens there; correct 'url'", maybe_accepted=False)
        if self.settings.secret() != TOKEN:
            raise AccessError("the toy cloud does not accept the token; put a new one into the token file")

    def capabilities(self) -> Capabilities:
        self.enter()
        return Capabilities(self.kind, QUBITS, "complete", online=True, queue_length=len(CLOUD), calibration_id="c1")

    def prepare(
        self, qubo: dimod.BinaryQuadraticModel, shots: int, seed: int, starts: Sequence[Sequence[str]] = ()
    ) -> Request:
        graph_of(qubo)
        if qubo.num_variables > QUBITS:
            raise DataError(f"{qubo.num_variables} variables do not fit the {QUBITS} qubits; use the annealer")
        payload = {"sweeps": self.options["sweeps"], "starts": [list(start) for start in starts]}
        return Request(self.kind, qubo.to_serializable(), shots, seed, payload)

    def submit(self, request: Request, key: str) -> str:
        self.enter()
        job = f"job-{len(CLOUD)}"
        CLOUD[job] = Job(self.rows(request), key)
        return job

    def rows(self, request: Request) -> list[list[int]]:
        """One variable after the other goes in with good odds if it gains; some shots are random and overlap."""
        bqm = request.bqm()
        graph, rng = graph_of(bqm), np.random.default_rng(request.seed)
        rows = (rng.random((request.shots, bqm.num_variables)) < 0.5).astype(int)
        for row in rows[: request.shots * 3 // 4]:
            row[:] = 0
            for vertex in sorted(range(len(row)), key=lambda v: -graph.weights[v]):
                row[vertex] = not row[sorted(graph.neighbours[vertex])].any() and rng.random() < 0.9
        return rows.tolist()  # type: ignore[no-any-return]

    def find(self, key: str) -> str | None:
        self.enter()
        return next((name for name, job in CLOUD.items() if job.key == key), None)

    def poll(self, job: str) -> Status:
        self.enter()
        return Status(CLOUD[job].next() if job in CLOUD else State.UNKNOWN)

    def fetch(self, job: str) -> Result:
        self.enter()
        if job not in CLOUD or CLOUD[job].states != [State.DONE]:
            raise DeviceError(f"the toy cloud has no result of job {job}; look at its state")
        return Result({"rows": CLOUD[job].rows})

    def cancel(self, job: str) -> None:
        self.enter()
        if job in CLOUD and not CLOUD[job].states[0].final:
            CLOUD[job].states = [State.CANCELLED]

    def decode(self, request: Request, result: Result) -> dimod.SampleSet:
        bqm = request.bqm()
        rows = result.payload["rows"]
        bits = np.array(rows, dtype=np.int8).reshape(len(rows), bqm.num_variables)
        return sample_set(bqm, bits, {"shots": request.shots})


class Kit(DeviceConformance):
    device_class: ClassVar[type[Any]] = Right
    seeded: ClassVar[bool] = True
    wait_s: ClassVar[float] = 0.2

    @pytest.fixture
    def settings(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
        monkeypatch.setattr(conformance, "FIRST_PAUSE_S", 1e-4)
        path = tmp_path / "token"
        path.touch(mode=0o600)
        path.write_text(TOKEN, encoding="utf-8")
        CLOUD.clear()
        yield Settings("toy", token_file=path, url=ADDRESS)
        os.environ.pop("TOY_TOKEN", None)


class TestRight(Kit):
    pass


class TestCannotBeAsked(Kit):
    """Right as well: a vendor without labels."""

    class device_class(Right):  # noqa: N801
        def find(self, key: str) -> str | None:
            raise UnsettledError(f"the toy cloud cannot look up {key}; look at its page of jobs")


class TestEnergiesAreBelieved(Kit):
    class device_class(Right):  # noqa: N801
        def decode(self, request: Request, result: Result) -> dimod.SampleSet:
            samples = super().decode(request, result)
            samples.record.energy -= 1.0
            return samples


class TestEverythingIsFeasible(Kit):
    class device_class(Right):  # noqa: N801
        def decode(self, request: Request, result: Result) -> dimod.SampleSet:
            samples = super().decode(request, result)
            samples.record.feasible[:] = True
            return samples


class TestColumnsAreMixedUp(Kit):
    class device_class(Right):  # noqa: N801
        def rows(self, request: Request) -> list[list[int]]:
            return [row[::-1] for row in super().rows(request)]


class TestShotsAreLost(Kit):
    class device_class(Right):  # noqa: N801
        def rows(self, request: Request) -> list[list[int]]:
            return super().rows(request)[1:]


class TestSamplesAreSpins(Kit):
    class device_class(Right):  # noqa: N801
        def decode(self, request: Request, result: Result) -> dimod.SampleSet:
            return super().decode(request, result).change_vartype("SPIN", inplace=False)  # type: ignore[no-untyped-call, no-any-return]


class TestInfoIsNotPlain(Kit):
    class device_class(Right):  # noqa: N801
        def decode(self, request: Request, result: Result) -> dimod.SampleSet:
            samples = super().decode(request, result)
            samples.info["when"] = {1, 2}
            return samples


class TestSeedIsIgnored(Kit):
    class device_class(Right):  # noqa: N801
        def rows(self, request: Request) -> list[list[int]]:
            return super().rows(replace(request, seed=len(CLOUD)))


class TestSeedIsNotInTheRequest(Kit):
    class device_class(Right):  # noqa: N801
        def prepare(self, qubo: Any, shots: int, seed: int, starts: Any = ()) -> Request:  # noqa: ARG002
            return super().prepare(qubo, shots, 7, starts)


class TestPayloadHasTuples(Kit):
    class device_class(Right):  # noqa: N801
        def prepare(self, qubo: Any, shots: int, seed: int, starts: Any = ()) -> Request:
            request = super().prepare(qubo, shots, seed, starts)
            return replace(request, payload={**request.payload, "angles": (0.1, 0.2)})


class TestPrepareIsRandom(Kit):
    class device_class(Right):  # noqa: N801
        def prepare(self, qubo: Any, shots: int, seed: int, starts: Any = ()) -> Request:
            request = super().prepare(qubo, shots, seed, starts)
            return replace(request, payload={**request.payload, "tie": os.urandom(8).hex()})


class TestDecodeNeedsWhatPrepareKnew(Kit):
    class device_class(Right):  # noqa: N801
        def prepare(self, qubo: Any, shots: int, seed: int, starts: Any = ()) -> Request:
            self.asked = super().prepare(qubo, shots, seed, starts)
            return self.asked

        def decode(self, request: Request, result: Result) -> dimod.SampleSet:  # noqa: ARG002
            return super().decode(self.asked, result)


class TestDecodeNeedsTheToken(Kit):
    class device_class(Right):  # noqa: N801
        def decode(self, request: Request, result: Result) -> dimod.SampleSet:
            self.enter()
            return super().decode(request, result)


class TestDecodeCallsTheVendor(Kit):
    class device_class(Right):  # noqa: N801
        def decode(self, request: Request, result: Result) -> dimod.SampleSet:
            with socket.socket() as connection:
                connection.settimeout(0.1)
                connection.connect_ex(("127.0.0.1", 9))
            return super().decode(request, result)


class TestEverythingIsDone(Kit):
    class device_class(Right):  # noqa: N801
        def poll(self, job: str) -> Status:
            return Status(max(super().poll(job).state, State.DONE))


class TestUnknownIsDone(Kit):
    class device_class(Right):  # noqa: N801
        def poll(self, job: str) -> Status:
            status = super().poll(job)
            return Status(State.DONE) if status.state is State.UNKNOWN else status


class TestJobGoesBack(Kit):
    class device_class(Right):  # noqa: N801
        def submit(self, request: Request, key: str) -> str:
            job = super().submit(request, key)
            CLOUD[job].states.insert(2, State.QUEUED)
            return job


class TestJobIsKnownOnlyWhereItWasSent(Kit):
    class device_class(Right):  # noqa: N801
        def submit(self, request: Request, key: str) -> str:
            self.mine = super().submit(request, key)
            return self.mine

        def poll(self, job: str) -> Status:
            return super().poll(job) if job == getattr(self, "mine", None) else Status(State.UNKNOWN)


class TestCancelIsIgnored(Kit):
    class device_class(Right):  # noqa: N801
        def cancel(self, job: str) -> None:
            if len(CLOUD[job].states) > 1:
                CLOUD[job].states = [State.RUNNING]


class TestCancelTwiceFails(Kit):
    class device_class(Right):  # noqa: N801
        def cancel(self, job: str) -> None:
            if CLOUD[job].states[0].final:
                raise DeviceError("the job has ended; nothing can be cancelled")
            super().cancel(job)


class TestCancelUndoesADoneJob(Kit):
    class device_class(Right):  # noqa: N801
        def cancel(self, job: str) -> None:
            CLOUD[job].states = [State.CANCELLED]


class TestNothingIsFound(Kit):
    class device_class(Right):  # noqa: N801
        def find(self, key: str) -> str | None:  # noqa: ARG002
            return None


class TestAnythingIsFound(Kit):
    class device_class(Right):  # noqa: N801
        def find(self, key: str) -> str | None:
            return super().find(key) or next(iter(CLOUD))


class TestTooManyVariablesAreSent(Kit):
    class device_class(Right):  # noqa: N801
        def prepare(self, qubo: Any, shots: int, seed: int, starts: Any = ()) -> Request:  # noqa: ARG002
            graph_of(qubo)
            return Request(self.kind, qubo.to_serializable(), shots, seed, {})


class TestVendorErrorEscapes(Kit):
    class device_class(Right):  # noqa: N801
        def prepare(self, qubo: Any, shots: int, seed: int, starts: Any = ()) -> Request:
            if qubo.num_variables > QUBITS:
                raise ValueError(f"{qubo.num_variables} > {QUBITS}")
            return super().prepare(qubo, shots, seed, starts)


class TestRewardsAreSent(Kit):
    class device_class(Right):  # noqa: N801
        def prepare(self, qubo: Any, shots: int, seed: int, starts: Any = ()) -> Request:  # noqa: ARG002
            if qubo.num_variables > QUBITS:
                raise DataError(f"{qubo.num_variables} variables do not fit the {QUBITS} qubits; use the annealer")
            return Request(self.kind, qubo.to_serializable(), shots, seed, {})


class TestOptionsAreNotChecked(Kit):
    class device_class(Right):  # noqa: N801
        def __init__(self, settings: Settings) -> None:
            self.settings = settings
            self.options = {"sweeps": 8, **settings.options}


class TestOptionIsNotExplained(Kit):
    class device_class(Right):  # noqa: N801
        known_options: ClassVar[dict[str, Option]] = {"sweeps": Number(0, 1, 10)}


class TestAddressIsNeededButNotListed(Kit):
    class device_class(Right):  # noqa: N801
        def __init__(self, settings: Settings) -> None:
            super().__init__(settings)
            if settings.url is None:
                raise DataError("the toy cloud needs a 'url'; add it to the device file")


class TestQueueIsShorterThanNothing(Kit):
    class device_class(Right):  # noqa: N801
        def capabilities(self) -> Capabilities:
            return replace(super().capabilities(), queue_length=-1)


class TestOneVariableIsTooFew(Kit):
    class device_class(Right):  # noqa: N801
        def rows(self, request: Request) -> list[list[int]]:
            if request.bqm().num_variables == 1:
                raise DeviceError("a register has at least two atoms")
            return super().rows(request)


class TestEmptyProblemCrashes(Kit):
    class device_class(Right):  # noqa: N801
        def rows(self, request: Request) -> list[list[int]]:
            assert 1 / request.bqm().num_variables
            return super().rows(request)


class TestTokenIsInTheRequest(Kit):
    class device_class(Right):  # noqa: N801
        def prepare(self, qubo: Any, shots: int, seed: int, starts: Any = ()) -> Request:
            request = super().prepare(qubo, shots, seed, starts)
            return replace(request, payload={**request.payload, "auth": f"Bearer {self.settings.secret()}"})


class TestTokenIsInTheEnvironment(Kit):
    class device_class(Right):  # noqa: N801
        def enter(self) -> None:
            super().enter()
            os.environ["TOY_TOKEN"] = self.settings.secret()


class TestTokenIsInTheRepr(Kit):
    class device_class(Right):  # noqa: N801
        def __repr__(self) -> str:
            return f"Toy(token={self.settings.secret()!r})"


class TestTokenIsInTheError(Kit):
    class device_class(Right):  # noqa: N801
        def enter(self) -> None:
            if self.settings.secret() != TOKEN:
                raise AccessError(f"the toy cloud does not accept {self.settings.secret()}")


class TestWrongTokenIsNoAccessError(Kit):
    class device_class(Right):  # noqa: N801
        def enter(self) -> None:
            if self.settings.secret() != TOKEN:
                raise DeviceError("the toy cloud answered 401")


class TestNetworkErrorEscapes(Kit):
    class device_class(Right):  # noqa: N801
        def enter(self) -> None:
            if self.settings.url != ADDRESS:
                raise ConnectionRefusedError("111")
            super().enter()


class TestRefusalMayHaveBeenAccepted(Kit):
    class device_class(Right):  # noqa: N801
        def enter(self) -> None:
            if self.settings.url != ADDRESS:
                raise AwayError("nobody listens there; correct 'url'")
            super().enter()


class TestNextRoundIsTheSame(Kit):
    class device_class(Right):  # noqa: N801
        def refine(self, rounds: Sequence[tuple[Request, Result]]) -> Request | None:
            return rounds[-1][0]
