"""The device `pasqal` against the emulated cloud: what each failure means, and nothing sent twice."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import dimod
import pytest
import requests

from qonduit.devices import pasqal_connection
from qonduit.devices.pasqal import Pasqal
from qonduit.devices.request import Request, Result
from qonduit.devices.state import State
from qonduit.emulators.running import Server, running
from qonduit.errors import AccessError, AwayError, DataError, DeviceError, QonduitError, StaleError, UnsettledError

SHOTS = 50
TIMEOUT_S = 5.0
SHORT_S = 0.5
# The names sort otherwise than they are listed, as those of a problem do.
QUBO = dimod.BinaryQuadraticModel(
    {"z": -1.0, "y": -2.0, "a": -1.7, "b": -0.4}, {("z", "y"): 3.0, ("y", "a"): 3.0, ("a", "b"): 3.0}, 0.0, "BINARY"
)


@pytest.fixture(scope="module")
def emulated() -> Iterator[Server]:
    with running("pasqal", qubits=8, seed=1, noise=False) as server:
        yield server


@pytest.fixture
def server(emulated: Server) -> Server:
    emulated.clear()
    emulated.forget()
    return emulated


@pytest.fixture
def prepared(server: Server) -> Request:
    return device(server, duration_us=1).prepare(QUBO, SHOTS, 1)


def device(server: Server, url: str | None = None, **options: Any) -> Pasqal:
    settings = server.settings(**{"timeout_s": TIMEOUT_S, **options})
    return Pasqal(replace(settings, url=url or settings.url))


def new_key() -> str:
    return uuid.uuid4().hex


def ended(made: Pasqal, job: str) -> State:
    until = time.monotonic() + 60
    while not (status := made.poll(job)).state.final and time.monotonic() < until:
        time.sleep(0.02)
    return status.state


def solved(server: Server, **options: Any) -> dimod.SampleSet:
    request = device(server, **options).prepare(QUBO, SHOTS, 1)
    job = device(server, **options).submit(request, new_key())
    assert ended(device(server), job) is State.DONE
    return device(server).decode(Request.from_json(request.to_json()), device(server).fetch(job))


@pytest.mark.parametrize("device_type", ["QPU", "EMU_FREE", "EMU_MPS", "EMU_SV"])
def test_a_machine_and_every_cloud_emulator_answer_with_the_optimum(server: Server, device_type: str) -> None:
    samples = solved(server, device_type=device_type)
    assert {name for name, bit in samples.first.sample.items() if bit} == {"z", "a"}
    assert samples.record.num_occurrences[0] > SHOTS / 3
    info = samples.info
    assert (info["shots"], info["measured"], info["device_type"]) == (SHOTS, SHOTS, device_type)
    assert info["calibration_id"] == device(server).capabilities().calibration_id
    assert info["times"]["end_timestamp"] >= info["times"]["start_timestamp"]


def test_a_batch_is_found_by_its_key_and_no_other(server: Server, prepared: Request) -> None:
    keys = [new_key(), new_key()]
    jobs = [device(server).submit(prepared, key) for key in keys]
    assert [device(server).find(key) for key in keys] == jobs
    assert device(server).find(new_key()) is None
    assert [job["label"] for job in server.jobs()] == keys


def test_a_job_that_waits_can_be_cancelled_and_an_unknown_one_is_unknown(server: Server, prepared: Request) -> None:
    server.inject({"fault": "stays-queued"})
    job = device(server).submit(prepared, new_key())
    assert device(server).poll(job).state is State.QUEUED
    device(server).cancel(job)
    assert device(server).poll(job).state is State.CANCELLED
    device(server).cancel(job)
    device(server).cancel(str(uuid.uuid4()))
    assert device(server).poll(str(uuid.uuid4())).state is State.UNKNOWN


@pytest.mark.parametrize("phase", ["discover", "submit", "find", "poll", "fetch", "cancel"])
@pytest.mark.parametrize(
    ("fault", "error", "maybe_accepted"),
    [
        ("http-403", AccessError, None),
        ("http-423", AwayError, False),
        ("http-429", AwayError, False),
        ("http-408", AwayError, True),
        ("http-425", AwayError, True),
        ("http-500", AwayError, True),
        ("http-502", AwayError, True),
        ("http-503", AwayError, True),
        ("reset-before", AwayError, True),
        ("reset-after", AwayError, True),
        ("malformed", AwayError, True),
        ("hang", AwayError, True),
    ],
)
def test_a_failure_means_the_same_in_every_phase_and_is_one_call(
    server: Server, prepared: Request, phase: str, fault: str, error: type[QonduitError], maybe_accepted: bool | None
) -> None:
    made = device(server, timeout_s=SHORT_S if fault == "hang" else TIMEOUT_S)
    if phase == "cancel":
        server.inject({"fault": "stays-queued"})
    job = made.submit(prepared, new_key())
    assert phase == "cancel" or ended(made, job) is State.DONE
    calls: dict[str, Callable[[], object]] = {
        "discover": made.capabilities,
        "submit": lambda: made.submit(prepared, new_key()),
        "find": lambda: made.find(new_key()),
        "poll": lambda: made.poll(job),
        "fetch": lambda: made.fetch(job),
        "cancel": lambda: made.cancel(job),
    }
    before = len(server.jobs())
    server.inject({"fault": fault, "on": phase, "times": 9, "retry_after_s": 7, "seconds": 30})
    with pytest.raises(error) as caught:
        calls[phase]()
    struck = sum(f"fault={fault}" in line for line in server.calls() if f" {phase} " in line)
    server.clear()
    if isinstance(caught.value, AwayError):
        assert caught.value.maybe_accepted is maybe_accepted
        assert caught.value.retry_after_s == (7 if fault.startswith("http") else None)
    assert len(server.jobs()) - before == (phase == "submit" and fault in ("reset-after", "malformed"))
    # A hanging call is logged only once it has ended.
    assert struck - _struck_before.get((phase, fault), 0) == (0 if fault == "hang" else 1)
    _struck_before[phase, fault] = struck


_struck_before: dict[tuple[str, str], int] = {}


def test_a_server_that_is_not_there_took_nothing(server: Server, prepared: Request) -> None:
    with pytest.raises(AwayError) as caught:
        device(server, url="http://127.0.0.1:9").submit(prepared, new_key())
    assert not caught.value.maybe_accepted


def test_a_login_that_fails_has_submitted_nothing(server: Server, prepared: Request) -> None:
    server.inject({"fault": "http-503", "on": "auth", "times": 1})
    with pytest.raises(AwayError) as caught:
        device(server).submit(prepared, new_key())
    assert not caught.value.maybe_accepted
    assert server.jobs() == []


@pytest.mark.parametrize("username", ["user@emulated.invalid", None])
def test_a_token_that_expires_is_renewed_and_the_batch_is_sent_once(
    server: Server, prepared: Request, username: str | None
) -> None:
    settings = server.settings()
    options = {name: value for name, value in settings.options.items() if name != "username"}
    made = Pasqal(replace(settings, options=options | ({"username": username} if username else {})))
    made.capabilities()
    server.inject({"fault": "token-expires", "on": "submit"})
    assert ended(made, made.submit(prepared, new_key())) is State.DONE
    assert len(server.jobs()) == 1


@pytest.mark.parametrize("options", [{}, {"username": "someone"}])
def test_a_wrong_secret_ends_in_a_sentence_without_it(
    server: Server, tmp_path: Any, prepared: Request, options: dict[str, Any]
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("wrong-secret-marker")
    secret.chmod(0o600)
    settings = replace(server.settings(), token_file=secret, options={"project_id": "p", **options})
    with pytest.raises(AccessError) as caught:
        Pasqal(settings).submit(prepared, new_key())
    assert "marker" not in str(caught.value)
    assert server.jobs() == []


def test_a_request_for_specifications_that_changed_is_stale_and_can_be_prepared_again(
    server: Server, prepared: Request
) -> None:
    made = device(server, duration_us=1)
    server.inject({"fault": "calibration-changes", "on": "submit"})
    with pytest.raises(StaleError, match="prepare it again"):
        made.submit(prepared, new_key())
    assert server.jobs() == []
    assert ended(made, made.submit(made.prepare(QUBO, SHOTS, 1), new_key())) is State.DONE


def test_a_batch_that_the_vendor_refuses_for_itself_is_a_data_error(server: Server, prepared: Request) -> None:
    with pytest.raises(DataError, match="runs of a job"):
        device(server).submit(replace(prepared, shots=5000), new_key())
    assert server.jobs() == []


@pytest.mark.parametrize(
    ("size", "shots", "options", "said"),
    [
        (9, 10, {}, r"9 variables do not fit the 8 atoms of FRESNEL; .*annealer"),
        (3, 2001, {}, "2001 shots are more than the 2000"),
        (0, 10, {}, "no variables"),
        (3, 10, {"device": "NONE"}, "no device 'NONE'.*FRESNEL"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_sent(
    server: Server, size: int, shots: int, options: dict[str, Any], said: str
) -> None:
    bqm = dimod.BinaryQuadraticModel({f"c{v}": -1.0 for v in range(size)}, {}, 0.0, "BINARY")
    with pytest.raises(DataError, match=said):
        device(server, **options).prepare(bqm, shots, 1)
    assert server.jobs() == []


def test_a_failed_job_says_why(server: Server, prepared: Request) -> None:
    server.inject({"fault": "job-fails"})
    job = device(server).submit(prepared, new_key())
    assert ended(device(server), job) is State.FAILED
    assert "scripted fault" in device(server).poll(job).reason
    with pytest.raises(DeviceError, match="no job that is done"):
        device(server).fetch(job)


def test_missing_shots_are_noted_and_infeasible_samples_are_seen(server: Server) -> None:
    server.inject({"fault": "missing-shots"})
    fewer = solved(server, duration_us=1)
    assert 0 < fewer.info["measured"] < fewer.info["shots"]
    server.inject({"fault": "infeasible-samples"})
    assert not solved(server, duration_us=1).record.feasible.any()


@pytest.mark.parametrize("counter", [{}, {"01": 5}, {"01x1": 5}, {"0101": -1}, {"0101": "many"}])
def test_an_answer_that_is_not_as_promised_is_a_device_error(
    server: Server, prepared: Request, counter: dict[str, Any]
) -> None:
    with pytest.raises(DeviceError):
        device(server).decode(prepared, Result({"counter": counter}))


def test_a_request_holds_no_secret_and_is_the_same_each_time(server: Server) -> None:
    requests = {device(server, device_type="EMU_FREE").prepare(QUBO, SHOTS, 1).to_json() for _ in range(2)}
    assert len(requests) == 1
    assert server.token_file.read_text().strip() not in requests.pop()


def test_a_device_file_without_a_project_is_refused(server: Server) -> None:
    with pytest.raises(DataError, match="project_id"):
        Pasqal(replace(server.settings(), options={}))
    assert json.loads(server.device_file.read_text())["options"]["project_id"]


@pytest.mark.parametrize("token", ["two\nlines", "snow\N{SNOWMAN}man"])
def test_an_access_token_that_cannot_be_sent_is_not_shown(server: Server, tmp_path: Any, token: str) -> None:
    path = tmp_path / "token"
    path.touch(mode=0o600)
    path.write_text(token, encoding="utf-8")
    with pytest.raises(AccessError, match="cannot be a token") as caught:
        Pasqal(replace(server.settings(), token_file=path, options={"project_id": "p"})).capabilities()
    assert token not in str(caught.value)
    with pytest.raises(AccessError, match="refused the"):
        Pasqal(replace(server.settings(), token_file=path)).capabilities()


def answering(monkeypatch: pytest.MonkeyPatch, *answers: Any) -> None:
    """The service's next answers, the last one for ever."""
    left = list(answers)

    def answered(_: object) -> Any:
        return left.pop(0) if len(left) > 1 else left[0]

    monkeypatch.setattr(pasqal_connection, "answered", answered)
    monkeypatch.setattr(pasqal_connection.Credential, "get_token", lambda _: "token")


def test_a_search_reads_every_page(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [[{"id": f"b{n}", "created_at": f"{9 - n}", "tags": ["k"]}] for n in range(3)]
    answering(monkeypatch, *({"data": page, "pagination": {"total": 3, "end": 0}} for page in pages))
    assert device(server).find("k") == "b2"


@pytest.mark.parametrize("tags", [[], ["other"], None, "k"])
def test_a_service_that_did_not_search_by_the_tag_settles_nothing(
    server: Server, monkeypatch: pytest.MonkeyPatch, tags: Any
) -> None:
    answering(monkeypatch, {"data": [{"id": "a", "tags": ["key"]}, {"id": "b", "tags": tags}]})
    with pytest.raises(UnsettledError, match="tag key") as caught:
        device(server).find("key")
    assert "qonduit ledger" not in str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        {"data": None},
        {"data": {}},
        {"data": [3]},
        {"data": [{"tags": ["key"]}]},
        {"data": [{"id": None, "tags": ["key"]}]},
        {"data": [{"id": "b", "tags": 3}]},
        {"data": [], "pagination": {"total": 3}},
        {"data": [], "pagination": {"total": "many"}},
        {"data": [], "pagination": [1]},
    ],
)
def test_a_search_whose_answer_is_not_as_promised_has_not_found_nothing(
    server: Server, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    answering(monkeypatch, answer)
    with pytest.raises(AwayError):
        device(server).find("key")


@pytest.mark.parametrize("specs", ["[]", "3", '{"max_atom_num": "many"}', '{"max_runs": [1]}', "{"])
def test_specifications_of_another_shape_are_no_answer(
    server: Server, monkeypatch: pytest.MonkeyPatch, specs: str
) -> None:
    answering(monkeypatch, {"data": {"FRESNEL": specs}})
    for call in (device(server).capabilities, lambda: device(server).prepare(QUBO, SHOTS, 1)):
        with pytest.raises(AwayError):
            call()


@pytest.mark.parametrize("said", [None, [], {}, {"id": 3}, {"id": ""}])
def test_a_submission_whose_answer_names_no_batch_may_have_been_accepted(
    server: Server, prepared: Request, monkeypatch: pytest.MonkeyPatch, said: Any
) -> None:
    answering(monkeypatch, {"data": said})
    with pytest.raises(AwayError) as caught:
        device(server).submit(prepared, new_key())
    assert caught.value.maybe_accepted


@pytest.mark.parametrize(
    "answers",
    [
        [{"data": {"id": "j"}}],
        [{"data": [{"status": "DONE"}]}],
        [{"data": [{"id": "j", "status": "DONE"}]}, {"data": []}],
        [{"data": [{"id": "j", "status": "DONE"}]}, {"data": {}}],
        [{"data": [{"id": "j", "status": "DONE"}]}, {"data": {"results_link": "http://x"}}, {"counter": [1]}],
    ],
)
def test_a_result_of_another_shape_is_no_answer(
    server: Server, monkeypatch: pytest.MonkeyPatch, answers: list[Any]
) -> None:
    answering(monkeypatch, *answers)
    with pytest.raises(AwayError):
        device(server).fetch("b")


def test_reasons_of_another_shape_are_no_answer(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, {"data": {"status": "ERROR"}}, {"data": [{"errors": 3}]})
    with pytest.raises(AwayError):
        device(server).poll("b")


@pytest.mark.parametrize(
    "answer", [{}, {"access_token": 3}, {"access_token": "a\nb"}, {"access_token": "a", "expires_in": [1]}]
)
def test_a_login_of_another_shape_has_submitted_nothing(
    server: Server, prepared: Request, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    response = requests.Response()
    response.status_code, response._content = 200, json.dumps(answer).encode()
    monkeypatch.setattr(requests, "post", lambda *_, **__: response)
    with pytest.raises(AwayError) as caught:
        device(server).submit(prepared, new_key())
    assert not caught.value.maybe_accepted
