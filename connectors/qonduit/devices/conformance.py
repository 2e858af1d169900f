"""The conformance kit: what every device must do, as a pytest class that its author derives from and runs.

    class TestMine(DeviceConformance):
        device_class = Mine

A device with an address and a token also overrides the fixture `settings`. The kit submits about twenty jobs, so run
it on a simulator or an emulated server. Only this module needs pytest.
"""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import subprocess
import sys
import time
import traceback
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import dimod
import numpy as np
import pytest

from qonduit.devices.answer import choose
from qonduit.devices.device import Capabilities, Device
from qonduit.devices.oracle import (
    as_samples,
    check_samples,
    energies,
    feasible,
    is_count,
    plain,
    raises,
    selection,
    small_problems,
)
from qonduit.devices.request import Request, Result
from qonduit.devices.settings import Settings
from qonduit.devices.state import State, Status
from qonduit.errors import AccessError, AwayError, DataError, QonduitError, UnsettledError

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.01, 0.5
NOWHERE = "http://127.0.0.1:9"


@dataclass(frozen=True)
class Run:
    """One request from `prepare` to `decode`."""

    job: str
    request: Request
    statuses: tuple[Status, ...]
    result: Result
    samples: dimod.SampleSet


class DeviceConformance:
    device_class: ClassVar[type[Any]]
    """The device's class; its constructor takes `Settings`."""
    seeded: ClassVar[bool] = False
    """The same request gives the same samples."""
    every_shot: ClassVar[bool] = True
    """There are as many samples as shots; a device that gives one answer with a proof has fewer."""
    optimises: ClassVar[bool] = True
    """Low energies are more likely than by chance."""
    shots: ClassVar[int] = 100
    wait_s: ClassVar[float] = 120.0
    """How long one job may take."""
    unknown_job: ClassVar[str] = "00000000-0000-4000-8000-000000000000"
    """What looks like a job's id but is none."""

    @pytest.fixture
    def settings(self) -> Settings:
        """What a device file says; override it for a device with an address, a token or options."""
        return Settings(self.device_class.kind)

    def device(self, settings: Settings) -> Device:
        """A new device object, as another process would have."""
        made: Device = self.device_class(settings)
        return made

    def problems(self) -> Mapping[str, dimod.BinaryQuadraticModel]:
        """Small problems that fit the device, by a name; "a path" and "a star" must be among them."""
        return small_problems()

    def too_large(self, qubits: int) -> dimod.BinaryQuadraticModel:
        """A problem that does not fit a device of so many qubits."""
        return selection([1.0] * (qubits + 1), [])

    def test_the_kind_and_its_options_are_described(self, settings: Settings) -> None:
        device = self.device(settings)
        assert re.fullmatch(r"[a-z][a-z0-9_-]*", device.kind), (
            f"the kind {device.kind!r} must be a small word: a dot or a slash in QONDUIT_DEVICE means a file"
        )
        assert isinstance(device.local, bool), "'local' must be True or False"
        for name, option in device.known_options.items():
            assert option.about, f"the option '{name}' has no 'about' that says what it is for"
            assert option.default is None or option.accepts(option.default), (
                f"the option '{name}' does not accept its own default"
            )

    def test_a_wrong_option_is_refused(self, settings: Settings) -> None:
        wrong: list[dict[str, Any]] = [{"no-such-option": 1}]
        wrong += [{name: {"not": "this"}} for name in self.device(settings).known_options]
        for options in wrong:
            with raises(DataError, f"the options {options} must be refused by the constructor with a DataError"):
                self.device(replace(settings, options={**settings.options, **options}))

    def test_what_a_device_file_must_have_is_listed(self, settings: Settings) -> None:
        required = getattr(self.device_class, "required", ())
        missing = {"url": replace(settings, url=None), "token_file": replace(settings, token_file=None)}
        for key, without in missing.items():
            if key in required:
                with raises(DataError, f"a device file without '{key}' must be refused by the constructor"):
                    self.device(without)
                continue
            try:
                self.device(without)
            except DataError as error:
                pytest.fail(f"list '{key}' in the class attribute 'required', for the schema ({error})")

    def test_capabilities_make_sense(self, settings: Settings) -> None:
        device = self.device(settings)
        can = device.capabilities()
        assert isinstance(can, Capabilities), "capabilities() must return Capabilities"
        assert can.kind == device.kind, f"capabilities() are of the kind {can.kind!r}, the device is {device.kind!r}"
        assert can.qubits is None or is_count(can.qubits, 1), f"qubits is {can.qubits!r}, not None or a number from 1"
        assert can.queue_length is None or is_count(can.queue_length), f"queue_length is {can.queue_length!r}"
        assert isinstance(can.topology, str), "topology must be a word"
        assert can.topology, "topology must not be empty"
        assert isinstance(can.online, bool), "online must be True or False"
        assert can.calibration_id is None or (isinstance(can.calibration_id, str) and can.calibration_id), (
            "calibration_id must be None or a text that is not empty"
        )
        plain(asdict(can), "capabilities")

    def test_samples_are_right_and_energies_recomputed(self, settings: Settings) -> None:
        for name, bqm in self.problems().items():
            run = self._run(settings, bqm)
            check_samples(name, bqm, run.samples, self.shots, self.every_shot)
            plain(run.samples.info, f"{name}: the samples' info")

    def test_an_empty_problem_is_answered_or_refused(self, settings: Settings) -> None:
        bqm = dimod.BinaryQuadraticModel(dimod.BINARY)
        try:
            samples = self._run(settings, bqm).samples
        except DataError:
            return
        assert not len(samples.variables), "samples of an empty problem must have no variables"

    def test_samples_belong_to_their_variables(self, settings: Settings) -> None:
        if not self.optimises:
            pytest.skip("this device says that it does not optimise")
        bqm = self.problems()["a star"]
        # So many that a device which is only a little better than chance passes, and one with wrong columns does not.
        samples = self._run(settings, bqm, shots=10 * self.shots).samples
        mean = float(np.average(energies(bqm, samples), weights=samples.record.num_occurrences))
        chance = sum(bqm.linear.values()) / 2 + sum(bqm.quadratic.values()) / 4
        assert mean < chance, (
            f"the mean energy {mean:g} is not below that of random bits ({chance:g}): are columns mixed up?"
        )

    def test_the_answer_is_never_worse_than_the_best_start(self, settings: Settings) -> None:
        bqm = self.problems()["a path"]
        names = [str(name) for name in bqm.variables]
        starts = [[names[0], names[2]], [names[1], names[3]], []]
        answer = choose(bqm, self._run(settings, bqm, starts).samples, starts)
        chosen = [{name: int(name in some) for name in names} for some in [*starts, answer.variables]]
        *known, reached = energies(bqm, as_samples(chosen)).tolist()
        assert np.isclose(answer.energy, reached), f"the answer's energy is {reached:g}, not {answer.energy:g}"
        assert reached <= min(known) + 1e-9, f"the answer ({reached:g}) is worse than the best start ({min(known):g})"
        assert feasible(bqm, as_samples(chosen))[-1], "the answer is not an independent set"

    def test_the_same_seed_gives_the_same_samples(self, settings: Settings) -> None:
        if not self.seeded:
            pytest.skip("this device says that it is not seeded")
        bqm = self.problems()["a path"]
        one, two = (self._run(settings, bqm).samples.record for _ in range(2))
        assert np.array_equal(one, two), "two new devices gave different samples for the same request"

    def test_a_request_survives_a_file_and_is_the_same_when_prepared_again(self, settings: Settings) -> None:
        for name, bqm in self.problems().items():
            request = self.device(settings).prepare(bqm, self.shots, 7)
            assert (request.kind, request.shots, request.seed) == (self.device_class.kind, self.shots, 7), (
                f"{name}: the request has another kind, shots or seed than was asked"
            )
            assert request.bqm() == bqm, f"{name}: the request holds another QUBO than was asked"
            assert Request.from_json(request.to_json()) == request, (
                f"{name}: the request changes in a file; its payload must be plain JSON (lists, no tuples)"
            )
            again = self.device(settings).prepare(bqm, self.shots, 7)
            assert again.to_json() == request.to_json(), f"{name}: prepare() is not the same the second time"

    def test_a_digest_tells_requests_apart(self, settings: Settings) -> None:
        device = self.device(settings)
        bqm = self.problems()["a path"]
        heavier = selection([9.0] * bqm.num_variables, [])
        asked = {
            "these": device.prepare(bqm, self.shots, 1),
            "other shots": device.prepare(bqm, self.shots + 1, 1),
            "another seed": device.prepare(bqm, self.shots, 2),
            "another QUBO": device.prepare(heavier, self.shots, 1),
        }
        digests = [request.digest() for request in asked.values()]
        same = [what for what, digest in list(zip(asked, digests, strict=True))[1:] if digest == digests[0]]
        assert not same, f"requests with {' and '.join(same)} have one digest, so one would be taken for the other"

    def test_decode_needs_only_the_request_and_the_result(
        self, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        run = self._run(settings, self.problems()["a path"])
        result = Result(plain(run.result.payload, "the result's payload"))
        elsewhere = replace(
            settings,
            url=settings.url and NOWHERE,
            token_file=settings.token_file and tmp_path / "no-token",
        )
        calls: list[Any] = []

        def connect(_: socket.socket, address: Any) -> None:
            calls.append(address)
            raise ConnectionRefusedError("decode must not call anybody")

        monkeypatch.setattr(socket.socket, "connect", connect)
        monkeypatch.setattr(socket.socket, "connect_ex", connect)
        try:
            samples = self.device(elsewhere).decode(Request.from_json(run.request.to_json()), result)
        except Exception as error:
            pytest.fail(f"a new device without token and network cannot decode: {type(error).__name__}: {error}")
        assert not calls, f"decode called {calls[0]}"
        assert np.array_equal(samples.record, run.samples.record), "a new device decodes other samples"

    def test_a_job_that_nobody_sent_is_unknown(self, settings: Settings) -> None:
        device = self.device(settings)
        status = device.poll(self.unknown_job)
        assert status.state is State.UNKNOWN, f"a job that was never sent is {status.state.value!r}, not 'unknown'"
        with raises(QonduitError, "fetching a job that was never sent must be an error of qonduit.errors"):
            device.fetch(self.unknown_job)

    def test_poll_never_lies(self, settings: Settings) -> None:
        device = self.device(settings)
        request = device.prepare(self.problems()["a path"], self.shots, 3)
        job = device.submit(request, uuid.uuid4().hex)
        assert isinstance(job, str), "submit() must return the job's id, a text"
        assert job, "submit() returned an empty id"
        other = device if device.local else self.device(settings)
        statuses = self._wait(other, job)
        for before, after in pairwise(statuses):
            a, b = before.state, after.state
            moved = a is b or a < b or State.UNKNOWN in (a, b)
            assert moved, f"the job went from {a.value!r} back to {b.value!r}"
        assert statuses[-1].state is State.DONE, f"the job is {statuses[-1].state.value!r} ({statuses[-1].reason})"
        third = device if device.local else self.device(settings)
        try:
            results = [third.fetch(job), third.fetch(job)]
        except QonduitError as error:
            pytest.fail(f"the job is 'done' but cannot be fetched: {error}")
        assert results[0] == results[1], "fetching twice gave two different results"
        assert other.poll(job).state is State.DONE, "a job that was done is no longer"

    def test_a_cancelled_job_ends(self, settings: Settings) -> None:
        device = self.device(settings)
        job = device.submit(device.prepare(self.problems()["a path"], self.shots, 4), uuid.uuid4().hex)
        other = device if device.local else self.device(settings)
        other.cancel(job)
        # A local device has nothing to end: it may forget the job.
        state = other.poll(job).state if device.local else self._wait(other, job)[-1].state
        ends = (State.CANCELLED, State.DONE, *((State.UNKNOWN,) if device.local else ()))
        assert state in ends, f"a job that was cancelled is {state.value!r}"

    def test_cancelling_an_ended_job_is_no_error_and_changes_nothing(self, settings: Settings) -> None:
        device = self.device(settings)
        job = device.submit(device.prepare(self.problems()["a path"], self.shots, 5), uuid.uuid4().hex)
        before = self._wait(device, job)[-1].state
        try:
            device.cancel(job)
            device.cancel(job)
        except QonduitError as error:
            pytest.fail(f"cancelling a job that had ended raised {type(error).__name__}: {error}")
        after = device.poll(job).state
        assert after is before or (device.local and after is State.UNKNOWN), (
            f"cancelling a job that was {before.value!r} made it {after.value!r}"
        )

    def test_a_job_is_found_by_its_key(self, settings: Settings) -> None:
        device = self.device(settings)
        key, never = uuid.uuid4().hex, uuid.uuid4().hex
        job = device.submit(device.prepare(self.problems()["a path"], self.shots, 6), key)
        other = device if device.local else self.device(settings)
        try:
            found, invented = other.find(key), other.find(never)
        except UnsettledError as error:
            found, invented = job, None
            if not str(error):
                pytest.fail("the UnsettledError must say how a person can look the job up")
        assert found == job, f"find() of the key of job {job!r} returned {found!r}"
        assert invented is None, f"find() of a key that was never sent returned {invented!r}"
        self._wait(device, job)

    def test_too_many_variables_are_refused_before_anything_is_sent(self, settings: Settings) -> None:
        device = self.device(settings)
        qubits = device.capabilities().qubits
        if qubits is None:
            pytest.skip("this device takes problems of any size")
        bqm = self.too_large(qubits)
        size = bqm.num_variables
        with raises(DataError, f"prepare() of {size} variables for {qubits} qubits must be a DataError") as said:
            device.prepare(bqm, self.shots, 0)
        numbers = re.findall(r"\d+", str(said.value).replace(",", ""))
        assert {str(qubits), str(size)} <= set(numbers), f"the error must name {size} and {qubits}: {said.value}"

    def test_a_qubo_that_is_no_selection_is_refused_before_it_is_paid_for(self, settings: Settings) -> None:
        spins = dimod.BinaryQuadraticModel({"a": -1.0}, {}, 0.0, "SPIN")
        for what, bqm in {"rewards a pair": selection([1.0, 1.0], [(0, 1)], reward=True), "has spins": spins}.items():
            device = self.device(settings)
            with raises(DataError, f"a QUBO that {what} must be a DataError of prepare()"):
                request = device.prepare(bqm, self.shots, 0)
                # Nothing is paid for on a local device, so there it is early enough.
                if device.local:
                    device.submit(request, uuid.uuid4().hex)

    def test_a_secret_is_nowhere_to_be_seen(
        self, settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        if settings.token_file is None:
            pytest.skip("this device has no token")
        secret = settings.secret()
        started: list[Any] = []
        popen = subprocess.Popen.__init__

        def start(process: Any, *arguments: Any, **keywords: Any) -> None:
            started.append((arguments, keywords))
            popen(process, *arguments, **keywords)

        monkeypatch.setattr(subprocess.Popen, "__init__", start)
        device = self.device(settings)
        with caplog.at_level(logging.DEBUG):
            can = device.capabilities()
            run = self._run(settings, self.problems()["a path"], device=device)
        places = {
            "the device's repr": repr(device),
            "its capabilities": repr(can),
            "the request": run.request.to_json(),
            "the job's id": run.job,
            "a status": repr(run.statuses),
            "the result": json.dumps(run.result.payload),
            "the samples' info": json.dumps(run.samples.info),
            "a log line": caplog.text,
            "the environment": repr(dict(os.environ)),
            "this process's arguments": repr(sys.argv),
            "a started process's arguments or environment": repr(started),
        }
        seen = [place for place, text in places.items() if secret in text]
        assert not seen, f"the token is in {' and '.join(seen)}"

    def test_a_wrong_token_is_an_access_error_that_does_not_show_it(self, settings: Settings, tmp_path: Path) -> None:
        if settings.token_file is None:
            pytest.skip("this device has no token")
        wrong = settings.secret()[:-12] + "not-a-secret"
        path = tmp_path / "wrong-token"
        path.touch(mode=0o600)
        path.write_text(wrong, encoding="utf-8")
        device = self.device(replace(settings, token_file=path))
        with raises(AccessError, "a token that is not accepted must be an AccessError") as said:
            device.capabilities()
            device.submit(device.prepare(self.problems()["a path"], self.shots, 0), uuid.uuid4().hex)
        shown = "".join(traceback.format_exception(said.value))
        assert wrong not in shown, "the error shows the token"

    def test_a_service_that_is_away_is_an_away_error_that_says_nothing_was_taken(self, settings: Settings) -> None:
        if settings.url is None:
            pytest.skip("this device has no address")
        with socket.create_server(("127.0.0.1", 0)) as unused:
            port = unused.getsockname()[1]
        nobody = urlsplit(settings.url)._replace(scheme="http", netloc=f"127.0.0.1:{port}").geturl()
        with raises(AwayError, "a connection that is refused must be an AwayError") as said:
            self.device(replace(settings, url=nobody)).capabilities()
        assert not getattr(said.value, "maybe_accepted", True), (
            "nothing was accepted where the connection was refused: say maybe_accepted=False, so that it is tried again"
        )

    def test_a_next_round_is_another_request_for_the_same_qubo(self, settings: Settings) -> None:
        if not hasattr(self.device_class, "refine"):
            pytest.skip("this device has no rounds")
        bqm = self.problems()["a path"]
        run = self._run(settings, bqm)
        following, again = (self.device_class(settings).refine([(run.request, run.result)]) for _ in range(2))
        assert following == again, "refine() is not the same the second time"
        if following is not None:
            assert following.bqm() == bqm, "the next round is for another QUBO"
            assert following.digest() != run.request.digest(), "the next round has the digest of the first"
            assert Request.from_json(following.to_json()) == following, "the next round's request changes in a file"

    def _run(
        self,
        settings: Settings,
        bqm: dimod.BinaryQuadraticModel,
        starts: Sequence[Sequence[str]] = (),
        device: Device | None = None,
        shots: int | None = None,
    ) -> Run:
        device = device or self.device(settings)
        request = device.prepare(bqm, shots or self.shots, 11, starts)
        job = device.submit(request, uuid.uuid4().hex)
        statuses = self._wait(device, job)
        assert statuses[-1].state is State.DONE, f"the job is {statuses[-1].state.value!r} ({statuses[-1].reason})"
        result = device.fetch(job)
        return Run(job, request, tuple(statuses), result, device.decode(request, result))

    def _wait(self, device: Device, job: str) -> list[Status]:
        """What `poll` said until the job ended."""
        until, pause_s = time.monotonic() + self.wait_s, FIRST_PAUSE_S
        statuses = [device.poll(job)]
        while not statuses[-1].state.final:
            assert time.monotonic() < until, f"the job is still {statuses[-1].state.value!r} after {self.wait_s:g} s"
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            statuses.append(device.poll(job))
        return statuses
