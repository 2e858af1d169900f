"""The device kind `iqm` on an emulated server: its requests and results, and what becomes of every failure."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import dimod
import pytest
import requests

from qonduit.devices.conformance import DeviceConformance
from qonduit.devices.iqm import Iqm
from qonduit.devices.iqm_server import IqmServer
from qonduit.devices.request import Request, Result
from qonduit.devices.settings import Settings
from qonduit.devices.state import State
from qonduit.emulators.running import Server, running
from qonduit.errors import (
    AccessError,
    AwayError,
    DataError,
    DeviceError,
    QonduitError,
    StaleError,
    UnsettledError,
    UsageError,
)

QUBO = dimod.BinaryQuadraticModel(
    {"z": -3.0, "a": -2.0, "m": -2.5, "b": -1.0}, {("z", "a"): 9.0, ("a", "m"): 9.0, ("m", "b"): 9.0}, 0.0, "BINARY"
)
SHOTS = 200


@pytest.fixture(scope="module")
def started() -> Iterator[Server]:
    with running("iqm", seed=3) as server:
        yield server


@pytest.fixture
def server(started: Server) -> Server:
    started.clear()
    started.forget()
    return started


class TestIqmConforms(DeviceConformance):
    device_class: ClassVar[type[Any]] = Iqm

    @pytest.fixture
    def settings(self, server: Server) -> Settings:
        return server.settings()


class TestIqmConformsWithRounds(DeviceConformance):
    device_class: ClassVar[type[Any]] = Iqm

    @pytest.fixture
    def settings(self, server: Server) -> Settings:
        return server.settings(angles="device", layers=2, rounds=3)


def opened(server: Server, **options: Any) -> Iqm:
    return Iqm(server.settings(**{"timeout_s": 20.0, **options}))


def submitted(device: Iqm, shots: int = SHOTS) -> tuple[Request, str]:
    request = device.prepare(QUBO, shots, 1)
    return request, device.submit(request, uuid.uuid4().hex)


def ended(device: Iqm, job: str) -> State:
    until = time.monotonic() + 60
    while not (state := device.poll(job).state).final and time.monotonic() < until:
        time.sleep(0.01)
    return state


def test_the_result_says_what_was_compiled_calibrated_and_measured(server: Server) -> None:
    device = opened(server, layers=2)
    request, job = submitted(device)
    assert ended(device, job) is State.DONE
    info = device.decode(request, device.fetch(job)).info
    assert (info["shots"], info["measured"], info["layers"]) == (SHOTS, SHOTS, 2)
    assert info["calibration_id"] == device.capabilities().calibration_id
    assert info["compiled"]["cz"] >= 2 * 2 * QUBO.num_interactions
    assert len(info["compiled"]["qubits"]) >= 4
    assert [step["status"] for step in info["timeline"]] == ["created", "received", "completed"]


def test_the_key_is_the_jobs_tag_and_in_the_circuits_name(server: Server) -> None:
    device, key = opened(server), uuid.uuid4().hex
    device.submit(device.prepare(QUBO, 10, 1), key)
    (job,) = server.jobs()
    assert job["label"] == key
    assert key in job["body"]["payload"]["circuits"][0]["name"]
    with pytest.raises(UnsettledError, match=f"tag {key}") as caught:
        device.find(key)
    assert "qonduit ledger" not in str(caught.value)


def test_capabilities_are_those_of_the_machine(server: Server) -> None:
    can = opened(server).capabilities()
    assert (can.qubits, can.topology, can.online, can.queue_length) == (5, "star", True, 0)


def test_a_job_that_waits_has_a_position(server: Server) -> None:
    server.inject({"fault": "stays-queued", "times": 2})
    device = opened(server)
    (_, _), (_, second) = submitted(device), submitted(device)
    status = device.poll(second)
    assert (status.state, status.position) == (State.QUEUED, 1)
    device.cancel(second)
    assert device.poll(second).state is State.CANCELLED


def test_more_variables_than_qubits_are_refused_before_anything_is_sent(server: Server) -> None:
    qubo = dimod.BinaryQuadraticModel({f"v{i}": -1.0 for i in range(6)}, {}, 0.0, "BINARY")
    with pytest.raises(DataError, match=r"6 variables .* 5 connected qubits .*'gate' or 'annealer'"):
        opened(server).prepare(qubo, 10, 0)
    assert server.jobs() == []


def test_a_machine_that_was_calibrated_meanwhile_makes_the_request_stale(server: Server) -> None:
    device = opened(server)
    request = device.prepare(QUBO, SHOTS, 1)
    server.inject({"fault": "calibration-changes", "on": "submit"})
    with pytest.raises(StaleError, match="prepare it again"):
        device.submit(request, uuid.uuid4().hex)
    assert server.jobs() == []
    again, job = submitted(device)
    assert again.payload["calibration_set_id"] != request.payload["calibration_set_id"]
    assert ended(device, job) is State.DONE


def test_what_the_server_refuses_for_itself_is_bad_data_and_not_stale(server: Server) -> None:
    device = opened(server)
    request = device.prepare(QUBO, 1_000_000, 1)
    with pytest.raises(DataError, match="shots must be"):
        device.submit(request, uuid.uuid4().hex)
    assert server.jobs() == []


# Fault on the submission, the error, whether it may have been accepted, and how many jobs there are then.
SUBMISSIONS: list[tuple[dict[str, Any], type[QonduitError], bool | None, int]] = [
    ({"fault": "http-401"}, AccessError, None, 0),
    ({"fault": "http-403"}, AccessError, None, 0),
    ({"fault": "http-423", "retry_after_s": 7}, AwayError, False, 0),
    ({"fault": "http-429", "retry_after_s": 7}, AwayError, False, 0),
    ({"fault": "http-408", "accepted": True}, AwayError, True, 1),
    ({"fault": "http-425"}, AwayError, True, 0),
    ({"fault": "http-500"}, AwayError, True, 0),
    ({"fault": "http-502", "accepted": True}, AwayError, True, 1),
    ({"fault": "http-503", "retry_after_s": 7}, AwayError, True, 0),
    ({"fault": "reset-before"}, AwayError, True, 0),
    ({"fault": "reset-after"}, AwayError, True, 1),
    ({"fault": "malformed"}, AwayError, True, 1),
    ({"fault": "hang", "accepted": True}, AwayError, True, 1),
]


@pytest.mark.parametrize(("fault", "error", "maybe", "jobs"), SUBMISSIONS, ids=lambda value: str(value)[:40])
def test_a_submission_is_sent_once_and_its_failure_says_whether_it_may_have_been_accepted(
    server: Server, fault: dict[str, Any], error: type[QonduitError], maybe: bool | None, jobs: int
) -> None:
    device = opened(server, timeout_s=0.5 if fault["fault"] == "hang" else 20.0)
    request = device.prepare(QUBO, 10, 1)
    server.inject({"on": "submit", **fault})
    before = sum(" submit " in line for line in server.calls())
    with pytest.raises(error) as caught:
        device.submit(request, uuid.uuid4().hex)
    assert getattr(caught.value, "maybe_accepted", None) is maybe
    assert getattr(caught.value, "retry_after_s", None) == fault.get("retry_after_s")
    assert len(server.jobs()) == jobs
    tried = sum(" submit " in line for line in server.calls()) - before
    # A call that hangs is logged when it ends.
    assert tried == (0 if fault["fault"] == "hang" else 1)


def test_a_refused_connection_certainly_accepted_nothing() -> None:
    with running("iqm") as gone:
        connected, fresh = opened(gone), opened(gone)
        request = connected.prepare(QUBO, 10, 1)
        gone.stop()
        for device in (connected, fresh):
            with pytest.raises(AwayError) as caught:
                device.submit(request, uuid.uuid4().hex)
            assert caught.value.maybe_accepted is False


@pytest.mark.parametrize("fault", ["hang", "reset-after", "http-500", "malformed"])
def test_a_failure_before_the_submission_certainly_accepted_nothing(server: Server, fault: str) -> None:
    request = opened(server).prepare(QUBO, 10, 1)
    fresh = opened(server, timeout_s=0.5)
    server.inject({"fault": fault, "on": "discover"})
    with pytest.raises(AwayError) as caught:
        fresh.submit(request, uuid.uuid4().hex)
    assert caught.value.maybe_accepted is False
    assert server.jobs() == []


@pytest.mark.parametrize("phase", ["discover", "poll", "fetch"])
@pytest.mark.parametrize("fault", ["http-401", "http-429", "http-503", "reset-before", "malformed", "hang"])
def test_a_read_that_fails_is_an_error_of_ours_and_works_the_next_time(server: Server, phase: str, fault: str) -> None:
    device = opened(server, timeout_s=0.5 if fault == "hang" else 20.0)
    _, job = submitted(device, 10)
    assert ended(device, job) is State.DONE
    reads: Mapping[str, Any] = {
        "discover": device.capabilities,
        "poll": lambda: device.poll(job),
        "fetch": lambda: device.fetch(job),
    }
    server.inject({"fault": fault, "on": phase})
    with pytest.raises(AccessError if fault == "http-401" else AwayError):
        reads[phase]()
    assert reads[phase]() is not None


def test_a_job_that_failed_says_why(server: Server) -> None:
    server.inject({"fault": "job-fails"})
    device = opened(server)
    _, job = submitted(device)
    assert ended(device, job) is State.FAILED
    assert "scripted fault" in device.poll(job).reason
    with pytest.raises(DeviceError, match="failed"):
        device.fetch(job)


def test_an_operator_may_cancel_a_job(server: Server) -> None:
    server.inject({"fault": "job-cancelled"})
    device = opened(server)
    assert ended(device, submitted(device)[1]) is State.CANCELLED


def test_missing_shots_are_told_and_samples_that_overlap_are_not_hidden(server: Server) -> None:
    server.inject({"fault": "missing-shots"}, {"fault": "infeasible-samples"})
    device = opened(server)
    few, many = submitted(device), submitted(device)
    assert ended(device, few[1]) is ended(device, many[1]) is State.DONE
    samples = device.decode(few[0], device.fetch(few[1]))
    assert samples.info["measured"] == int(samples.record.num_occurrences.sum()) < samples.info["shots"] == SHOTS
    overlapping = device.decode(many[0], device.fetch(many[1]))
    assert not overlapping.record.feasible.any()


@pytest.mark.parametrize(
    "counts",
    [
        {"measurement_keys": ["m"], "counts": {"01": 200}},
        {"measurement_keys": ["m"], "counts": {"0120": 200}},
        {"measurement_keys": ["m"], "counts": {"0101": -3}},
        {"measurement_keys": ["m"], "counts": {"0101": 201}},
        {"measurement_keys": ["m"], "counts": {}},
        {"measurement_keys": ["other"], "counts": {"0101": 200}},
        {"counts": [1]},
        {},
    ],
)
def test_measurements_that_were_not_promised_are_refused(server: Server, counts: dict[str, Any]) -> None:
    device = opened(server)
    request = device.prepare(QUBO, SHOTS, 1)
    result = Result({"counts": counts, "calibration_set_id": None, "timeline": [], "messages": []})
    with pytest.raises(DeviceError, match="IQM's server answered with"):
        device.decode(request, result)


def test_a_token_that_has_expired_is_an_access_error_and_the_new_one_works(server: Server) -> None:
    device = opened(server)
    _, job = submitted(device)
    server.inject({"fault": "token-expires", "on": "poll"})
    with pytest.raises(AccessError, match="token"):
        device.poll(job)
    assert ended(opened(server), job) is State.DONE


@pytest.mark.parametrize("token", ["two\nlines", "snow\N{SNOWMAN}man", " \x01"])
def test_a_token_that_cannot_be_sent_is_not_shown(server: Server, tmp_path: Path, token: str) -> None:
    path = tmp_path / "token"
    path.touch(mode=0o600)
    path.write_text(f"x{token}y", encoding="utf-8")
    with pytest.raises(AccessError) as caught:
        Iqm(replace(server.settings(), token_file=path)).capabilities()
    assert token.strip() not in str(caught.value)


def test_settings_that_iqms_client_refuses_are_told(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="nowhere"):
        opened(server, quantum_computer="nowhere").capabilities()
    with pytest.raises(UsageError, match="https"):
        Iqm(replace(server.settings(), url="http://example.invalid")).capabilities()
    monkeypatch.setenv("IQM_TOKEN", "another")
    with pytest.raises(UsageError, match="IQM_TOKEN") as caught:
        opened(server).capabilities()
    assert "another" not in str(caught.value)


def test_importing_and_decoding_need_no_vendor(server: Server, tmp_path: Path) -> None:
    device = opened(server)
    request, job = submitted(device)
    assert ended(device, job) is State.DONE
    (tmp_path / "request").write_text(request.to_json())
    (tmp_path / "result").write_text(repr(dict(device.fetch(job).payload)))
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from qonduit.devices.iqm import Iqm\n"
        "from qonduit.devices.request import Request, Result\n"
        "from qonduit.devices.settings import Settings\n"
        "request = Request.from_json(Path(sys.argv[1], 'request').read_text())\n"
        "result = Result(eval(Path(sys.argv[1], 'result').read_text()))\n"
        "device = Iqm(Settings('iqm', url='http://127.0.0.1:9', token_file=Path('none')))\n"
        "assert device.decode(request, result).record.num_occurrences.sum() == request.shots\n"
        "sys.exit(any(name.partition('.')[0] in ('iqm', 'requests', 'qiskit') for name in sys.modules))\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"url": "http://example.invalid"}, "https"),
        ({"url": "https://127.0.0.1:{port}"}, "certificate"),
        ({"options": {"quantum_computer": "nowhere"}}, "nowhere"),
    ],
    ids=["address", "certificate", "machine"],
)
def test_what_has_to_be_put_right_before_anything_is_sent_is_a_data_error(
    server: Server, changes: dict[str, Any], said: str
) -> None:
    request = opened(server).prepare(QUBO, 10, 1)
    if "url" in changes:
        changes = {"url": changes["url"].format(port=urlsplit(server.url).port)}
    with pytest.raises(DataError, match=said):
        Iqm(replace(server.settings(), **changes)).submit(request, uuid.uuid4().hex)
    assert server.jobs() == []


def test_the_machine_is_not_taken_from_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IQM_QUANTUM_COMPUTER", "adonis")
    assert opened(server).capabilities().online
    with pytest.raises(UsageError, match="option 'quantum_computer'"):
        Iqm(replace(server.settings(), options={})).capabilities()


@pytest.mark.parametrize(
    ("architecture", "metrics"),
    [
        ({"qubits": None}, {}),
        ({"qubits": [["QB1"]]}, {}),
        ({"gates": []}, {}),
        ({"gates": {"prx": {"implementations": {"drag": {"loci": [[]]}}}}}, {}),
        ({"gates": {"cz": {"implementations": {"crf": {"loci": [[["QB1"], "QB2"]]}}}}}, {}),
        ({"calibration_set_id": 3}, {}),
        ({}, {"observations": 3}),
        ({}, {"observations": [3]}),
    ],
)
def test_an_architecture_of_another_shape_is_no_answer(
    server: Server, monkeypatch: pytest.MonkeyPatch, architecture: Any, metrics: Any
) -> None:
    device = opened(server)
    known = device._server.architecture()
    monkeypatch.setattr(IqmServer, "architecture", lambda _: {**known, **architecture})
    monkeypatch.setattr(IqmServer, "metrics", lambda *_: metrics)
    with pytest.raises(AwayError):
        device.prepare(QUBO, 10, 1)


def test_a_machine_may_publish_no_metrics(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IqmServer, "metrics", lambda *_: {"observations": None})
    assert opened(server).prepare(QUBO, 10, 1).payload["circuit"]


def test_a_job_of_another_shape_is_no_answer(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    device = opened(server)
    for found in ({"status": "failed", "errors": 3}, {"status": "completed", "compilation": [3]}):
        monkeypatch.setattr(IqmServer, "job", lambda *_, found=found: found)
        with pytest.raises(AwayError):
            device.poll("j") if "errors" in found else device.fetch("j")


@pytest.mark.parametrize("answer", [None, [], [3], {}, {"quantum_computers": [None]}, {"quantum_computers": 3}])
def test_a_list_of_machines_of_another_shape_is_no_answer(
    server: Server, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    request = opened(server).prepare(QUBO, 10, 1)

    def get(*_: Any, **__: Any) -> requests.Response:
        response = requests.Response()
        response.status_code, response._content = 200, json.dumps(answer).encode()
        return response

    monkeypatch.setattr(requests, "get", get)
    with pytest.raises(AwayError) as caught:
        opened(server).submit(request, uuid.uuid4().hex)
    assert not caught.value.maybe_accepted
