"""The hybrid solver behind the emulated D-Wave server: simulated annealing of a problem of any shape.

Used by `dwave` only. It takes as long as it needs and reports the time that it was allowed, as the real one does.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

NAME = "hybrid_binary_quadratic_model_emulated"
TIMES_S = [[1, 3.0], [1024, 3.0], [4096, 10.0], [10000, 40.0]]
# The real one takes a million; here somebody waits for the annealing.
MOST_VARIABLES = 10_000
PROPERTIES = {
    "category": "hybrid",
    "version": "2.2",
    "supported_problem_types": ["bqm"],
    "parameters": {"time_limit": "Seconds that the solver may take."},
    "minimum_time_limit": TIMES_S,
    "maximum_time_limit_hrs": 24.0,
    "maximum_number_of_variables": MOST_VARIABLES,
    "maximum_number_of_biases": 1_000_000,
    "quota_conversion_rate": 20,
}
READS, SWEEPS = 50, 1000


def checked_time_s(content: bytes, asked_s: float | None) -> float:
    """The time for a problem in dimod's file format; ValueError if it is not one, or the time does not fit it."""
    size = _problem(content).num_variables
    sizes, times_s = zip(*TIMES_S, strict=True)
    least_s = float(np.interp(size, sizes, times_s))
    time_s = least_s if asked_s is None else asked_s
    if not 1 <= size <= MOST_VARIABLES:
        raise ValueError(f"the number of variables must be in [1, {MOST_VARIABLES}], not {size}")
    if not least_s <= time_s <= 86400:
        raise ValueError(f"time_limit must be in [{least_s:g}, 86400] for {size} variables, not {time_s}")
    return time_s


def solved(content: bytes, time_s: float, name: str, seed: int) -> dict[str, Any]:
    """The answer in the format `bq`: one sample, the best that was found."""
    from dwave.samplers import SimulatedAnnealingSampler

    found = SimulatedAnnealingSampler().sample(  # type: ignore[no-untyped-call]
        _problem(content), num_reads=READS, num_sweeps=SWEEPS, seed=seed % 2**31
    )
    best = found.truncate(1)  # type: ignore[no-untyped-call]
    best.info.clear()
    best.info.update(qpu_access_time=1e5 * time_s, charge_time=1e6 * time_s, run_time=1e6 * time_s, problem_id=name)
    return {"format": "bq", "data": best.to_serializable(use_bytes=False)}


def all_selected(answer: dict[str, Any]) -> dict[str, Any]:
    import dimod

    samples = dimod.SampleSet.from_serializable(answer["data"])  # type: ignore[no-untyped-call]
    samples.record.sample[:] = 1
    return {**answer, "data": samples.to_serializable(use_bytes=False)}


def _problem(content: bytes) -> Any:
    import dimod

    return dimod.BinaryQuadraticModel.from_file(io.BytesIO(content))
