"""`qonduit-solve` and problem.json: the whole command, with its exit codes, and what the file's reader refuses."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dimod
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qonduit.devices.annealer import Annealer
from qonduit.devices.device import Capabilities
from qonduit.errors import DataError, QonduitError
from qonduit_steps.commands.solve import solve
from qonduit_steps.outputs import Outputs
from qonduit_steps.problem import Cluster, InputPartition, Member, Penalty, Problem, problem_to_json, read_problem

COMMAND = Path(sys.executable).parent / "qonduit-solve"
METHODS = ("kmeans", "dbscan", "hierarchical")
Content = dict[str, Any]


def problem_from_labels(labels: list[list[int]], weigh: Callable[[str, int], float]) -> Problem:
    """The overlap graph of some labellings; clusters of weight 0 or less stay out of the objective."""
    members: dict[frozenset[int], list[Member]] = {}
    for source, row in enumerate(labels):
        for cluster in sorted(set(row) - {-1}):
            points = frozenset(index for index, label in enumerate(row) if label == cluster)
            members.setdefault(points, []).append(Member(source, METHODS[source], cluster))
    names = {points: f"{same[0].method}:{same[0].cluster}" for points, same in members.items()}
    weights = {points: weigh(names[points], len(points)) for points in members}
    edges = tuple((names[a], names[b]) for a, b in itertools.combinations(members, 2) if a & b)
    by_name = {names[points]: weight for points, weight in weights.items()}
    inside = {name for name, weight in by_name.items() if weight > 0}
    needed = max((min(by_name[u], by_name[v]) for u, v in edges if {u, v} <= inside), default=0.0)
    clusters = (
        Cluster(names[points], tuple(same), len(points), weights[points], names[points] in inside)
        for points, same in members.items()
    )
    partitions = (
        InputPartition(
            source,
            METHODS[source],
            tuple(
                names[points]
                for points, same in members.items()
                if names[points] in inside and any(member.input == source for member in same)
            ),
        )
        for source in range(len(labels))
    )
    penalty = Penalty("auto", needed * 1.001 + 1e-9, needed)
    return Problem(len(labels[0]), 3, "silhouette", penalty, tuple(clusters), edges, tuple(partitions))


def example(seed: int = 0) -> Problem:
    rng = np.random.default_rng(seed)
    labels = [np.sort(rng.integers(0, 5, 60)).tolist() for _ in METHODS]
    return problem_from_labels(labels, lambda _, size: size * rng.uniform(100, 900))


def run(*arguments: object, device: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "QONDUIT_DEVICE": device}
    return subprocess.run([COMMAND, *map(str, arguments)], env=environment, capture_output=True, text=True, check=False)


def written(folder: Path, content: Any) -> Path:
    path = folder / "problem.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def solved(folder: Path, problem: Problem, *arguments: object, device: str = "") -> Content:
    path, out = written(folder, problem_to_json(problem)), folder / "samples.json"
    done = run("--problem", path, "--out", out, *arguments, device=device)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1), done.stderr
    content: Content = json.loads(out.read_text())
    return content


@pytest.mark.parametrize("device", ["annealer", "exact"])
def test_the_selection_is_the_best_one_and_all_its_figures_can_be_recomputed(tmp_path: Path, device: str) -> None:
    problem = example()
    content = solved(tmp_path, problem, "--seed", 7, device=device)
    bqm, best = problem.bqm(), content["best"]
    assert set(content) == {
        *("format", "iteration", "device", "jobs", "seed", "shots", "best"),
        *("samples", "repairs", "partitions", "statistics", "timing"),
    }
    assert (content["format"], content["iteration"], content["seed"], content["shots"]) == (
        "qonduit-samples/1",
        3,
        7,
        100,
    )
    assert content["device"] == {"kind": device, "options": {}}
    optimum = dimod.ExactSolver().sample(bqm).first.energy  # type: ignore[no-untyped-call]
    assert best["energy"] == pytest.approx(optimum, rel=1e-12)
    assert best["energy"] == bqm.energy({name: int(name in best["variables"]) for name in bqm.variables})
    assert not any(u in best["variables"] and v in best["variables"] for u, v in problem.edges)
    assert best["proved_optimal"] is (device == "exact")
    samples = dimod.SampleSet.from_serializable(content["samples"])  # type: ignore[no-untyped-call]
    assert list(samples.record.energy) == pytest.approx(list(bqm.energies(samples)))
    for row, feasible in zip(samples.samples(sorted_by=None), samples.record.feasible, strict=True):
        assert feasible == (not any(row[u] and row[v] for u, v in bqm.quadratic))
    assert [item["method"] for item in content["partitions"]] == list(METHODS)
    assert best["energy"] <= min(item["energy"] for item in content["partitions"])
    assert set(content["timing"]) == {"prepare_s", "queue_s", "execute_s", "decode_s"}
    assert content["statistics"]["optimum_energy"] == pytest.approx(optimum, rel=1e-12)


def test_the_same_seed_gives_the_same_file_apart_from_times(tmp_path: Path) -> None:
    one, two = (solved(tmp_path, example(1), "--seed", 5) for _ in range(2))
    one.pop("timing")
    two.pop("timing")
    assert one == two


def test_shots_come_from_the_option_then_from_the_device_file(tmp_path: Path) -> None:
    device = tmp_path / "device.json"
    device.write_text(json.dumps({"kind": "annealer", "shots": 9, "options": {"sweeps": 20}}))
    content = solved(tmp_path, example(), device=str(device))
    assert (content["shots"], content["device"]) == (9, {"kind": "annealer", "options": {"sweeps": 20}})
    assert solved(tmp_path, example(), "--shots", 4, device=str(device))["shots"] == 4


def test_a_problem_without_variables_gives_an_empty_selection(tmp_path: Path) -> None:
    problem = problem_from_labels([[0, 0, 1], [0, 1, 1]], lambda _, size: -float(size))
    content = solved(tmp_path, problem)
    assert content["best"] == {"variables": [], "energy": 0.0, "source": "device", "proved_optimal": True}
    assert content["samples"]["vectors"]["energy"]["data"] == [0.0]
    assert [item["energy"] for item in content["partitions"]] == [0.0, 0.0]


def test_summary_and_record_say_what_was_selected(tmp_path: Path) -> None:
    path, record = written(tmp_path, problem_to_json(example())), tmp_path / "record.json"
    done = run("--problem", path, "--out", tmp_path / "s.json", "--json", "--record", record, device="exact")
    best = json.loads((tmp_path / "s.json").read_text())["best"]
    summary = json.loads(done.stdout)
    assert summary == {
        "iteration": 3,
        "device": "exact",
        "energy": best["energy"],
        "selected": len(best["variables"]),
        "source": best["source"],
        "proved_optimal": True,
    }
    assert json.loads(record.read_text())["summary"] == summary


@pytest.mark.parametrize(
    ("qubits", "online", "code", "said"), [(2, True, 65, "2 qubits"), (None, False, 69, "offline")]
)
def test_a_device_that_is_too_small_or_away_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qubits: int | None, online: bool, code: int, said: str
) -> None:
    can = Capabilities("annealer", qubits, "complete", online=online, queue_length=0, calibration_id=None)
    monkeypatch.delenv("QONDUIT_DEVICE", raising=False)
    monkeypatch.setattr(Annealer, "capabilities", lambda _: can)
    monkeypatch.setattr(Annealer, "submit", lambda *_: pytest.fail("it was asked"))
    path = written(tmp_path, problem_to_json(example()))
    with pytest.raises(QonduitError, match=said) as caught:
        solve(Namespace(problem=path, out=tmp_path / "s.json", shots=None, seed=0), Outputs())
    assert caught.value.exit_code == code


def test_help_shows_an_example() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "qonduit-solve --problem problem.json --out samples.json" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "device", "code", "said"),
    [
        (["--problem", "none.json", "--out", "s.json"], "", 2, "--problem"),
        (["--problem", "problem.json", "--out", "no/s.json"], "", 2, "--out"),
        (["--problem", "problem.json", "--out", "s.json", "--shots", "0"], "", 2, "--shots"),
        (["--problem", "problem.json", "--out", "s.json", "--shots", "1" * 30], "", 2, "--shots"),
        (["--problem", "problem.json", "--out", "s.json", "--seed", "-1"], "", 2, "--seed"),
        (["--problem", "problem.json"], "", 2, "--out"),
        (["--problem", "problem.json", "--out", "s.json"], "abacus", 2, "QONDUIT_DEVICE"),
        (["--problem", "problem.json", "--out", "s.json"], "./none.json", 2, "QONDUIT_DEVICE"),
        (["--problem", "problem.json", "--out", "s.json"], "./bad.json", 65, "bad.json"),
        (["--problem", "bad.json", "--out", "s.json"], "", 65, "--problem"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_exit_code_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], device: str, code: int, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, problem_to_json(example()))
    (tmp_path / "bad.json").write_text("[1, 2")
    done = run(*arguments, device=device)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.json", "problem.json"]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(st.integers(-1, 3), min_size=6, max_size=6), min_size=1, max_size=3), st.data())
def test_a_problem_survives_its_file(
    tmp_path_factory: pytest.TempPathFactory, labels: list[list[int]], data: st.DataObject
) -> None:
    weight = st.floats(-1e5, 1e5)
    problem = problem_from_labels(labels, lambda name, _: data.draw(weight, label=name))
    path = written(tmp_path_factory.mktemp("problem"), json.dumps(problem_to_json(problem), allow_nan=False))
    assert read_problem(path) == problem


def change(content: Content, *keys: Any, to: Any) -> Content:
    target: Any = content
    for key in keys[:-1]:
        target = target[key]
    target[keys[-1]] = to
    return content


def without(content: Content, name: str) -> Content:
    del content[name]
    return content


FIRST, SECOND = (cluster.variable for cluster in example().clusters[:2])
BROKEN: list[tuple[str, Callable[[Content], Any], str]] = [
    ("no object", lambda _: [1], "format"),
    ("another format", lambda c: change(c, "format", to="qonduit-problem/2"), "format"),
    ("no points", lambda c: without(c, "points"), "'points' is missing"),
    ("points of the wrong type", lambda c: change(c, "points", to="many"), "'points'"),
    ("points that are true", lambda c: change(c, "points", to=True), "'points'"),
    ("zero points", lambda c: change(c, "points", to=0), "at least one point"),
    ("a negative iteration", lambda c: change(c, "iteration", to=-1), "iteration"),
    ("a penalty below 0", lambda c: change(c, "penalty", "value", to=-1.0), "penalty"),
    ("a penalty that is NaN", lambda c: change(c, "penalty", "value", to=float("nan")), "penalty"),
    ("a weight that is infinite", lambda c: change(c, "clusters", 0, "weight", to=float("inf")), "not a finite"),
    ("another weight than the bqm's", lambda c: change(c, "clusters", 0, "weight", to=1.0), "bqm does not agree"),
    ("two clusters of one name", lambda c: change(c, "clusters", 1, "variable", to=FIRST), "two clusters"),
    ("a cluster that is a number", lambda c: change(c, "clusters", 0, to=3), "'members' is missing"),
    ("an edge to nowhere", lambda c: change(c, "edges", 0, to=[FIRST, "x"]), "x, which is no cluster"),
    ("an edge of three", lambda c: change(c, "edges", 0, to=["a", "b", "c"]), "pair"),
    ("an edge to itself", lambda c: change(c, "edges", 0, to=[FIRST, FIRST]), "itself"),
    ("an edge that is there twice", lambda c: change(c, "edges", 0, to=c["edges"][1][::-1]), "twice"),
    ("an edge too few", lambda c: change(c, "edges", to=c["edges"][1:]), "bqm does not agree"),
    ("a partition of strangers", lambda c: change(c, "partitions", 0, "variables", to=["x"]), "not in the objective"),
    ("a partition of lists", lambda c: change(c, "partitions", 0, "variables", to=[[]]), "not all names"),
    ("a partition that overlaps", lambda c: change(c, "partitions", 0, "variables", to=c["edges"][0]), "not feasible"),
    ("no bqm", lambda c: without(c, "bqm"), "'bqm' is missing"),
    ("an empty bqm", lambda c: change(c, "bqm", to={}), "bqm cannot be read"),
    ("a bqm of another kind", lambda c: change(c, "bqm", "type", to="SampleSet"), "bqm"),
    ("a bqm of spins", lambda c: change(c, "bqm", "variable_type", to="SPIN"), "bqm does not agree"),
    ("a bqm with too few biases", lambda c: change(c, "bqm", "linear_biases", to=[1.0]), "bqm"),
    ("a bqm with too few heads", lambda c: change(c, "bqm", "quadratic_head", to=[0]), "bqm"),
    ("a bqm with negative heads", lambda c: change(c, "bqm", "quadratic_head", 0, to=-5), "bqm"),
    ("a bqm with lists for names", lambda c: change(c, "bqm", "variable_labels", 0, to=[]), "bqm cannot be read"),
    ("a size beyond all numbers", lambda c: change(c, "clusters", 0, "size", to=10**400), "too large"),
    ("a weight beyond all numbers", lambda c: change(c, "clusters", 0, "weight", to=10**400), "too large"),
    ("a bqm with wild heads", lambda c: change(c, "bqm", "quadratic_head", 0, to=999), "bqm"),
]


@pytest.mark.parametrize(("breaking", "said"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
def test_a_broken_problem_is_one_sentence_that_names_the_file(
    tmp_path: Path, breaking: Callable[[Content], Any], said: str
) -> None:
    path = written(tmp_path, breaking(json.loads(json.dumps(problem_to_json(example())))))
    with pytest.raises(DataError) as caught:
        read_problem(path, "--problem")
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"--problem: {path}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["", "{", "\x00", "nul", "[" * 100_000])
def test_a_problem_that_is_not_json_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(DataError, match="is not JSON"):
        read_problem(written(tmp_path, content))
