"""Atoms in the plane whose blockades are a graph's edges: an embedding as a unit-disk graph, and how true it is.

The devices of neutral atoms call `embed` with what they allow. Connected parts are laid out one by one and set apart;
the same graph, limits and seed give the same register.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qonduit.devices.independence import Graph
from qonduit.errors import DataError

Points = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

STARTS, DESCENT_STEPS = 12, 250
SHAKEN = (0.05, 0.6)  # of the blockade radius: the least and the most that a start is shaken
# How much longer the shortest gap shall be than the longest edge: tried from what is best to what just separates them.
MARGINS = (1.7, 1.5, 1.35, 1.25, 1.17, 1.1, 1.05, 1.02)
GOOD_MARGIN = 1.3
WORTH = 1.04
FARTHEST = 1.25  # the blockade radius over the longest edge: a greater radius only weakens the drive
RADII = (1.0, 1.12, 1.25, 1.4)
APART = (2.5, 2.0, 1.7, 1.5, 1.3)
SLACK_UM = 1e-3
HARD, SOFT = 30.0, 0.02
SHORTEST_EDGE = 0.62  # of the blockade radius: nearer atoms gain nothing, and are slow to simulate
TRAP_MOVES = 20_000


@dataclass(frozen=True)
class Limits:
    """What a device allows; with `traps`, atoms sit only there. The blockade radius follows from its amplitudes."""

    min_distance_um: float
    max_radius_um: float
    max_atoms: int | None
    least_blockade_um: float
    most_blockade_um: float
    traps: tuple[tuple[float, float], ...] | None = None


@dataclass(frozen=True)
class Embedding:
    """Where the atoms are.

    `margin` is the shortest distance of a pair without an edge over the longest edge, None where there is not both.
    """

    coordinates_um: tuple[tuple[float, float], ...]
    blockade_radius_um: float
    missing: tuple[tuple[int, int], ...]
    false: tuple[tuple[int, int], ...]
    margin: float | None

    @property
    def exact(self) -> bool:
        return not self.missing and not self.false

    def summary(self) -> dict[str, Any]:
        return {
            "blockade_radius_um": self.blockade_radius_um,
            "missing_edges": [list(pair) for pair in self.missing],
            "false_edges": [list(pair) for pair in self.false],
            "margin": self.margin,
        }


def embed(graph: Graph, limits: Limits, seed: int) -> Embedding:
    """The register with the fewest wrong pairs that was found, and of those the one with the greatest margin."""
    atoms = len(graph.weights)
    if limits.max_atoms is not None and atoms > limits.max_atoms:
        raise DataError(
            f"{atoms} variables do not fit the {limits.max_atoms} atoms of the device; use a device with more qubits, "
            "or the kind 'annealer' or 'exact'"
        )
    best: Embedding | None = None
    for factor in RADII:
        radius = min(limits.least_blockade_um * factor, limits.most_blockade_um)
        found = _embed_at(graph, limits, radius, np.random.default_rng([seed, atoms]))
        if found is not None and (best is None or _better(found, best)):
            best = found
        if best is not None and best.exact and (best.margin is None or best.margin >= GOOD_MARGIN):
            break
    if best is None:
        raise DataError(
            f"{atoms} atoms do not fit the device's radius of {limits.max_radius_um:g} µm at its least distance of "
            f"{limits.min_distance_um:g} µm; use the kind 'annealer' or 'exact'"
        )
    return best


def judge(graph: Graph, coordinates: Points, limits: Limits) -> Embedding:
    """The embedding that these places are, with the blockade radius that gets the fewest pairs wrong."""
    rows, columns = np.triu_indices(len(coordinates), 1)
    edge = adjacency(graph)[rows, columns]
    length = np.linalg.norm(coordinates[rows] - coordinates[columns], axis=1)
    radius = _separating(length, edge, limits)
    missing, false = edge & (length > radius), ~edge & (length <= radius)
    shortest_gap = float(length[~edge].min(initial=np.inf))
    longest_edge = float(length[edge].max(initial=0.0))
    return Embedding(
        coordinates_um=tuple((float(x), float(y)) for x, y in coordinates),
        blockade_radius_um=radius,
        missing=_pairs(rows[missing], columns[missing]),
        false=_pairs(rows[false], columns[false]),
        margin=shortest_gap / longest_edge if longest_edge and np.isfinite(shortest_gap) else None,
    )


def adjacency(graph: Graph) -> Flags:
    joined = np.zeros((len(graph.weights),) * 2, dtype=bool)
    for u, v in graph.edges():
        joined[u, v] = joined[v, u] = True
    return joined


def _pairs(rows: npt.NDArray[np.intp], columns: npt.NDArray[np.intp]) -> tuple[tuple[int, int], ...]:
    return tuple((int(u), int(v)) for u, v in zip(rows, columns, strict=True))


def _better(found: Embedding, than: Embedding) -> bool:
    """Fewer wrong pairs, or a margin that is worth the weaker drive of a greater blockade radius."""
    wrong, wrong_before = (len(each.missing) + len(each.false) for each in (found, than))
    worth = (found.margin or 0.0) > WORTH * (than.margin or 0.0)
    return wrong < wrong_before or (wrong == wrong_before and worth)


def _separating(length: Points, edge: Flags, limits: Limits) -> float:
    """The middle, on a logarithmic scale, of the widest gap among those that put the fewest pairs on the wrong side."""
    low, high = limits.least_blockade_um, limits.most_blockade_um
    inside = length[(length > low) & (length < high)]
    cuts = np.unique(np.concatenate(([low], inside, [high])))
    middles = np.sqrt(cuts[:-1] * cuts[1:]) if len(cuts) > 1 else cuts
    wrong = (edge & (length > middles[:, None])).sum(axis=1) + (~edge & (length <= middles[:, None])).sum(axis=1)
    widths = np.log(cuts[1:] / cuts[:-1]) if len(cuts) > 1 else np.zeros(1)
    chosen = int(np.lexsort((-widths, wrong))[0])
    below = length[edge & (length <= middles[chosen])].max(initial=0.0)
    above = length[~edge & (length > middles[chosen])].min(initial=np.inf)
    if below == 0:
        return low if above > low else float(middles[chosen])
    middle = below * min(np.sqrt(above / below), FARTHEST)
    return float(np.clip(middle, cuts[chosen], cuts[min(chosen + 1, len(cuts) - 1)]))


def _embed_at(graph: Graph, limits: Limits, radius: float, rng: np.random.Generator) -> Embedding | None:
    joined = adjacency(graph)
    if limits.traps is not None:
        return _embed_on_traps(graph, joined, limits, radius, rng)
    parts = _components(joined)
    laid = [_lay_out(joined[np.ix_(part, part)], limits, radius, rng) for part in parts]
    places = _set_apart(laid, limits, radius)
    if places is None:
        return None
    coordinates = np.zeros((len(joined), 2))
    for part, place in zip(parts, places, strict=True):
        coordinates[part] = place
    coordinates = np.round(coordinates, 4)
    rows, columns = np.triu_indices(len(coordinates), 1)
    nearest = np.linalg.norm(coordinates[rows] - coordinates[columns], axis=1).min(initial=np.inf)
    return None if nearest < limits.min_distance_um else judge(graph, coordinates, limits)


def _components(joined: Flags) -> list[npt.NDArray[np.intp]]:
    from scipy.sparse.csgraph import connected_components

    count, label = connected_components(joined, directed=False)
    return [np.flatnonzero(label == part) for part in range(count)]


def _lay_out(joined: Flags, limits: Limits, radius: float, rng: np.random.Generator) -> Points:
    """One connected part around the origin: several descents at once, each from a wide margin to a narrow one."""
    if len(joined) == 1:
        return np.zeros((1, 2))
    tries = _starts(joined, radius, rng)
    best, best_cost = tries[0], (np.inf, 0.0)
    for margin in MARGINS:
        tries = _descend(tries, joined, limits, radius, margin)
        costs = [_layout_cost(points, joined, radius) for points in tries]
        lowest = min(range(STARTS), key=lambda number: costs[number])
        if costs[lowest] < best_cost:
            best, best_cost = tries[lowest], costs[lowest]
        if best_cost[0] == 0:
            break
    centred: Points = best - (best.max(axis=0) + best.min(axis=0)) / 2
    return centred


def _starts(joined: Flags, radius: float, rng: np.random.Generator) -> Points:
    """Classical scaling of the graph's distances, shaken: near what the graph asks for, and different each time."""
    from scipy.sparse.csgraph import shortest_path

    atoms = len(joined)
    hops = shortest_path(joined, unweighted=True, directed=False)
    centring = np.eye(atoms) - 1 / atoms
    values, vectors = np.linalg.eigh(-0.5 * centring @ hops**2 @ centring)
    points = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0))
    noise = np.linspace(*SHAKEN, STARTS)[:, None, None] * rng.normal(size=(STARTS, atoms, 2))
    shaken: Points = radius * (0.8 * points + noise)
    return shaken


def _descend(tries: Points, joined: Flags, limits: Limits, radius: float, margin: float) -> Points:
    """Edges shorter and gaps longer than the radius, by the margin; never nearer than the device allows.

    Gradient descent with Barzilai and Borwein's steps. A solver that calls BLAS is slower on matrices this small, and
    many times so while its threads compete with others for the cores.
    """
    least = limits.min_distance_um + 2 * SLACK_UM
    longest = max(radius / np.sqrt(margin), least)
    itself = 10 * limits.max_radius_um * np.eye(len(joined))  # an atom is far from itself
    low = np.where(joined, 0.0, radius * np.sqrt(margin))
    short = np.where(joined, SHORTEST_EDGE * radius, 0.0)

    def downhill(at: Points) -> Points:
        apart = at[:, :, None] - at[:, None]
        length = np.sqrt((apart**2).sum(axis=3) + 1e-12) + itself
        pull = np.where(joined, np.maximum(length - longest, 0), 0)
        push = np.maximum(low - length, 0) + HARD * np.maximum(least - length, 0) + SOFT * np.maximum(short - length, 0)
        force: Points = (((push - pull) / length)[..., None] * apart).sum(axis=2)
        return force

    step = np.full((len(tries), 1, 1), 0.02)
    force = downhill(tries)
    for _ in range(DESCENT_STEPS):
        moved = step * force
        tries = tries + moved
        before, force = force, downhill(tries)
        turned = before - force
        along = (moved * turned).sum(axis=(1, 2), keepdims=True)
        step = np.clip((moved**2).sum(axis=(1, 2), keepdims=True) / np.maximum(along, 1e-12), 1e-3, 0.5)
    # What is still too near is mended by a little more room for all.
    nearest = (np.linalg.norm(tries[:, :, None] - tries[:, None], axis=3) + itself).min(axis=(1, 2))
    roomy: Points = tries * np.maximum(1.0, least / np.maximum(nearest, 1e-3))[:, None, None]
    return roomy


def _layout_cost(points: Points, joined: Flags, radius: float) -> tuple[float, float]:
    """Wrong pairs, then the margin."""
    rows, columns = np.triu_indices(len(points), 1)
    edge = joined[rows, columns]
    length = np.linalg.norm(points[rows] - points[columns], axis=1)
    wrong = int((edge & (length > radius)).sum() + (~edge & (length <= radius)).sum())
    margin = length[~edge].min(initial=2 * radius) / length[edge].max(initial=1e-9)
    return float(wrong), -float(margin)


def _set_apart(parts: list[Points], limits: Limits, radius: float) -> list[Points] | None:
    """The parts, largest first, each as near the centre as the others allow; as far apart as there is room for."""
    order = sorted(range(len(parts)), key=lambda part: (-len(parts[part]), part))
    step = radius / 3
    axis = np.arange(-limits.max_radius_um, limits.max_radius_um + step, step)
    sites = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    sites = sites[np.argsort((sites**2).sum(axis=1), kind="stable")]
    for apart in APART:
        placed: dict[int, Points] = {}
        for part in order:
            others = np.concatenate(list(placed.values())) if placed else np.zeros((0, 2))
            site = _free_site(parts[part], sites, others, apart * radius, limits.max_radius_um - SLACK_UM)
            if site is None:
                break
            placed[part] = parts[part] + site
        else:
            return _centred([placed[part] for part in range(len(parts))], limits)
    return None


def _free_site(part: Points, sites: Points, others: Points, apart: float, most: float) -> Points | None:
    for site in sites:
        moved = part + site
        if (moved**2).sum(axis=1).max() > most**2:
            continue
        if len(others) == 0 or ((moved[:, None] - others[None]) ** 2).sum(axis=2).min() >= apart**2:
            return np.asarray(site)
    return None


def _centred(parts: list[Points], limits: Limits) -> list[Points]:
    every = np.concatenate(parts)
    middle = (every.max(axis=0) + every.min(axis=0)) / 2
    if ((every - middle) ** 2).sum(axis=1).max() > (limits.max_radius_um - SLACK_UM) ** 2:
        return parts
    return [part - middle for part in parts]


def _embed_on_traps(
    graph: Graph, joined: Flags, limits: Limits, radius: float, rng: np.random.Generator
) -> Embedding | None:
    """Annealing over the traps of a fixed layout: an atom moves to another trap, or two change places."""
    traps = np.array(limits.traps)
    atoms = len(joined)
    if atoms > len(traps):
        return None
    length = np.linalg.norm(traps[:, None] - traps[None], axis=2) / radius
    as_edge, as_gap = np.maximum(length - 0.95, 0), np.maximum(1.15 - length, 0)
    as_edge, as_gap = as_edge + (length > 1), as_gap + (length <= 1)
    here = rng.permutation(len(traps))  # the first `atoms` entries are taken, in the atoms' order
    best, best_loss, loss = here.copy(), np.inf, np.inf
    others = [np.delete(np.arange(atoms), atom) for atom in range(atoms)]

    def strain(atom: int) -> float:
        to = here[others[atom]]
        return float(np.where(joined[atom, others[atom]], as_edge[here[atom], to], as_gap[here[atom], to]).sum())

    loss = sum(strain(atom) for atom in range(atoms)) / 2
    for heat in np.geomspace(1.0, 0.01, TRAP_MOVES):
        one, two = int(rng.integers(atoms)), int(rng.integers(len(traps)))
        touched = [one] if two >= atoms or two == one else [one, two]
        before = sum(strain(atom) for atom in touched)
        here[one], here[two] = here[two], here[one]
        change = sum(strain(atom) for atom in touched) - before
        if change > 0 and rng.random() >= np.exp(-change / heat):
            here[one], here[two] = here[two], here[one]
            continue
        loss += change
        if loss < best_loss - 1e-12:
            best, best_loss = here.copy(), loss
    return judge(graph, traps[best[:atoms]], limits)
