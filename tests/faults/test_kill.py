"""A client that is killed at any moment and started again buys once and loses nothing.

QONDUIT_KILLS sets how often each vendor's clients are killed; `make soak` does it 2,000 times.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from qonduit.devices.ledger import Ledger
from qonduit.emulators.running import running

KILLS = int(os.environ.get("QONDUIT_KILLS", "100"))


@pytest.mark.parametrize(("vendor", "qubits"), [("iqm", 5), ("pasqal", 8), ("dwave", 100)])
def test_clients_that_are_killed_and_started_again_buy_once_and_lose_nothing(
    vendor: str, qubits: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with running(vendor, qubits=qubits, noise=False, seed=3) as server:
        command = [sys.executable, str(Path(__file__).with_name("killer.py")), str(server.device_file)]
        command += ["--kills", str(KILLS), "--seed", "1", "--ledger", str(tmp_path / "ledger.db")]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300 + 5 * KILLS)
        jobs = server.jobs()
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    record_property("report", report)
    print(vendor, json.dumps(report))
    assert (report["failures"], report["hung"]) == ([], 0), done.stderr
    assert report["kills"] >= KILLS
    entries = Ledger(tmp_path / "ledger.db").entries()
    assert len(entries) == report["questions"]
    assert {entry.state for entry in entries} == {"done"}
    assert Counter(job["label"] for job in jobs) == Counter(entry.key for entry in entries)
