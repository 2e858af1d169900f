"""The emulated IQM server: IQM's own clients and examples run on it, and it refuses what a server refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from qonduit.emulators.iqm_chip import chip
from qonduit.emulators.running import Server, running
from qonduit.errors import UsageError

QUICKSTART = Path(__file__).parent / "quickstart"
HALF = 1.5707963267948966


@pytest.fixture(scope="module")
def started() -> Iterator[Server]:
    with running("iqm", noise=False, seed=5) as server:
        yield server


@pytest.fixture
def server(started: Server) -> Server:
    started.clear()
    started.forget()
    return started


def call(server: Server, method: str, path: str, **more: Any) -> requests.Response:
    headers = {"Authorization": f"Bearer {server.token_file.read_text().strip()}"}
    return requests.request(method, f"{server.url}/api/v1/{path}", headers=headers, timeout=60, **more)


def turn(qubit: str, angle: float = HALF) -> dict[str, Any]:
    return {"name": "prx", "locus": [qubit], "args": {"angle": angle, "phase": HALF}}


def bell(a: str = "QB1", b: str = "QB3") -> list[dict[str, Any]]:
    measure = {"name": "measure", "locus": [a, b], "args": {"key": "m"}}
    return [turn(a), turn(b), {"name": "cz", "locus": [a, b], "args": {}}, turn(b, -HALF), measure]


def body(instructions: list[Any], **more: Any) -> dict[str, Any]:
    return {"circuits": [{"name": "c", "instructions": instructions}], "shots": 100, **more}


def ran(server: Server, content: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    job = call(server, "POST", "jobs/adonis/circuit", json=content).json()["id"]
    waited = call(server, "GET", f"jobs/{job}?wait_until_terminal=true&timeout_seconds=30")
    assert waited.json()["status"] == "completed", waited.json()
    counts: dict[str, Any] = call(server, "GET", f"jobs/{job}/artifacts/measurement_counts").json()[0]
    return job, counts


def environment(server: Server) -> dict[str, str]:
    token = server.token_file.read_text().strip()
    return {**os.environ, "IQM_SERVER_URL": server.url, "IQM_TOKEN": token}


@pytest.mark.parametrize(
    "command",
    [
        [str(QUICKSTART / "iqm_client.py")],
        [str(QUICKSTART / "iqm_qiskit.py")],
        ["-m", "iqm.qiskit_iqm.examples.bell_measure", "--url", "{url}"],
    ],
    ids=["iqm-client", "qiskit", "iqm's example"],
)
def test_quick_starts_of_iqms_clients_run(server: Server, command: list[str]) -> None:
    arguments = [part.format(url=server.url) for part in command]
    done = subprocess.run(
        [sys.executable, *arguments], env=environment(server), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "00" in done.stdout
    assert not [line for line in server.calls() if "not implemented" in line]
    assert {job["state"] for job in server.jobs()} <= {"done", "cancelled"}
    assert server.jobs()


def test_adonis_has_the_couplers_and_the_noise_of_iqms_fake_backend() -> None:
    script = (
        "import json, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "from iqm.qiskit_iqm.fake_backends.fake_adonis import IQMFakeAdonis\n"
        "from qonduit.emulators.iqm_chip import chip\n"
        "from qonduit.emulators.iqm_circuit import noise_of\n"
        "theirs, ours = IQMFakeAdonis(), chip(None, None)\n"
        "assert theirs.architecture.qubits == list(ours.qubits)\n"
        "assert set(theirs.architecture.gates['cz'].loci) == set(ours.couplers)\n"
        "a, b = theirs.noise_model, noise_of(ours, ours.qubits)\n"
        "for gate in ('r', 'cz'):\n"
        "    assert a._local_quantum_errors[gate].keys() == b._local_quantum_errors[gate].keys()\n"
        "    for qubits, error in a._local_quantum_errors[gate].items():\n"
        "        assert error == b._local_quantum_errors[gate][qubits], (gate, qubits)\n"
        "assert a._local_readout_errors == b._local_readout_errors\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_bell_pair_is_perfect_without_noise_and_not_with_it(server: Server) -> None:
    _, ideal = ran(server, body(bell(), shots=1000))
    assert set(ideal["counts"]) == {"00", "11"}
    assert ideal["measurement_keys"] == ["m"]
    with running("iqm", seed=5) as noisy:
        _, real = ran(noisy, body(bell(), shots=1000))
    wrong = real["counts"].get("01", 0) + real["counts"].get("10", 0)
    assert 50 < wrong < 200


def test_each_key_has_its_bits_in_the_order_of_its_qubits(server: Server) -> None:
    flip = {"name": "prx", "locus": ["QB4"], "args": {"angle": 2 * HALF, "phase": 0.0}}
    measures = [
        {"name": "measure", "locus": ["QB1", "QB4"], "args": {"key": "second"}},
        {"name": "measure", "locus": ["QB2"], "args": {"key": "first"}},
    ]
    job, counts = ran(server, body([flip, *measures], shots=3))
    assert counts == {"measurement_keys": ["second", "first"], "counts": {"010": 3}}
    rows = call(server, "GET", f"jobs/{job}/artifacts/measurements").json()
    assert rows == [{"second": [[0, 1]] * 3, "first": [[0]] * 3}]


def test_logical_names_of_qubits_are_mapped(server: Server) -> None:
    pairs = [{"logical_name": "Alice", "physical_name": "QB5"}, {"logical_name": "Bob", "physical_name": "QB3"}]
    _, counts = ran(server, body(bell("Alice", "Bob"), qubit_mapping=pairs))
    assert set(counts["counts"]) == {"00", "11"}


def test_the_same_work_on_a_server_with_the_same_seed_gives_the_same_samples(server: Server) -> None:
    _, one = ran(server, body(bell()))
    with running("iqm", noise=False, seed=5) as other:
        _, two = ran(other, body(bell()))
    assert one == two


REFUSED: dict[str, dict[str, Any]] = {
    "no circuits": {"circuits": []},
    "no instructions": {"circuits": [{"name": "c"}]},
    "QIR": {"circuits": ["define void @main()"]},
    "an unknown gate": body([{"name": "cnot", "locus": ["QB1", "QB3"], "args": {}}, bell()[-1]]),
    "an unknown qubit": body([turn("QB9"), bell()[-1]]),
    "no coupler": body([{"name": "cz", "locus": ["QB1", "QB2"], "args": {}}, bell()[-1]]),
    "the same qubit twice": body([{"name": "cz", "locus": ["QB3", "QB3"], "args": {}}, bell()[-1]]),
    "no angle": body([{"name": "prx", "locus": ["QB1"], "args": {"phase": 0.0}}, bell()[-1]]),
    "an angle that is no number": body([turn("QB1", "half"), bell()[-1]]),  # type: ignore[arg-type]
    "no measurement": body([turn("QB1")]),
    "a key twice": body([bell()[-1], bell()[-1]]),
    "the old format": body([{"name": "prx", "qubits": ["QB1"], "args": {}}, bell()[-1]]),
    "no shots": body(bell(), shots=0),
    "too many shots": body(bell(), shots=10**7),
    "another calibration set": body(bell(), calibration_set_id="00000000-0000-4000-8000-000000000000"),
    "heralding": body(bell(), heralding_mode="zeros"),
    "another implementation": body([{**turn("QB1"), "implementation": "mystery"}, bell()[-1]]),
    "two names for a qubit": body(
        bell("a", "b"), qubit_mapping=[{"logical_name": name, "physical_name": "QB3"} for name in "ab"]
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_job_that_the_machine_cannot_do_is_refused_in_iqms_shape(server: Server, what: str) -> None:
    answer = call(server, "POST", "jobs/adonis/circuit", json=REFUSED[what])
    assert answer.status_code == 400
    assert answer.json()["error_code"] == "invalid_job_payload"
    assert answer.json()["message"]
    assert server.jobs() == []


def test_what_does_not_exist_is_404_and_what_is_not_emulated_501(server: Server) -> None:
    missing = {
        "jobs/none": "job_not_found",
        "jobs/none/payload": "job_not_found",
        "quantum-computers/none/health": "qc_not_found",
        "calibration-sets/adonis/none/metrics": "calibration_set_not_found",
    }
    for path, code in missing.items():
        answer = call(server, "GET", path)
        assert (answer.status_code, answer.json()["error_code"]) == (404, code)
    assert call(server, "POST", "jobs/none/circuit", json=body(bell())).status_code == 404
    assert call(server, "GET", "quantum-computers/adonis/timeslots").status_code == 501
    assert any("not implemented: GET" in line and "timeslots" in line for line in server.calls())


def test_a_wrong_token_is_401_everywhere(server: Server) -> None:
    for path in ("quantum-computers", "about", "jobs/none", "calibration-sets/adonis/default"):
        for headers in (
            {},
            {"Authorization": "Bearer wrong"},
            {"Authorization": server.token_file.read_text().strip()},
        ):
            answer = requests.get(f"{server.url}/api/v1/{path}", headers=headers, timeout=60)
            assert (answer.status_code, answer.json()["error_code"]) == (401, "unauthorized")


def test_a_job_that_ended_cannot_be_cancelled_but_can_be_deleted(server: Server) -> None:
    job, _ = ran(server, body(bell()))
    answer = call(server, "POST", f"jobs/{job}/cancel")
    assert (answer.status_code, answer.json()["error_code"]) == (403, "illegal_job_status")
    assert call(server, "DELETE", f"jobs/{job}").status_code == 204
    assert call(server, "GET", f"jobs/{job}").status_code == 404


def test_a_waiting_job_has_a_position_a_tag_and_an_end_to_a_long_poll(server: Server) -> None:
    server.inject({"fault": "stays-queued"})
    made = call(server, "POST", "jobs/adonis/circuit?tag=mine", json=body(bell())).json()
    assert (made["status"], made["queue_position"], made["tag"]) == ("waiting", 0, "mine")
    assert call(server, "GET", "quantum-computers/adonis/queue-availability").json()["queue_length"] == 1
    waited = call(server, "GET", f"jobs/{made['id']}?wait_until_terminal=true&timeout_seconds=0")
    assert waited.headers["IQM-Long-Poll-Timed-Out"] == "true"
    assert call(server, "POST", f"jobs/{made['id']}/cancel").json()["status"] == "cancelled"
    assert call(server, "POST", f"jobs/adonis/circuit?tag={'x' * 51}", json=body(bell())).status_code == 400


def test_jobs_results_and_the_calibration_outlive_a_restart(tmp_path: Path) -> None:
    path = "calibration-sets/adonis/default/dynamic-quantum-architecture"
    with running("iqm", home=tmp_path, noise=False) as server:
        first = call(server, "GET", path).json()
        server.inject({"fault": "calibration-changes", "on": "discover"})
        architecture = call(server, "GET", path).json()
        assert architecture != first
        job, counts = ran(server, body(bell()))
        payload = call(server, "GET", f"jobs/{job}/payload")
        server.restart()
        assert call(server, "GET", path).json() == architecture
        assert call(server, "GET", f"jobs/{job}/artifacts/measurement_counts").json() == [counts]
        assert json.loads(payload.text) == call(server, "GET", f"jobs/{job}/payload").json() == body(bell())
        assert payload.headers["IQM-Job-Type"] == "circuit"


def test_after_a_calibration_the_old_set_is_gone(server: Server) -> None:
    path = "calibration-sets/adonis/{}/dynamic-quantum-architecture"
    old = call(server, "GET", path.format("default")).json()["calibration_set_id"]
    server.inject({"fault": "calibration-changes", "on": "discover"})
    new = call(server, "GET", path.format("default")).json()["calibration_set_id"]
    assert new != old
    assert call(server, "GET", path.format(old)).status_code == 404
    assert call(server, "POST", "jobs/adonis/circuit", json=body(bell(), calibration_set_id=old)).status_code == 400
    assert call(server, "POST", "jobs/adonis/circuit", json=body(bell(), calibration_set_id=new)).status_code == 200


def test_chips_are_stars_or_crystals_by_their_size() -> None:
    assert chip(None, None) == chip(5, "star")
    assert all("QB3" in coupler for coupler in chip(8, None).couplers)
    twenty = chip(20, None)
    assert ("QB1", "QB2") in twenty.couplers
    assert ("QB1", "QB6") in twenty.couplers
    assert ("QB5", "QB6") not in twenty.couplers
    assert len(twenty.couplers) == 31
    assert len(chip(24, "star").couplers) == 23
    assert len(chip(54, None).qubits) == 54
    for qubits, topology in ((1, None), (55, None), (25, "star"), (5, "ring")):
        with pytest.raises(UsageError):
            chip(qubits, topology)


def test_a_crystal_of_twenty_qubits_runs_a_circuit_on_some_of_them() -> None:
    with running("iqm", qubits=20) as server:
        alias = call(server, "GET", "quantum-computers").json()["quantum_computers"][0]["alias"]
        made = call(server, "POST", f"jobs/{alias}/circuit", json=body(bell("QB12", "QB17"))).json()
        ended = call(server, "GET", f"jobs/{made['id']}?wait_until_terminal=true&timeout_seconds=30").json()
        assert (alias, ended["status"]) == ("crystal20", "completed")
