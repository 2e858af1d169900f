"""The spool: `qonduit-solve` leaves its request, exits with 75 and goes on when it is run again with the result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import dimod
import pytest

from qonduit.devices.execute import execute
from qonduit.devices.registry import open_device
from qonduit.devices.request import Request, Result
from qonduit.devices.settings import read_settings
from qonduit.devices.solve import Solver
from qonduit.devices.spool import Spool, WaitingError
from qonduit.emulators.running import Server
from qonduit.errors import DataError, UsageError
from qonduit_steps.problem import Cluster, InputPartition, Member, Penalty, Problem, problem_to_json

COMMAND = Path(sys.executable).parent / "qonduit-solve"
QUBO = dimod.BinaryQuadraticModel({"a": -5.0, "b": -4.0, "c": -3.0}, {("a", "b"): 6.0, ("b", "c"): 6.0}, 0.0, "BINARY")


def problem_file(folder: Path) -> Path:
    clusters = tuple(
        Cluster(f"kmeans:{n}", (Member(0, "kmeans", n),), 10, weight, True) for n, weight in enumerate((5.0, 4.0, 3.0))
    )
    edges = (("kmeans:0", "kmeans:1"), ("kmeans:1", "kmeans:2"))
    partitions = (InputPartition(0, "kmeans", ("kmeans:1",)),)
    problem = Problem(30, 0, "silhouette", Penalty("auto", 4.5, 4.0), clusters, edges, partitions)
    path = folder / "problem.json"
    path.write_text(json.dumps(problem_to_json(problem)))
    return path


def device_file(server: Server, folder: Path, **options: object) -> Path:
    content = json.loads(server.device_file.read_text())
    content |= {"token_file": str(server.token_file), "options": {**content["options"], **options}}
    path = folder / "device.json"
    path.write_text(json.dumps(content))
    return path


def step(folder: Path, device: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "QONDUIT_DEVICE": str(device), "QONDUIT_SPOOL": str(folder / "spool")}
    command = [str(COMMAND), "--problem", "problem.json", "--out", "samples.json", "--shots", "20", "--seed", "3"]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize(("options", "rounds"), [({}, 1), ({"layers": 2, "angles": "device", "rounds": 3}, 3)])
def test_a_step_leaves_its_request_as_often_as_it_needs_and_waits_for_nothing(
    tmp_path: Path, iqm_emulator: Server, options: dict[str, object], rounds: int
) -> None:
    problem_file(tmp_path)
    device = device_file(iqm_emulator, tmp_path, **options)
    spool = tmp_path / "spool"
    spool.mkdir()
    for _ in range(rounds):
        done = step(tmp_path, device)
        assert done.returncode == 75, done.stderr
        assert done.stderr.count("\n") == 1
        assert not (tmp_path / "samples.json").exists()
        # What a connector does: the request as it is, on the same device, by somebody else.
        request = Request.from_json((spool / "request.json").read_text())
        result = execute(open_device(read_settings(device)), request)
        (spool / "result.json").write_text(json.dumps(dict(result.payload)))
    done = step(tmp_path, device)
    assert done.returncode == 0, done.stderr
    content = json.loads((tmp_path / "samples.json").read_text())
    assert content["best"]["variables"] == ["kmeans:0", "kmeans:2"]
    assert len(iqm_emulator.jobs()) == rounds
    assert len({job["label"] for job in iqm_emulator.jobs()}) == rounds


def test_rounds_of_a_variational_device_are_each_bought_once(
    tmp_path: Path, iqm_emulator: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QONDUIT_LEDGER", str(tmp_path / "ledger.db"))
    settings = read_settings(device_file(iqm_emulator, tmp_path, layers=2, angles="device", rounds=3))
    for _ in range(2):
        solved = Solver(open_device(settings), settings).solve(QUBO, 20, 1)
        assert len(solved.jobs) == 3
        assert len(iqm_emulator.jobs()) == 3
    assert solved.reused
    calls = len(iqm_emulator.calls())
    assert Solver(open_device(settings), settings).solve(QUBO, 20, 1).reused
    assert len(iqm_emulator.calls()) == calls


def test_a_local_device_has_no_use_for_a_spool(tmp_path: Path) -> None:
    problem_file(tmp_path)
    (tmp_path / "spool").mkdir()
    (tmp_path / "device.json").write_text('{"kind": "exact"}')
    done = step(tmp_path, tmp_path / "device.json")
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "spool").iterdir()) == []


def test_a_step_that_was_stopped_while_it_took_an_answer_takes_it_once(tmp_path: Path) -> None:
    request = Request("model", QUBO.to_serializable(), 5, 0, {"round": 1})
    spool = Spool(tmp_path)
    with pytest.raises(WaitingError, match=r"request\.json"):
        spool.ask(request)
    asked = (tmp_path / "request.json").read_text()
    (tmp_path / "result.json").write_text('{"rows": 1}')
    assert spool.rounds(request) == [(request, Result({"rows": 1}))]
    # As if the step had been stopped before it could remove them.
    (tmp_path / "request.json").write_text(asked)
    (tmp_path / "result.json").write_text('{"rows": 1}')
    assert Spool(tmp_path).rounds(request) == [(request, Result({"rows": 1}))]
    assert not (tmp_path / "result.json").exists()


def test_what_another_problem_left_in_the_spool_is_not_taken_for_an_answer(tmp_path: Path) -> None:
    one, two = (Request("model", QUBO.to_serializable(), 5, seed, {}) for seed in (1, 2))
    spool = Spool(tmp_path)
    for left in ("request", "rounds"):
        with pytest.raises(WaitingError):
            spool.ask(one)
        (tmp_path / "result.json").write_text('{"rows": 1}')
        if left == "rounds":
            assert len(spool.rounds(one)) == 1
        assert spool.rounds(two) == []
        assert list(tmp_path.iterdir()) == []
    # An answer that was left over is not the answer to a new request.
    (tmp_path / "result.json").write_text('{"rows": 1}')
    with pytest.raises(WaitingError):
        spool.ask(two)
    assert spool.rounds(two) == []


def test_a_spool_that_is_missing_or_broken_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="QONDUIT_SPOOL"):
        Spool(tmp_path / "nowhere")
    question = Request("model", QUBO.to_serializable(), 5, 0, {})
    for content in ("{", "[1]", '[[{"kind": 1}, {}]]'):
        (tmp_path / "rounds.json").write_text(content)
        with pytest.raises(DataError, match=r"rounds\.json"):
            Spool(tmp_path).rounds(question)
    (tmp_path / "rounds.json").unlink()
    with pytest.raises(WaitingError):
        Spool(tmp_path).ask(question)
    (tmp_path / "result.json").write_text("[]")
    with pytest.raises(DataError, match=r"result\.json"):
        Spool(tmp_path).rounds(question)
