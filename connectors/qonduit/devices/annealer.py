"""The default device: simulated annealing on this machine, ended by swaps among independent sets.

Reads begin at random or, cooler, from known solutions; the best of them go on by `swaps`. The same request gives
the same samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from qonduit.devices.independence import Graph, graph_of, repaired
from qonduit.devices.local import LocalDevice, Rows
from qonduit.devices.options import Number, Option
from qonduit.devices.request import Request
from qonduit.devices.swaps import swap_search

if TYPE_CHECKING:
    import dimod

# Budgets that keep a solve of 200 variables under half a second; small problems get more than they need.
FLIPS = 4_000_000
MOST_SWEEPS, FEWEST_SWEEPS = 1000, 50
SWAPS_PER_VARIABLE, MOST_SWAPS = 60, 20_000
IMPROVED_READS = 8


class Annealer(LocalDevice):
    kind = "annealer"
    known_options: ClassVar[dict[str, Option]] = {
        "sweeps": Number(None, 1, 1e6, whole=True, about="Sweeps of each read; fitted to the problem without it."),
        "swaps": Number(None, 0, 1e8, whole=True, about="Swaps after annealing; fitted without it."),
    }

    def payload(self, qubo: dimod.BinaryQuadraticModel, shots: int, starts: Sequence[Sequence[str]]) -> dict[str, Any]:
        size = max(1, qubo.num_variables)
        sweeps = min(MOST_SWEEPS, max(FEWEST_SWEEPS, FLIPS // (shots * size)))
        swaps = min(MOST_SWAPS, SWAPS_PER_VARIABLE * size)
        return {
            "sweeps": sweeps if self.options["sweeps"] is None else self.options["sweeps"],
            "swaps": swaps if self.options["swaps"] is None else self.options["swaps"],
            "starts": [list(start) for start in starts],
        }

    def compute(self, request: Request) -> tuple[Rows, dict[str, Any]]:
        bqm = request.bqm()
        graph = graph_of(bqm)
        rng = np.random.default_rng(request.seed)
        rows = _annealed(bqm, graph, request, rng)
        _improve(graph, rows, bqm.energies((rows, list(bqm.variables))), request.payload["swaps"], rng)
        return rows, {"sweeps": request.payload["sweeps"], "swaps": request.payload["swaps"]}


def _annealed(bqm: dimod.BinaryQuadraticModel, graph: Graph, request: Request, rng: np.random.Generator) -> Rows:
    """A third of the reads begin from the known solutions, in turn; the rest at random."""
    starts = request.payload["starts"]
    known = request.shots // 3 if starts else 0
    betas = temperatures(graph, request.payload["sweeps"])
    rows = [_anneal(bqm, request.shots - known, betas, None, rng)]
    if known:
        number = {variable: index for index, variable in enumerate(bqm.variables)}
        states = np.zeros((known, len(number)), dtype=np.int8)
        for read in range(known):
            states[read, [number[variable] for variable in starts[read % len(starts)]]] = 1
        # The hot half of the schedule would forget where a read began.
        rows.append(_anneal(bqm, known, betas[len(betas) // 2 :], states, rng))
    return np.concatenate(rows)


def temperatures(graph: Graph, sweeps: int) -> npt.NDArray[np.float64]:
    """Inverse temperatures: first the heaviest vertex comes and goes, at last the light ones are settled."""
    gains = np.array([weight for weight in graph.weights if weight > 0] or [1.0])
    hot = gains.max()
    cold = np.quantile(gains, 0.1) / 10
    return np.geomspace(1 / hot, 1 / cold, sweeps)


def _anneal(
    bqm: dimod.BinaryQuadraticModel,
    reads: int,
    betas: npt.NDArray[np.float64],
    states: Rows | None,
    rng: np.random.Generator,
) -> Rows:
    from dwave.samplers import SimulatedAnnealingSampler

    variables = list(bqm.variables)
    found = SimulatedAnnealingSampler().sample(  # type: ignore[no-untyped-call]
        bqm,
        num_reads=reads,
        beta_schedule_type="custom",
        beta_schedule=betas,
        initial_states=None if states is None else (states, variables),
        seed=int(rng.integers(2**31)),
    )
    columns = [found.variables.index(variable) for variable in variables]
    rows: Rows = found.record.sample[:, columns]
    return rows


def _improve(graph: Graph, rows: Rows, energies: npt.NDArray[np.float64], swaps: int, rng: np.random.Generator) -> None:
    """The best distinct reads, made feasible, go on by swaps; each gives its place to what it led to."""
    _, first = np.unique(rows, axis=0, return_index=True)
    chosen = first[np.argsort(energies[first], kind="stable")][:IMPROVED_READS]
    for read in chosen:
        start = repaired(graph, set(np.flatnonzero(rows[read]).tolist()))
        better = swap_search(graph, start, swaps // len(chosen), rng)
        rows[read] = 0
        rows[read, sorted(better)] = 1
