"""Spanning trees and hierarchical clustering against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster
from scipy.cluster.hierarchy import linkage as scipy_linkage
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from qonduit.errors import UsageError
from qonduit_steps.kernels.linkage import hierarchical
from qonduit_steps.kernels.spanning_tree import cut, spanning_tree
from qonduit_steps.loop import LINKAGES
from strategies import Floats, points, same_partition


@given(points(dimensions=(1, 12)))
def test_a_spanning_tree_spans_and_its_lengths_are_single_linkages_heights(data: Floats) -> None:
    edges, lengths = spanning_tree(data)
    n = len(data)
    graph = coo_matrix((np.ones(n - 1), edges.T), shape=(n, n))
    assert connected_components(graph, directed=False)[0] == 1
    np.testing.assert_allclose(lengths, np.linalg.norm(data[edges[:, 0]] - data[edges[:, 1]], axis=1), rtol=1e-12)
    np.testing.assert_allclose(lengths, np.sort(scipy_linkage(data, "single")[:, 2]), rtol=1e-9, atol=1e-300)


@given(points(), st.integers(1, 8))
def test_single_linkage_equals_scipys_where_no_tie_is_cut(data: Floats, k: int) -> None:
    k = min(k, len(data))
    heights = scipy_linkage(data, "single")[:, 2]
    labels = hierarchical(data, k, "single")
    assert labels.max() + 1 == k
    if 1 < k < len(data) and heights[-k] < heights[-k + 1] * (1 - 1e-9):
        assert same_partition(labels, fcluster(scipy_linkage(data, "single"), k, "maxclust"))


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("dimensions", [1, 2, 4])
def test_every_linkage_equals_scipys(linkage: str, dimensions: int) -> None:
    data = np.random.default_rng(dimensions).normal(size=(300, dimensions))
    for k in (1, 2, 5, 17, 300):
        assert same_partition(hierarchical(data, k, linkage), fcluster(scipy_linkage(data, linkage), k, "maxclust"))


def test_a_tree_that_was_made_once_gives_the_same_clusters() -> None:
    data = np.random.default_rng(0).normal(size=(500, 2))
    edges, _ = spanning_tree(data)
    for k in range(1, 9):
        assert hierarchical(data, k, "single", edges).tolist() == hierarchical(data, k, "single").tolist()
        assert cut(edges, 500, k).max() == k - 1


def test_a_hundred_thousand_equal_points_and_one_other_do_not_take_quadratic_time() -> None:
    data = np.zeros((100_001, 2))
    data[-1] = 1.0
    labels = hierarchical(data, 2, "single")
    assert np.bincount(labels).tolist() == [100_000, 1]


def test_all_pairs_are_refused_before_any_work_when_they_do_not_fit_in_memory() -> None:
    data = np.random.default_rng(0).normal(size=(1_000_000, 2))
    with pytest.raises(UsageError, match="use --linkage single or ward"):
        hierarchical(data, 3, "average")
