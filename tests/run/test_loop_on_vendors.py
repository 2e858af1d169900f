"""The whole loop under cwltool with its quantum step on each emulated vendor: only QONDUIT_DEVICE differs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from qonduit.devices.ledger import Ledger
from qonduit.emulators.running import running

ROOT = Path(__file__).parents[2]
CWLTOOL = str(Path(sys.executable).parent / "cwltool")
# Four places, two of them so near to each other that DBSCAN takes them for one: five variables and two overlaps.
PLACES = [[0.0, 0.0], [9.0, 0.0], [4.0, 7.0], [4.2, 7.0]]
ITERATIONS = 2
VARIABLES = ("QONDUIT_DEVICE", "QONDUIT_LEDGER", "QONDUIT_RUN")


def workload(folder: Path) -> Path:
    points = np.random.default_rng(4).permutation(np.repeat(PLACES, 15, axis=0))
    np.savetxt(folder / "places.csv", points, delimiter=",", fmt="%.1f", header="x,y", comments="")
    job = folder / "job.yml"
    settings = {"preset": "fitted", "seed": 1, "threshold": 1.0, "max_iterations": ITERATIONS}
    job.write_text(yaml.safe_dump({**settings, "points": {"class": "File", "path": str(folder / "places.csv")}}))
    return job


def loop(folder: Path, job: Path, out: str, **variables: str) -> Path:
    command = [CWLTOOL, "--enable-ext", "--quiet", "--outdir", str(folder / out)]
    for name in VARIABLES:
        command += ["--preserve-environment", name]
    command += [str(ROOT / "workflows" / "clustering-aggregation.cwl"), str(job)]
    environment = {**os.environ, **variables}
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / out


@pytest.mark.parametrize("vendor", ["iqm", "pasqal", "dwave"])
def test_the_loop_runs_on_the_vendors_device_and_a_second_run_buys_nothing(vendor: str, tmp_path: Path) -> None:
    job = workload(tmp_path)
    local = loop(tmp_path, job, "local", QONDUIT_DEVICE="exact")
    with running(vendor, seed=1) as server:
        variables = {
            "QONDUIT_DEVICE": str(server.device_file),
            "QONDUIT_LEDGER": str(tmp_path / "ledger.db"),
            "QONDUIT_RUN": "loop",
        }
        first = loop(tmp_path, job, "first", **variables)
        # Iterations that ask the same with the same seed share one purchase.
        bought = Ledger(tmp_path / "ledger.db").entries()
        assert [job["label"] for job in server.jobs()] == [entry.key for entry in bought]
        assert 1 <= len(bought) <= ITERATIONS
        second = loop(tmp_path, job, "second", **variables)
        assert len(server.jobs()) == len(bought)
    assert (first / "labels.csv").read_bytes() == (second / "labels.csv").read_bytes()
    assert (first / "problem.json").read_bytes() == (local / "problem.json").read_bytes()
    samples = json.loads((first / "samples.json").read_text())
    assert samples["device"]["kind"] == vendor
    assert len(samples["jobs"]) == 1
    assert samples["best"]["energy"] == pytest.approx(
        json.loads((local / "samples.json").read_text())["best"]["energy"]
    )
    scores = [json.loads((run / "summary.json").read_text())["scores"] for run in (local, first)]
    assert scores[0] == scores[1]
