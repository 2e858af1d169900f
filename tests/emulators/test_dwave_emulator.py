"""The emulated D-Wave server, through the vendor's own client: quick starts, every call it makes, and refusals."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import dimod
import numpy as np
import pytest

from qonduit.emulators.annealing import sampled, working_graph
from qonduit.emulators.running import Server, running
from qonduit.errors import DeviceError, UsageError

QUICKSTART = Path(__file__).parent / "quickstart"


@pytest.fixture(scope="module")
def emulated() -> Iterator[Server]:
    with running("dwave", qubits=100, seed=2, noise=False) as server:
        yield server


@pytest.fixture
def server(emulated: Server) -> Server:
    emulated.clear()
    emulated.forget()
    return emulated


@pytest.fixture
def client(server: Server) -> Iterator[Any]:
    # The client warns of its own coming changes; they are not what is tested here.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from dwave.cloud import Client

        with Client(endpoint=server.url, token=token(server)) as client:
            yield client


def token(server: Server) -> str:
    return server.token_file.read_text(encoding="utf-8").strip()


def api(server: Server, kind: str) -> Any:
    """The vendor's low-level resources, which check each answer's type and version."""
    from dwave.cloud import api

    return getattr(api, kind)(endpoint=server.url, token=token(server), retry={"total": 0})


@pytest.mark.parametrize("name", ["dwave_qpu", "dwave_hybrid"])
def test_a_documented_quick_start_runs_unmodified(server: Server, tmp_path: Path, name: str) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("DWAVE_")}
    environment |= {"DWAVE_API_ENDPOINT": server.url, "DWAVE_API_TOKEN": token(server), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(QUICKSTART / f"{name}.py")], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert len(server.jobs()) == 1
    assert server.jobs()[0]["label"] == "first steps"
    lines = done.stdout.splitlines()
    if name == "dwave_qpu":
        assert float(lines[1]) == -2.0, "the optimum of the script's problem selects a and c"
    else:
        assert int(lines[0]) == 300
    assert float(lines[2]) > 0
    assert not any("not implemented" in line for line in server.calls())


@pytest.mark.parametrize("kind", ["ising", "qubo"])
@pytest.mark.parametrize("params", [{}, {"answer_mode": "raw"}, {"max_answers": 1}, {"annealing_time": 100}])
def test_the_client_reads_samples_whose_energies_are_those_of_its_problem(
    client: Any, kind: str, params: dict[str, Any]
) -> None:
    solver = client.get_solver(qpu=True)
    u, v = min(solver.undirected_edges)
    h, j = {u: 0.5, v: -0.25}, {(u, v): 0.75}
    if kind == "ising":
        values, future = (-1, 1), solver.sample_ising(h, j, offset=2.0, num_reads=20, **params)
    else:
        values, future = (
            (0, 1),
            solver.sample_qubo({(u, u): 0.5, (v, v): -0.25, (u, v): 0.75}, 2.0, num_reads=20, **params),
        )
    samples, energies, counts = future.samples, future.energies, future.num_occurrences
    best = min(0.5 * a - 0.25 * b + 0.75 * a * b + 2.0 for a, b in product(values, repeat=2))
    assert min(energies) == pytest.approx(best)
    for sample, energy in zip(samples, energies, strict=True):
        a, b = sample[u], sample[v]
        assert energy == pytest.approx(0.5 * a - 0.25 * b + 0.75 * a * b + 2.0)
    if "max_answers" not in params:
        assert sum(counts) == 20
    if params.get("answer_mode") == "raw":
        assert len(energies) == 20
    assert future.timing["qpu_anneal_time_per_sample"] == params.get("annealing_time", 20.0)


def test_a_compressed_submission_is_read(server: Server) -> None:
    from dwave.cloud import Client

    with Client(endpoint=server.url, token=token(server), compress_qpu_problem_data=True) as client:
        solver = client.get_solver(qpu=True)
        assert solver.sample_ising({min(solver.nodes): 1.0}, {}, num_reads=5).energies[0] == -1.0


def test_every_question_about_a_problem_is_answered_in_the_promised_form(server: Server, client: Any) -> None:
    solver = client.get_solver(qpu=True)
    future = solver.sample_ising({min(solver.nodes): 1.0}, {}, label="mine", num_reads=7)
    future.wait()
    with api(server, "Problems") as problems:
        assert [one.id for one in problems.list_problems(label="mine")] == [future.id]
        assert problems.list_problems(label="another") == []
        assert [one.id for one in problems.list_problems(status="COMPLETED", max_results=1)] == [future.id]
        assert problems.list_problems(status="FAILED") == []
        assert [one.id for one in problems.list_problems(solver=solver.name)] == [future.id]
        assert problems.get_problem_status(future.id).status == "COMPLETED"
        assert [one.status for one in problems.get_problem_statuses([future.id, "no-such-job"])] == ["COMPLETED"]
        assert problems.get_problem(future.id).answer.num_variables == solver.num_qubits
        assert problems.get_problem_answer(future.id).format == "qp"
        assert problems.get_problem_messages(future.id) == []
        info = problems.get_problem_info(future.id)
        assert info.params["num_reads"] == 7
        assert info.metadata.label == "mine"


@pytest.mark.parametrize(
    "question", ["get_problem", "get_problem_status", "get_problem_answer", "get_problem_info", "get_problem_messages"]
)
def test_nothing_is_known_of_a_problem_that_nobody_sent(server: Server, question: str) -> None:
    from dwave.cloud.api.exceptions import ResourceNotFoundError

    with api(server, "Problems") as problems, pytest.raises(ResourceNotFoundError):
        getattr(problems, question)("no-such-job")


def test_a_waiting_problem_is_pending_until_it_is_cancelled(server: Server, client: Any) -> None:
    server.inject({"fault": "stays-queued", "times": 2})
    solver = client.get_solver(qpu=True)
    futures = [solver.sample_ising({min(solver.nodes): 1.0}, {}, label=f"{number}") for number in range(2)]
    with api(server, "Problems") as problems:
        # The client submits in the background: the queue is what says that both have come.
        until = time.monotonic() + 30
        while len(waiting := problems.list_problems(status="PENDING")) < 2:
            assert time.monotonic() < until
        one, other = (problem.id for problem in waiting)
        assert problems.get_problem_status(one, timeout=0).status == "PENDING"
        assert problems.cancel_problem(one).status == "CANCELLED"
        [cancelled, ended, unknown] = problems.cancel_problems([other, one, "no-such-job"])
        assert cancelled.status == "CANCELLED"
        assert (ended.error_code, unknown.error_code) == (409, 404)
    for future in futures:
        with pytest.raises(Exception, match=r"(?i)cancel"):
            future.result()


def test_solvers_can_be_asked_in_part(server: Server) -> None:
    with api(server, "Solvers") as solvers:
        whole, part = solvers.list_solvers(), solvers.list_solvers(filter="none,+identity,+properties.category")
        name = whole[0].identity.name
        assert [one.identity.name for one in part] == [one.identity.name for one in whole]
        assert [one.properties for one in part] == [{"category": "qpu"}, {"category": "hybrid"}]
        static = solvers.get_solver(name, filter="all,-status,-avg_load,-properties.couplers")
        assert "couplers" not in static.properties
        assert len(static.properties["qubits"]) == 100
        assert not hasattr(static.root, "avg_load")


def test_regions_lead_back_to_this_server(server: Server) -> None:
    from dwave.cloud.api.resources import Regions

    address = server.url.removesuffix("/sapi/v2") + "/metadata/v1/"
    with Regions(endpoint=address, token=token(server)) as regions:
        assert [region.endpoint for region in regions.list_regions()] == [f"{server.url}/"]


def job(server: Server, **changes: Any) -> dict[str, Any]:
    """A problem on one qubit, as it goes over the wire."""
    with api(server, "Solvers") as solvers:
        qpu = solvers.list_solvers()[0]
    lin = np.full(len(qpu.properties["qubits"]), np.nan)
    lin[0] = changes.pop("bias", 1.0)
    lin = lin[: changes.pop("length", None)]
    data = {"format": "qp", "lin": base64.b64encode(lin.astype("<f8").tobytes()).decode(), "quad": ""}
    return {"solver": qpu.identity.dict(), "type": "ising", "data": data, "params": {"num_reads": 1}, **changes}


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({"solver": {"name": "another"}}, 404, "Solver does not exist"),
        ({"solver": {"name": "Emulated_pegasus_100", "version": {"graph_id": "old"}}}, 400, "working graph"),
        ({"type": "cqm"}, 400, "type cqm"),
        ({"length": 3}, 400, "lin has 3 values"),
        ({"bias": 4.5, "params": {"auto_scale": False}}, 400, "exceeds the solver's range"),
        ({"bias": float("inf")}, 400, "not finite"),
        ({"params": {"num_reads": 10_001}}, 400, "num_reads"),
        ({"params": {"num_reads": 0}}, 400, "num_reads"),
        ({"params": {"num_reads": "many"}}, 400, "cannot be read"),
        ({"params": {"annealing_time": 0.1}}, 400, "annealing_time"),
        ({"params": {"num_reads": 10_000, "annealing_time": 2000}}, 400, "run duration"),
        ({"params": {"initial_state": []}}, 400, "initial_state is not a parameter"),
        ({"data": {"format": "qp", "lin": "!", "quad": ""}}, 400, "cannot be read"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_wrong_problem_is_refused_in_the_vendors_form(
    server: Server, changes: dict[str, Any], status: int, said: str
) -> None:
    import requests

    headers = {"X-Auth-Token": token(server)}
    problem = job(server, **changes)
    several = requests.post(f"{server.url}/problems/", json=[problem], headers=headers, timeout=30)
    assert several.status_code == 200
    assert several.json()[0]["error_code"] == status
    assert said in several.json()[0]["error_msg"]
    single = requests.post(f"{server.url}/problems/", json=problem, headers=headers, timeout=30)
    assert (single.status_code, single.json()) == (status, several.json()[0])
    assert server.jobs() == []


def test_biases_out_of_range_are_scaled_where_that_was_asked(client: Any) -> None:
    solver = client.get_solver(qpu=True)
    future = solver.sample_ising({min(solver.nodes): 40.0}, {}, num_reads=5)
    assert future.energies[0] == -40.0


def test_an_upload_whose_checksum_is_wrong_is_refused(server: Server) -> None:
    import requests

    with requests.Session() as session:
        session.headers["X-Auth-Token"] = token(server)
        name = session.post(f"{server.url}/bqm/multipart", json={"size": 3}, timeout=30).json()["id"]
        address = f"{server.url}/bqm/multipart/{name}"
        wrong = session.put(f"{address}/part/1", data=b"abc", headers={"Content-MD5": "wrong"}, timeout=30)
        assert wrong.json()["error_code"] == 400
        assert session.post(f"{address}/combine", json={"checksum": "wrong"}, timeout=30).status_code == 400
        problem = {"solver": {"name": "hybrid_binary_quadratic_model_emulated"}, "type": "bqm", "params": {}}
        problem |= {"data": {"format": "ref", "data": name}}
        refused = session.post(f"{server.url}/problems/", json=[problem], timeout=30).json()[0]
        assert "not uploaded" in refused["error_msg"]


@pytest.mark.parametrize("body", [b"", b"no json", b"[1, 2]", b"[null]"])
def test_a_body_that_is_no_problem_is_no_failure_of_the_server(server: Server, body: bytes) -> None:
    import requests

    answer = requests.post(f"{server.url}/problems/", data=body, headers={"X-Auth-Token": token(server)}, timeout=30)
    entries = answer.json() if answer.status_code == 200 else [answer.json()]
    assert {entry["error_code"] for entry in entries} == {400}


def test_a_call_that_is_not_implemented_says_so_and_is_logged(server: Server) -> None:
    import requests

    answer = requests.get(f"{server.url}/quota", headers={"X-Auth-Token": token(server)}, timeout=30)
    assert (answer.status_code, answer.json()["error_code"]) == (501, 501)
    assert any("not implemented: GET /sapi/v2/quota" in line for line in server.calls())


def test_a_wrong_token_is_refused(server: Server) -> None:
    import requests

    for headers in ({}, {"X-Auth-Token": "wrong"}, {"X-Auth-Token": "ä"}):
        sent = {key: value.encode() for key, value in headers.items()}
        assert requests.get(f"{server.url}/solvers/remote/", headers=sent, timeout=30).status_code == 401


def test_jobs_and_the_working_graph_are_kept_over_a_restart(tmp_path: Path) -> None:
    with running("dwave", home=tmp_path, qubits=50, seed=4) as server:
        with api(server, "Solvers") as solvers:
            first = solvers.list_solvers()[0].identity
            server.inject({"fault": "calibration-changes", "on": "discover"})
            before = solvers.list_solvers()[0].identity
        assert before != first
        server.inject({"fault": "stays-queued"})
        with api(server, "Problems") as problems:
            from dwave.cloud.api.models import ProblemJob

            [waiting] = problems.submit_problems([ProblemJob(**job(server, label="kept"))])
        server.restart(kill=True)
        with api(server, "Solvers") as solvers:
            assert solvers.list_solvers()[0].identity == before
        with api(server, "Problems") as problems:
            assert [one.id for one in problems.list_problems(label="kept")] == [waiting.id]


@pytest.mark.parametrize(("topology", "qubits"), [("pegasus", 8), ("pegasus", 200), ("chimera", 8), ("chimera", 200)])
def test_a_machine_has_as_many_working_qubits_as_asked_and_they_hang_together(topology: str, qubits: int) -> None:
    import networkx as nx

    graph, made = working_graph(topology, qubits, 1)
    assert len(graph) == qubits < made
    assert nx.is_connected(graph)
    again, _ = working_graph(topology, qubits, 1)
    assert sorted(again.edges) == sorted(graph.edges)


@pytest.mark.parametrize("topology", ["pegasus", "chimera"])
def test_another_seed_is_a_machine_with_other_defects(topology: str) -> None:
    (one, _), (other, _) = (working_graph(topology, None, seed) for seed in (1, 2))
    assert set(one) != set(other)
    assert sorted(one.edges) != sorted(other.edges)


@pytest.mark.parametrize(("topology", "qubits"), [("torus", None), ("pegasus", 100_000)])
def test_a_machine_that_cannot_be_made_is_refused(topology: str, qubits: int | None) -> None:
    with pytest.raises(UsageError):
        working_graph(topology, qubits, 1)


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(DeviceError), running("dwave", home=tmp_path, topology="torus"):
        pass
    assert "--topology" in (tmp_path / "log").read_text(encoding="utf-8")


def test_without_noise_the_optimum_of_a_small_problem_comes_up() -> None:
    rng = np.random.default_rng(5)
    graph, _ = working_graph("pegasus", 12, 1)
    h = {qubit: float(rng.normal()) for qubit in graph}
    j = [[u, v, float(rng.normal())] for u, v in graph.edges]
    bqm = dimod.BinaryQuadraticModel.from_ising(h, {(u, v): bias for u, v, bias in j})
    best = dimod.ExactSolver().sample(bqm).first.energy  # type: ignore[no-untyped-call]
    spins = sampled(h, j, 50, 20.0, noise=False, seed=1)
    assert bqm.energies((spins, sorted(h))).min() == pytest.approx(best)


def test_noise_blurs_and_the_same_seed_gives_the_same_samples() -> None:
    h, j = {0: 0.05, 1: 0.0}, [[0.0, 1.0, -0.05]]
    clean, noisy, again = (sampled(h, j, 400, 20.0, noise, 3) for noise in (False, True, True))
    assert np.array_equal(noisy, again)
    assert (clean == -1).mean() > 0.95 > (noisy == -1).mean()
