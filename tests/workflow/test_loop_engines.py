"""The real workflow and the real `qonduit-loop` under both engines, with stand-ins for the steps' work.

The scores are crafted, so every rule of the loop is met; no program on the PATH can run JavaScript. Each run has a
HOME and a TMPDIR of its own, because StreamFlow keeps its database in the one and its jobs in the other.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / "workflows" / "clustering-aggregation.cwl"
STAND_IN = Path(__file__).with_name("stand_in.py")
SCRIPTS = Path(sysconfig.get_path("scripts"))
STEPS = ("points", "tree", "cluster", "aggregate", "solve", "score", "report")
ENGINES = ("streamflow", "cwltool")
SENTENCE = "line 3 of my.csv is not a number; correct it"
JUST_ABOVE = 0.8000000000000002


@dataclass(frozen=True)
class Case:
    """Scores, settings, and what the loop's rules make of them."""

    scores: list[float]
    settings: dict[str, Any]
    count: int
    best: int
    passed: bool
    meet: bool = field(default=False)


CASES = {
    "an equal score does not pass, a greater one ends the loop": Case(
        [0.8, 0.1, 0.8, JUST_ABOVE, 0.95], {}, count=4, best=3, passed=True
    ),
    "at the limit the best is kept, the earliest of equals": Case(
        [0.3, 0.7123456789012345, 0.7123456789012345, 0.1, 0.6],
        {"max_iterations": 5, "width": 2, "methods": ["dbscan", "kmeans"]},
        count=5,
        best=1,
        passed=False,
    ),
    "later iterations of the last pass do not count": Case(
        [0.1, 0.2, 0.3, -0.5, 0.85, 0.99], {"width": 3}, count=5, best=4, passed=True, meet=True
    ),
    "a limit that is no multiple of the width is kept": Case(
        [0.1, 0.2, 0.4, 0.3, 0.2, 0.5, 0.9, 0.9], {"width": 4, "max_iterations": 6}, count=6, best=5, passed=False
    ),
    "one iteration": Case([-1e-05], {"max_iterations": 1, "threshold": -1e-05}, count=1, best=0, passed=False),
}


@pytest.fixture(scope="session")
def system(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the machine's programs, but for those that run JavaScript."""
    folder = tmp_path_factory.mktemp("system")
    for source in ("/usr/bin", "/bin"):
        for program in Path(source).iterdir():
            link = folder / program.name
            if program.name not in ("node", "nodejs", "docker") and not link.is_symlink():
                link.symlink_to(program)
    return folder


class Run:
    """A place to run the workflow in: stand-ins, job file, and an environment that shares nothing with other runs."""

    def __init__(
        self,
        folder: Path,
        system: Path,
        settings: dict[str, Any],
        scores: list[float],
        fail: str = "",
        meet: bool = False,
    ) -> None:
        self.folder = folder
        self.results = folder / "results"
        programs = folder / "programs"
        for made in (programs, folder / "home", folder / "tmp"):
            made.mkdir()
        for step in STEPS:
            program = programs / f"qonduit-{step}"
            program.write_text(f"#!{sys.executable}\n{STAND_IN.read_text()}")
            program.chmod(0o755)
        for name in ("qonduit-loop", *ENGINES):
            (programs / name).symlink_to(SCRIPTS / name)
        (programs / "script.json").write_text(json.dumps({"scores": scores, "fail": fail, "meet": meet}))
        (folder / "my.csv").write_text("1,2\n3,4\n5,6\n")
        job = {"points": {"class": "File", "location": "my.csv"}, "seed": 7, "shots": 30, **settings}
        (folder / "job.yml").write_text(yaml.safe_dump(job))
        self.environment = {
            "PATH": f"{programs}:{system}",
            "HOME": str(folder / "home"),
            "TMPDIR": str(folder / "tmp"),
            "LANG": "C.UTF-8",
        }
        assert shutil.which("node", path=self.environment["PATH"]) is None

    def command(self, engine: str) -> list[str]:
        if engine == "cwltool":
            return ["cwltool", "--enable-ext", "--parallel", "--outdir", str(self.results), str(WORKFLOW), "job.yml"]
        config = yaml.safe_load((ROOT / "streamflow.yml").read_text())
        config["workflows"]["clustering-aggregation"]["config"] = {"file": str(WORKFLOW), "settings": "job.yml"}
        (self.folder / "streamflow.yml").write_text(yaml.safe_dump(config))
        return ["streamflow", "run", "streamflow.yml", "--outdir", str(self.results)]

    def start(self, engine: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self.command(engine),
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def finish(self, engine: str) -> tuple[int, str, str]:
        process = self.start(engine)
        try:
            out, log = process.communicate(timeout=120)
        finally:
            end(process)
        return process.returncode, out, log


def end(process: "subprocess.Popen[str]") -> None:
    """Ends an engine and the steps that it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def read(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_loop_keeps_its_rules(case: Case, engine: str, tmp_path: Path, system: Path) -> None:
    if case.meet and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("two jobs meet only where two cores are")
    run = Run(tmp_path, system, case.settings, case.scores, meet=case.meet)
    code, out, log = run.finish(engine)
    assert code == 0, log
    counted = case.scores[: case.count]

    outputs = json.loads(out)
    assert (outputs["scores"], outputs["best_iteration"]) == (counted, case.best)
    assert outputs["best_score"] == case.scores[case.best]
    summary = read(run.results / "summary.json")
    assert (summary["scores"], summary["passed"]) == (counted, case.passed)
    assert [record["earlier"][-1]["summary"]["iteration"] for record in read(run.results / "history.json")] == list(
        range(case.count)
    )
    check_run_folder(run.results, case)


def check_run_folder(results: Path, case: Case) -> None:
    """It holds the best iteration's files, and everything else that the report needs."""
    methods = case.settings.get("methods", ["kmeans", "dbscan", "hierarchical"])
    data = {"best.npz", "history.json", "labels.csv", "points.npy", "problem.json", "samples.json", "summary.json"}
    data |= {f"labels-{place}.npz" for place in range(len(methods))}
    assert {path.name for path in results.iterdir()} == data | {"report.html", "scatter.png", "settings.json"}
    assert set(read(results / "report.html")) == data
    assert not any(path.is_symlink() for path in results.iterdir())

    assert (results / "labels.csv").read_text() == f"{case.best}\n0\n1\n"
    assert (results / "points.npy").read_text() == "1,2\n3,4\n5,6\n"
    labels = [read(results / f"labels-{place}.npz") for place in range(len(methods))]
    assert labels == [
        {"iteration": case.best, "method": method, "preset": "fitted", "seed": 7, "tree": "tree", "met": True}
        for method in methods
    ]
    assert read(results / "problem.json") == {"iteration": case.best, "labels": labels, "is": ["silhouette", "auto"]}
    assert read(results / "samples.json") == {"iteration": case.best, "shots": 30, "seed": 7}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("settings", "fail", "says"),
    [({"threshold": 1.5}, "", "--threshold: 1.5 is outside [-1, 1]"), ({}, "points", SENTENCE)],
    ids=["settings", "points"],
)
def test_bad_input_ends_the_run_before_any_clustering(
    settings: dict[str, Any], fail: str, says: str, engine: str, tmp_path: Path, system: Path
) -> None:
    code, out, log = Run(tmp_path, system, settings, [0.9], fail).finish(engine)
    assert code != 0
    assert says in log
    assert "qonduit-cluster" not in log
    assert "best_score" not in out or json.loads(out)["best_score"] is None


def test_a_step_that_fails_in_the_loop_has_its_sentence_in_streamflows_log(tmp_path: Path, system: Path) -> None:
    """StreamFlow waits for ever after such a failure, so whoever started it has to read its log and end it."""
    process = Run(tmp_path, system, {}, [0.9], fail="solve").start("streamflow")
    patience = threading.Timer(60, end, [process])
    patience.start()
    try:
        assert process.stderr is not None
        assert any(
            line.endswith("ERROR    FAILED Job /loop/iteration/solve/0.0.0 with error:\n") for line in process.stderr
        )
        assert process.stderr.readline() == f"\tqonduit-solve: {SENTENCE}\n"
    finally:
        patience.cancel()
        end(process)
        process.communicate()


def test_a_step_that_fails_in_the_loop_ends_cwltool(tmp_path: Path, system: Path) -> None:
    code, _, log = Run(tmp_path, system, {}, [0.9], fail="solve").finish("cwltool")
    assert code == 1
    assert f"qonduit-solve: {SENTENCE}\n" in log


def test_the_workflow_is_valid() -> None:
    done = subprocess.run(
        [SCRIPTS / "cwltool", "--enable-ext", "--validate", WORKFLOW], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_no_cwl_file_needs_javascript() -> None:
    files = sorted((ROOT / "workflows").rglob("*.cwl"))
    assert len(files) == 13
    for file in files:
        text = file.read_text()
        assert "InlineJavascript" not in text
        assert "${" not in text


@pytest.mark.parametrize("job", sorted((ROOT / "workflows" / "inputs").glob("*.yml")), ids=lambda path: path.name)
def test_a_job_file_names_only_inputs_of_the_workflow(job: Path) -> None:
    assert set(yaml.safe_load(job.read_text())) <= set(yaml.safe_load(WORKFLOW.read_text())["inputs"])
