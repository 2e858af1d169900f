"""Local search among independent sets: put one vertex in, take its neighbours out, do not go straight back.

The annealer ends with it. A tabu list lets the search pass through worse sets, which finds the exchanges of one
cluster for two that single flips under a penalty rarely find.
"""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from qonduit.devices.independence import Graph

SHORTEST_TABU = 5


def swap_search(graph: Graph, start: Set[int], moves: int, rng: np.random.Generator) -> frozenset[int]:
    """The heaviest independent set met in so many moves from `start`, which must be independent itself."""
    if not graph.weights:
        return frozenset()
    weights = np.array(graph.weights)
    beside = [np.array(sorted(near), dtype=np.intp) for near in graph.neighbours]
    inside = np.zeros(len(weights), dtype=bool)
    inside[sorted(start)] = True
    lost = np.array([weights[near[inside[near]]].sum() for near in beside])
    free_at = np.zeros(len(weights), dtype=np.intp)
    tabu = rng.integers(SHORTEST_TABU, SHORTEST_TABU + 10, size=moves)
    value = best_value = graph.weight(start)
    best = inside.copy()
    for move in range(moves):
        gains = np.where(inside, -np.inf, weights - lost)
        allowed = np.where((free_at <= move) | (gains > best_value - value), gains, -np.inf)
        vertex = int(allowed.argmax())
        if allowed[vertex] == -np.inf:
            continue
        near = beside[vertex]
        for out in near[inside[near]]:
            inside[out] = False
            lost[beside[out]] -= weights[out]
            free_at[out] = move + tabu[move]
        inside[vertex] = True
        lost[near] += weights[vertex]
        value += gains[vertex]
        if value > best_value:
            best_value, best = value, inside.copy()
    return frozenset(np.flatnonzero(best).tolist())
