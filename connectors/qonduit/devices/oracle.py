"""Small problems and an independent judgement of what a device makes of them, for the conformance kit.

Energies and feasibility are computed here from their definitions, by no code that a device may have used.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dimod
import numpy as np
import numpy.typing as npt
import pytest

from qonduit.errors import QonduitError


def selection(
    weights: Sequence[float], edges: Iterable[tuple[int, int]], reward: bool = False
) -> dimod.BinaryQuadraticModel:
    """The QUBO of a heaviest independent set; names are odd and not sorted, so that mixed-up columns show."""
    names = [f"{'zyx'[index % 3]} method:{index}" for index in range(len(weights))]
    bqm = dimod.BinaryQuadraticModel(dimod.BINARY)
    bqm.add_linear_from((name, -weight) for name, weight in zip(names, weights, strict=True))
    for u, v in edges:
        penalty = 1.25 * min(weights[u], weights[v])
        bqm.add_quadratic(names[u], names[v], -penalty if reward else penalty)
    return bqm


def small_problems() -> dict[str, dimod.BinaryQuadraticModel]:
    complete = [(u, v) for v in range(4) for u in range(v)]
    return {
        "one variable": selection([2.0], []),
        "no edge": selection([1.0, 3.0, 2.0], []),
        "a path": selection([3.0, 4.0, 2.0, 2.5], [(0, 1), (1, 2), (2, 3)]),
        "a star": selection([1.0, 1.0, 1.0, 1.0], [(0, 1), (0, 2), (0, 3)]),
        "a complete graph": selection([1.0, 2.0, 4.0, 3.0], complete),
        "equal weights": selection([1.0, 1.0, 1.0, 1.0], [(0, 1), (1, 2), (2, 3)]),
    }


def as_samples(chosen: Sequence[Mapping[str, int]]) -> dimod.SampleSet:
    return dimod.SampleSet.from_samples(list(chosen), dimod.BINARY, 0.0)  # type: ignore[no-untyped-call, no-any-return]


def check_samples(
    name: str, bqm: dimod.BinaryQuadraticModel, samples: dimod.SampleSet, shots: int, every_shot: bool
) -> None:
    record = samples.record
    assert set(samples.variables) == set(bqm.variables), f"{name}: the samples' variables are not the QUBO's"
    assert samples.vartype is dimod.BINARY, f"{name}: the samples are {samples.vartype}, not binary"
    assert np.isin(record.sample, (0, 1)).all(), f"{name}: a sample has a value that is not a bit"
    taken = int(record.num_occurrences.sum())
    assert taken == shots or (not every_shot and 0 < taken < shots), f"{name}: {taken} samples for {shots} shots"
    assert np.allclose(record.energy, energies(bqm, samples), rtol=1e-9, atol=1e-9), (
        f"{name}: the energies are not those of the QUBO; end decode() with samples.sample_set()"
    )
    assert "feasible" in record.dtype.names, f"{name}: the samples do not say which of them are feasible"
    assert np.array_equal(record.feasible, feasible(bqm, samples)), (
        f"{name}: a sample is called feasible that is not, or the other way round"
    )


def energies(bqm: dimod.BinaryQuadraticModel, samples: dimod.SampleSet) -> npt.NDArray[np.float64]:
    bits = _columns(samples)
    energy = np.full(len(samples.record), float(bqm.offset))
    for name, bias in bqm.linear.items():
        energy += bias * bits[name]
    for (u, v), bias in bqm.quadratic.items():
        energy += bias * bits[u] * bits[v]
    return energy


def feasible(bqm: dimod.BinaryQuadraticModel, samples: dimod.SampleSet) -> npt.NDArray[np.bool_]:
    bits = _columns(samples)
    apart = np.ones(len(samples.record), dtype=np.bool_)
    for u, v in bqm.quadratic:
        apart &= bits[u] + bits[v] < 2
    return apart


def _columns(samples: dimod.SampleSet) -> dict[Any, npt.NDArray[np.int64]]:
    rows = samples.record.sample.astype(np.int64)
    return {name: rows[:, column] for column, name in enumerate(samples.variables)}


@dataclass
class Said:
    value: QonduitError = field(default_factory=QonduitError)


@contextlib.contextmanager
def raises(kind: type[QonduitError], sentence: str) -> Iterator[Said]:
    """As `pytest.raises`, with a sentence for the author of a device."""
    said = Said()
    try:
        yield said
    except kind as error:
        said.value = error
    except Exception as error:
        pytest.fail(f"{sentence}, not {type(error).__name__}: {error}")
    else:
        pytest.fail(f"{sentence}; nothing was raised")


def is_count(value: object, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def plain(value: Any, what: str) -> Any:
    """The value as it comes out of a file."""
    try:
        again = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        pytest.fail(f"{what} must be plain JSON: {error}")
    assert again == value, f"{what} must be plain JSON: it changes in a file"
    return again
