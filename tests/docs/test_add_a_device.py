"""The page on adding a device, followed to the letter: its files, its entry points, its commands.

Only the installation is replaced: a `.dist-info` with the page's entry points is what `pip install` would leave.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "devices" / "add-a-device.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r'^```\w+ title="([\w.]+)"\n(.*?)^```$', PAGE, re.MULTILINE | re.DOTALL))
BLOCKS = re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = [line.removeprefix("$ ") for block in BLOCKS for line in block.splitlines()]
INSTALL = "pip install --no-build-isolation -e ."
PROBLEM = [
    f"qonduit-points csv {ROOT}/workflows/inputs/small.csv --out points.npy",
    "qonduit-cluster --method kmeans --points points.npy --out kmeans.npz",
    "qonduit-cluster --method dbscan --points points.npy --out dbscan.npz",
    "qonduit-aggregate --points points.npy --labels kmeans.npz dbscan.npz --out problem.json",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The page's files, and what installing them adds."""
    for name, content in FILES.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    project = tomllib.loads(FILES["pyproject.toml"])["project"]
    info = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines = [f"{name} = {value}" for name, value in project["entry-points"]["qonduit.devices"].items()]
    (info / "entry_points.txt").write_text("\n".join(["[qonduit.devices]", *lines, ""]))
    (tmp_path / "home").mkdir()
    return tmp_path


def test_the_commands_of_the_page_work_as_they_are(folder: Path) -> None:
    assert INSTALL in COMMANDS
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("QONDUIT_", "PYTEST_"))
    } | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(folder),
        "PYTHONWARNINGS": "error",
        "HOME": str(folder / "home"),
    }
    script = "\n".join([*PROBLEM, *(command for command in COMMANDS if command != INSTALL)])
    done = subprocess.run(
        ["bash", "-eu", "-c", script],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert re.findall(r"(\d+) failed", done.stdout) == []
    assert len(re.findall(r"\d+ passed", done.stdout)) == 2, done.stdout
    written = json.loads((folder / "samples.json").read_text())
    assert written["device"]["kind"] == "acorn"
    assert written["best"]["variables"]
