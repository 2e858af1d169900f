"""The solution of a QUBO, chosen among a device's samples, their repairs and the solutions known before.

What is chosen is an independent set, and never worse than the best known solution. Repairs are listed beside the raw
samples, so that nobody takes a repair for the work of a QPU.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from qonduit.devices.independence import graph_of, heaviest, repair
from qonduit.errors import DeviceError

if TYPE_CHECKING:
    import dimod

Source = Literal["device", "repair", "partition"]
Found = tuple[float, frozenset[str]]

# Up to here the optimum is proved in milliseconds.
PROVED_VARIABLES = 24


@dataclass(frozen=True)
class RepairedSample:
    """A row of the sample set and what made a maximal independent set of it."""

    sample: int
    removed: tuple[str, ...]
    added: tuple[str, ...]
    energy_before: float
    energy_after: float


@dataclass(frozen=True)
class Answer:
    """The solution, and how the samples led to it.

    `optimum_raw` is the fraction of the shots that are the proved optimum as measured, `optimum_repaired` the fraction
    that are after the repair; None where the problem is too large for a proof at hand.
    """

    variables: tuple[str, ...]
    energy: float
    source: Source
    proved_optimal: bool
    repairs: tuple[RepairedSample, ...]
    known_energies: tuple[float, ...]
    feasible_fraction: float
    best_raw_energy: float | None
    best_repaired_energy: float | None
    optimum_energy: float | None
    optimum_raw: float | None
    optimum_repaired: float | None


def choose(bqm: dimod.BinaryQuadraticModel, samples: dimod.SampleSet, known: Sequence[Iterable[str]]) -> Answer:
    """The lowest energy wins; at equal energy a sample comes before a repair, and a repair before a known solution."""
    record = samples.record
    raw = [(float(record.energy[row]), _selected(samples, row)) for row in record.feasible.nonzero()[0]]
    repairs = _repairs(bqm, samples)
    mended = [(item.energy_after, _after(samples, item)) for item in repairs]
    before = [(energy_of(bqm, variables), frozenset(variables)) for variables in known]
    sources: dict[Source, list[Found]] = {
        "device": raw,
        "repair": mended,
        "partition": [(energy, chosen) for energy, chosen in before if _feasible(bqm, chosen)],
    }
    candidates = [(*_lowest(found), source) for source, found in sources.items() if found]
    if not candidates:
        raise DeviceError("the device returned no sample and no solution is known; ask for more shots")
    energy, chosen, source = min(candidates, key=lambda candidate: candidate[0])
    best_raw = _lowest(raw)[0] if raw else None
    optimum, at_raw, at_repaired = _at_optimum(bqm, samples, repairs)
    return Answer(
        variables=tuple(variable for variable in bqm.variables if variable in chosen),
        energy=energy,
        source=source,
        proved_optimal=_proved(samples, best_raw, energy),
        repairs=repairs,
        known_energies=tuple(value for value, _ in before),
        feasible_fraction=float(record.num_occurrences[record.feasible].sum() / max(1, record.num_occurrences.sum())),
        best_raw_energy=best_raw,
        best_repaired_energy=_lowest(mended)[0] if mended else None,
        optimum_energy=optimum,
        optimum_raw=at_raw,
        optimum_repaired=at_repaired,
    )


def _at_optimum(
    bqm: dimod.BinaryQuadraticModel, samples: dimod.SampleSet, repairs: Sequence[RepairedSample]
) -> tuple[float | None, float | None, float | None]:
    """The optimum's energy, and the fractions of the shots that have it before and after the repair."""
    if bqm.num_variables > PROVED_VARIABLES:
        return None, None, None
    optimum = float(bqm.offset) - heaviest(graph_of(bqm))
    record = samples.record
    shots = max(1, int(record.num_occurrences.sum()))
    within = 1e-9 * max(1.0, abs(optimum))
    raw = record.feasible & (abs(record.energy - optimum) <= within)
    mended = raw.copy()
    for item in repairs:
        mended[item.sample] = abs(item.energy_after - optimum) <= within
    count = record.num_occurrences
    return optimum, float(count[raw].sum() / shots), float(count[mended].sum() / shots)


def energy_of(bqm: dimod.BinaryQuadraticModel, selected: Iterable[str]) -> float:
    chosen = frozenset(selected)
    return float(bqm.energy({variable: int(variable in chosen) for variable in bqm.variables}))


def _feasible(bqm: dimod.BinaryQuadraticModel, chosen: frozenset[str]) -> bool:
    return not any(u in chosen and v in chosen for u, v in bqm.quadratic)


def _lowest(found: list[Found]) -> Found:
    return min(found, key=lambda candidate: candidate[0])


def _selected(samples: dimod.SampleSet, row: int) -> frozenset[str]:
    return frozenset(samples.variables[column] for column in samples.record.sample[row].nonzero()[0])


def _after(samples: dimod.SampleSet, item: RepairedSample) -> frozenset[str]:
    return _selected(samples, item.sample) - set(item.removed) | set(item.added)


def _repairs(bqm: dimod.BinaryQuadraticModel, samples: dimod.SampleSet) -> tuple[RepairedSample, ...]:
    """One for each sample that overlaps or to which something could be added."""
    names = [str(variable) for variable in bqm.variables]
    number = {name: index for index, name in enumerate(names)}
    graph = graph_of(bqm)
    repairs = []
    for row, before in enumerate(samples.record.energy.tolist()):
        selected = _selected(samples, row)
        change = repair(graph, {number[name] for name in selected})
        if change.removed or change.added:
            removed, added = (tuple(names[vertex] for vertex in part) for part in (change.removed, change.added))
            after = energy_of(bqm, selected - set(removed) | set(added))
            repairs.append(RepairedSample(row, removed, added, before, after))
    return tuple(repairs)


def _proved(samples: dimod.SampleSet, best_raw: float | None, energy: float) -> bool:
    """A proof is believed only as far as nothing better turned up, rounding apart."""
    claimed = bool(samples.info.get("proved_optimal", False))
    return claimed and best_raw is not None and math.isclose(best_raw, energy, rel_tol=1e-9, abs_tol=1e-9)
