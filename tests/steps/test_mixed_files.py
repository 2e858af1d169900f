"""Files of different points or iterations are not silently combined; odd data gives a sentence or the right result."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from sklearn.cluster import DBSCAN

from qonduit_steps.kernels.dbscan import dbscan
from qonduit_steps.kernels.kmeans import kmeans
from qonduit_steps.kernels.multipole import distance_sums


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command.split(), cwd=folder, capture_output=True, text=True, timeout=120)


def test_labels_of_another_iteration_are_not_scored(tmp_path: Path) -> None:
    np.save(tmp_path / "points.npy", np.random.default_rng(0).normal(size=(200, 2)))
    for line in (
        "qonduit-cluster --method kmeans --k 4 --points points.npy --iteration 1 --out a.npz",
        "qonduit-cluster --method kmeans --k 4 --points points.npy --iteration 5 --out b.npz",
        "qonduit-aggregate --points points.npy --labels a.npz --out problem.json",
        "qonduit-solve --problem problem.json --out samples.json",
    ):
        assert run(line, tmp_path).returncode == 0, line
    done = run(
        "qonduit-score --points points.npy --labels b.npz --samples samples.json --out s --labels-out l", tmp_path
    )
    assert done.returncode == 65
    assert "use files of one iteration" in done.stderr


def test_a_tree_of_as_many_other_points_is_refused(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    for name in ("one.npy", "other.npy"):
        np.save(tmp_path / name, random.normal(size=(50, 2)))
    assert run("qonduit-tree --points other.npy --out tree.npz", tmp_path).returncode == 0
    done = run("qonduit-cluster --method hierarchical --points one.npy --tree tree.npz --out labels.npz", tmp_path)
    assert done.returncode == 65


@pytest.mark.parametrize("text", ["1_000,2\n3,4\n", '1,"2\n3,4"\n', "1e-200,0\n2e-200,0\n3e-200,1e-200\n"])
def test_odd_text_is_one_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(text)
    done = run("qonduit-cluster --method dbscan --points p.csv --out labels.npz", tmp_path)
    assert done.returncode == 65
    assert len(done.stderr.splitlines()) == 1


def test_one_far_outlier_does_not_change_dbscan() -> None:
    random = np.random.default_rng(0)
    points = np.concatenate((random.normal(size=(3000, 2)), [[1e9, 0.0], [0.0, -1e12]]))
    assert dbscan(points, 0.1, 5)[0].tolist() == DBSCAN(eps=0.1, min_samples=5).fit(points).labels_.tolist()


def test_sums_of_distances_keep_their_digits_far_from_the_origin() -> None:
    points = np.random.default_rng(0).normal(size=(20_000, 2)) / 1e9 + 0.75
    found = distance_sums(points, points[:50])
    exact = [np.hypot(*(points - point).T).sum() for point in points[:50]]
    np.testing.assert_allclose(found, exact, rtol=1e-9)


def test_a_far_point_that_came_and_went_leaves_no_trace_in_a_centre() -> None:
    near = np.random.default_rng(0).normal(size=(500, 2))
    points = np.concatenate((near, [[1e14, 0.0]]))
    labels, centres, _ = kmeans(points, np.array([[0.0, 0.0], [0.5, 0.5]]))
    for number in range(2):
        np.testing.assert_allclose(centres[number], points[labels == number].mean(axis=0), rtol=1e-9, atol=1e-9)
