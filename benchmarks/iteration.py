"""One whole iteration of the loop in one process: three methods, aggregate, exact solve, score."""

from __future__ import annotations

from typing import Any

import numpy as np

from qonduit.devices.answer import choose
from qonduit.devices.execute import execute
from qonduit.devices.registry import open_device
from qonduit.devices.settings import Settings
from qonduit_steps.kernels.dbscan import dbscan
from qonduit_steps.kernels.kmeans import kmeans, plus_plus
from qonduit_steps.kernels.linkage import hierarchical
from qonduit_steps.loop import METHODS
from qonduit_steps.overlap import aggregation_problem
from qonduit_steps.parameters import draw, generator
from qonduit_steps.partition import Partition
from qonduit_steps.selection import assemble, mean_silhouette


def whole_iteration(points: Any, seed: int = 3, iteration: int = 1) -> float:
    partitions = []
    for method in METHODS:
        labels: Any
        random = generator(seed, iteration, method)
        parameters = draw(method, "papers", points, random)
        if method == "kmeans":
            labels, _, _ = kmeans(points, plus_plus(points, parameters["k"], random))
        elif method == "dbscan":
            labels, _ = dbscan(points, **parameters)
        else:
            labels = hierarchical(points, parameters["k"], parameters["linkage"])
        tidy = np.unique(labels[labels >= 0], return_inverse=True)[1]
        renamed = np.full(len(labels), -1, np.int32)
        renamed[labels >= 0] = tidy
        partitions.append(Partition(renamed, method, parameters, iteration, seed))
    problem = aggregation_problem(points, partitions, "silhouette", "auto")
    device = open_device(Settings(kind="exact"))
    bqm = problem.bqm()
    request = device.prepare(bqm, 1, seed)
    samples = device.decode(request, execute(device, request))
    answer = choose(bqm, samples, [part.variables for part in problem.partitions])
    best, _ = assemble(points, partitions, problem, list(answer.variables))
    return mean_silhouette(points, best)
