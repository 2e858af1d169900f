"""The real workflow with the real steps, under StreamFlow and under cwltool: the same bytes, without Node.js."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
SETTINGS = {"seed": 5, "threshold": 0.99, "max_iterations": 3, "width": 2}


def environment(home: Path) -> dict[str, str]:
    """A PATH with the steps but without node, and a home of its own."""
    tools = home / "bin"
    tools.mkdir(parents=True)
    needed = (
        "sh bash env cat cp ln mkdir rm mv test readlink find stat tar base64 sha1sum sort touch chmod awk "
        "printf dirname basename realpath uname nproc"
    )
    for name in needed.split():
        for folder in ("/usr/bin", "/bin"):
            if Path(folder, name).exists():
                (tools / name).symlink_to(Path(folder, name))
                break
    return {"PATH": f"{BIN}:{tools}", "HOME": str(home), "TMPDIR": str(home), "LANG": "C.UTF-8"}


def test_streamflow_and_cwltool_give_the_same_labels_and_scores(tmp_path: Path) -> None:
    job = tmp_path / "job.yml"
    points = {"class": "File", "path": str(ROOT / "workflows" / "inputs" / "small.csv")}
    job.write_text(yaml.safe_dump({**SETTINGS, "points": points}))
    config = yaml.safe_load((ROOT / "streamflow.yml").read_text())
    (workflow,) = config["workflows"].values()
    workflow["config"] = {"file": str(ROOT / workflow["config"]["file"]), "settings": str(job)}
    (tmp_path / "streamflow.yml").write_text(yaml.safe_dump(config))
    cwl = str(ROOT / "workflows" / "clustering-aggregation.cwl")
    commands = {
        "streamflow": ["streamflow", "run", str(tmp_path / "streamflow.yml"), "--outdir"],
        "cwltool": ["cwltool", "--enable-ext", "--parallel", "--quiet", "--outdir"],
    }
    for engine, command in commands.items():
        variables = environment(tmp_path / f"{engine}-home")
        assert subprocess.run(["sh", "-c", "command -v node"], env=variables).returncode != 0
        line = [
            str(BIN / command[0]),
            *command[1:],
            str(tmp_path / engine),
            *([cwl, str(job)] if engine == "cwltool" else []),
        ]
        done = subprocess.run(line, env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
        outputs = json.loads(done.stdout)
        (tmp_path / f"{engine}.json").write_text(
            json.dumps([outputs[key] for key in ("best_score", "best_iteration", "scores")])
        )
    first, second = tmp_path / "streamflow", tmp_path / "cwltool"
    assert {file.name for file in first.iterdir()} == {file.name for file in second.iterdir()}
    for name in (
        "labels.csv",
        "best.npz",
        "problem.json",
        "points.npy",
        "labels-0.npz",
        "labels-1.npz",
        "labels-2.npz",
    ):
        assert (first / name).read_bytes() == (second / name).read_bytes(), name
    assert (tmp_path / "streamflow.json").read_bytes() == (tmp_path / "cwltool.json").read_bytes()
    assert len(json.loads((first / "summary.json").read_text())["scores"]) == 3


def test_the_workflow_is_valid_for_cwltool() -> None:
    cwl = ROOT / "workflows" / "clustering-aggregation.cwl"
    done = subprocess.run(
        [str(BIN / "cwltool"), "--enable-ext", "--validate", str(cwl)],
        capture_output=True,
        text=True,
        env={**os.environ},
    )
    assert done.returncode == 0, done.stderr
    assert "is valid CWL" in done.stdout + done.stderr
