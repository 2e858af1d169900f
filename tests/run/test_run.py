"""`qonduit run` as a user runs it: on small data, with mistakes, with a step that fails, and interrupted."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from qonduit.launch import _absolute, _setting

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
SMALL = ROOT / "workflows" / "inputs" / "small.csv"


def command(*arguments: object, **environment: str) -> tuple[list[str], dict[str, str]]:
    return [str(BIN / "qonduit"), "run", *map(str, arguments)], {**os.environ, "PYTHONWARNINGS": "", **environment}


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    line, variables = command(*arguments, **environment)
    return subprocess.run(line, env=variables, cwd=ROOT, capture_output=True, text=True, timeout=180)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """StreamFlow keeps its database in the home folder; runs of tests must not wait for each other's."""
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def test_own_points_are_clustered_and_all_results_are_in_one_folder(tmp_path: Path, home: Path) -> None:
    out = tmp_path / "out"
    done = run("--points", SMALL, "--outdir", out, "--set", "seed=1", "--json", HOME=str(home))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    summary = json.loads(done.stdout)
    assert summary == json.loads((out / "summary.json").read_text())
    assert summary["best_score"] == max(summary["scores"]) == summary["scores"][summary["best_iteration"]]
    labels = (out / summary["labels"]).read_text().split()
    assert len(labels) == len(SMALL.read_text().splitlines()) - 1
    assert min(map(int, labels)) == 0
    assert "<html" in (out / summary["report"]).read_text()
    assert summary["seconds"] > 0
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


def test_progress_and_a_summary_are_shown_to_a_person(tmp_path: Path, home: Path) -> None:
    done = run("--points", SMALL, "--outdir", tmp_path / "out", HOME=str(home))
    assert done.returncode == 0, done.stderr
    assert "iteration 0: score" in done.stderr
    assert "best score" in done.stderr
    assert "report.html" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--set", "threshold=3"], 2, "3 is outside [-1, 1]"),
        (["--set", "max_iterations=0"], 2, "0"),
        (["--set", "width=0"], 2, "0"),
        (["--set", "methods=[kmeans, magic]"], 2, "'magic'"),
        (["--set", "threshold"], 2, "is not NAME=VALUE"),
        (["--set", "treshold=0.3"], 2, "the workflow has no input 'treshold'; it has"),
        (["--set", "preset=x"], 2, "'x'"),
        (["--set", "weights=x"], 2, "'x'"),
        (["--set", "penalty=-1"], 2, "-1"),
        (["--set", "seed=1.5"], 2, "'1.5' is not a whole number"),
        (["--set", "shots=0"], 2, "0 is less than 1"),
        (["--points", "nowhere.csv"], 2, "there is no file nowhere.csv"),
        (["--points", "README.md"], 65, "README.md"),
        (["nothing.yml"], 2, "nothing.yml"),
        (["pyproject.toml"], 65, "pyproject.toml"),
        (["--outdir", "tests"], 2, "holds something else than results"),
        (["--outdir", "/proc/nothing/here"], 2, "--outdir"),
        (["--outdir", "/proc/nothing"], 2, "--outdir"),
    ],
)
def test_a_mistake_is_answered_by_one_sentence_before_the_engine_starts(
    arguments: list[str], code: int, sentence: str, tmp_path: Path
) -> None:
    done = run("--outdir", tmp_path / "out", *arguments)
    assert done.returncode == code, done.stderr
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def workflow_with(tool: str, script: str, folder: Path) -> None:
    """A copy of the workflow in which one tool is a stand-in, for `qonduit run` in that folder."""
    shutil.copytree(ROOT / "workflows", folder / "workflows")
    shutil.copy(ROOT / "streamflow.yml", folder)
    fake = folder / "stand-in"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    description = folder / "workflows" / "tools" / f"{tool}.cwl"
    description.write_text(description.read_text().replace(f"qonduit-{tool}", str(fake)))


def test_a_step_that_fails_inside_the_loop_ends_the_run_with_its_own_sentence(tmp_path: Path, home: Path) -> None:
    workflow_with("solve", "echo 'qonduit-solve: the QPU has melted; buy another' >&2; exit 69", tmp_path)
    line, environment = command("--points", SMALL, "--outdir", tmp_path / "out", HOME=str(home))
    done = subprocess.run(line, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=180)
    assert done.returncode == 1
    log = tmp_path / "out.log"
    last = done.stderr.splitlines()[-1]
    assert last == f"qonduit: qonduit-solve: the QPU has melted; buy another (the whole log is in {log})"
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
    assert "FAILED Job /loop/iteration/solve" in log.read_text()


def test_results_of_an_earlier_run_survive_a_run_that_fails(tmp_path: Path, home: Path) -> None:
    workflow_with("score", "exit 70", tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    for name in ("summary.json", "report.html"):
        (out / name).write_text("{}")
    line, environment = command("--points", SMALL, "--outdir", out, HOME=str(home))
    done = subprocess.run(line, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=180)
    assert done.returncode == 1
    assert sorted(file.name for file in out.iterdir()) == ["report.html", "summary.json"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_no_process_and_no_results(
    number: signal.Signals, tmp_path: Path, home: Path
) -> None:
    started = tmp_path / "started"
    workflow_with("tree", f"echo $$ > {started}.part; mv {started}.part {started}; exec sleep 600", tmp_path)
    line, environment = command("--points", SMALL, "--outdir", tmp_path / "out", HOME=str(home))
    process = subprocess.Popen(
        line,
        env=environment,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        # A background job of a shell ignores Ctrl-C, and so would what it starts; a user's terminal does not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while not started.exists():
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "qonduit: interrupted; nothing was written"
    assert not (tmp_path / "out").exists()
    while runs(started.read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def runs(process: str) -> bool:
    """Is it there, and not just waiting to be forgotten?"""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_device_that_is_not_known_is_named_before_the_engine_starts(tmp_path: Path) -> None:
    done = run("--outdir", tmp_path / "out", QONDUIT_DEVICE="teleporter")
    assert done.returncode == 2
    assert "there is no device kind 'teleporter'" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_device_file_may_be_named_by_a_relative_path(tmp_path: Path, home: Path) -> None:
    (tmp_path / "device.json").write_text('{"kind": "exact"}')
    relative = os.path.relpath(tmp_path / "device.json", ROOT)
    done = run("--points", SMALL, "--outdir", tmp_path / "out", "--json", HOME=str(home), QONDUIT_DEVICE=relative)
    assert done.returncode == 0, done.stderr
    samples = json.loads((tmp_path / "out" / "samples.json").read_text())
    assert samples["device"]["kind"] == "exact"
    assert samples["best"]["proved_optimal"]


def test_a_setting_gets_the_type_of_its_input_and_files_of_a_job_file_stay_where_they_are(tmp_path: Path) -> None:
    known = {"penalty": {"type": "string"}, "methods": {"type": "string[]"}, "seed": {"type": "int"}}
    assert _setting("penalty=2.5", known) == ("penalty", "2.5")
    assert _setting("methods=kmeans", known) == ("methods", ["kmeans"])
    assert _setting("seed=3", known) == ("seed", 3)
    job = {"points": {"class": "File", "location": "small.csv"}}
    assert _absolute(job, tmp_path) == {"points": {"class": "File", "location": str(tmp_path / "small.csv")}}
