"""Fifty problems of 4 to 14 variables, like those of the application, only smaller: what devices are compared on.

A few hundred points around two to four centres are clustered by the three methods with the application's own
parameters; the first problems of each size are kept. The same fifty on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from qonduit_steps.blobs import blobs
from qonduit_steps.commands.cluster import clustered
from qonduit_steps.loop import METHODS
from qonduit_steps.overlap import aggregation_problem
from qonduit_steps.parameters import draw, generator
from qonduit_steps.partition import Partition
from qonduit_steps.problem import Problem

SIZES = range(4, 15)
PROBLEMS = 50
MOST_TRIES = 20_000


@cache
def family() -> tuple[Problem, ...]:
    """The problems, smallest first; every one has overlaps among its variables."""
    wanted = {size: PROBLEMS // len(SIZES) + (size >= SIZES.stop - PROBLEMS % len(SIZES)) for size in SIZES}
    kept: dict[int, list[Problem]] = {size: [] for size in SIZES}
    for problem in _candidates():
        bqm = problem.bqm()
        size = bqm.num_variables
        if size in kept and bqm.num_interactions and len(kept[size]) < wanted[size]:
            kept[size].append(problem)
        if sum(map(len, kept.values())) == PROBLEMS:
            return tuple(problem for size in SIZES for problem in kept[size])
    raise RuntimeError("too few problems were found")


def _candidates() -> Iterator[Problem]:
    for seed in range(MOST_TRIES):
        random = np.random.default_rng(seed)
        # Points on a coarse grid: small clusters repeat in several methods and are one variable.
        points = np.round(blobs(int(random.integers(25, 60)), int(random.integers(3, 6)), 2, 0.6, 6.0, seed), 0)
        partitions = []
        for method in METHODS:
            draws = generator(seed, 0, method)
            parameters = draw(method, "fitted", points, draws)
            partitions.append(Partition(clustered(points, method, parameters, draws), method, parameters, 0, seed))
        yield aggregation_problem(points, partitions, "silhouette", "auto")
