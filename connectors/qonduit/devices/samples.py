"""Samples as `dimod.SampleSet`, with what this package computes itself and never takes from a device.

Every kind's `decode` ends here; energies and feasibility come from the QUBO that was asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from qonduit.devices.independence import graph_of

if TYPE_CHECKING:
    import dimod


def sample_set(bqm: dimod.BinaryQuadraticModel, rows: npt.NDArray[np.int8], info: Mapping[str, Any]) -> dimod.SampleSet:
    """Distinct rows (columns as the QUBO's variables), lowest energy first, with how often each was measured."""
    import dimod

    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    energies = bqm.energies((distinct, list(bqm.variables)))
    order = np.argsort(energies, kind="stable")
    edges = np.array(graph_of(bqm).edges(), dtype=np.intp).reshape(-1, 2)
    feasible = ~np.any(distinct[:, edges[:, 0]] & distinct[:, edges[:, 1]], axis=1)
    samples: dimod.SampleSet = dimod.SampleSet.from_samples(  # type: ignore[no-untyped-call]
        (distinct[order], list(bqm.variables)),
        vartype=dimod.BINARY,
        energy=energies[order],
        num_occurrences=counts[order],
        feasible=feasible[order],
        info=dict(info),
        sort_labels=False,
    )
    return samples
