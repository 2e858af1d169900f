"""QAOA for a maximum-weight independent set: the Ising model that its circuit applies, and what angles lead to.

Pure NumPy, used by every gate-model kind. With x = (1 - Z) / 2 the circuit is, layer by layer, exp(-i beta sum X)
exp(-i gamma H) on the uniform superposition, where H = sum h_i Z_i + sum J_ij Z_i Z_j.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qonduit.devices.independence import Graph

Floats = npt.NDArray[np.float64]

# Measured on made-up overlap graphs of 4 to 14 clusters, with factors from 0.8 to 3: penalties by the arithmetic or the
# geometric mean weight of a pair, times 1 to 1.1, gave about equally many optima; by the lighter weight, fewer.
PENALTY_FACTOR = 1.1
# A state vector of 2^16 amplitudes is followed through a layer in some 10 ms.
MOST_SIMULATED = 16
# Rotations of this many qubits at a time are one matrix product.
BLOCK = 4


@dataclass(frozen=True)
class Ising:
    """`couplings` is symmetric with a diagonal of zeros."""

    fields: Floats
    couplings: Floats

    def pairs(self) -> list[tuple[int, int]]:
        rows, columns = np.nonzero(np.triu(self.couplings))
        return list(zip(rows.tolist(), columns.tolist(), strict=True))

    def scale(self) -> float:
        """The root mean square of what acts on one qubit: good gammas are near 0.4 / scale."""
        return float(np.sqrt((np.sum(self.fields**2) + np.sum(self.couplings**2)) / max(1, len(self.fields))))


@dataclass(frozen=True)
class Angles:
    """One gamma and one beta for each layer."""

    gammas: tuple[float, ...]
    betas: tuple[float, ...]

    @property
    def layers(self) -> int:
        return len(self.gammas)


@dataclass(frozen=True)
class Ansatz:
    """A circuit before any machine is chosen; it is part of a request's payload, as plain JSON."""

    ising: Ising
    angles: Angles

    def to_json(self) -> dict[str, Any]:
        couplings = [[i, j, float(self.ising.couplings[i, j])] for i, j in self.ising.pairs()]
        angles = {"gammas": list(self.angles.gammas), "betas": list(self.angles.betas)}
        return {"fields": self.ising.fields.tolist(), "couplings": couplings, **angles}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Ansatz:
        fields = np.array(content["fields"], dtype=np.float64)
        couplings = np.zeros((len(fields), len(fields)))
        for i, j, coupling in content["couplings"]:
            couplings[i, j] = couplings[j, i] = coupling
        return cls(Ising(fields, couplings), Angles(tuple(content["gammas"]), tuple(content["betas"])))


def ising_of(graph: Graph, penalty_factor: float = PENALTY_FACTOR) -> Ising:
    """The heaviest vertex weighs 1, and an overlap costs what QAOA does best with, not the QUBO's own penalty."""
    weights = np.array(graph.weights)
    weights = weights / (np.abs(weights).max(initial=0.0) or 1.0)
    fields, couplings = weights / 2, np.zeros((len(weights), len(weights)))
    for i, j in graph.edges():
        penalty = penalty_factor * (max(weights[i], 0.0) + max(weights[j], 0.0)) / 2
        fields[i] -= penalty / 4
        fields[j] -= penalty / 4
        couplings[i, j] = couplings[j, i] = penalty / 4
    return Ising(fields, couplings)


def one_layer_terms(ising: Ising, gammas: Floats) -> tuple[Floats, Floats, Floats]:
    """A, B, C of the closed form E(gamma, beta) = A sin 2b + B sin 4b + C sin^2 2b, one value for each gamma.

    After Ozaeta, van Dam and McMahon (arXiv 2012.03421); no state vector is needed, so any number of qubits will do.
    """
    h, J = ising.fields, ising.couplings
    twice = 2 * gammas[:, None]
    cosines = np.cos(twice[:, :, None] * J)
    a = np.sum(h * np.sin(twice * h) * cosines.prod(axis=2), axis=1)
    b, c = np.zeros_like(a), np.zeros_like(a)
    for i, j in ising.pairs():
        others = np.ones(len(h), dtype=bool)
        others[[i, j]] = False
        rest_i, rest_j = (cosines[:, q, others].prod(axis=1) for q in (i, j))
        turn = np.cos(twice * h[[i, j]])
        b += J[i, j] / 2 * np.sin(twice[:, 0] * J[i, j]) * (turn[:, 0] * rest_i + turn[:, 1] * rest_j)
        apart, together = (
            np.cos(twice[:, 0] * (h[i] + sign * h[j]))
            * np.cos(twice * (J[i, others] + sign * J[j, others])).prod(axis=1)
            for sign in (-1, 1)
        )
        c += J[i, j] / 2 * (apart - together)
    return a, b, c


def one_layer_energy(ising: Ising, gamma: float, beta: float) -> float:
    """The expected energy after one layer, by the closed form."""
    a, b, c = (float(term[0]) for term in one_layer_terms(ising, np.array([gamma])))
    return float(a * np.sin(2 * beta) + b * np.sin(4 * beta) + c * np.sin(2 * beta) ** 2)


def spectrum(ising: Ising) -> Floats:
    """The energy of every bit string; bit i of its number is x_i."""
    energies = np.zeros(1)
    for i, field in enumerate(ising.fields):
        pull = np.zeros(1)
        for k in range(i):
            pull = np.concatenate((pull + ising.couplings[i, k], pull - ising.couplings[i, k]))
        energies = np.concatenate((energies + field + pull, energies - field - pull))
    return energies


def energies_of(ising: Ising, rows: npt.NDArray[np.int8]) -> Floats:
    """The energy of each measured row of bits."""
    spins = 1.0 - 2.0 * rows
    energies: Floats = spins @ ising.fields + np.einsum("si,ij,sj->s", spins, ising.couplings, spins) / 2
    return energies


def probabilities(energies: Floats, angles: Angles) -> Floats:
    """How likely each bit string is, by an exact state vector."""
    qubits = len(energies).bit_length() - 1
    state = np.full(len(energies), len(energies) ** -0.5, dtype=np.complex128)
    for gamma, beta in zip(angles.gammas, angles.betas, strict=True):
        state = _mixed(state * np.exp(-1j * gamma * energies), beta, qubits)
    return np.abs(state) ** 2


def _mixed(state: npt.NDArray[np.complex128], beta: float, qubits: int) -> npt.NDArray[np.complex128]:
    """exp(-i beta X) on every qubit: a block of them turns, then the next comes to the front."""
    one = np.array([[np.cos(beta), -1j * np.sin(beta)], [-1j * np.sin(beta), np.cos(beta)]])
    while qubits:
        block = min(BLOCK, qubits)
        turn = np.ones((1, 1), dtype=np.complex128)
        for _ in range(block):
            turn = np.kron(turn, one)
        state = (turn @ state.reshape(2**block, -1)).T.ravel()
        qubits -= block
    return state


def tail_mean(energies: Floats, chances: Floats, share: float) -> float:
    """The mean energy of the best `share` of the shots (the conditional value at risk)."""
    order = np.argsort(energies, kind="stable")
    reached = np.minimum(np.cumsum(chances[order]), share)
    return float(np.diff(reached, prepend=0.0) @ energies[order] / share)
