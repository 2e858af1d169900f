"""k-means against scikit-learn's Lloyd from the same start."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from qonduit_steps.kernels.kmeans import kmeans, nearest_centres, plus_plus
from strategies import Floats, points


@pytest.mark.parametrize("dimensions", [1, 2, 3, 10])
@pytest.mark.parametrize("k", [2, 5, 9])
def test_labels_and_centres_equal_scikit_learns_from_the_same_start(dimensions: int, k: int) -> None:
    random = np.random.default_rng(k)
    data = random.normal(size=(3000, dimensions)) + 4 * random.integers(0, 4, (3000, 1))
    start = data[random.integers(0, 3000, k)]
    expected = KMeans(n_clusters=k, init=start, n_init=1, algorithm="lloyd").fit(data)
    labels, centres, rounds = kmeans(data, start)
    assert labels.tolist() == expected.labels_.tolist()
    np.testing.assert_allclose(centres, expected.cluster_centers_, atol=1e-9)
    assert rounds == expected.n_iter_


@given(points(), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_every_point_ends_at_its_nearest_centre_and_inertia_is_no_worse_than_the_starts(
    data: Floats, k: int, seed: int
) -> None:
    k = min(k, len(data))
    start = plus_plus(data, k, np.random.default_rng(seed))
    labels, centres, _ = kmeans(data, start)

    def squares(to: Floats) -> Floats:
        return np.asarray(((data[:, None, :] - to[None]) ** 2).sum(axis=2))

    final = squares(centres)
    chosen = final[np.arange(len(data)), labels]
    scale = float((data**2).max()) + 1e-300  # what rounding is relative to
    assert (chosen <= final.min(axis=1) + 1e-9 * scale).all()
    assert chosen.sum() <= squares(start).min(axis=1).sum() * (1 + 1e-9) + 1e-12 * scale
    assert nearest_centres(data, centres).max() < k


def test_fewer_distinct_points_than_clusters_leaves_clusters_empty() -> None:
    data = np.repeat([[0.0, 0.0], [1.0, 1.0]], 10, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected = KMeans(n_clusters=4, init=data[[0, 1, 2, 10]], n_init=1).fit(data)
    labels, _, _ = kmeans(data, data[[0, 1, 2, 10]])
    assert len(set(labels.tolist())) == len(set(expected.labels_.tolist())) == 2


def test_an_empty_cluster_gets_the_farthest_point() -> None:
    data = np.array([[0.0], [0.1], [0.2], [10.0]])
    labels, _, _ = kmeans(data, np.array([[0.1], [500.0]]))
    assert labels.tolist() == [0, 0, 0, 1]
