"""The matrix of vendor, fault and phase: each cell ends in the right result or in the right error.

Real clients talk to emulated servers over real connections. In every cell the server's own count of accepted
submissions is at most one, and when the fault is over the same command ends with the result of that one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import dimod
import pytest

from qonduit.devices.answer import choose
from qonduit.devices.device import Device
from qonduit.devices.execute import Executed, Execution, Memory
from qonduit.devices.ledger import Ledger
from qonduit.devices.patience import Patience
from qonduit.devices.registry import open_device
from qonduit.devices.request import Question, Request
from qonduit.emulators.running import Server, running
from qonduit.errors import AccessError, DeviceError, QonduitError, UnsettledError

VENDORS = ("iqm", "pasqal", "dwave")
QUBO = dimod.BinaryQuadraticModel({"a": -1.0, "b": -2.0, "c": -1.5}, {("a", "b"): 3.0, ("b", "c"): 3.0}, 0.0, "BINARY")
SHOTS = 10
# Which method's call to the vendor a phase is, so that a refused connection strikes there.
METHODS = {"discover": "prepare", "submit": "submit", "find": "find", "poll": "poll", "fetch": "fetch"}
PASSING: dict[str, dict[str, Any]] = {
    "reset-before": {},
    "reset-after": {},
    "hang": {},
    "http-423": {},
    "http-429": {"retry_after_s": 0.2},
    "http-500": {},
    "http-502": {},
    "http-503": {},
    "malformed": {},
}
# After these nobody can know, without asking the vendor, whether a submission was accepted.
AMBIGUOUS = {"reset-before", "reset-after", "hang", "http-500", "http-502", "http-503", "malformed"}


@pytest.fixture(scope="module", params=VENDORS)
def vendor_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with running(request.param, noise=False, seed=5) as server:
        yield server


@pytest.fixture
def server(vendor_server: Server) -> Server:
    vendor_server.clear()
    vendor_server.forget()
    return vendor_server


class Struck:
    """A device before whose first call of one method the server shuts its door."""

    def __init__(self, device: Device, method: str, server: Server, fault: dict[str, Any]) -> None:
        self._device, self._method, self._server, self._fault = device, method, server, fault

    def __getattr__(self, name: str) -> Any:
        if name == self._method:
            self._method = ""
            self._server.inject(self._fault)
        return getattr(self._device, name)


class Client:
    """Starts of one command: each has a new device object, all have one ledger and ask the same."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server = server
        self.ledger = Ledger(folder / "ledger.db")
        self.settings = server.settings(timeout_s=1.0)

    def device(self) -> Device:
        return open_device(self.settings)

    def run(self, device: Device | None = None, wait_s: float | None = 60.0) -> Executed:
        asked = device or self.device()
        memory = Memory(self.ledger, self.settings.identity(asked.known_options), "matrix")
        patience = Patience(limit_s=20.0, settle_s=0.3, first_pause_s=0.05, poll_s=0.1)
        question = Question(asked.kind, QUBO.to_serializable(), SHOTS, 1)
        execution = Execution(asked, memory, patience, wait_s)
        return execution.run(question, lambda: asked.prepare(QUBO, SHOTS, 1))

    def samples(self, executed: Executed) -> dimod.SampleSet:
        return self.device().decode(executed.request, executed.result)

    def settle(self) -> None:
        """Decides as a person does who has looked at the vendor's list of jobs."""
        accepted = {job["label"]: job["id"] for job in self.server.jobs()}
        for entry in self.ledger.entries(state="sending"):
            if entry.key in accepted:
                self.ledger.submitted(entry, accepted[entry.key])
            else:
                self.ledger.not_sent(entry)

    def check(self, executed: Executed) -> None:
        """One submission was accepted, it is this one, and its samples are right."""
        (job,) = self.server.jobs()
        assert job["label"] == executed.key
        # Pasqal's clients know a job by its batch.
        assert executed.job in (job["id"], job["body"].get("batch", {}).get("id"))
        samples = self.samples(executed)
        assert samples.record.num_occurrences.sum() == SHOTS
        assert list(samples.record.energy) == pytest.approx(list(QUBO.energies(samples)))
        assert choose(QUBO, samples, [["a", "c"]]).energy == -2.5
        calls = len(self.server.calls())
        assert self.run().reused
        assert len(self.server.calls()) == calls


@pytest.fixture
def client(server: Server, tmp_path: Path) -> Iterator[Client]:
    made = Client(server, tmp_path)
    yield made
    made.ledger.close()


def run_or_settle(client: Client, ambiguous: bool) -> Executed:
    """Where the vendor cannot be asked what it accepted, nothing is sent again until a person has decided."""
    try:
        return client.run()
    except UnsettledError as error:
        said = str(error)
    assert ambiguous
    assert "qonduit ledger resolve" in said
    assert len(client.server.jobs()) <= 1
    client.settle()
    return client.run()


@pytest.mark.parametrize("phase", ["discover", "submit", "poll", "fetch"])
@pytest.mark.parametrize("fault", PASSING)
def test_a_fault_that_passes_costs_time_and_nothing_else(client: Client, fault: str, phase: str) -> None:
    client.server.inject({"fault": fault, "on": phase, **PASSING[fault]})
    client.check(run_or_settle(client, phase == "submit" and fault in AMBIGUOUS))


@pytest.mark.parametrize("fault", ["hang", "http-500", "http-503"])
def test_a_submission_that_was_accepted_before_the_fault_is_found_again(client: Client, fault: str) -> None:
    client.server.inject({"fault": fault, "on": "submit", "accepted": True})
    client.check(run_or_settle(client, ambiguous=True))


@pytest.mark.parametrize("phase", ["discover", "submit", "poll", "fetch"])
def test_a_connection_that_is_refused_for_a_while_costs_time_and_nothing_else(client: Client, phase: str) -> None:
    fault = {"fault": "refuse", "seconds": 0.5}
    struck: Any = Struck(client.device(), METHODS[phase], client.server, fault)
    client.check(client.run(struck))


@pytest.mark.parametrize("phase", ["discover", "submit", "poll", "fetch"])
@pytest.mark.parametrize("fault", ["http-401", "http-403"])
def test_a_refused_token_ends_at_once_with_a_sentence(client: Client, fault: str, phase: str) -> None:
    # A client that logs in again by itself gets no further either: the fault strikes as often as it tries.
    client.server.inject({"fault": fault, "on": phase, "times": 50})
    with pytest.raises(AccessError) as caught:
        client.run()
    assert "\n" not in str(caught.value)
    client.server.clear()
    client.check(client.run())


@pytest.mark.parametrize("phase", ["discover", "submit", "poll", "fetch"])
def test_a_token_that_expires_in_the_middle_is_renewed_or_told(client: Client, phase: str) -> None:
    client.server.inject({"fault": "token-expires", "on": phase})
    try:
        executed = client.run()
    except AccessError:
        executed = client.run()
    client.check(executed)


@pytest.mark.parametrize("phase", ["discover", "submit", "poll", "fetch"])
def test_a_maintenance_window_is_waited_for(client: Client, phase: str) -> None:
    client.server.inject({"fault": "maintenance", "on": phase, "seconds": 1.0})
    client.check(run_or_settle(client, phase == "submit"))


def test_a_calibration_that_changes_between_prepare_and_submit_is_prepared_again(client: Client) -> None:
    client.server.inject({"fault": "calibration-changes", "on": "submit"})
    before = client.device().prepare(QUBO, SHOTS, 1)
    executed = client.run()
    assert executed.request.payload != before.payload
    client.check(executed)


@pytest.mark.parametrize(("fault", "said"), [("job-fails", "failed"), ("job-cancelled", "cancelled")])
def test_a_job_that_the_vendor_ends_is_told_with_its_reason_and_may_be_bought_anew(
    client: Client, fault: str, said: str
) -> None:
    client.server.inject({"fault": fault})
    with pytest.raises(DeviceError, match=said):
        client.run()
    assert [entry.state for entry in client.ledger.entries()] == [said]
    executed = client.run()
    jobs = client.server.jobs()
    assert len({job["label"] for job in jobs}) == 2
    assert jobs[1]["label"] == executed.key


@pytest.mark.parametrize("fault", [None, *PASSING, "refuse"])
def test_a_job_that_stays_queued_is_cancelled_at_the_deadline(client: Client, fault: str | None) -> None:
    client.server.inject({"fault": "stays-queued"})
    device: Any = client.device()
    if fault == "refuse":
        device = Struck(device, "cancel", client.server, {"fault": "refuse", "seconds": 0.5})
    elif fault is not None:
        client.server.inject({"fault": fault, "on": "cancel", **PASSING[fault]})
    with pytest.raises(DeviceError, match=r"wait_s = 0\.2 s"):
        client.run(device, wait_s=0.2)
    assert [job["state"] for job in client.server.jobs()] == ["cancelled"]
    assert [entry.state for entry in client.ledger.entries()] == ["cancelled"]


def test_samples_that_overlap_are_repaired_and_told_apart(client: Client) -> None:
    client.server.inject({"fault": "infeasible-samples"})
    executed = client.run()
    answer = choose(QUBO, client.samples(executed), [["b"]])
    assert answer.feasible_fraction == 0.0
    assert answer.optimum_raw == 0.0
    assert answer.source == "repair"
    assert answer.energy <= -2.0
    assert len(client.server.jobs()) == 1


def test_missing_shots_are_told_and_what_came_is_used(client: Client) -> None:
    client.server.inject({"fault": "missing-shots"})
    samples = client.samples(client.run())
    measured = int(samples.record.num_occurrences.sum())
    assert 0 < measured < SHOTS
    assert (samples.info["shots"], samples.info["measured"]) == (SHOTS, measured)


def interrupted(client: Client, accepted: bool) -> Request:
    """A client that died while it was sending: its entry is in the ledger, its job at the vendor, or not."""
    device = client.device()
    request = device.prepare(QUBO, SHOTS, 1)
    entry = client.ledger.sending(client.ledger.plan(client.settings.identity(device.known_options), "matrix", request))
    if accepted:
        device.submit(request, entry.key)
    return request


@pytest.mark.parametrize("accepted", [True, False])
@pytest.mark.parametrize("fault", [None, *PASSING, "refuse"])
def test_what_a_dead_client_may_have_sent_is_looked_up(client: Client, fault: str | None, accepted: bool) -> None:
    interrupted(client, accepted)
    device: Any = client.device()
    if fault == "refuse":
        device = Struck(device, "find", client.server, {"fault": "refuse", "seconds": 0.5})
    elif fault is not None:
        client.server.inject({"fault": fault, "on": "find", **PASSING[fault]})
    try:
        executed = client.run(device)
    except UnsettledError:
        assert client.server.vendor == "iqm"
        client.server.clear()
        client.settle()
        executed = client.run()
    client.check(executed)


@pytest.mark.parametrize("fault", ["http-401", "http-403"])
def test_a_look_up_whose_token_is_refused_ends_at_once(client: Client, fault: str) -> None:
    interrupted(client, accepted=True)
    client.server.inject({"fault": fault, "on": "find", "times": 50})
    expected: Sequence[type[QonduitError]] = (AccessError, UnsettledError)
    with pytest.raises(tuple(expected)):
        client.run()
    assert len(client.server.jobs()) == 1


def test_a_server_that_is_killed_and_started_again_keeps_its_jobs(client: Client) -> None:
    device = client.device()
    client.server.inject({"fault": "stays-queued"})
    request = device.prepare(QUBO, SHOTS, 1)
    kept = device.submit(request, "0" * 32)
    done = device.submit(request, "1" * 32)
    Execution(device, patience=Patience(poll_s=0.1))._wait(done)
    before = client.server.jobs()
    client.server.restart()
    assert client.server.jobs() == before
    after = client.device()
    assert after.poll(kept).state.value == "queued"
    assert after.fetch(done) == device.fetch(done)
