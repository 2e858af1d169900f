"""The report's tables as HTML: parameters and results of each iteration, the selected clusters, the times.

A wide table scrolls in its own box, which the keyboard can reach.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from qonduit_steps.report import times
from qonduit_steps.report.run import Iteration, Run
from qonduit_steps.report.scatter import input_names, value_text


@dataclass(frozen=True)
class Group:
    """Columns under one heading, and where an iteration keeps their values: a step, or the input of that number."""

    title: str
    source: str | int
    columns: tuple[tuple[str, str], ...]

    def values(self, iteration: Iteration) -> list[object]:
        found: Mapping[str, Any] = {}
        if isinstance(self.source, str):
            found = iteration.summary(self.source)
        elif self.source < len(iteration.inputs):
            given = iteration.inputs[self.source]
            found = {**_parameters(given), "clusters": given.get("clusters"), "noise": given.get("noise")}
        return [found.get(key) for key, _ in self.columns]


def iterations_table(run: Run) -> str:
    groups = _groups(run)
    top = "".join(
        f'<th colspan="{len(g.columns)}" scope="colgroup" class="start">{escape(g.title)}</th>' for g in groups
    )
    titles = [(text, place == 0) for group in groups for place, (_, text) in enumerate(group.columns)]
    below = "".join(f'<th scope="col"{_class(start)}>{escape(text)}</th>' for text, start in titles)
    rows = "".join(_row(one, groups, index == run.best_index) for index, one in enumerate(run.iterations))
    own = '<th scope="col" rowspan="2" class="word">Iteration</th><th scope="col" rowspan="2">Score</th>'
    head = f"<tr>{own}{top}</tr><tr>{below}</tr>"
    caption = "Parameters and results; the best is marked."
    return _box("Iterations", caption, head, rows)


def selected_table(run: Run) -> str:
    names = input_names([given.method for given in run.inputs])
    head = _head(("Cluster", "Found by", "Points", "Weight"), words=2)
    chosen = sorted((v for v in run.vertices if v.selected), key=lambda v: -v.weight)
    rows = "".join(
        f'<tr><th scope="row">{escape(v.variable)}</th><td class="word">'
        f"{escape(', '.join(names[number] for number, _ in v.members))}</td>{_cell(v.size)}{_cell(v.weight)}</tr>"
        for v in chosen
    )
    return _box("Selected clusters", "The selected clusters, heaviest first.", head, rows)


def times_table(run: Run) -> str:
    head = _head(("Step", "Seconds", "CPU seconds", "Peak MB"), words=1)
    rows = "".join(
        f'<tr><th scope="row">{escape(part.name)}</th>{_cell(part.process_s, ",.2f")}{_cell(part.cpu_s, ",.2f")}'
        f"{_cell(part.peak_mb, ',.0f')}</tr>"
        for part in times.totals(run)
    )
    return _box("Times", "Sums over all iterations; the memory is the highest.", head, rows)


def _groups(run: Run) -> list[Group]:
    most = max(run.iterations, key=lambda one: len(one.inputs))
    groups = []
    for place, name in enumerate(input_names([str(given.get("method", "cluster")) for given in most.inputs])):
        given = [one.inputs[place] for one in run.iterations if place < len(one.inputs)]
        keys = list(dict.fromkeys(key for one in given for key in _parameters(one)))
        columns = [(key, key.replace("_", " ")) for key in keys] + [("clusters", "clusters")]
        if any(one.get("noise") for one in given):
            columns.append(("noise", "noise"))
        groups.append(Group(name, place, tuple(columns)))
    return [
        *groups,
        Group("Problem", "aggregate", (("variables", "variables"), ("edges", "edges"))),
        Group("Solution", "solve", (("energy", "energy"), ("source", "source"), ("proved_optimal", "proved"))),
        Group("Result", "score", (("clusters", "clusters"), ("assigned_points", "assigned"))),
    ]


def _parameters(given: Mapping[str, Any]) -> Mapping[str, Any]:
    found = given.get("parameters")
    return found if isinstance(found, Mapping) else {}


def _row(one: Iteration, groups: list[Group], best: bool) -> str:
    cells = "".join(_cell(value, start=place == 0) for group in groups for place, value in enumerate(group.values(one)))
    mark = f"{one.number}{' · best' if best else ''}"
    kind = ' class="chosen"' if best else ""
    return f'<tr{kind}><th scope="row">{mark}</th>{_cell(one.score, ".4f")}{cells}</tr>'


def _cell(value: object, form: str = "", start: bool = False) -> str:
    shown = format(value, form).replace("-", "−") if form else escape(value_text(value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        shown = f'<data value="{value!r}">{shown}</data>'
    return f"<td{_class(start)}>{shown}</td>"


def _class(start: bool) -> str:
    return ' class="start"' if start else ""


def _head(titles: tuple[str, ...], words: int) -> str:
    cells = (f'<th scope="col"{" class=word" if place < words else ""}>{t}</th>' for place, t in enumerate(titles))
    return f"<tr>{''.join(cells)}</tr>"


def _box(name: str, caption: str, head: str, rows: str) -> str:
    return (
        f'<div class="card scroll" role="region" aria-label="{name}" tabindex="0"><table><caption>{caption}</caption>'
        f"<thead>{head}</thead><tbody>{rows}</tbody></table></div>"
    )
