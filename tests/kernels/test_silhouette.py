"""Silhouettes against scikit-learn's, given distances that SciPy computed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from scipy.spatial.distance import cdist
from sklearn.metrics import silhouette_samples as sklearn_samples

from qonduit_steps.kernels import multipole, silhouette
from qonduit_steps.kernels.silhouette import silhouette_samples
from strategies import Floats, Ints, labelled_points


def oracle(points: Floats, labels: Ints) -> Floats:
    return np.asarray(sklearn_samples(cdist(points, points), labels, metric="precomputed"))


@given(labelled_points())
def test_samples_and_mean_equal_scikit_learns_for_any_data_and_labelling(data: tuple[Floats, Ints]) -> None:
    points, labels = data
    found = silhouette_samples(points, labels)
    expected = oracle(points, labels)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    assert abs(found.mean() - expected.mean()) < 1e-9


@given(labelled_points(most=40))
def test_a_cluster_at_a_time_equals_a_point_at_a_time(data: tuple[Floats, Ints]) -> None:
    points, labels = data
    clusters = silhouette._group(np.ascontiguousarray(points[:, [0, -1]]), labels)
    for one, other in zip(silhouette._by_cluster(clusters), silhouette._by_point(clusters), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_clusters_of_any_shape_are_summed_to_a_billionth_by_the_multipole_method() -> None:
    random = np.random.default_rng(3)
    ring = np.exp(2j * np.pi * random.random(6000))
    shapes = {
        "blob": random.normal(size=(6000, 2)),
        "two heavy corners": np.repeat([[-1.0, -1.0], [1.0, 1.0]], 3000, axis=0),
        "line": np.outer(np.linspace(-1, 1, 6000), [1.0, 0.3]),
        "vertical line": np.outer(np.linspace(-1, 1, 6000), [0.0, 1.0]),
        "ring": np.stack((ring.real, ring.imag), axis=1),
        "scales": np.sign(random.normal(size=(6000, 2))) * 10.0 ** random.uniform(-12, 0, (6000, 1)),
        "clumps": random.integers(0, 5, (6000, 2)) + 1e-9 * random.normal(size=(6000, 2)),
    }
    targets = np.concatenate([shape[:200] for shape in shapes.values()])
    for name, shape in shapes.items():
        for offset in ([0.0, 0.0], [5.0, -3.0]):
            sources = (shape + offset) / 16
            everyone = np.concatenate((targets / 16, sources[::7]))
            found = multipole.distance_sums(sources, everyone)
            expected = np.array([np.hypot(*(sources - target).T).sum() for target in everyone])
            np.testing.assert_allclose(found, expected, rtol=1e-9, err_msg=name)


def test_far_boxes_really_act_through_their_nodes() -> None:
    points = np.random.default_rng(0).normal(size=(20_000, 2))
    found = multipole.distance_sums(points[:10_000], points[10_000:])
    exact = np.array([np.hypot(*(points[:10_000] - target).T).sum() for target in points[10_000:10_100]])
    errors = np.abs(found[:100] - exact) / exact
    assert 0 < errors.max() < 1e-11  # not the pair-by-pair sum, and right


@pytest.mark.parametrize("dimensions", [2, 3])
def test_many_points_equal_scikit_learn(dimensions: int) -> None:
    random = np.random.default_rng(dimensions)
    points = random.normal(size=(12_000, dimensions)) + random.integers(0, 2, (12_000, 1)) * 3
    labels = (points[:, 0] > 1.5).astype(np.int64) + (points[:, 1] > 4)
    labels = np.unique(labels, return_inverse=True)[1]
    chosen = random.permutation(12_000)[:50]
    found = silhouette_samples(points, labels)[chosen]
    means = np.array(
        [
            [np.linalg.norm(points[labels == c] - points[i], axis=1).sum() for c in range(labels.max() + 1)]
            for i in chosen
        ]
    )
    sizes = np.bincount(labels)
    rows = np.arange(len(chosen))
    own = means[rows, labels[chosen]] / (sizes[labels[chosen]] - 1)
    means = means / sizes
    means[rows, labels[chosen]] = np.inf
    other = means.min(axis=1)
    np.testing.assert_allclose(found, (other - own) / np.maximum(own, other), atol=1e-9)


def test_singletons_score_zero_and_equal_clusters_score_zero() -> None:
    points = np.array([[0.0], [0.0], [0.0], [5.0]])
    assert silhouette_samples(points, np.array([0, 0, 1, 2])).tolist() == [0.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("threads", ["1", "2"])
def test_the_number_of_threads_does_not_change_a_bit(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    points = random.normal(size=(30_000, 2))
    labels = (points[:, 0] > 0).astype(np.int64)
    monkeypatch.delenv("QONDUIT_THREADS", raising=False)
    expected = silhouette_samples(points, labels).tobytes()
    monkeypatch.setenv("QONDUIT_THREADS", threads)
    assert silhouette_samples(points, labels).tobytes() == expected
