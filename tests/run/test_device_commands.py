"""`qonduit devices`, `qonduit solve`, `qonduit ledger` and `qonduit emulate`, as people call them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import dimod
import pytest

from qonduit.devices.ledger import Ledger
from qonduit.devices.request import Request
from qonduit.emulators.running import Server
from qonduit_steps.problem import Cluster, InputPartition, Member, Penalty, Problem, problem_to_json

COMMAND = Path(sys.executable).parent / "qonduit"
WEIGHTS = {"kmeans:0": 5.0, "kmeans:1": 3.0, "dbscan:0": 4.0, "hierarchical:0": 2.0}
EDGES = (("kmeans:0", "dbscan:0"), ("dbscan:0", "kmeans:1"), ("hierarchical:0", "kmeans:1"))


def small_problem(folder: Path) -> Path:
    clusters = tuple(
        Cluster(name, (Member(0, name.split(":")[0], 0),), 10, weight, True) for name, weight in WEIGHTS.items()
    )
    partitions = (InputPartition(0, "kmeans", ("kmeans:0", "kmeans:1")),)
    problem = Problem(40, 1, "silhouette", Penalty("auto", 4.5, 4.0), clusters, EDGES, partitions)
    path = folder / "problem.json"
    path.write_text(json.dumps(problem_to_json(problem)))
    return path


def qonduit(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, *map(str, arguments)],
        env={**os.environ, "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def device_file(server: Server, folder: Path) -> Path:
    content = json.loads(server.device_file.read_text())
    path = folder / "dwave.json"
    path.write_text(json.dumps({**content, "token_file": str(server.token_file), "shots": 20}))
    return path


def test_solve_shows_progress_and_compares_with_the_optimum(tmp_path: Path, dwave_emulator: Server) -> None:
    device = device_file(dwave_emulator, tmp_path)
    ledger = str(tmp_path / "ledger.db")
    out = tmp_path / "samples.json"
    arguments = ("solve", small_problem(tmp_path), "--device", device, "--out", out)
    done = qonduit(*arguments, QONDUIT_LEDGER=ledger)
    assert done.returncode == 0, done.stderr
    assert "dwave: done" in done.stderr
    assert "-8, reached" in done.stdout
    assert "P(optimum) raw" in done.stdout
    assert json.loads(out.read_text())["shots"] == 20
    again = qonduit(*arguments, QONDUIT_LEDGER=ledger)
    assert "nothing was bought" in again.stdout
    assert len(dwave_emulator.jobs()) == 1
    other = qonduit(*arguments, QONDUIT_LEDGER=ledger, QONDUIT_RUN="another")
    assert other.returncode == 0
    assert len(dwave_emulator.jobs()) == 2


def test_solve_prints_samples_as_json_and_nothing_else(tmp_path: Path) -> None:
    done = qonduit("solve", small_problem(tmp_path), "--device", "exact", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    content = json.loads(done.stdout)
    assert content["best"]["energy"] == -8.0
    assert content["statistics"]["optimum_raw"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("nowhere.json",), 2, "nowhere.json"),
        (("problem.json", "--device", "abacus"), 2, "abacus"),
        (("problem.json", "--device", "nowhere.json"), 2, "nowhere.json"),
        (("problem.json", "--shots", "0"), 2, "--shots"),
        (("problem.json", "--out", "no/such/folder/s.json"), 2, "--out"),
    ],
)
def test_a_mistake_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: int, said: str
) -> None:
    small_problem(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = qonduit("solve", *arguments)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_devices_are_asked_what_they_can_do(tmp_path: Path, dwave_emulator: Server) -> None:
    device_file(dwave_emulator, tmp_path)
    (tmp_path / "exact.json").write_text('{"kind": "exact"}')
    (tmp_path / "notes.json").write_text('{"milk": 2}')
    done = qonduit("devices", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "dwave.json" in done.stdout
    assert "notes.json" not in done.stdout
    rows = json.loads(qonduit("devices", tmp_path, "--json").stdout)
    assert [(Path(row["file"]).name, row["kind"], row["online"]) for row in rows] == [
        ("dwave.json", "dwave", True),
        ("exact.json", "exact", True),
    ]
    assert rows[0]["qubits"] > 0
    assert rows[0]["latency_s"] > 0
    assert rows[0]["calibration_id"]


def test_a_device_that_is_away_is_told_and_counts_in_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    (tmp_path / "token").chmod(0o600)
    content = {"kind": "dwave", "url": "http://127.0.0.1:9/sapi/v2", "token_file": "token"}
    (tmp_path / "away.json").write_text(json.dumps(content))
    (tmp_path / "exact.json").write_text('{"kind": "exact"}')
    (tmp_path / "odd.json").write_text('{"kind": "abacus"}')
    done = qonduit("devices", tmp_path)
    assert done.returncode == 69
    assert "abacus" in done.stdout
    empty = qonduit("devices", tmp_path / "none")
    assert empty.returncode == 2
    assert "no device file" in empty.stderr


def entries(path: Path) -> Ledger:
    ledger = Ledger(path)
    qubo = dimod.BinaryQuadraticModel({"a": -1.0}, {}, 0.0, "BINARY").to_serializable()
    for seed in range(3):
        request = Request("iqm", qubo, 9, seed, {})
        ledger.sending(ledger.plan(json.dumps(["iqm", "http://here", {}]), "monday", request))
    return ledger


def test_the_ledger_is_listed_shown_resolved_and_exported(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    ledger = entries(path)
    keys = [entry.key for entry in ledger.entries()]
    listed = qonduit("ledger", "list", "--ledger", path)
    assert all(key[:12] in listed.stdout for key in keys)
    rows = json.loads(qonduit("ledger", "list", "--run", "monday", "--json", QONDUIT_LEDGER=str(path)).stdout)
    assert [(row["key"], row["state"], row["shots"]) for row in rows] == [(key, "sending", 9) for key in keys]
    shown = qonduit("ledger", "show", keys[0], "--ledger", path)
    assert "--not-sent" in shown.stdout
    for key, choice, state in (
        (keys[0], ("--job", "j7"), "submitted"),
        (keys[1], ("--not-sent",), "planned"),
        (keys[2], ("--abandon",), "cancelled"),
    ):
        done = qonduit("ledger", "resolve", key, *choice, "--ledger", path)
        assert (done.returncode, ledger.entry(key).state) == (0, state), done.stderr
    assert ledger.entry(keys[0]).job == "j7"
    exported: list[dict[str, Any]] = json.loads(qonduit("ledger", "export", "--ledger", path).stdout)
    assert [entry["request"]["shots"] for entry in exported] == [9, 9, 9]
    assert json.loads(qonduit("ledger", "show", keys[0], "--json", "--ledger", path).stdout) == exported[0]
    ledger.close()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "nothing"), "no entry"),
        (("list", "--state", "odd"), "there is no state"),
        (("resolve", "KEY"), "exactly one"),
        (("resolve", "KEY", "--job", "j", "--abandon"), "exactly one"),
        (("resolve", "KEY", "--job", ""), "exactly one"),
        (("resolve", "DONE", "--not-sent"), "cannot be decided"),
        (("list", "--ledger", "nowhere.db"), "there is no ledger"),
    ],
)
def test_a_decision_that_cannot_be_taken_is_refused(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    ledger = entries(tmp_path / "ledger.db")
    first, second, _ = ledger.entries()
    ledger.ended(second, "failed", "it broke")
    names = {"KEY": first.key, "DONE": second.key}
    where = () if "--ledger" in arguments else ("--ledger", ledger.path)
    done = qonduit("ledger", *(names.get(word, word) for word in arguments), *where)
    assert done.returncode == 2
    assert said in done.stderr
    ledger.close()


def test_an_emulated_device_says_where_it_is_and_ends_when_it_is_told(tmp_path: Path) -> None:
    command = [str(COMMAND), "emulate", "dwave", "--port", "0", "--qubits", "100", "--home", str(tmp_path / "home")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(4)]
        assert "http://127.0.0.1:" in said[0]
        assert str(tmp_path / "home" / "token") in said[1]
        second = qonduit("emulate", "dwave", "--port", "0", "--home", tmp_path / "home")
        assert second.returncode == 2
        assert "--home" in second.stderr
        used = said[0].rsplit(":", 1)[1].split("/")[0]
        third = qonduit("emulate", "dwave", "--port", used, "--home", tmp_path / "other")
        assert third.returncode == 2
        assert "--port" in third.stderr
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
