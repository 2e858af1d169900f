"""How good and how fast the devices are: `make bench`, written to benchmarks/results/devices.json.

P(optimum) is the share of the raw shots that are the proved optimum, the mean over the problems of `family`, beside
uniform sampling and dwave-samplers with its defaults. The vendors are the emulated ones, with their noise: the figures
say what our circuits, registers and embeddings make of a device like that, not what a vendor's machine does.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import dimod
import networkx
import numpy as np

from family import family
from qonduit.devices.answer import choose
from qonduit.devices.execute import Execution
from qonduit.devices.independence import graph_of, heaviest
from qonduit.devices.patience import Patience
from qonduit.devices.registry import open_device
from qonduit.devices.settings import Settings
from qonduit.devices.solve import Solved, Solver
from qonduit.emulators.running import Server, running
from qonduit_steps.blobs import PAPERS, blobs
from qonduit_steps.commands.cluster import clustered
from qonduit_steps.kernels.spanning_tree import spanning_tree
from qonduit_steps.loop import METHODS
from qonduit_steps.overlap import aggregation_problem, overlaps
from qonduit_steps.parameters import draw, generator
from qonduit_steps.partition import Partition
from qonduit_steps.problem import Problem, problem_to_json
from rows import Row, below, reported, run

SHOTS = 200
LIMITS_S = {"annealer": 1.0, "iqm": 4.0, "pasqal": 3.5, "dwave": 4.0}
VENDORS = {"iqm": {"qubits": 16}, "pasqal": {"qubits": 14}, "dwave": {}}
STARTS, THROUGHPUT_JOBS = 5, 40
SEEDS, ITERATIONS, GRAPHS = 100, 10, 3
HIGHS_S = 60.0

_stack = ExitStack()


@cache
def server(vendor: str) -> Server:
    return _stack.enter_context(running(vendor, seed=1, **VENDORS[vendor]))  # type: ignore[arg-type]


def settings_of(kind: str) -> Settings:
    """Approximate registers are allowed: a graph that does not embed is part of the figure."""
    if kind in ("pulser", "pasqal"):
        options: dict[str, Any] = {"approximate": True}
        return server(kind).settings(**options) if kind in VENDORS else Settings(kind, options=options)
    return server(kind).settings() if kind in VENDORS else Settings(kind)


@cache
def solved(kind: str) -> list[Solved]:
    """The whole family on one kind of device, without what is known of each problem before."""
    settings = settings_of(kind)
    solver = Solver(open_device(settings), settings, patience=Patience(poll_s=0.05))
    return [solver.solve(problem.bqm(), SHOTS, number) for number, problem in enumerate(family())]


def uniform(problem: Problem) -> float:
    bqm = problem.bqm()
    states = (np.arange(2**bqm.num_variables)[:, None] >> np.arange(bqm.num_variables)) & 1
    energies = bqm.energies((states.astype(np.int8), list(bqm.variables)))
    optimum = -heaviest(graph_of(bqm))
    return float(np.mean(np.isclose(energies, optimum, rtol=1e-9)))


@cache
def defaults() -> float:
    """dwave-samplers' simulated annealing as it comes."""
    from dwave.samplers import SimulatedAnnealingSampler

    found = []
    for number, problem in enumerate(family()):
        bqm = problem.bqm()
        samples = SimulatedAnnealingSampler().sample(bqm, num_reads=SHOTS, seed=number)  # type: ignore[no-untyped-call]
        rows = samples.record.sample[:, [samples.variables.index(name) for name in bqm.variables]]
        from qonduit.devices.samples import sample_set

        found.append(choose(bqm, sample_set(bqm, rows, {}), []).optimum_raw or 0.0)
    return statistics.fmean(found)


def optimum() -> Iterator[Row]:
    random = statistics.fmean(map(uniform, family()))
    for kind in ("annealer", "gate", "pulser", "iqm", "pasqal", "dwave"):
        answers = [one.answer for one in solved(kind)]
        raw = statistics.fmean(answer.optimum_raw or 0.0 for answer in answers)
        repaired = statistics.fmean(answer.optimum_repaired or 0.0 for answer in answers)
        where = "emulated " if kind in VENDORS else ""
        yield reported(f"P(optimum) raw, {where}{kind}", "share of shots", raw, "uniform sampling", random)
        yield reported(f"P(optimum) raw, {where}{kind}", "share of shots", raw, "dwave-samplers' defaults", defaults())
        yield reported(f"P(optimum) after repair, {where}{kind}", "share of shots", repaired)
        if kind in ("pulser", "pasqal"):
            embeddings = [one.samples.info["embedding"] for one in solved(kind)]
            exact = [not embedding["missing_edges"] and not embedding["false_edges"] for embedding in embeddings]
            yield reported(f"registers that are the problem's graph, {kind}", "of 50", float(sum(exact)))


def times() -> Iterator[Row]:
    for kind in ("annealer", "gate", "pulser", "iqm", "pasqal", "dwave"):
        for part in ("prepare_s", "queue_s", "execute_s", "decode_s"):
            mean = statistics.fmean(one.timing[part] for one in solved(kind))
            yield reported(f"{part.removesuffix('_s')}, {kind}, mean of the family", "s", mean)


def start_up() -> Iterator[Row]:
    """The whole command without what the device itself takes: imports, prepare, decode, writing."""
    command = Path(sys.executable).parent / "qonduit-solve"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "problem.json").write_text(json.dumps(problem_to_json(family()[0])))
        for kind, limit_s in LIMITS_S.items():
            device = str(server(kind).device_file) if kind in VENDORS else kind
            environment = {**os.environ, "QONDUIT_DEVICE": device, "QONDUIT_LEDGER": str(folder / "ledger.db")}
            seconds = []
            for seed in range(STARTS):
                begun = time.perf_counter()
                arguments = ["--problem", "problem.json", "--out", "samples.json", "--seed", str(seed)]
                subprocess.run([command, *arguments], env=environment, cwd=folder, check=True, capture_output=True)
                spent = time.perf_counter() - begun
                timing = json.loads((folder / "samples.json").read_text())["timing"]
                seconds.append(spent - timing["queue_s"] - timing["execute_s"] * (kind in VENDORS))
            yield below(
                f"qonduit-solve on {kind}, start to end without the device, best of {STARTS}",
                "s",
                min(seconds),
                limit_s,
            )


def throughput() -> Iterator[Row]:
    for vendor in VENDORS:
        settings = settings_of(vendor)
        device = open_device(settings)
        bqm = family()[0].bqm()
        request = device.prepare(bqm, 20, 0)
        execution = Execution(device, patience=Patience(poll_s=0.01))
        begun = time.perf_counter()
        jobs = [device.submit(request, f"{number:032x}") for number in range(THROUGHPUT_JOBS)]
        sent_s = time.perf_counter() - begun
        for job in jobs:
            execution.finish(job)
        spent_s = time.perf_counter() - begun
        yield reported(f"emulated {vendor}: submissions of one client", "1/s", THROUGHPUT_JOBS / sent_s)
        yield reported(
            f"emulated {vendor}: jobs of {bqm.num_variables} variables done", "1/s", THROUGHPUT_JOBS / spent_s
        )


def annealer() -> Iterator[Row]:
    """The annealer's bars: the papers' problems, all of them pooled, and random graphs beside HiGHS."""
    points = blobs(**PAPERS)
    tree = spanning_tree(points)[0]
    partitions = []
    for iteration in range(ITERATIONS):
        for method in METHODS:
            draws = generator(0, iteration, method)
            parameters = draw(method, "papers", points, draws)
            labels = clustered(points, method, parameters, draws, tree)
            partitions.append(Partition(labels, method, parameters, iteration, 0))
    single = [
        aggregation_problem(points, partitions[3 * n : 3 * n + 3], "silhouette", "auto") for n in range(ITERATIONS)
    ]
    found = [_found(problem.bqm(), [part.variables for part in problem.partitions]) for problem in single]
    yield _at_least("annealer, papers' ten problems, seeds at the optimum, worst", min(hit for hit, _ in found), SEEDS)
    yield below("annealer, papers' ten problems, slowest solve", "CPU s", max(worst for _, worst in found), 0.5)
    bqm, starts = _pooled(partitions, single)
    size = bqm.num_variables
    hit, worst = _found(bqm, starts)
    yield _at_least(f"annealer, ten iterations pooled ({size} variables), seeds at the optimum", hit, 95)
    yield below(f"annealer, ten iterations pooled ({size} variables), slowest solve", "CPU s", worst, 0.5)
    for seed in range(GRAPHS):
        yield from _beside_highs(seed)


def _pooled(
    partitions: Sequence[Partition], problems: Sequence[Problem]
) -> tuple[dimod.BinaryQuadraticModel, list[list[str]]]:
    """The clusters of all iterations as one problem; what two iterations have in common is there twice."""
    weights = {
        (len(METHODS) * iteration + cluster.members[0].input, cluster.members[0].cluster): cluster.weight
        for iteration, problem in enumerate(problems)
        for cluster in problem.clusters
        if cluster.in_objective
    }
    edges = [
        ((a, i), (b, j))
        for a, b in combinations(range(len(partitions)), 2)
        for i, j, _ in overlaps(partitions[a].labels, partitions[b].labels).tolist()
        if (a, i) in weights and (b, j) in weights
    ]
    penalty = 1.001 * max(min(weights[u], weights[v]) for u, v in edges)
    bqm = dimod.BinaryQuadraticModel(dimod.BINARY)
    bqm.add_linear_from((str(vertex), -weight) for vertex, weight in weights.items())
    bqm.add_quadratic_from((str(u), str(v), penalty) for u, v in edges)
    return bqm, [[str(vertex) for vertex in weights if vertex[0] == part] for part in range(len(partitions))]


def _found(bqm: dimod.BinaryQuadraticModel, starts: Sequence[Sequence[str]]) -> tuple[int, float]:
    """How many seeds reach the proved optimum, and the slowest solve in seconds."""
    exact = Settings("exact")
    proved = Solver(open_device(exact), exact).solve(bqm, 1, 0).answer
    assert proved.proved_optimal
    settings = Settings("annealer")
    solver = Solver(open_device(settings), settings)
    hits, worst = 0, 0.0
    for seed in range(SEEDS):
        begun = time.process_time()
        answer = solver.solve(bqm, 100, seed, starts).answer
        worst = max(worst, time.process_time() - begun)
        hits += answer.energy <= proved.energy + 1e-9 * abs(proved.energy)
    return hits, worst


def _at_least(name: str, ours: float, goal: float) -> Row:
    return Row(name, f"of {SEEDS}", ours, None, None, None, f"≥ {goal:g}", ours >= goal)


def _beside_highs(seed: int) -> Iterator[Row]:
    graph = networkx.gnp_random_graph(200, 0.15, seed=seed)
    weights = np.random.default_rng(seed).uniform(1, 10, 200)
    bqm = dimod.BinaryQuadraticModel(
        {str(v): -float(weights[v]) for v in graph}, {(str(u), str(v)): 11.0 for u, v in graph.edges}, 0.0, "BINARY"
    )
    exact = Settings("exact", options={"time_limit_s": HIGHS_S})
    theirs = -Solver(open_device(exact), exact).solve(bqm, 1, 0).answer.energy
    settings = Settings("annealer")
    solver = Solver(open_device(settings), settings)
    begun = time.process_time()
    ours = -solver.solve(bqm, 100, seed).answer.energy
    spent = time.process_time() - begun
    name = f"annealer, random graph {seed} of 200 vertices, density 0.15"
    yield Row(
        f"{name}: weight", "weight", ours, "HiGHS, 60 s", theirs, ours / theirs, "ratio ≥ 0.99", ours >= 0.99 * theirs
    )
    yield below(f"{name}: time", "CPU s", spent, 0.5)


PARTS = {part.__name__: part for part in (start_up, throughput, optimum, times, annealer)}

if __name__ == "__main__":
    os.environ["QONDUIT_LEDGER"] = str(Path(_stack.enter_context(tempfile.TemporaryDirectory())) / "ledger.db")
    with _stack:
        run("devices", __doc__, PARTS)
