"""How often the annealer finds the optimum: on the papers' own problems, on all of them pooled, on random graphs.

Optima of the papers' problems come from the exact device with its proof; those of the random graphs were found once
by HiGHS and are written here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import dimod
import numpy as np
import numpy.typing as npt
import pytest

from qonduit.devices.annealer import Annealer
from qonduit.devices.answer import Answer, choose
from qonduit.devices.device import Device
from qonduit.devices.exact import Exact
from qonduit.devices.settings import Settings
from qonduit_steps.blobs import PAPERS, blobs
from qonduit_steps.kernels.dbscan import dbscan
from qonduit_steps.kernels.kmeans import kmeans, plus_plus
from qonduit_steps.kernels.linkage import hierarchical
from qonduit_steps.kernels.spanning_tree import spanning_tree
from qonduit_steps.loop import METHODS
from qonduit_steps.overlap import ABOVE, aggregation_problem, overlaps
from qonduit_steps.parameters import draw, generator
from qonduit_steps.partition import Labels, Partition
from qonduit_steps.points import Floats
from qonduit_steps.problem import Problem

Ints = npt.NDArray[np.int64]
ITERATIONS, SEEDS, SHOTS = 10, 100, 100


@dataclass(frozen=True)
class Task:
    bqm: dimod.BinaryQuadraticModel
    starts: Sequence[Sequence[str]]


def clustered(points: Floats, method: str, iteration: int, tree: Ints) -> Partition:
    random = generator(0, iteration, method)
    parameters = draw(method, "papers", points, random)
    if method == "kmeans":
        labels: Ints = kmeans(points, plus_plus(points, parameters["k"], random))[0].astype(np.int64)
    elif method == "dbscan":
        labels = dbscan(points, parameters["eps"], parameters["min_points"])[0]
    else:
        labels = hierarchical(points, parameters["k"], parameters["linkage"], tree)
    return Partition(numbered(labels), method, parameters, iteration, 0)


def numbered(labels: Ints) -> Labels:
    """The same clusters as 0, 1, …; noise stays −1."""
    positions = np.unique(labels, return_inverse=True)[1]
    return (positions - int(labels.min() < 0)).astype(np.int32)


@pytest.fixture(scope="module")
def iterations() -> list[tuple[list[Partition], Problem]]:
    """Ten iterations of the loop on the papers' 80,000 points: their partitions and their problems."""
    points = blobs(**PAPERS)
    tree = spanning_tree(points)[0]
    made = []
    for iteration in range(ITERATIONS):
        partitions = [clustered(points, method, iteration, tree) for method in METHODS]
        made.append((partitions, aggregation_problem(points, partitions, "silhouette", "auto")))
    return made


def task(problem: Problem) -> Task:
    return Task(problem.bqm(), [partition.variables for partition in problem.partitions])


def pooled(iterations: list[tuple[list[Partition], Problem]]) -> Task:
    """The clusters of all iterations as one problem; what two iterations have in common is there twice."""
    weights: dict[tuple[int, int], float] = {}
    for iteration, (_, problem) in enumerate(iterations):
        for cluster in (cluster for cluster in problem.clusters if cluster.in_objective):
            first = cluster.members[0]
            weights[len(METHODS) * iteration + first.input, first.cluster] = cluster.weight
    labels = [partition.labels for partitions, _ in iterations for partition in partitions]
    edges = [
        ((a, i), (b, j))
        for a in range(len(labels))
        for b in range(a + 1, len(labels))
        for i, j, _ in overlaps(labels[a], labels[b]).tolist()
        if (a, i) in weights and (b, j) in weights
    ]
    penalty = ABOVE * max(min(weights[u], weights[v]) for u, v in edges)
    bqm = dimod.BinaryQuadraticModel(dimod.BINARY)
    bqm.add_linear_from((str(vertex), -weight) for vertex, weight in weights.items())
    bqm.add_quadratic_from((str(u), str(v), penalty) for u, v in edges)
    return Task(bqm, [[str(vertex) for vertex in weights if vertex[0] == part] for part in range(len(labels))])


def solved(device: Device, task: Task, seed: int) -> Answer:
    request = device.prepare(task.bqm, SHOTS, seed, task.starts)
    result = device.fetch(device.submit(request, request.digest()))
    return choose(task.bqm, device.decode(request, result), task.starts)


def seeds_that_find_the_optimum(task: Task) -> int:
    proved = solved(Exact(Settings("exact")), task, 0)
    assert proved.proved_optimal
    found = [solved(Annealer(Settings("annealer")), task, seed).energy for seed in range(SEEDS)]
    return int(np.isclose(found, proved.energy, rtol=1e-9).sum())


def test_every_seed_finds_the_optimum_of_the_papers_problems(
    iterations: list[tuple[list[Partition], Problem]],
) -> None:
    assert [seeds_that_find_the_optimum(task(problem)) for _, problem in iterations] == [SEEDS] * ITERATIONS


def test_nearly_every_seed_finds_the_optimum_of_ten_iterations_pooled(
    iterations: list[tuple[list[Partition], Problem]],
) -> None:
    whole = pooled(iterations)
    assert whole.bqm.num_variables > 100
    assert seeds_that_find_the_optimum(whole) >= 0.95 * SEEDS


def random_graph(seed: int, vertices: int = 200, density: float = 0.15) -> Task:
    rng = np.random.default_rng(seed)
    edges = np.argwhere(np.triu(rng.random((vertices, vertices)) < density, 1)).tolist()
    weights = rng.uniform(1.0, 100.0, vertices).tolist()
    penalty = ABOVE * max(min(weights[u], weights[v]) for u, v in edges)
    bqm = dimod.BinaryQuadraticModel(dimod.BINARY)
    bqm.add_linear_from((f"v{vertex}", -weight) for vertex, weight in enumerate(weights))
    bqm.add_quadratic_from((f"v{u}", f"v{v}", penalty) for u, v in edges)
    return Task(bqm, [])


# HiGHS of SciPy (`milp`, a constraint a clique of `exact.clique_cover`, mip_rel_gap 0, 60 s) proved these optimal in
# 31, 38 and 52 s on two shared cores.
@pytest.mark.parametrize(("graph", "best"), [(0, 1903.1188112935379), (1, 1883.489401594327), (2, 2005.7380788473688)])
def test_random_graphs_of_200_vertices_are_solved_within_one_percent_of_highs(graph: int, best: float) -> None:
    task = random_graph(graph)
    worst = max(solved(Annealer(Settings("annealer")), task, seed).energy for seed in range(20))
    assert -worst >= 0.99 * best
