"""The classical steps as a user runs them: by their commands, on files."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qonduit_steps.blobs import blobs

METHODS = ("kmeans", "dbscan", "hierarchical")
COMMANDS = ("points", "tree", "cluster", "aggregate", "solve", "score", "loop", "report")


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, arguments)), capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )


def good(*arguments: object, **environment: str) -> dict[str, Any]:
    done = run(*arguments, "--json", **environment)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("points")
    np.save(folder / "points.npy", blobs(5000, 8, 2, 1.0, 20.0, 0x1337))
    return folder / "points.npy"


def iteration(points: Path, folder: Path, seed: int = 4, **environment: str) -> dict[str, Any]:
    """One whole iteration by hand; the summary of its score."""
    folder.mkdir()
    for method in METHODS:
        good(
            "qonduit-cluster", "--method", method, "--points", points, "--iteration", 1, "--seed", seed,
            "--out", folder / f"{method}.npz", "--record", folder / f"{method}.json", **environment,
        )  # fmt: skip
    labels = [folder / f"{method}.npz" for method in METHODS]
    problem, samples = folder / "problem.json", folder / "samples.json"
    good("qonduit-aggregate", "--points", points, "--labels", *labels, "--out", problem, **environment)
    good("qonduit-solve", "--problem", problem, "--out", samples, "--seed", seed, **environment)
    return good(
        "qonduit-score", "--points", points, "--labels", *labels, "--samples", samples, "--out", folder / "score.json",
        "--labels-out", folder / "best.npz", "--keep", folder / "kept",
        "--earlier", *[folder / f"{method}.json" for method in METHODS], **environment,
    )  # fmt: skip


def test_an_iteration_by_hand_gives_a_score_and_gathers_its_files(points: Path, tmp_path: Path) -> None:
    summary = iteration(points, tmp_path / "a")
    score = json.loads((tmp_path / "a" / "score.json").read_text())
    assert score["score"] == summary["score"] > 0.5
    kept = tmp_path / "a" / "kept"
    assert {file.name for file in kept.iterdir()} == {
        "score.json", "best.npz", "problem.json", "samples.json", "record.json",
        "labels-0.npz", "labels-1.npz", "labels-2.npz",
    }  # fmt: skip
    record = json.loads((kept / "record.json").read_text())
    assert [earlier["summary"]["method"] for earlier in record["earlier"]] == list(METHODS)
    assert record["process_seconds"] >= record["seconds"] > 0
    assert (kept / "best.npz").read_bytes() == (tmp_path / "a" / "best.npz").read_bytes()


def test_the_same_seed_gives_the_same_bytes_with_one_and_two_threads(points: Path, tmp_path: Path) -> None:
    for name, threads in (("a", "1"), ("b", "2")):
        iteration(points, tmp_path / name, QONDUIT_THREADS=threads)
    for file in ("kmeans.npz", "dbscan.npz", "hierarchical.npz", "problem.json", "score.json", "best.npz"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes(), file


def test_iterations_and_seeds_really_differ(points: Path, tmp_path: Path) -> None:
    def parameters(method: str, number: int, seed: int) -> str:
        summary = good(
            "qonduit-cluster", "--method", method, "--points", points, "--iteration", number, "--seed", seed,
            "--out", tmp_path / "labels.npz",
        )  # fmt: skip
        return json.dumps(summary["parameters"])

    eps = {parameters("dbscan", number, seed) for number in range(2) for seed in range(2)}
    assert len(eps) == 4


@pytest.mark.parametrize(
    ("method", "options", "clusters"),
    [
        ("kmeans", ["--k", 5], 5),
        ("dbscan", ["--eps", 1.0, "--min-points", 7], None),
        *[
            ("hierarchical", ["--linkage", linkage, "--k", 6], 6)
            for linkage in ("single", "complete", "average", "ward")
        ],
    ],
)
def test_every_parameter_can_be_given_by_hand(
    method: str, options: list[object], clusters: int | None, points: Path, tmp_path: Path
) -> None:
    summary = good(
        "qonduit-cluster", "--method", method, "--points", points, *options, "--out", tmp_path / "labels.npz"
    )
    given = dict(
        zip([str(name).removeprefix("--").replace("-", "_") for name in options[::2]], options[1::2], strict=True)
    )
    assert summary["parameters"] == given
    assert clusters is None or summary["clusters"] == clusters


def test_a_tree_made_once_gives_the_same_labels_as_none(points: Path, tmp_path: Path) -> None:
    good("qonduit-tree", "--points", points, "--out", tmp_path / "tree.npz")
    for name, tree in (("a.npz", ["--tree", tmp_path / "tree.npz"]), ("b.npz", [])):
        good("qonduit-cluster", "--method", "hierarchical", "--points", points, *tree, "--out", tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_a_tree_of_other_points_is_refused(points: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "other.npy", np.random.default_rng(0).normal(size=(10, 2)))
    good("qonduit-tree", "--points", tmp_path / "other.npy", "--out", tmp_path / "tree.npz")
    done = run(
        "qonduit-cluster", "--method", "hierarchical", "--points", points, "--tree", tmp_path / "tree.npz",
        "--out", tmp_path / "labels.npz",
    )  # fmt: skip
    assert done.returncode == 65
    assert "is not a tree of these 5000 points" in done.stderr


def test_noise_stays_noise(points: Path, tmp_path: Path) -> None:
    summary = good(
        "qonduit-cluster",
        "--method",
        "dbscan",
        "--points",
        points,
        "--eps",
        0.2,
        "--min-points",
        5,
        "--out",
        tmp_path / "d.npz",
    )
    assert summary["noise"] > 0
    assert (np.load(tmp_path / "d.npz")["labels"] == -1).sum() == summary["noise"]
    good("qonduit-aggregate", "--points", points, "--labels", tmp_path / "d.npz", "--out", tmp_path / "problem.json")
    problem = json.loads((tmp_path / "problem.json").read_text())
    assert sum(cluster["size"] for cluster in problem["clusters"]) == 5000 - summary["noise"]


def test_points_in_no_selected_cluster_are_flagged_and_go_to_the_nearest_centroid(points: Path, tmp_path: Path) -> None:
    good(
        "qonduit-cluster",
        "--method",
        "dbscan",
        "--points",
        points,
        "--eps",
        0.2,
        "--min-points",
        5,
        "--out",
        tmp_path / "d.npz",
    )
    problem, samples = tmp_path / "problem.json", tmp_path / "samples.json"
    good("qonduit-aggregate", "--points", points, "--labels", tmp_path / "d.npz", "--out", problem)
    good("qonduit-solve", "--problem", problem, "--out", samples, QONDUIT_DEVICE="exact")
    summary = good(
        "qonduit-score", "--points", points, "--labels", tmp_path / "d.npz", "--samples", samples, "--out",
        tmp_path / "score.json", "--labels-out", tmp_path / "best.npz",
    )  # fmt: skip
    data, best = np.load(points), np.load(tmp_path / "best.npz")
    labels, assigned = best["labels"], best["assigned"]
    assert labels.min() == 0
    assert assigned.sum() == summary["assigned_points"] > 0
    centroids = np.stack([data[(labels == c) & ~assigned].mean(axis=0) for c in range(labels.max() + 1)])
    distances = np.linalg.norm(data[assigned][:, None] - centroids[None], axis=2)
    assert labels[assigned].tolist() == distances.argmin(axis=1).tolist()


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(command: str) -> None:
    done = run(f"qonduit-{command}", "--help")
    assert done.returncode == 0
    assert "example" in done.stdout
    assert f"qonduit-{command} " in done.stdout.split("example")[1]


CLUSTER = "qonduit-cluster --points {points} --out {out} --method "
AGGREGATE = "qonduit-aggregate --points {points} --labels {labels} --out {out} "
BAD = {
    "unknown method": (CLUSTER + "magic", 2, "invalid choice: 'magic'"),
    "unknown preset": (CLUSTER + "kmeans --preset x", 2, "invalid choice: 'x'"),
    "more clusters than points": (CLUSTER + "kmeans --k 9000", 2, "--k 9000 is more than the 5000 points"),
    "no clusters": (CLUSTER + "kmeans --k 0", 2, "0 is less than 1"),
    "eps for k-means": (CLUSTER + "kmeans --eps 1", 2, "--eps is not for --method kmeans"),
    "eps of zero": (CLUSTER + "dbscan --eps 0", 2, "outside"),
    "eps that is not a number": (CLUSTER + "dbscan --eps nan", 2, "outside"),
    "a negative iteration": (CLUSTER + "kmeans --iteration -1", 2, "-1 is less than 0"),
    "no points": ("qonduit-cluster --method kmeans --points {none} --out {out}", 2, "there is no file"),
    "a folder for points": ("qonduit-tree --points {folder} --out {out}", 2, "is a folder"),
    "a missing option": ("qonduit-cluster --method kmeans --out {out}", 2, "--points"),
    "an unknown option": (CLUSTER + "kmeans --speed 9", 2, "--speed"),
    "an unknown weight": (AGGREGATE + "--weights x", 2, "'x'"),
    "a penalty of text": (AGGREGATE + "--penalty x", 2, "'x'"),
    "a penalty below zero": (AGGREGATE + "--penalty -3", 2, "-3"),
    "points for labels": ("qonduit-aggregate --points {points} --labels {points} --out {out}", 65, "--labels"),
    "labels of other points": (
        "qonduit-aggregate --points {few} --labels {labels} --out {out}",
        65,
        "labels 5000 points",
    ),
    "a folder that is not there": ("qonduit-tree --points {points} --out {none}/x.npz", 2, "there is no folder"),
    "text in a column": ("qonduit-cluster --method kmeans --points {text} --out {out}", 65, "line 2: 'b'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence_and_leaves_nothing(name: str, points: Path, tmp_path: Path) -> None:
    command, code, sentence = BAD[name]
    (tmp_path / "few.csv").write_text("1,2\n3,4\n5,6\n")
    (tmp_path / "text.csv").write_text("1,2\nb,4\n")
    (tmp_path / "out").mkdir()
    labels = np.zeros(5000, np.int32)
    fields = {"labels": labels, "method": np.array("kmeans"), "parameters": np.array("{}"), "iteration": np.array(0)}
    np.savez(tmp_path / "labels.npz", **fields, seed=np.array(0), allow_pickle=False)
    places = {
        "points": points, "out": tmp_path / "out" / "file", "none": tmp_path / "none", "folder": tmp_path,
        "labels": tmp_path / "labels.npz", "few": tmp_path / "few.csv", "text": tmp_path / "text.csv",
    }  # fmt: skip
    done = run(*command.format(**places).split())
    assert done.returncode == code, done.stderr
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("threads", ["-1", "0", "two"])
def test_a_wrong_number_of_threads_is_one_sentence(threads: str, points: Path, tmp_path: Path) -> None:
    done = run(
        "qonduit-cluster",
        "--method",
        "kmeans",
        "--points",
        points,
        "--out",
        tmp_path / "k.npz",
        QONDUIT_THREADS=threads,
    )
    assert done.returncode == 2
    assert "QONDUIT_THREADS" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_steps_do_not_need_streamflow() -> None:
    blocked = "import sys; sys.modules['streamflow'] = None; import qonduit_steps.commands.{}"
    for command in COMMANDS:
        done = run("python", "-c", blocked.format(command))
        assert done.returncode == 0, done.stderr


def test_a_read_only_installation_keeps_compiled_kernels_in_a_private_folder(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    script = (
        "import os, pwd, types\n"
        f"pwd.getpwuid = lambda user: types.SimpleNamespace(pw_dir={str(home)!r})\n"
        "os.access = lambda path, mode: False\n"
        "from qonduit_steps.kernels import kmeans\n"
        "import numpy as np\n"
        "kmeans.nearest_centres(np.zeros((2, 2)), np.zeros((1, 2)))\n"
        "print(os.environ['NUMBA_CACHE_DIR'])\n"
    )
    done = run("python", "-c", script)
    assert done.returncode == 0, done.stderr
    cache = home / ".cache" / "qonduit-numba"
    assert done.stdout.strip() == str(cache)
    assert list(cache.rglob("*.nbi"))
    assert cache.stat().st_mode & 0o777 == 0o700
