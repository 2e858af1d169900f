"""A QAOA circuit in the native gates of IQM's machines: prx, cz and measure.

Turns about Z are never sent: they move on as the phase of the next prx. What is left between two cz is one prx.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qonduit.devices.qaoa import Angles, Ising
from qonduit.devices.routing import Course, Machine, Step

Turn = npt.NDArray[np.complex128]
Instruction = dict[str, Any]

KEY = "m"
NOTHING = 1e-9
H = np.array([[1, 1], [1, -1]], dtype=np.complex128) / np.sqrt(2)


def native_circuit(ising: Ising, angles: Angles, course: Course, machine: Machine) -> list[Instruction]:
    """Every other layer goes the course backwards, so that one course serves them all."""
    writer = Writer(machine.qubits)
    places = course.start
    for qubit in places:
        writer.turn(qubit, H)
    for layer, (gamma, beta) in enumerate(zip(angles.gammas, angles.betas, strict=True)):
        places, steps = (course.end, course.steps) if layer % 2 == 0 else (course.start, course.steps[::-1])
        for step in steps:
            _write(writer, step, 0.0 if step.pair is None else gamma * ising.couplings[step.pair], machine)
        for variable, qubit in enumerate(places):
            writer.turn(qubit, about_z(2 * gamma * ising.fields[variable]))
            writer.turn(qubit, about_x(2 * beta))
    writer.measure(places)
    return writer.instructions


def _write(writer: Writer, step: Step, angle: float, machine: Machine) -> None:
    """exp(-i angle ZZ), and a SWAP if the step has one: two cz, or three."""
    a, b = step.a, step.b
    if step.swap:
        writer.cx(a, b)
        writer.cx(b, a)
        writer.turn(b, about_z(2 * angle))
        writer.cx(a, b)
        return
    # The busier qubit is turned: terms that follow each other on it share their turns.
    degree = [sum(qubit in pair for pair in machine.couplers) for qubit in (a, b)]
    if degree[0] > degree[1]:
        a, b = b, a
    writer.cx(a, b)
    writer.turn(b, about_z(2 * angle))
    writer.cx(a, b)


class Writer:
    """Collects instructions; what is to be done on one qubit waits until another gate needs it."""

    def __init__(self, qubits: tuple[str, ...]) -> None:
        self.instructions: list[Instruction] = []
        self._qubits = qubits
        self._waiting: list[Turn] = [np.eye(2, dtype=np.complex128) for _ in qubits]

    def turn(self, qubit: int, turn: Turn) -> None:
        self._waiting[qubit] = turn @ self._waiting[qubit]

    def cx(self, control: int, target: int) -> None:
        self.turn(target, H)
        for qubit in (control, target):
            self._flush(qubit)
        self._add("cz", [control, target], {})
        self.turn(target, H)

    def measure(self, qubits: tuple[int, ...]) -> None:
        for qubit in qubits:
            self._flush(qubit)
        self._add("measure", list(qubits), {"key": KEY})

    def _flush(self, qubit: int) -> None:
        """Writes what waits as one prx; the turn about Z that is left commutes with cz and measure, and waits on."""
        after, angle, phase = split(self._waiting[qubit])
        if angle > NOTHING:
            self._add("prx", [qubit], {"angle": angle, "phase": phase})
        self._waiting[qubit] = about_z(after)

    def _add(self, name: str, qubits: list[int], arguments: dict[str, Any]) -> None:
        self.instructions.append({"name": name, "locus": [self._qubits[q] for q in qubits], "args": arguments})


def about_z(angle: float) -> Turn:
    return np.diag(np.exp([-0.5j * angle, 0.5j * angle]))


def about_x(angle: float) -> Turn:
    return prx(angle, 0.0)


def prx(angle: float, phase: float) -> Turn:
    """A turn about the axis cos(phase) X + sin(phase) Y."""
    c, s = np.cos(angle / 2), -1j * np.sin(angle / 2)
    return np.array([[c, s * np.exp(-1j * phase)], [s * np.exp(1j * phase), c]])


def split(turn: Turn) -> tuple[float, float, float]:
    """A turn as prx(angle, phase) and then a turn about Z, up to a global phase: (after, angle, phase)."""
    angle = 2 * float(np.arctan2(abs(turn[1, 0]), abs(turn[0, 0])))
    if abs(turn[0, 0]) < NOTHING:
        return 0.0, angle, float(np.angle(turn[1, 0] / turn[0, 1])) / 2
    after = float(np.angle(turn[1, 1] / turn[0, 0]))
    if angle <= NOTHING:
        return after, 0.0, 0.0
    phase = float(np.angle(turn[1, 0] / turn[0, 0])) + np.pi / 2 - after
    return after, angle, float((phase + np.pi) % (2 * np.pi) - np.pi)
