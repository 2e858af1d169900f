"""`qonduit-loop` by hand: what it writes, and the sentence it says to bad input."""

import json
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

LOOP = Path(sysconfig.get_path("scripts")) / "qonduit-loop"


def loop(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([LOOP, *arguments], cwd=folder, capture_output=True, text=True)


def iteration(folder: Path, index: int, score: float, started: float = 1e9, labels: int = 3) -> Path:
    """An iteration folder as the score step leaves it."""
    made = folder / f"iteration-{index}"
    made.mkdir()
    (made / "score.json").write_text(json.dumps({"score": score, "iteration": index}))
    record = {"step": "score", "started": started + 5, "earlier": [{"step": "cluster", "started": started}]}
    (made / "record.json").write_text(json.dumps(record))
    np.savez(made / "best.npz", labels=np.array([index, 0, 1], np.int32), assigned=np.zeros(3, bool))
    for name in ("problem.json", "samples.json", *(f"labels-{place}.npz" for place in range(labels))):
        (made / name).write_text(f"{name} of {index}")
    return made


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_gate_and_select_make_the_run_folder_of_the_best_iteration(tmp_path: Path) -> None:
    now = time.time()
    for index, score in enumerate([0.4, 0.7, 0.7, 0.2]):
        iteration(tmp_path, index, score, started=now - 100 + index, labels=11)
    options = ["--max-iterations", "4", "--width", "2", "--out", "next.json"]
    assert loop(tmp_path, "gate", "--iterations", "iteration-0", "iteration-1", "--keep", "a", *options).returncode == 0
    assert read(tmp_path / "next.json") == {
        "go": True,
        "indices": [2, 3],
        "kept": {"class": "Directory", "path": "a"},
    }
    assert loop(tmp_path, "gate", "--iterations", "iteration-2", "iteration-3", "--keep", "b", *options).returncode == 0
    assert read(tmp_path / "next.json")["go"] is False
    (tmp_path / "run").mkdir()
    done = loop(tmp_path, "select", "--passes", "b", "a", "--folder", "run", *options)
    assert done.returncode == 0, done.stderr
    summary = read(tmp_path / "run" / "summary.json")
    assert 97 < summary.pop("seconds") < 1000
    assert summary == {
        "best_score": 0.7,
        "best_iteration": 1,
        "scores": [0.4, 0.7, 0.7, 0.2],
        "passed": False,
        "threshold": 0.8,
        "max_iterations": 4,
        "width": 2,
        "labels": "labels.csv",
        "report": "report.html",
    }
    assert (tmp_path / "run" / "labels.csv").read_text() == "1\n0\n1\n"
    assert (tmp_path / "run" / "problem.json").read_text() == "problem.json of 1"
    assert len(read(tmp_path / "run" / "history.json")) == 4
    written = [Path(file["path"]).name for file in read(tmp_path / "next.json")["partitions"]]
    assert written == [f"labels-{place}.npz" for place in range(11)]


START = ["start", "--methods", "kmeans", "--settings", "settings.json", "--out", "next.json"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([*START, "--threshold", "1.5"], "--threshold: 1.5 is outside [-1, 1]"),
        ([*START, "--threshold", "nan"], "--threshold: nan is outside [-1, 1]"),
        ([*START, "--threshold=-1.1"], "--threshold: -1.1 is outside [-1, 1]"),
        ([*START, "--max-iterations", "0"], "--max-iterations: 0 is less than 1"),
        ([*START, "--width", "0"], "--width: 0 is less than 1"),
        ([*START, "--width", "two"], "--width: 'two' is not a whole number"),
        ([*START, "--methods", "kmeans", "optics"], "--methods: invalid choice: 'optics'"),
        ([*START, "--methods", "kmeans", "dbscan", "kmeans"], "--methods: kmeans is named twice"),
        (["gate", "--iterations", "none", "--keep", "a", "--out", "next.json"], "there is no file none/score.json"),
        (["select", "--passes", "none", "--folder", ".", "--out", "next.json"], "there is no file none/pass.json"),
        ([], "required"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(tmp_path: Path, arguments: list[str], says: str) -> None:
    done = loop(tmp_path, *arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", ["", "[]", '{"score": NaN, "iteration": 0}', '{"score": 0.5}', '{"iteration": 0}'])
def test_a_broken_score_is_refused_in_one_sentence(tmp_path: Path, content: str) -> None:
    (iteration(tmp_path, 0, 0.5) / "score.json").write_text(content)
    done = loop(tmp_path, "gate", "--iterations", "iteration-0", "--keep", "a", "--out", "next.json")
    assert done.returncode == 65
    assert "iteration-0/score.json" in done.stderr
    assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["iteration-0"]


def test_iterations_out_of_order_are_refused(tmp_path: Path) -> None:
    for index in (0, 1):
        iteration(tmp_path, index, 0.5)
    done = loop(tmp_path, "gate", "--iterations", "iteration-1", "iteration-0", "--keep", "a", "--out", "next.json")
    assert (done.returncode, "not consecutive" in done.stderr) == (2, True)


def test_a_missing_pass_is_refused(tmp_path: Path) -> None:
    iteration(tmp_path, 1, 0.5)
    loop(tmp_path, "gate", "--iterations", "iteration-1", "--keep", "a", "--out", "next.json")
    done = loop(tmp_path, "select", "--passes", "a", "--folder", ".", "--out", "next.json")
    assert (done.returncode, "iteration 0 is missing" in done.stderr) == (2, True)


def test_gate_overwrites_no_folder(tmp_path: Path) -> None:
    made = iteration(tmp_path, 0, 0.5)
    done = loop(tmp_path, "gate", "--iterations", "iteration-0", "--keep", "iteration-0", "--out", "next.json")
    assert (done.returncode, "not an empty folder" in done.stderr) == (2, True)
    assert read(made / "score.json")["score"] == 0.5


def test_labels_below_zero_are_refused_at_the_end(tmp_path: Path) -> None:
    np.savez(iteration(tmp_path, 0, 0.5) / "best.npz", labels=np.array([0, -1], np.int32))
    loop(tmp_path, "gate", "--iterations", "iteration-0", "--keep", "a", "--out", "next.json")
    (tmp_path / "run").mkdir()
    done = loop(tmp_path, "select", "--passes", "a", "--folder", "run", "--out", "next.json")
    assert (done.returncode, "a/best.npz" in done.stderr) == (65, True)
    assert list((tmp_path / "run").iterdir()) == []


def test_start_and_gate_load_no_numpy() -> None:
    script = "import sys, qonduit_steps.commands.loop; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0
