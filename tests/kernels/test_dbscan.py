"""DBSCAN against scikit-learn's: core points, clusters, border points and numbering."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist, pdist
from sklearn.cluster import DBSCAN

from qonduit_steps.kernels.dbscan import dbscan
from qonduit_steps.kernels.envelope import within_reach
from strategies import Floats, points


@given(points(dimensions=(1, 5)), st.integers(1, 12), st.floats(0.0, 1.0), st.booleans())
def test_labels_equal_scikit_learns(data: Floats, min_points: int, share: float, between: bool) -> None:
    distances = np.unique(pdist(data))
    distances = distances[distances > 0]
    if len(distances) == 0:
        return
    rank = int(share * (len(distances) - 1))
    # Between two distances nothing depends on rounding; at one, both sides must round alike, as they do on a grid.
    eps = 0.5 * (distances[rank] + distances[min(rank + 1, len(distances) - 1)])
    if not between and np.array_equal(data, np.round(data)) and data.shape[1] == 1:
        eps = distances[rank]
    elif distances[min(rank + 1, len(distances) - 1)] - distances[rank] < 1e-9 * distances[rank]:
        eps = distances[-1] * 1.5
    expected = DBSCAN(eps=eps, min_samples=min_points, algorithm="brute", metric="precomputed").fit(cdist(data, data))
    labels, core = dbscan(data, eps, min_points)
    assert np.flatnonzero(core).tolist() == expected.core_sample_indices_.tolist()
    assert labels.tolist() == expected.labels_.tolist()


@pytest.mark.parametrize("dimensions", [1, 2, 3, 6])
@pytest.mark.parametrize("eps", [0.02, 0.2, 1.0])
def test_thousands_of_points_equal_scikit_learn(dimensions: int, eps: float) -> None:
    random = np.random.default_rng(dimensions)
    data = random.normal(size=(4000, dimensions)) + random.integers(0, 3, (4000, 1)) * 4
    expected = DBSCAN(eps=eps, min_samples=8).fit(data)
    labels, core = dbscan(data, eps, 8)
    assert np.flatnonzero(core).tolist() == expected.core_sample_indices_.tolist()
    assert labels.tolist() == expected.labels_.tolist()


def test_a_border_point_is_reachable_and_noise_is_not() -> None:
    data = np.array([[0.0], [0.1], [0.2], [0.65], [3.0]])
    labels, core = dbscan(data, 0.5, 3)
    assert labels.tolist() == [0, 0, 0, 0, -1]
    assert core.tolist() == [True, True, True, False, False]


@pytest.mark.parametrize("shape", ["lines", "arc", "blobs"])
def test_dense_cells_just_out_of_reach_stay_apart_and_just_in_reach_are_joined(shape: str) -> None:
    random = np.random.default_rng(5)
    m = 20_000
    angle = random.uniform(0, np.pi / 2, m)
    groups = {
        "lines": (
            np.stack((np.zeros(m), random.uniform(0, 0.7, m)), 1),
            np.stack((np.ones(m), random.uniform(0, 0.7, m)), 1),
        ),
        "arc": (1e-7 * random.normal(size=(m, 2)), np.stack((np.cos(angle), np.sin(angle)), 1)),
        "blobs": (random.uniform(0, 0.3, (m, 2)), random.uniform(0, 0.3, (m, 2)) + np.array([1.3, 0.0])),
    }
    a, b = groups[shape]
    nearest = min(np.hypot(*(b - point).T).min() for point in a[np.argsort(-a[:, 0])[:400]])
    data = np.concatenate((a, b)) / nearest
    assert dbscan(data, 0.9999, 10)[0].max() == 1
    if shape != "lines":  # there the nearest pair was not among those that were looked at
        assert dbscan(data, 1.0001, 10)[0].max() == 0


@given(points(dimensions=(2, 3), least=4), st.floats(0.0, 1.0), st.integers(0, 2**32 - 1))
def test_within_reach_equals_trying_all_pairs(data: Floats, share: float, seed: int) -> None:
    axis = seed % data.shape[1]
    order = np.argsort(data[:, axis], kind="stable")
    middle = len(data) // 2
    a, b = np.ascontiguousarray(data[order[:middle]]), np.ascontiguousarray(data[order[middle:]])
    distances = np.sort(cdist(a, b).ravel())
    reach = distances[0] * (0.5 + share)
    if reach > 0 and abs(distances[0] - reach) > 1e-9 * reach:
        assert within_reach(a, b, reach) == bool(distances[0] <= reach)
        assert within_reach(b, a, reach) == bool(distances[0] <= reach)


def test_a_million_duplicates_in_few_places_are_two_clusters_and_noise() -> None:
    data = np.repeat([[0.0, 0.0], [10.0, 0.0]], 500_000, axis=0)
    data = np.concatenate((data, [[5.0, 5.0]]))
    labels, _ = dbscan(data, 1.0, 10)
    assert np.bincount(labels + 1).tolist() == [1, 500_000, 500_000]
