"""Where the variables of a circuit sit on a machine, and in which order their pairs meet.

The ZZ terms of a QAOA layer commute, so that they are taken as they come together; a SWAP of two that have a term
costs no more than a SWAP. Several courses are tried and the one that loses the least by the machine's errors is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

Pair = tuple[int, int]

TRIALS = 48
ZZ_GATES, SWAP_GATES = 2, 3
# Where a machine publishes no metrics every CZ counts the same.
GATE_ERROR, QUBIT_ERROR = 0.01, 0.0


@dataclass(frozen=True)
class Machine:
    """The qubits that can be used, by name; couplers join their numbers, smaller first; errors are probabilities."""

    qubits: tuple[str, ...]
    couplers: frozenset[Pair]
    gate_errors: Mapping[Pair, float] = field(default_factory=dict)
    qubit_errors: Mapping[int, float] = field(default_factory=dict)

    def distances(self) -> npt.NDArray[np.int64]:
        """Couplers between any two qubits; more than there are qubits where no way leads."""
        size = len(self.qubits)
        steps = np.full((size, size), size + 1, dtype=np.int64)
        np.fill_diagonal(steps, 0)
        for a, b in self.couplers:
            steps[a, b] = steps[b, a] = 1
        for middle in range(size):
            steps = np.minimum(steps, steps[:, middle, None] + steps[None, middle, :])
        return steps

    def loss(self, step: Step) -> float:
        return (SWAP_GATES if step.swap else ZZ_GATES) * self.gate_errors.get(_sorted(step.a, step.b), GATE_ERROR)


@dataclass(frozen=True)
class Step:
    """Qubits `a` and `b` take the term of `pair`, if it is not None, and change places, if `swap`."""

    a: int
    b: int
    pair: Pair | None
    swap: bool


@dataclass(frozen=True)
class Course:
    """One layer: the qubit of each variable before and after it, and the steps between. It can be gone backwards."""

    start: tuple[int, ...]
    end: tuple[int, ...]
    steps: tuple[Step, ...]

    @property
    def swaps(self) -> int:
        return sum(step.swap for step in self.steps)

    @property
    def gates(self) -> int:
        return sum(SWAP_GATES if step.swap else ZZ_GATES for step in self.steps)

    def qubits(self) -> set[int]:
        return {*self.start, *self.end, *(qubit for step in self.steps for qubit in (step.a, step.b))}


def largest_part(machine: Machine) -> Machine:
    """The machine without the qubits that no way of couplers joins to the most of them."""
    reach = machine.distances() <= len(machine.qubits)
    if not len(reach):
        return machine
    kept = np.flatnonzero(reach[reach.sum(axis=1).argmax()]).tolist()
    number = {old: new for new, old in enumerate(kept)}
    couplers = {pair: (number[pair[0]], number[pair[1]]) for pair in machine.couplers if pair[0] in number}
    return Machine(
        tuple(machine.qubits[qubit] for qubit in kept),
        frozenset(couplers.values()),
        {couplers[pair]: error for pair, error in machine.gate_errors.items() if pair in couplers},
        {number[qubit]: error for qubit, error in machine.qubit_errors.items() if qubit in number},
    )


def best_course(pairs: Sequence[Pair], variables: int, machine: Machine, seed: int) -> Course:
    """The best of some random courses for these pairs; `machine` is connected and large enough."""
    distances = machine.distances()
    random = np.random.default_rng(seed)

    def loss(course: Course) -> float:
        measured = sum(machine.qubit_errors.get(qubit, QUBIT_ERROR) for qubit in course.end)
        return sum(machine.loss(step) for step in course.steps) + measured

    courses = (
        _course(pairs, _placed(pairs, variables, machine, distances, random), distances, random) for _ in range(TRIALS)
    )
    return min(courses, key=loss)


def _placed(
    pairs: Sequence[Pair],
    variables: int,
    machine: Machine,
    distances: npt.NDArray[np.int64],
    random: np.random.Generator,
) -> list[int]:
    """Begins at a random qubit, busy ones more often; then each variable goes next to those it has terms with."""
    beside: list[set[int]] = [set() for _ in range(variables)]
    for i, j in pairs:
        beside[i].add(j)
        beside[j].add(i)
    couplers = (distances == 1).sum(axis=1)
    errors = np.array([machine.qubit_errors.get(qubit, QUBIT_ERROR) for qubit in range(len(machine.qubits))])
    places: dict[int, int] = {}
    while len(places) < variables:
        left = [variable for variable in range(variables) if variable not in places]
        chance = random.random(variables)
        next_one = max(left, key=lambda v: (len(beside[v] & places.keys()), len(beside[v]), chance[v]))
        known = [places[other] for other in sorted(beside[next_one] & places.keys())]
        cost = distances[:, known].sum(axis=1) + errors + random.random(len(machine.qubits))
        if not places:
            cost = cost - couplers * random.random(len(machine.qubits))
        cost[list(places.values())] = np.inf
        places[next_one] = int(cost.argmin())
    return [places[variable] for variable in range(variables)]


def _course(
    pairs: Sequence[Pair],
    start: Sequence[int],
    distances: npt.NDArray[np.int64],
    random: np.random.Generator,
) -> Course:
    place = np.array(start, dtype=np.int64)
    steps: list[Step] = []
    taken: dict[Pair, int] = {}
    left = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    while len(left):
        apart = distances[place[left[:, 0]], place[left[:, 1]]]
        for i, j in left[apart == 1].tolist():
            taken[i, j] = len(steps)
            steps.append(Step(int(place[i]), int(place[j]), (i, j), swap=False))
        left = left[apart > 1]
        if len(left):
            _swap(*_best_swap(left, place, distances, random), place, steps, taken)
    return Course(tuple(start), tuple(place.tolist()), tuple(step for step in steps if step.pair or step.swap))


def _best_swap(
    left: npt.NDArray[np.int64],
    place: npt.NDArray[np.int64],
    distances: npt.NDArray[np.int64],
    random: np.random.Generator,
) -> Pair:
    """A step that brings a closest pair closer, so that the search ends; of those, the best for all that is left."""
    apart = distances[place[left[:, 0]], place[left[:, 1]]]
    swaps = set()
    for i, j in left[apart == apart.min()].tolist():
        for here, there in ((place[i], place[j]), (place[j], place[i])):
            nearer = (distances[here] == 1) & (distances[there] == apart.min() - 1)
            swaps |= {(int(here), int(qubit)) for qubit in np.flatnonzero(nearer)}

    def cost(swap: Pair) -> float:
        after = _after(place, *swap)
        total = distances[after[left[:, 0]], after[left[:, 1]]]
        return float(total.sum() + 0.9 * random.random())

    return min(sorted(swaps), key=cost)


def _after(place: npt.NDArray[np.int64], a: int, b: int) -> npt.NDArray[np.int64]:
    return np.where(place == a, b, np.where(place == b, a, place))


def _swap(a: int, b: int, place: npt.NDArray[np.int64], steps: list[Step], taken: dict[Pair, int]) -> None:
    """Changes the places; a term that the two have was taken before, and is taken here instead, for nothing."""
    held = {int(place[variable]): int(variable) for variable in np.flatnonzero((place == a) | (place == b))}
    pair = _sorted(held[a], held[b]) if len(held) == 2 else None
    if pair in taken:
        earlier = taken.pop(pair)
        steps[earlier] = replace(steps[earlier], pair=None)
    else:
        pair = None
    steps.append(Step(a, b, pair, swap=True))
    place[:] = _after(place, a, b)


def _sorted(a: int, b: int) -> Pair:
    return (a, b) if a < b else (b, a)
