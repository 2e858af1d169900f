"""The machine behind the emulated D-Wave server: a working graph with its defects, its limits, and its sampling.

Used by `dwave` only. Programmed values meet an error like the real machines' integrated control errors, and a
temperature that does not know the problem's scale, so that weak chains break and small gaps blur here too.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from qonduit.errors import UsageError

TOPOLOGIES = ("pegasus", "chimera")
DEFAULT_SIZE = {"pegasus": 6, "chimera": 8}
LARGEST_SIZE = {"pegasus": 16, "chimera": 16}
DEAD_QUBITS, DEAD_COUPLERS = 0.01, 0.0005
BIAS_ERROR, COUPLING_ERROR = 0.03, 0.02
# Inverse temperatures in units of the couplings' range, hot to cold; the last is of the order that is fitted to QPUs.
BETAS = (0.1, 8.0)
SWEEPS_PER_US, FEWEST_SWEEPS, MOST_SWEEPS = 10, 20, 2000
DEFAULT_ANNEALING_TIME_US = 20.0
PARAMETERS = {
    "annealing_time": "Duration, in microseconds, of one anneal.",
    "answer_mode": "Form of the answer, histogram or raw.",
    "auto_scale": "Whether the biases are scaled to the solver's ranges.",
    "max_answers": "How many distinct answers to return.",
    "num_reads": "How many reads to make.",
}


def working_graph(topology: str, qubits: int | None, seed: int) -> tuple[Any, int]:
    """A lattice without the qubits and couplers that do not work, and how many qubits it was made with.

    With `qubits`, the connected middle part of the smallest lattice that has as many working ones.
    """
    if topology not in TOPOLOGIES:
        raise UsageError(f"--topology: the emulated D-Wave machine is one of {', '.join(TOPOLOGIES)}")
    rng = np.random.default_rng(seed)
    sizes = [DEFAULT_SIZE[topology]] if qubits is None else range(2, LARGEST_SIZE[topology] + 1)
    for size in sizes:
        graph, made = _lattice(topology, size)
        names = np.array(sorted(graph))
        graph.remove_nodes_from(rng.choice(names, max(1, round(DEAD_QUBITS * len(names))), replace=False).tolist())
        pairs = sorted(graph.edges)
        dead = rng.choice(len(pairs), max(1, round(DEAD_COUPLERS * len(pairs))), replace=False)
        graph.remove_edges_from([pairs[index] for index in dead])
        if qubits is None or len(graph) >= qubits:
            return (graph if qubits is None else _middle(graph, qubits)), made
    raise UsageError(f"--qubits: the largest emulated {topology} machine has about {len(graph)} working qubits")


def _lattice(topology: str, size: int) -> tuple[Any, int]:
    import dwave.graphs

    if topology == "pegasus":
        return dwave.graphs.pegasus_graph(size), 24 * size * (size - 1)
    return dwave.graphs.chimera_graph(size), 8 * size * size


def _middle(graph: Any, qubits: int) -> Any:
    """The qubits nearest to the middle one, which hang together."""
    import networkx

    names = sorted(graph)
    order = [names[len(names) // 2]]
    order += [reached for _, reached in networkx.bfs_edges(graph, order[0], sort_neighbors=sorted)]
    graph.remove_nodes_from(set(names) - set(order[:qubits]))
    return graph


def properties(graph: Any, made: int, topology: str) -> dict[str, Any]:
    """What the server says of the machine; ranges and times are those that the vendor publishes of its machines."""
    from dwave.cloud.testing.mocks import qpu_problem_timing_data

    shape = [graph.graph["rows"]] + ([graph.graph["columns"], graph.graph["tile"]] if topology == "chimera" else [])
    return {
        "category": "qpu",
        "chip_id": f"Emulated_{topology}_{len(graph)}",
        "topology": {"type": topology, "shape": shape},
        "num_qubits": made,
        "qubits": sorted(graph),
        "couplers": sorted(sorted(pair) for pair in graph.edges),
        "supported_problem_types": ["ising", "qubo"],
        "parameters": PARAMETERS,
        "tags": ["emulated"],
        "h_range": [-4.0, 4.0],
        "j_range": [-1.0, 1.0],
        "extended_j_range": [-2.0, 1.0],
        "per_qubit_coupling_range": [-18.0, 15.0],
        "num_reads_range": [1, 10000],
        "annealing_time_range": [0.5, 2000.0],
        "default_annealing_time": DEFAULT_ANNEALING_TIME_US,
        "default_programming_thermalization": 1000.0,
        "default_readout_thermalization": 0.0,
        "problem_run_duration_range": [0.0, 1_000_000.0],
        "problem_timing_data": qpu_problem_timing_data("advantage"),
        "quota_conversion_rate": 1,
    }


def graph_id(described: Mapping[str, Any], generation: int) -> str:
    text = f"{generation}:{described['qubits']}:{described['couplers']}"
    return f"{generation:02x}{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def overload(h: Mapping[int, float], j: Iterable[Iterable[float]], described: Mapping[str, Any]) -> float:
    """By how much the problem exceeds the machine's ranges: above 1 it cannot be programmed as it is."""
    sums = dict.fromkeys(h, 0.0)
    for u, v, bias in j:
        sums[int(u)] += bias
        sums[int(v)] += bias
    checks = [
        (described["h_range"], h.values()),
        (described["extended_j_range"], [bias for _, _, bias in j]),
        (described["per_qubit_coupling_range"], sums.values()),
    ]
    return max(
        (value / (high if value > 0 else low) for (low, high), values in checks for value in values), default=0.0
    )


def timing(described: Mapping[str, Any], active: int, reads: int, annealing_time_us: float) -> dict[str, float]:
    """Microseconds, by the vendor's published model of its machines."""
    model = described["problem_timing_data"]
    parameters = model["readout_time_model_parameters"]
    half = len(parameters) // 2
    readout = float(10 ** np.interp(math.log10(max(1, active)), parameters[:half], parameters[half:]))
    programming = model["typical_programming_time"] + model["default_programming_thermalization"]
    sampling = reads * (annealing_time_us + readout + model["qpu_delay_time_per_sample"])
    return {
        "qpu_sampling_time": sampling,
        "qpu_anneal_time_per_sample": annealing_time_us,
        "qpu_readout_time_per_sample": readout,
        "qpu_delay_time_per_sample": model["qpu_delay_time_per_sample"],
        "qpu_programming_time": programming,
        "qpu_access_time": programming + sampling,
        "qpu_access_overhead_time": 1000.0,
        "total_post_processing_time": 100.0,
        "post_processing_overhead_time": 100.0,
    }


def sampled(
    h: Mapping[int, float], j: Iterable[Iterable[float]], reads: int, annealing_time_us: float, noise: bool, seed: int
) -> npt.NDArray[np.int8]:
    """Spins, one row per read, columns as the sorted qubits."""
    import dimod
    from dwave.samplers import SimulatedAnnealingSampler

    rng = np.random.default_rng(seed)
    biases = {qubit: bias + noise * rng.normal(0.0, BIAS_ERROR) for qubit, bias in sorted(h.items())}
    couplings = {(int(u), int(v)): bias + noise * rng.normal(0.0, COUPLING_ERROR) for u, v, bias in j if bias}
    found = SimulatedAnnealingSampler().sample(  # type: ignore[no-untyped-call]
        dimod.BinaryQuadraticModel.from_ising(biases, couplings),
        num_reads=reads,
        num_sweeps=int(np.clip(SWEEPS_PER_US * annealing_time_us, FEWEST_SWEEPS, MOST_SWEEPS)),
        beta_range=BETAS if noise else None,
        seed=int(rng.integers(2**31)),
    )
    columns = [found.variables.index(qubit) for qubit in sorted(h)]
    rows: npt.NDArray[np.int8] = found.record.sample[:, columns]
    return rows
