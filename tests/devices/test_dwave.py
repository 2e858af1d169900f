"""The device `dwave` against the emulated server: conformance, what each failure means, and nothing bought twice."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import dimod
import numpy as np
import pytest

from qonduit.devices.conformance import DeviceConformance
from qonduit.devices.dwave import Dwave
from qonduit.devices.request import Request, Result
from qonduit.devices.sapi import Sapi
from qonduit.devices.settings import Settings
from qonduit.devices.state import State
from qonduit.emulators.running import Server, running
from qonduit.errors import AccessError, AwayError, DataError, DeviceError, StaleError

SHOTS = 60
# Long enough for a server on a busy machine, short enough to wait for it in a test of a hanging one.
TIMEOUT_S = 5.0
SHORT_S = 0.5
NOWHERE = "http://127.0.0.1:9/sapi/v2"


@pytest.fixture(scope="module")
def emulated() -> Iterator[Server]:
    with running("dwave", qubits=150, seed=1) as server:
        yield server


@pytest.fixture
def server(emulated: Server) -> Server:
    emulated.clear()
    emulated.forget()
    return emulated


def device(server: Server, url: str | None = None, **options: Any) -> Dwave:
    settings = server.settings(**{"timeout_s": TIMEOUT_S, **options})
    return Dwave(replace(settings, url=url or settings.url))


def cycle(size: int) -> dimod.BinaryQuadraticModel:
    """Overlapping clusters in a ring, each with its own weight."""
    bqm = dimod.BinaryQuadraticModel(dimod.BINARY)
    for v in range(size):
        bqm.add_linear(f"c{v}", -1.0 - 0.1 * (v % 3))
    for v in range(size):
        bqm.add_quadratic(f"c{v}", f"c{(v + 1) % size}", 3.0)
    return bqm


def complete(size: int) -> dimod.BinaryQuadraticModel:
    names = [f"c{v}" for v in range(size)]
    return dimod.BinaryQuadraticModel(
        dict.fromkeys(names, -1.0), {(u, v): 2.0 for u in names for v in names if u < v}, 0.0, dimod.BINARY
    )


def ended(one: Dwave, job: str) -> State:
    until = time.monotonic() + 60
    while not (status := one.poll(job)).state.final:
        assert time.monotonic() < until
        time.sleep(0.01)
    return status.state


def solved(one: Dwave, bqm: dimod.BinaryQuadraticModel, shots: int = SHOTS) -> dimod.SampleSet:
    request = one.prepare(bqm, shots, 1)
    job = one.submit(request, uuid.uuid4().hex)
    assert ended(one, job) is State.DONE
    return one.decode(request, one.fetch(job))


def submissions(server: Server) -> list[str]:
    return [line for line in server.calls() if "POST" in line]


class TestQpu(DeviceConformance):
    device_class = Dwave
    shots: ClassVar[int] = SHOTS

    @pytest.fixture
    def settings(self, server: Server) -> Settings:
        return server.settings()


class TestHybrid(DeviceConformance):
    device_class = Dwave
    shots: ClassVar[int] = 5
    every_shot: ClassVar[bool] = False

    @pytest.fixture
    def settings(self, server: Server) -> Settings:
        return server.settings(solver_type="hybrid")


def asked(server: Server, phase: str, **options: Any) -> Callable[[], object]:
    """One call of this phase, prepared so far that only it is left."""
    one = device(server)
    request = one.prepare(cycle(5), SHOTS, 1)
    job = uuid.uuid4().hex if phase == "submit" else one.submit(request, uuid.uuid4().hex)
    if phase == "fetch":
        ended(one, job)
    again = device(server, **options)
    calls: dict[str, Callable[[], object]] = {
        "discover": again.capabilities,
        "submit": lambda: again.submit(request, job),
        "find": lambda: again.find(job),
        "poll": lambda: again.poll(job),
        "fetch": lambda: again.fetch(job),
        "cancel": lambda: again.cancel(job),
    }
    return calls[phase]


PHASES = ("discover", "submit", "find", "poll", "fetch", "cancel")
FAILURES: dict[str, tuple[type[DeviceError], bool | None]] = {
    "http-401": (AccessError, None),
    "http-403": (AccessError, None),
    "http-408": (AwayError, True),
    "http-425": (AwayError, True),
    "http-423": (AwayError, False),
    "http-429": (AwayError, False),
    "http-500": (AwayError, True),
    "http-502": (AwayError, True),
    "http-503": (AwayError, True),
    "reset-before": (AwayError, True),
    "reset-after": (AwayError, True),
    "malformed": (AwayError, True),
}


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("fault", FAILURES)
def test_each_failure_is_told_as_what_it_is_and_tried_once(server: Server, fault: str, phase: str) -> None:
    call = asked(server, phase)
    before = len(server.calls())
    server.inject({"fault": fault, "on": phase, "retry_after_s": 7})
    kind, maybe_accepted = FAILURES[fault]
    with pytest.raises(kind) as said:
        call()
    assert server.token_file.read_text().strip() not in str(said.value)
    if isinstance(said.value, AwayError):
        assert said.value.maybe_accepted is maybe_accepted
        assert said.value.retry_after_s == (7 if fault.startswith("http") else None)
    made = [line for line in server.calls()[before:] if f" {phase} " in line]
    assert len(made) <= 1
    if phase == "submit":
        assert len(server.jobs()) == (fault in ("reset-after", "malformed"))


@pytest.mark.parametrize("phase", PHASES)
def test_a_server_that_hangs_may_have_accepted(server: Server, phase: str) -> None:
    call = asked(server, phase, timeout_s=SHORT_S)
    server.inject({"fault": "hang", "on": phase, "seconds": 60, "accepted": True})
    with pytest.raises(AwayError, match="did not answer in time") as said:
        call()
    assert said.value.maybe_accepted
    assert len(server.jobs()) <= 1


@pytest.mark.parametrize("phase", PHASES)
def test_a_refused_connection_has_accepted_nothing(server: Server, phase: str) -> None:
    call = asked(server, phase, url=NOWHERE)
    with pytest.raises(AwayError, match="cannot be reached") as said:
        call()
    assert not said.value.maybe_accepted


def test_a_time_out_is_not_taken_for_a_refusal_that_came_before_it(server: Server) -> None:
    one = device(server, timeout_s=SHORT_S)
    request = one.prepare(cycle(5), SHOTS, 1)

    def sent_while_a_refusal_is_handled() -> object:
        try:
            return device(server, url=NOWHERE).poll("some-job")
        except AwayError:
            return one.submit(request, uuid.uuid4().hex)

    server.inject({"fault": "hang", "on": "submit", "seconds": 60, "accepted": True})
    with pytest.raises(AwayError, match="did not answer in time") as said:
        sent_while_a_refusal_is_handled()
    assert said.value.maybe_accepted
    assert len(server.jobs()) == 1


@pytest.mark.parametrize("fault", ["reset-after", "malformed", "hang"])
def test_a_submission_whose_answer_was_lost_is_found_by_its_key(server: Server, fault: str) -> None:
    one = device(server, timeout_s=SHORT_S)
    request, key = one.prepare(cycle(5), SHOTS, 1), uuid.uuid4().hex
    server.inject({"fault": fault, "on": "submit", "seconds": 60, "accepted": True})
    with pytest.raises(AwayError):
        one.submit(request, key)
    job = device(server).find(key)
    assert [known["id"] for known in server.jobs()] == [job]
    assert device(server).find(key[:-1]) is None


def test_a_new_working_graph_makes_a_request_stale_and_it_can_be_prepared_again(server: Server) -> None:
    one = device(server)
    request = one.prepare(cycle(5), SHOTS, 1)
    server.inject({"fault": "calibration-changes", "on": "submit"})
    with pytest.raises(StaleError):
        one.submit(request, uuid.uuid4().hex)
    assert server.jobs() == []
    again = one.prepare(cycle(5), SHOTS, 1)
    assert again.payload["solver"] != request.payload["solver"]
    assert again.digest() == request.digest()
    assert ended(one, one.submit(again, uuid.uuid4().hex)) is State.DONE


def test_a_job_outlives_the_graph_that_it_was_sent_for(server: Server) -> None:
    one = device(server)
    request = one.prepare(cycle(5), SHOTS, 1)
    job = one.submit(request, uuid.uuid4().hex)
    server.inject({"fault": "calibration-changes", "on": "poll"})
    assert ended(one, job) is State.DONE
    samples = one.decode(request, one.fetch(job))
    assert samples.info["calibration_id"] == request.payload["solver"]["version"]["graph_id"]


def test_a_request_that_the_vendor_refuses_is_a_data_error(server: Server) -> None:
    one = device(server)
    request = one.prepare(cycle(5), SHOTS, 1)
    params = {**request.payload["params"], "num_reads": 10**6}
    with pytest.raises(DataError, match="num_reads"):
        one.submit(replace(request, payload={**request.payload, "params": params}), uuid.uuid4().hex)
    assert server.jobs() == []


@pytest.mark.parametrize(
    ("bqm", "shots", "options", "said"),
    [
        (complete(60), SHOTS, {}, r"60 variables with 1770 couplings .* 150 working qubits .*hybrid"),
        (cycle(5), 10_001, {}, r"shots \(10001\) must be from 1 to 10000"),
        (cycle(5), SHOTS, {"annealing_time_us": 0.1}, r"annealing_time_us"),
        (cycle(5), SHOTS, {"solver": "no_such_machine"}, r"no solver 'no_such_machine'"),
        (cycle(5), SHOTS, {"solver_type": "hybrid", "time_limit_s": 1}, r"time_limit_s.* 3 to 86400"),
        (cycle(10_001), SHOTS, {"solver_type": "hybrid"}, r"10001 variables .* takes 10000"),
        (dimod.BinaryQuadraticModel(dimod.BINARY), SHOTS, {}, r"no variables"),
    ],
    ids=["no embedding", "shots", "annealing time", "solver", "time limit", "hybrid size", "empty"],
)
def test_what_cannot_run_is_refused_before_anything_is_sent(
    server: Server, bqm: dimod.BinaryQuadraticModel, shots: int, options: dict[str, Any], said: str
) -> None:
    before = len(submissions(server))
    with pytest.raises(DataError, match=said):
        device(server, **options).prepare(bqm, shots, 1)
    assert len(submissions(server)) == before


@pytest.mark.parametrize("fault", ["http-500", "reset-after", "malformed", "hang"])
@pytest.mark.parametrize("skip", [0, 1, 2])
def test_an_upload_that_fails_has_bought_nothing(server: Server, fault: str, skip: int) -> None:
    one = device(server, solver_type="hybrid", timeout_s=SHORT_S)
    request = one.prepare(cycle(5), 1, 1)
    server.inject({"fault": fault, "on": "other", "skip": skip, "seconds": 60})
    with pytest.raises(AwayError) as said:
        one.submit(request, uuid.uuid4().hex)
    assert not said.value.maybe_accepted
    assert server.jobs() == []
    assert ended(one, one.submit(request, uuid.uuid4().hex)) is State.DONE


def test_the_hybrid_solver_takes_what_no_graph_could_hold(server: Server) -> None:
    bqm = complete(60)
    samples = solved(device(server, solver_type="hybrid"), bqm)
    assert samples.first.energy == pytest.approx(-1.0)
    assert samples.info["shots"] == SHOTS
    assert samples.info["measured"] == 1
    assert samples.info["timing_us"]["run_time"] == 3e6


def test_more_than_ten_variables_keep_their_names(server: Server) -> None:
    bqm = cycle(14)
    best = dimod.ExactSolver().sample(bqm).first  # type: ignore[no-untyped-call]
    for options in ({}, {"solver_type": "hybrid"}):
        samples = solved(device(server, **options), bqm, 500)
        assert samples.first.energy == pytest.approx(best.energy)


def test_a_result_says_how_it_came_about(server: Server) -> None:
    samples = solved(device(server), complete(8))
    info = samples.info
    assert info["embedding_qubits"] >= 8 + 2, "a clique of eight does not fit without chains"
    assert info["longest_chain"] >= 2
    assert 0 <= info["chain_break_fraction"] <= 1
    assert info["calibration_id"] == device(server).capabilities().calibration_id
    assert info["measured"] == info["shots"] == SHOTS
    assert info["timing_us"]["qpu_access_time"] > SHOTS * info["timing_us"]["qpu_anneal_time_per_sample"]


def test_weak_chains_break_and_strong_ones_hold(server: Server) -> None:
    weak, strong = (
        solved(device(server, chain_strength=factor), complete(12)).info["chain_break_fraction"] for factor in (0.1, 2)
    )
    assert weak > 0.05 > strong


def test_missing_shots_are_noted_and_no_error(server: Server) -> None:
    server.inject({"fault": "missing-shots"})
    samples = solved(device(server), cycle(5))
    assert samples.info["measured"] == samples.record.num_occurrences.sum() == SHOTS // 2


@pytest.mark.parametrize("solver_type", ["qpu", "hybrid"])
def test_infeasible_samples_are_shown_as_such(server: Server, solver_type: str) -> None:
    server.inject({"fault": "infeasible-samples"})
    samples = solved(device(server, solver_type=solver_type), cycle(5))
    assert samples.record.sample.tolist() == [[1] * 5]
    assert not samples.record.feasible.any()


@pytest.mark.parametrize(
    ("fault", "state"), [("job-fails", State.FAILED), ("job-cancelled", State.CANCELLED)], ids=["fails", "cancelled"]
)
def test_a_job_that_did_not_end_well_has_a_reason_and_no_result(server: Server, fault: str, state: State) -> None:
    one = device(server)
    server.inject({"fault": fault})
    job = one.submit(one.prepare(cycle(5), SHOTS, 1), uuid.uuid4().hex)
    assert ended(one, job) is state
    assert "scripted" in one.poll(job).reason
    with pytest.raises(DeviceError, match="scripted"):
        one.fetch(job)


def test_a_job_in_the_queue_is_queued_and_can_be_cancelled(server: Server) -> None:
    one = device(server)
    server.inject({"fault": "stays-queued"})
    job = one.submit(one.prepare(cycle(5), SHOTS, 1), uuid.uuid4().hex)
    assert one.poll(job).state is State.QUEUED
    one.cancel(job)
    assert device(server).poll(job).state is State.CANCELLED


def test_a_token_that_was_renewed_is_read_again(server: Server) -> None:
    one = device(server)
    one.capabilities()
    server.inject({"fault": "token-expires", "on": "discover"})
    with pytest.raises(AccessError):
        one.capabilities()
    assert one.capabilities().online


@pytest.mark.parametrize("token", ["two\nlines", "two words", "tökén"])
def test_what_cannot_be_a_token_is_refused_without_showing_it(server: Server, tmp_path: Path, token: str) -> None:
    path = tmp_path / "token"
    path.touch(mode=0o600)
    path.write_text(token, encoding="utf-8")
    with pytest.raises(AccessError) as said:
        Dwave(replace(server.settings(), token_file=path)).capabilities()
    assert token not in str(said.value)


def spoilt(part: str, value: str | None) -> Callable[[dict[str, Any]], None]:
    def spoil(answer: dict[str, Any]) -> None:
        if value is None:
            del answer[part]
        else:
            answer[part] = value

    return spoil


@pytest.mark.parametrize(
    "spoil",
    [
        spoilt("solutions", None),
        spoilt("solutions", "AAAA" * 1000),
        spoilt("solutions", "not base64!"),
        spoilt("active_variables", base64.b64encode(np.array([1, 2, 3], "<i4").tobytes()).decode()),
        spoilt("num_occurrences", base64.b64encode(np.array([2**30], "<i4").tobytes()).decode()),
        spoilt("num_occurrences", ""),
    ],
    ids=["none", "too wide", "no base64", "other qubits", "too many shots", "no shots"],
)
def test_an_answer_that_is_not_as_promised_is_a_device_error(
    server: Server, spoil: Callable[[dict[str, Any]], None]
) -> None:
    one = device(server)
    request = one.prepare(cycle(5), SHOTS, 1)
    job = one.submit(request, uuid.uuid4().hex)
    ended(one, job)
    payload = json.loads(json.dumps(one.fetch(job).payload))
    spoil(payload["answer"])
    with pytest.raises(DeviceError, match="D-Wave's answer"):
        one.decode(Request.from_json(request.to_json()), Result(payload))


def test_no_thread_of_the_client_outlives_a_call(server: Server) -> None:
    before = threading.active_count()
    solved(device(server, solver_type="hybrid"), cycle(5))
    solved(device(server), cycle(5))
    assert threading.active_count() == before


def test_importing_the_device_imports_nothing_of_the_vendor() -> None:
    script = (
        "import sys, qonduit.devices.dwave as d; print([m for m in sys.modules if m in ('dwave', 'requests', 'dimod')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class Redirecting(BaseHTTPRequestHandler):
    target: ClassVar[str]

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(307)
        self.send_header("Location", f"{self.target}{self.path}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815

    def log_message(self, *_: Any) -> None:
        pass


@pytest.mark.parametrize("phase", PHASES)
def test_a_redirected_call_is_not_sent_on(server: Server, phase: str) -> None:
    Redirecting.target = server.url.removesuffix("/sapi/v2")
    with HTTPServer(("127.0.0.1", 0), Redirecting) as other:
        thread = threading.Thread(target=other.serve_forever)
        thread.start()
        try:
            call = asked(server, phase, url=f"http://127.0.0.1:{other.server_port}/sapi/v2")
            before = sum("/sapi/" in line for line in server.calls())
            with pytest.raises(DeviceError, match="check 'url'") as said:
                call()
            assert not isinstance(said.value, AwayError)
            assert sum("/sapi/" in line for line in server.calls()) == before
        finally:
            other.shutdown()
            thread.join()


def answering(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    monkeypatch.setattr(Sapi, "call", lambda *_, **__: answer)


@pytest.mark.parametrize("answer", [{}, [3], [{"label": "k"}], [{"label": "k", "id": None}]])
def test_a_list_of_jobs_of_another_shape_is_no_answer(
    server: Server, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    answering(monkeypatch, answer)
    with pytest.raises(AwayError):
        device(server).find("k")


@pytest.mark.parametrize("answer", [None, [], [{}], [{"id": None}], [{"error_code": "x"}], {"id": "a"}])
def test_a_submission_whose_answer_names_no_job_may_have_been_accepted(
    server: Server, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    request = device(server).prepare(cycle(5), SHOTS, 1)
    answering(monkeypatch, answer)
    with pytest.raises(AwayError) as said:
        device(server).submit(request, "k")
    assert said.value.maybe_accepted


@pytest.mark.parametrize(
    "properties",
    [
        {"couplers": [[1, 2, 3]]},
        {"couplers": None},
        {"topology": None},
        {"topology": {"type": "pegasus", "shape": 3}},
        {"supported_problem_types": None},
    ],
)
def test_a_solver_of_another_shape_is_no_answer(
    server: Server, monkeypatch: pytest.MonkeyPatch, properties: dict[str, Any]
) -> None:
    solver = device(server)._solver()
    answering(monkeypatch, [{**solver, "properties": {**solver["properties"], **properties}}])
    for call in (device(server).capabilities, lambda: device(server).prepare(cycle(5), SHOTS, 1)):
        with pytest.raises(AwayError):
            call()


@pytest.mark.parametrize("limits", [None, [], [[1]], [[1, 2, 3]], [[1, "long"]]])
def test_time_limits_of_another_shape_are_no_answer(
    server: Server, monkeypatch: pytest.MonkeyPatch, limits: Any
) -> None:
    solver = device(server, solver_type="hybrid")._solver()
    answering(monkeypatch, [{**solver, "properties": {**solver["properties"], "minimum_time_limit": limits}}])
    with pytest.raises(AwayError):
        device(server, solver_type="hybrid").prepare(cycle(5), SHOTS, 1)
