"""The overlap graph and its QUBO against sets of points and an exact solver."""

from __future__ import annotations

import itertools
from typing import Any

import dimod
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.spatial.distance import cdist
from sklearn.metrics import silhouette_samples as sklearn_samples

from qonduit_steps.overlap import ABOVE, aggregation_problem
from qonduit_steps.partition import Partition
from qonduit_steps.problem import Problem, problem_to_json

METHODS = ("kmeans", "dbscan", "hierarchical")


@st.composite
def clusterings(draw: st.DrawFn) -> tuple[Any, list[Partition]]:
    n = draw(st.integers(4, 25))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    points = random.normal(size=(n, 2))
    partitions: list[Partition] = []
    for method in METHODS[: draw(st.integers(1, 3))]:
        labels = random.integers(-1 if method == "dbscan" else 0, draw(st.integers(1, 5)), n)
        if len(partitions) > 0 and draw(st.booleans()):  # share clusters with the method before
            before = partitions[-1].labels
            labels = np.where(before == before.max(), before.max(), labels)
        values = np.unique(labels[labels >= 0])
        tidy = np.where(labels >= 0, np.searchsorted(values, labels), -1).astype(np.int32)
        partitions.append(Partition(tidy, method, {}, 3, 0))
    return points, partitions


def point_sets(problem: Problem, partitions: list[Partition]) -> dict[str, frozenset[int]]:
    sets = {}
    for cluster in problem.clusters:
        groups = {
            frozenset(np.flatnonzero(partitions[member.input].labels == member.cluster).tolist())
            for member in cluster.members
        }
        assert len(groups) == 1, "members of one vertex are the same points"
        sets[cluster.variable] = groups.pop()
    return sets


@given(clusterings(), st.sampled_from(["silhouette", "size"]))
def test_vertices_are_distinct_clusters_and_edges_are_shared_points(
    data: tuple[Any, list[Partition]], weights: str
) -> None:
    points, partitions = data
    problem = aggregation_problem(points, partitions, weights, "auto")
    sets = point_sets(problem, partitions)
    assert len(set(sets.values())) == len(sets)
    assert sum(len(cluster.members) for cluster in problem.clusters) == sum(part.clusters for part in partitions)
    expected = {frozenset((u, v)) for u, v in itertools.combinations(sets, 2) if sets[u] & sets[v]}
    assert {frozenset(edge) for edge in problem.edges} == expected
    assert all(cluster.size == len(sets[cluster.variable]) for cluster in problem.clusters)


@given(clusterings())
def test_silhouette_weights_are_sums_of_scikit_learns_samples_without_noise(data: tuple[Any, list[Partition]]) -> None:
    points, partitions = data
    problem = aggregation_problem(points, partitions, "silhouette", "auto")
    expected: dict[tuple[int, int], float] = {}
    for number, part in enumerate(partitions):
        inside = part.labels >= 0
        usable = 2 <= part.clusters < inside.sum()
        if usable:
            samples = sklearn_samples(cdist(points[inside], points[inside]), part.labels[inside], metric="precomputed")
        else:
            samples = np.zeros(inside.sum())
        for c in range(part.clusters):
            expected[number, c] = float(samples[part.labels[inside] == c].sum())
    for cluster in problem.clusters:
        heaviest = max(expected[member.input, member.cluster] for member in cluster.members)
        assert cluster.weight == pytest.approx(heaviest, abs=1e-8)
        assert cluster.in_objective == (cluster.weight > 0)


@given(clusterings())
def test_size_weights_are_shares_of_the_points(data: tuple[Any, list[Partition]]) -> None:
    points, partitions = data
    for cluster in aggregation_problem(points, partitions, "size", "n").clusters:
        assert cluster.weight == cluster.size / len(points)


@given(clusterings(), st.sampled_from(["silhouette", "size"]), st.sampled_from(["auto", "n"]))
def test_the_qubos_optimum_is_the_best_packing_of_disjoint_sets(
    data: tuple[Any, list[Partition]], weights: str, rule: str
) -> None:
    points, partitions = data
    problem = aggregation_problem(points, partitions, weights, rule)
    sets = point_sets(problem, partitions)
    inside = [cluster for cluster in problem.clusters if cluster.in_objective]
    if not inside or len(inside) > 14:
        return
    covers = np.array([[point in sets[cluster.variable] for cluster in inside] for point in range(len(points))], float)
    gains = np.array([cluster.weight for cluster in inside])
    packing = milp(
        -gains,
        constraints=LinearConstraint(covers, ub=np.ones(len(points))),
        integrality=np.ones(len(gains)),
        bounds=Bounds(0, 1),
    )
    best = dimod.ExactSolver().sample(problem.bqm()).first  # type: ignore[no-untyped-call]
    assert best.energy == pytest.approx(packing.fun, rel=1e-9, abs=1e-9)
    chosen = [variable for variable, value in best.sample.items() if value]
    assert not any(sets[u] & sets[v] for u, v in itertools.combinations(chosen, 2))


@given(clusterings(), st.sampled_from(["silhouette", "size"]))
def test_auto_is_just_above_what_is_needed(data: tuple[Any, list[Partition]], weights: str) -> None:
    problem = aggregation_problem(*data, weights, "auto")
    weight = {cluster.variable: cluster.weight for cluster in problem.clusters}
    needed = max((min(weight[u], weight[v]) for u, v in problem.edges), default=0.0)
    assert problem.penalty.needed == max(needed, 0.0)
    assert problem.penalty.value > problem.penalty.needed
    if needed > 0:
        assert problem.penalty.value == needed * ABOVE


@given(clusterings())
def test_each_methods_own_partition_is_feasible(data: tuple[Any, list[Partition]]) -> None:
    points, partitions = data
    problem = aggregation_problem(points, partitions, "size", "auto")
    sets = point_sets(problem, partitions)
    assert len(problem.partitions) == len(partitions)
    for known, part in zip(problem.partitions, partitions, strict=True):
        assert not any(sets[u] & sets[v] for u, v in itertools.combinations(known.variables, 2))
        assert sum(len(sets[variable]) for variable in known.variables) == (part.labels >= 0).sum()


@given(clusterings())
def test_the_file_is_dimods_own_and_loses_no_digit(data: tuple[Any, list[Partition]]) -> None:
    import json

    problem = aggregation_problem(*data, "silhouette", "auto")
    stored = json.loads(json.dumps(problem_to_json(problem)))
    assert dimod.BinaryQuadraticModel.from_serializable(stored["bqm"]) == problem.bqm()


def test_two_clusterings_by_one_method_have_names_of_their_own() -> None:
    points = np.random.default_rng(0).normal(size=(6, 2))
    parts = [
        Partition(np.array(labels, np.int32), "kmeans", {}, 0, 0) for labels in ([0, 0, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1])
    ]
    names = {cluster.variable for cluster in aggregation_problem(points, parts, "size", "auto").clusters}
    assert names == {"kmeans:0", "kmeans:1", "kmeans#2:0", "kmeans#2:1"}
