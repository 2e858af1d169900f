"""`qonduit solve`: one problem on one device, with its progress and a summary that says how good the answer is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.status import Status as Spinner
from rich.table import Table

from qonduit.devices.registry import open_device
from qonduit.devices.settings import settings_named
from qonduit.devices.solve import Solved, Solver
from qonduit.devices.state import State, Status

if TYPE_CHECKING:
    from qonduit_steps.problem import Problem


def solve(path: Path, device: str, out: Path | None, shots: int | None, seed: int, as_json: bool) -> None:
    # The command is where steps and devices meet; nothing else of this package knows the steps.
    from qonduit_steps.commands.solve import SHOTS, content
    from qonduit_steps.outputs import Outputs
    from qonduit_steps.problem import read_problem

    settings = settings_named(device)
    asked = open_device(settings)
    problem = read_problem(path)
    shots = shots or settings.shots or SHOTS
    console = Console(stderr=True, quiet=as_json)
    with Outputs() as outputs, console.status(f"{settings.kind}: preparing") as spinner:
        if out is not None:
            outputs.check(out, "--out")
        progress = Progress(console, spinner, settings.kind)
        solver = Solver(asked, settings, watch=progress.watch, say=progress.say)
        starts = [partition.variables for partition in problem.partitions]
        solved = solver.solve(problem.bqm(), shots, seed, starts)
        found = content(problem, settings, shots, seed, solved)
        if out is not None:
            outputs.write_json(out, found, "--out")
    if as_json:
        print(json.dumps(found))
    else:
        Console().print(_table(problem, settings.kind, shots, solved))


class Progress:
    """Says where the job is: on one changing line for a person, one line a change where nobody looks on."""

    def __init__(self, console: Console, spinner: Spinner, kind: str) -> None:
        self._console, self._spinner, self._kind = console, spinner, kind
        self._last = ""

    def watch(self, status: Status) -> None:
        sentence = status.state.value
        if status.state is State.QUEUED and status.position is not None:
            sentence += f", {status.position} before it"
        if status.state is State.UNKNOWN and status.reason:
            sentence += f" ({status.reason})"
        self.say(sentence)

    def say(self, sentence: str) -> None:
        if sentence == self._last:
            return
        self._last = sentence
        self._spinner.update(escape(f"{self._kind}: {sentence}"))
        if not self._console.is_terminal:
            self._console.print(f"{self._kind}: {sentence}", highlight=False, markup=False)


def _table(problem: Problem, kind: str, shots: int, solved: Solved) -> Table:
    answer, timing = solved.answer, solved.timing
    rows: list[tuple[str, Any]] = [
        ("device", kind + (", from the ledger: nothing was bought" if solved.reused else "")),
        ("job", ", ".join(solved.jobs)),
        ("variables", problem.bqm().num_variables),
        ("shots", shots),
        ("selected", f"{len(answer.variables)}: {', '.join(answer.variables)}"),
        ("energy", f"{answer.energy:.6g} (from the {answer.source})"),
    ]
    if answer.optimum_energy is not None:
        reached = answer.energy <= answer.optimum_energy + 1e-9 * max(1.0, abs(answer.optimum_energy))
        rows += [
            ("exact optimum", f"{answer.optimum_energy:.6g}, {'reached' if reached else 'missed'}"),
            ("P(optimum) raw", f"{answer.optimum_raw:.3f}"),
            ("after repair", f"{answer.optimum_repaired:.3f}"),
        ]
    rows += [
        ("feasible", f"{answer.feasible_fraction:.3f} of the shots"),
        ("seconds", ", ".join(f"{name.removesuffix('_s')} {value:.2f}" for name, value in timing.items())),
    ]
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in rows:
        if value != "":
            table.add_row(name, escape(str(value)))
    return table
