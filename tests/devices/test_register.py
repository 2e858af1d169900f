"""Registers of atoms: random unit-disk graphs embed, and what is said of an embedding is true."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qonduit.devices.independence import Graph
from qonduit.devices.register import Embedding, Limits, embed
from qonduit.errors import DataError

ROOMY = Limits(4.0, 50.0, 100, 8.4, 13.3)
TIGHT = Limits(5.0, 38.0, 80, 6.4, 9.8)
TRIANGULAR = tuple((5.0 * (x + 0.5 * (y % 2)), 4.34 * y) for x in range(-3, 4) for y in range(-3, 4))
TRAPS = Limits(5.0, 38.0, 20, 5.5, 9.8, TRIANGULAR)
Edges = list[tuple[int, int]]


def graph(size: int, edges: Edges) -> Graph:
    beside = [frozenset(v for edge in edges if u in edge for v in edge if v != u) for u in range(size)]
    return Graph((1.0,) * size, tuple(beside))


def unit_disk_graph(seed: int, size: int) -> Graph:
    """Points in a box, joined where they are nearer than 1; no two so near that no device could hold them."""
    rng = np.random.default_rng(seed)
    points: list[tuple[float, float]] = []
    while len(points) < size:
        x, y = rng.uniform(0, math.sqrt(size) * 0.75, 2)
        if all(math.dist((x, y), other) > 0.6 for other in points):
            points.append((x, y))
    pairs = itertools.combinations(range(size), 2)
    return graph(size, [(u, v) for u, v in pairs if math.dist(points[u], points[v]) < 1])


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Any graph: most of them are no unit-disk graphs."""
    size = draw(st.integers(1, 7))
    pairs = list(itertools.combinations(range(size), 2))
    return graph(size, draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else [])


def check(made: Embedding, asked: Graph, limits: Limits) -> None:
    """Everything that is said of an embedding, computed anew and pair by pair."""
    radius = made.blockade_radius_um
    assert limits.least_blockade_um - 1e-9 <= radius <= limits.most_blockade_um + 1e-9
    wrong: dict[str, list[tuple[int, int]]] = {"missing": [], "false": []}
    edges: list[float] = []
    gaps: list[float] = []
    for u, v in itertools.combinations(range(len(asked.weights)), 2):
        apart = math.dist(made.coordinates_um[u], made.coordinates_um[v])
        assert apart >= limits.min_distance_um
        joined = v in asked.neighbours[u]
        (edges if joined else gaps).append(apart)
        if joined and apart > radius:
            wrong["missing"].append((u, v))
        if not joined and apart <= radius:
            wrong["false"].append((u, v))
    assert all(math.hypot(x, y) <= limits.max_radius_um for x, y in made.coordinates_um)
    assert list(made.missing) == wrong["missing"]
    assert list(made.false) == wrong["false"]
    assert made.exact is (wrong == {"missing": [], "false": []})
    if edges and gaps:
        assert made.margin == pytest.approx(min(gaps) / max(edges))
        assert not made.exact or min(gaps) > max(edges)
    else:
        assert made.margin is None


def test_random_unit_disk_graphs_embed_exactly() -> None:
    made = [(embed(asked, ROOMY, 0), asked) for asked in (unit_disk_graph(seed, 4 + seed % 7) for seed in range(40))]
    for found, asked in made:
        check(found, asked, ROOMY)
    assert all(found.exact for found, _ in made)


@given(graphs(), st.sampled_from([ROOMY, TIGHT]), st.integers(0, 3))
@settings(max_examples=25)
def test_what_is_said_of_an_embedding_is_true(asked: Graph, limits: Limits, seed: int) -> None:
    found = embed(asked, limits, seed)
    check(found, asked, limits)
    assert embed(asked, limits, seed) == found


@given(graphs())
@settings(max_examples=5)
def test_on_a_fixed_layout_every_atom_has_a_trap_of_its_own(asked: Graph) -> None:
    found = embed(asked, TRAPS, 0)
    check(found, asked, TRAPS)
    assert len(set(found.coordinates_um)) == len(asked.weights)
    assert set(found.coordinates_um) <= {(float(x), float(y)) for x, y in TRIANGULAR}


def test_a_path_embeds_exactly_on_a_triangular_layout() -> None:
    assert embed(graph(4, [(0, 1), (1, 2), (2, 3)]), TRAPS, 0).exact


def test_five_clusters_around_one_embed_and_six_do_not() -> None:
    """Six vertices that are no neighbours of each other do not fit into one disk."""
    assert embed(graph(6, [(0, leaf) for leaf in range(1, 6)]), ROOMY, 0).exact
    six = embed(graph(7, [(0, leaf) for leaf in range(1, 7)]), ROOMY, 0)
    assert len(six.missing) + len(six.false) >= 1


def test_separate_parts_are_set_far_apart() -> None:
    found = embed(graph(9, [(0, 1), (1, 2), (3, 4), (4, 5), (6, 7), (7, 8)]), ROOMY, 0)
    parts = [found.coordinates_um[first : first + 3] for first in (0, 3, 6)]
    for one, two in itertools.combinations(parts, 2):
        assert min(math.dist(a, b) for a in one for b in two) > 1.9 * found.blockade_radius_um


def test_more_variables_than_atoms_are_refused_with_both_numbers() -> None:
    with pytest.raises(DataError, match=r"12 variables do not fit the 10 atoms.*annealer"):
        embed(graph(12, []), Limits(4.0, 50.0, 10, 8.4, 13.3), 0)


def test_a_crowd_that_no_register_can_hold_is_refused() -> None:
    with pytest.raises(DataError, match="do not fit the device's radius"):
        embed(graph(30, []), Limits(4.0, 6.0, None, 8.4, 13.3), 0)
