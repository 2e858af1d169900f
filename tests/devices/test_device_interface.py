"""What every kind of device promises around its samples: states, requests, settings, finding and running one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import dimod
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qonduit.devices import registry
from qonduit.devices.annealer import Annealer
from qonduit.devices.device import Capabilities, Device
from qonduit.devices.exact import Exact
from qonduit.devices.execute import Execution, execute
from qonduit.devices.options import Option
from qonduit.devices.patience import Patience
from qonduit.devices.registry import kinds, open_device
from qonduit.devices.request import Request, Result
from qonduit.devices.settings import Settings, settings_from_environment
from qonduit.devices.state import State, Status
from qonduit.errors import AccessError, DataError, DeviceError, QonduitError, UsageError

QUBO = dimod.BinaryQuadraticModel({"a": -1.25, "b": -2.0}, {("a", "b"): 1.5}, 0.0, "BINARY")
ENDS = (State.DONE, State.FAILED, State.CANCELLED)


def test_a_job_goes_from_queued_to_running_to_one_of_three_ends() -> None:
    assert State.QUEUED < State.RUNNING
    for end in ENDS:
        assert end > State.QUEUED
        assert end > State.RUNNING
        assert end > State.RUNNING
        assert not any(end < other for other in State)


@given(st.sampled_from(State), st.sampled_from(State), st.sampled_from(State))
def test_the_order_of_states_is_strict_and_transitive(a: State, b: State, c: State) -> None:
    assert not (a < b and b < a)
    assert not (a < b and b < c) or a < c


def test_unknown_is_neither_an_end_nor_before_or_after_anything() -> None:
    assert not State.UNKNOWN.final
    assert [state for state in State if state.final] == list(ENDS)
    assert not any(state < State.UNKNOWN or state > State.UNKNOWN for state in State)


@pytest.mark.parametrize("kind", [Annealer, Exact])
def test_a_request_survives_a_file_and_gives_the_same_samples_in_another_process(
    kind: type[Annealer] | type[Exact],
) -> None:
    device = kind(Settings("any"))
    request = device.prepare(QUBO, 10, 2**65, [["a"], ["b"]])
    again = Request.from_json(request.to_json())
    assert again == request
    assert again.digest() == request.digest()
    assert again.bqm() == QUBO
    other = kind(Settings("any"))
    assert execute(device, request) == execute(other, again)


def test_requests_that_differ_have_different_digests() -> None:
    device = Annealer(Settings("annealer"))
    asked = [device.prepare(QUBO, shots, seed) for shots in (1, 2) for seed in (0, 1)]
    assert len({request.digest() for request in asked}) == 4


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": "x"}', "null", '{"extra": 1}'])
def test_what_is_no_request_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="no request"):
        Request.from_json(text)


def test_the_same_key_is_the_same_job() -> None:
    device = Annealer(Settings("annealer"))
    one, two = device.prepare(QUBO, 10, 1), device.prepare(QUBO, 20, 2)
    job = device.submit(one, "key")
    assert device.submit(two, "key") == job
    assert len(device.fetch(job).payload["rows"]) == 10


def test_a_job_that_a_local_device_does_not_know_is_unknown_and_cannot_be_fetched() -> None:
    device = Exact(Settings("exact"))
    job = device.submit(device.prepare(QUBO, 1, 0), "key")
    assert device.poll(job).state is State.DONE
    device.cancel(job)
    assert device.poll(job).state is State.UNKNOWN
    with pytest.raises(DeviceError, match="knows no job"):
        device.fetch(job)


class Scripted:
    """A device that answers polls from a list, and keeps the last answer."""

    kind: ClassVar[str] = "scripted"
    known_options: ClassVar[dict[str, Option]] = {}
    local: ClassVar[bool] = True

    def __init__(self, *states: State) -> None:
        self.states = list(states)
        self.submitted: list[str] = []

    def capabilities(self) -> Capabilities:
        return Capabilities("scripted", 2, "line", online=True, queue_length=1, calibration_id="c1")

    def prepare(
        self, qubo: dimod.BinaryQuadraticModel, shots: int, seed: int, starts: Sequence[Sequence[str]] = ()
    ) -> Request:
        return Request("scripted", qubo.to_serializable(), shots, seed, {"starts": len(starts)})

    def submit(self, request: Request, key: str) -> str:
        self.submitted.append(key)
        return f"job of {request.shots} shots"

    def find(self, key: str) -> str | None:
        raise AssertionError(key)

    def poll(self, job: str) -> Status:
        assert job == "job of 5 shots"
        return Status(self.states.pop(0) if len(self.states) > 1 else self.states[0])

    def fetch(self, job: str) -> Result:
        return Result({"job": job})

    def cancel(self, job: str) -> None:
        raise AssertionError(job)

    def decode(self, request: Request, result: Result) -> dimod.SampleSet:
        raise AssertionError((request, result))


def run_scripted(*states: State) -> tuple[Result | QonduitError, Scripted, list[float]]:
    device = Scripted(*states)
    pauses: list[float] = []
    asked: Device = device
    request = device.prepare(QUBO, 5, 0)
    patience = Patience(sleep=pauses.append, clock=lambda: sum(pauses))
    try:
        return Execution(asked, patience=patience).run(request, lambda: request).result, device, pauses
    except QonduitError as error:
        return error, device, pauses


def test_a_job_is_waited_for_through_states_that_are_unknown() -> None:
    result, device, pauses = run_scripted(State.QUEUED, State.UNKNOWN, State.RUNNING, State.UNKNOWN, State.DONE)
    assert result == Result({"job": "job of 5 shots"})
    assert len(device.submitted) == 1
    assert len(pauses) == 4


def test_a_state_that_stays_unknown_is_an_error_and_nothing_is_sent_again() -> None:
    error, device, pauses = run_scripted(State.UNKNOWN)
    assert isinstance(error, DeviceError)
    assert "stays unknown" in str(error)
    assert len(device.submitted) == 1
    assert Patience().limit_s < sum(pauses) <= Patience().limit_s + 10


@pytest.mark.parametrize("end", [State.FAILED, State.CANCELLED])
def test_a_job_that_did_not_end_well_is_an_error(end: State) -> None:
    error, device, _ = run_scripted(State.RUNNING, end)
    assert isinstance(error, DeviceError)
    assert end.value in str(error)
    assert len(device.submitted) == 1


def test_our_kinds_are_found_by_their_entry_points() -> None:
    assert set(kinds()) >= {"annealer", "dwave", "exact", "gate", "iqm", "pasqal", "pulser"}
    assert isinstance(open_device(Settings("annealer")), Annealer)
    assert isinstance(open_device(Settings("exact")), Exact)


def test_a_kind_whose_package_is_missing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("far", "no_such_package_here:Far", registry.GROUP)
    monkeypatch.setattr(registry, "kinds", lambda: {"far": entry})
    with pytest.raises(DeviceError, match="no_such_package_here"):
        open_device(Settings("far"))


def test_a_kind_whose_client_is_missing_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Annealer, "needs", ("no_such_client.part",), raising=False)
    with pytest.raises(DeviceError, match=r"no_such_client.*pip install 'qonduit\[annealer\]'"):
        open_device(Settings("annealer"))


def test_a_secret_is_read_from_a_file_that_only_its_owner_can_read(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("sesame\n")
    path.chmod(0o600)
    settings = Settings("iqm", token_file=path)
    assert settings.secret() == "sesame"
    assert "sesame" not in repr(settings) + settings.identity({})
    path.chmod(0o640)
    with pytest.raises(AccessError, match="chmod 600"):
        settings.secret()
    path.chmod(0o600)
    path.write_text("\n")
    with pytest.raises(AccessError, match="empty"):
        settings.secret()
    path.unlink()
    with pytest.raises(AccessError, match="cannot be read"):
        settings.secret()
    with pytest.raises(DataError, match="token_file"):
        Settings("iqm").secret()


@pytest.mark.parametrize("value", [None, ""])
def test_without_the_variable_it_is_the_annealer(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.delenv("QONDUIT_DEVICE", raising=False)
    if value is not None:
        monkeypatch.setenv("QONDUIT_DEVICE", value)
    assert settings_from_environment() == Settings("annealer")


def test_a_kinds_name_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QONDUIT_DEVICE", "exact")
    assert isinstance(open_device(settings_from_environment()), Exact)


def from_file(monkeypatch: pytest.MonkeyPatch, folder: Path, content: Any) -> Settings:
    path = folder / "device.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    monkeypatch.setenv("QONDUIT_DEVICE", str(path))
    return settings_from_environment()


def test_a_device_file_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    content = {"kind": "annealer", "shots": 7, "options": {"sweeps": 3}, "token_file": "token"}
    found = from_file(monkeypatch, tmp_path, content)
    source = str(tmp_path / "device.json")
    assert found == Settings("annealer", 7, {"sweeps": 3}, tmp_path / "token", source)
    assert "secret" not in repr(found)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not JSON"),
        ("\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "not JSON"),
        ([], "one JSON object"),
        ({}, "'kind'"),
        ({"kind": ""}, "'kind'"),
        ({"kind": 3}, "'kind'"),
        ({"kind": "abacus"}, "annealer, dwave, exact"),
        ({"kind": "annealer", "token": "x"}, "no key 'token'"),
        ({"kind": "annealer", "shots": 0}, "'shots'"),
        ({"kind": "annealer", "shots": 2.5}, "'shots'"),
        ({"kind": "annealer", "shots": True}, "'shots'"),
        ({"kind": "annealer", "shots": 10**400}, "'shots'"),
        ({"kind": "annealer", "options": []}, "'options'"),
        ({"kind": "annealer", "options": {"speed": 1}}, "it knows sweeps, swaps"),
        ({"kind": "annealer", "options": {"sweeps": 0}}, "from 1 to"),
        ({"kind": "annealer", "options": {"sweeps": 1.5}}, "a whole number"),
        ({"kind": "annealer", "options": {"swaps": True}}, "a whole number"),
        ({"kind": "exact", "options": {"time_limit_s": "1"}}, "a number"),
        ({"kind": "exact", "options": {"time_limit_s": 0}}, "from 0.001 to"),
        ('{"kind": "exact", "options": {"time_limit_s": Infinity}}', "a number"),
        ({"kind": "exact", "url": "127.0.0.1:80"}, "'url'"),
        ({"kind": "exact", "url": "http://[::1"}, "'url'"),
        ({"kind": "exact", "url": 3}, "'url'"),
        ({"kind": "exact", "url": "https://me:secret@here"}, "without a user"),
        ({"kind": "exact", "wait_s": -1}, "'wait_s'"),
        ({"kind": "exact", "token_file": "nowhere"}, "'token_file'"),
        ({"kind": "exact", "token_file": 1}, "'token_file'"),
    ],
)
def test_a_bad_device_file_is_one_sentence_that_names_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: Any, said: str
) -> None:
    with pytest.raises(DataError) as caught:
        open_device(from_file(monkeypatch, tmp_path, content))
    assert said in str(caught.value)
    assert "device.json" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["abacus", "nowhere/device.json", "device.json", "."])
def test_a_variable_that_names_nothing_is_a_usage_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QONDUIT_DEVICE", value)
    with pytest.raises(UsageError, match="QONDUIT_DEVICE"):
        open_device(settings_from_environment())


@pytest.mark.parametrize("kind", [Annealer, Exact])
def test_local_devices_take_problems_of_any_size_now(kind: type[Annealer] | type[Exact]) -> None:
    can = kind(Settings("any")).capabilities()
    assert (can.qubits, can.online, can.queue_length) == (None, True, 0)
