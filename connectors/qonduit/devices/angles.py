"""The angles of a QAOA circuit: by the closed form, by an exact state vector, or by rounds on the device itself.

Everything here is deterministic: the same Ising model, and the same answers of a device, lead to the same angles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from qonduit.devices.independence import graph_of
from qonduit.devices.options import Choice, Number, Option
from qonduit.devices.qaoa import (
    MOST_SIMULATED,
    PENALTY_FACTOR,
    Angles,
    Ansatz,
    Floats,
    Ising,
    energies_of,
    ising_of,
    one_layer_terms,
    probabilities,
    spectrum,
    tail_mean,
)
from qonduit.errors import DataError

if TYPE_CHECKING:
    import dimod

OPTIONS: dict[str, Option] = {
    "layers": Number(1, 1, 20, whole=True, about="Layers p of the QAOA circuit; one needs no simulation of it."),
    "penalty_factor": Number(PENALTY_FACTOR, 1, 10, about="Cost of an overlap, in mean weights of the two."),
    "angles": Choice("computed", ("computed", "device"), about="Found on a CPU, or by rounds of jobs on the device."),
    "rounds": Number(12, 1, 1000, whole=True, about="Jobs at most, if the angles are found on the device."),
}

# In units of 1 / scale: beyond, minima of the energy are narrow and samples from them are poor.
LARGEST_GAMMA = 1.0
GAMMAS, BETAS = 80, 181
# The better half of the shots counts: the optimum is among them, and P(optimum) was a tenth higher than by the mean.
SHARE = 0.5
STEPS_PER_LAYER = 60
FIRST_STEP = 0.15


def ansatz_of(qubo: dimod.BinaryQuadraticModel, options: dict[str, Any]) -> Ansatz:
    """The circuit for a QUBO; its qubits are in the order in which `Request.bqm` will give the variables again."""
    import dimod

    # A file sorts the variables.
    graph = graph_of(dimod.BinaryQuadraticModel.from_serializable(qubo.to_serializable()))
    ising = ising_of(graph, options["penalty_factor"])
    return Ansatz(ising, choose_angles(ising, options))


def choose_angles(ising: Ising, options: dict[str, Any]) -> Angles:
    """What the options ask for; several layers on many qubits cannot be simulated and are refused."""
    layers, qubits = options["layers"], len(ising.fields)
    if layers == 1 or options["angles"] == "device":
        return lengthened(one_layer(ising), layers)
    if qubits > MOST_SIMULATED:
        raise DataError(
            f"{layers} layers on {qubits} variables are too much to simulate (the limit is {MOST_SIMULATED}); "
            'use one layer, or the option "angles": "device"'
        )
    return several_layers(ising, layers)


def one_layer(ising: Ising) -> Angles:
    """The lowest expected energy, first on a grid and then on a finer one around its best point."""
    scale = ising.scale()
    if scale == 0:
        return Angles((0.0,), (0.0,))
    step = LARGEST_GAMMA / scale / GAMMAS
    gammas = step * np.arange(1.0, GAMMAS + 1)
    gamma, beta = _lowest(ising, gammas, np.pi * (np.arange(float(BETAS)) / (BETAS - 1) - 0.5))
    near = np.arange(-20.0, 21.0) / 20
    gamma, beta = _lowest(ising, gamma + step * near, beta + np.pi / (BETAS - 1) * near)
    return Angles((gamma,), (beta,))


def _lowest(ising: Ising, gammas: Floats, betas: Floats) -> tuple[float, float]:
    a, b, c = one_layer_terms(ising, gammas)
    once = np.sin(2 * betas)
    energies = np.outer(a, once) + np.outer(b, np.sin(4 * betas)) + np.outer(c, once**2)
    row, column = np.unravel_index(energies.argmin(), energies.shape)
    return float(gammas[row]), float(betas[column])


def several_layers(ising: Ising, layers: int) -> Angles:
    """Layer by layer: each begins with the angles before it, stretched, and is improved on an exact state vector."""
    from scipy.optimize import minimize

    energies, scale = spectrum(ising), ising.scale() or 1.0
    angles = one_layer(ising)

    def energy(point: Floats) -> float:
        return tail_mean(energies, probabilities(energies, _angles(point, scale)), SHARE)

    while angles.layers < layers:
        angles = lengthened(angles, angles.layers + 1)
        steps = STEPS_PER_LAYER * angles.layers
        found = minimize(energy, _point(angles, scale), method="Nelder-Mead", options={"maxfev": steps})
        angles = _angles(found.x, scale)
    return angles


def lengthened(angles: Angles, layers: int) -> Angles:
    """The same course through more layers (the INTERP rule of Zhou et al., arXiv 1812.01041)."""
    gammas, betas = np.array(angles.gammas), np.array(angles.betas)
    while len(gammas) < layers:
        gammas, betas = (_stretched(values) for values in (gammas, betas))
    return Angles(tuple(gammas.tolist()), tuple(betas.tolist()))


def _stretched(values: Floats) -> Floats:
    place = np.arange(len(values) + 1) / len(values)
    padded = np.concatenate(([0.0], values, [0.0]))
    return place * padded[:-1] + (1 - place) * padded[1:]


def next_ansatz(rounds: Sequence[tuple[Ansatz, npt.NDArray[np.int8]]]) -> Ansatz:
    """The circuit to try after these, by the rows that each measured: the better half of them counts."""
    tried = []
    for ansatz, rows in rounds:
        equal = np.full(len(rows), 1 / max(1, len(rows)))
        energy = tail_mean(energies_of(ansatz.ising, rows), equal, SHARE) if len(rows) else math.inf
        tried.append((ansatz.angles, energy))
    ising = rounds[0][0].ising
    return Ansatz(ising, next_angles(ising, tried))


def next_angles(ising: Ising, tried: Sequence[tuple[Angles, float]]) -> Angles:
    """Where a search along the axes goes after these (angles, energy): on while it gains, else the next direction.

    No point is tried twice, since each is a job that somebody pays for.
    """
    scale = ising.scale() or 1.0
    search = _Search(_point(tried[0][0], scale), tried[0][1])
    for angles, energy in tried[1:]:
        search.propose()
        search.learn(_point(angles, scale), energy)
    return _angles(search.propose(), scale)


class _Search:
    """Where the search stands; it is gone through again for each round, so that nothing has to be kept."""

    def __init__(self, start: Floats, energy: float) -> None:
        self._best, self._lowest = start, energy
        self._seen = {self._mark(start)}
        self._direction, self._misses, self._step = 0, 0, FIRST_STEP

    def propose(self) -> Floats:
        while True:
            point = self._best.copy()
            point[self._direction // 2] += self._step if self._direction % 2 == 0 else -self._step
            if self._mark(point) not in self._seen:
                return point
            self._turn()

    def learn(self, point: Floats, energy: float) -> None:
        self._seen.add(self._mark(point))
        if energy < self._lowest:
            self._best, self._lowest, self._misses = point, energy, 0
        else:
            self._turn()

    def _turn(self) -> None:
        directions = 2 * len(self._best)
        self._direction, self._misses = (self._direction + 1) % directions, self._misses + 1
        if self._misses == directions:
            self._misses, self._step = 0, self._step / 2

    def _mark(self, point: Floats) -> tuple[float, ...]:
        return tuple(np.round(point, 9).tolist())


def _point(angles: Angles, scale: float) -> Floats:
    """Angles as a point whose coordinates are all about as sensitive."""
    return np.concatenate((np.array(angles.gammas) * scale, angles.betas))


def _angles(point: Floats, scale: float) -> Angles:
    layers = len(point) // 2
    return Angles(tuple((point[:layers] / scale).tolist()), tuple(point[layers:].tolist()))
