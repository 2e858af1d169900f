"""`make run` in a fresh clone, as a new user types it; and the lock files that it installs from."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(
    not (ROOT / ".git").exists() or not shutil.which("git"), reason="THIS IS NO GIT CLONE: make run is not tried"
)
def test_make_run_in_a_fresh_clone_loops_passes_and_leaves_everything(tmp_path: Path) -> None:
    clone = tmp_path / "qonduit"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    environment = {
        key: value for key, value in os.environ.items() if key not in ("VIRTUAL_ENV", "PYTHONPATH", "MAKEFLAGS")
    }
    environment |= {"HOME": str(tmp_path)}
    done = subprocess.run(["make", "run"], cwd=clone, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    results = clone / "results" / "clustering-aggregation"
    summary = json.loads((results / "summary.json").read_text())
    assert summary["passed"]
    assert len(summary["scores"]) >= 2
    assert summary["best_score"] > 0.8 >= summary["scores"][0]
    labels = [int(label) for label in (results / summary["labels"]).read_text().split()]
    assert len(labels) == 80_000
    assert min(labels) == 0
    assert (results / summary["report"]).stat().st_size > 50_000
    assert f"{summary['best_score']:.4f}" in done.stderr
    size = sum(file.lstat().st_size for file in (clone / ".venv").rglob("*"))
    assert size < 700e6


def pins(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / lock).read_text(), re.MULTILINE))


def test_the_locks_agree_and_name_no_host() -> None:
    everything = pins("requirements.lock")
    assert everything["streamflow"] == "0.2.0rc3"
    for lock in ("requirements-run.lock", "requirements-build.lock"):
        assert pins(lock).items() <= everything.items()
    for lock in ("requirements.lock", "requirements-run.lock", "requirements-build.lock"):
        text = (ROOT / lock).read_text()
        assert "://" not in text
        assert text.count("--hash=sha256:") >= len(pins(lock))
