"""The report's page: one HTML file with everything inside, for any screen, both themes, paper and screen readers.

Every exact number is in a `data` element's value; what the reader sees is that number rounded.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template

from qonduit_steps.report import graph, scores, times
from qonduit_steps.report.colours import DARK, LIGHT, NOISE
from qonduit_steps.report.drawing import svg
from qonduit_steps.report.projection import View
from qonduit_steps.report.run import Run
from qonduit_steps.report.scatter import Panel, input_names, value_text
from qonduit_steps.report.table import iterations_table, selected_table, times_table

_SOURCES = {"device": "the device", "repair": "a repaired sample", "partition": "one input's own clusters"}


def page(run: Run, view: View, panels: Sequence[Panel]) -> str:
    here = files("qonduit_steps.report")
    template = Template(here.joinpath("page.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=f"Qonduit report: score {run.best_score:.4f}",
        style=_themes() + here.joinpath("page.css").read_text(encoding="utf-8"),
        headline=_headline(run),
        panels=_panels(run, view, panels),
        scores=_figure(
            svg(scores.draw(run, 560, 330), "wide") + svg(scores.draw(run, 330, 260), "narrow"),
            "The score is the exact mean silhouette of all points, from −1 to 1. "
            "The loop ends with the first score above the threshold; the best iteration is kept.",
        ),
        times=_figure(
            svg(times.draw(run, 560, 330), "wide") + svg(times.draw(run, 330, 300), "narrow"),
            "Seconds of each step's process, from start to end. Methods run side by side where there are cores, "
            "so an iteration can take less than its bar is high.",
        )
        + _details("Seconds, CPU and memory of each step", times_table(run)),
        iterations=iterations_table(run),
        graph=_graph(run, view),
        footer=_footer(run),
    )


def _themes() -> str:
    light, dark = (";".join(f"--{name}:{code}" for name, code in theme.items()) for theme in (LIGHT, DARK))
    return (
        f":root{{color-scheme:light dark;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
        "@media print{:root{color-scheme:light}}\n"
    )


def _headline(run: Run) -> str:
    verdict = (
        f'<p class="verdict good">✓ Passed the threshold of {_data(run.threshold, "g")}</p>'
        if run.passed
        else f'<p class="verdict bad">✗ Did not pass the threshold of {_data(run.threshold, "g")}</p>'
    )
    best, count = run.best_iteration, len(run.iterations)
    points, dimensions = run.points.shape
    facts = [
        ("Iterations", _data(count), f"best: number {best.number}, limit {run.max_iterations:,}"),
        ("Points", _data(points), f"{dimensions:,} dimension{'' if dimensions == 1 else 's'}"),
        (
            "Clusters",
            _data(run.clusters),
            f"from {len(run.inputs):,} input clustering{'' if len(run.inputs) == 1 else 's'}",
        ),
        ("Device", escape(run.device), _proved(run)),
        ("Time", f"{_data(run.seconds, ',.1f')} s", "the whole loop"),
    ]
    cells = "".join(f"<div><dt>{k}</dt><dd>{v}<small>{escape(note)}</small></dd></div>" for k, v, note in facts)
    return (
        '<p class="eyebrow">Qonduit · clustering aggregation</p>\n'
        f'<h1>Score {_data(run.best_score, ".4f")}</h1>\n{verdict}\n<dl class="facts">{cells}</dl>'
    )


def _panels(run: Run, view: View, panels: Sequence[Panel]) -> str:
    best, *inputs = panels
    made = [_panel(best, "best", 560, 14.0, axes=True)]
    made += [_panel(panel, "", 270, 10.0, axes=False) for panel in inputs]
    notes = ["A cluster of an input has the colour of the cluster that it mostly became in the best clustering."]
    if any(given.noise for given in run.inputs):
        red, green, blue = NOISE
        swatch = f'<span class="swatch" style="background:rgb({red},{green},{blue})"></span>'
        notes.append(f"{swatch} Grey points are noise: the method put them in no cluster.")
    notes += [escape(note) for note in view.notes]
    made.append(f'<div class="card legend">{"".join(f"<p>{note}</p>" for note in notes)}</div>')
    return f'<div class="panels">{"".join(made)}</div>'


def _panel(panel: Panel, style: str, width: float, size: float, axes: bool) -> str:
    return (
        f'<article class="card {style}"><h3>{escape(panel.title)}</h3><p>{escape(panel.detail)}</p>'
        f"{svg(panel.draw(width, size, axes))}</article>"
    )


def _graph(run: Run, view: View) -> str:
    drawn, all_vertices = len(graph.shown(run)), len(run.vertices)
    selected = [vertex for vertex in run.vertices if vertex.selected]
    caption = (
        f"Each of the {_data(all_vertices)} vertices is a cluster, as large as its weight "
        f"({escape(run.weights)}); each of the {_data(len(run.edges))} edges joins two clusters that share points. "
        f"The {_data(len(selected))} selected share none. Penalty λ = {_data(run.penalty, ',.6g')}, "
        f"energy {_data(run.energy, ',.6g')}, from {_SOURCES.get(run.source, escape(run.source))}, {_proved(run)}."
    )
    letters = zip(
        graph.short_names([given.method for given in run.inputs]),
        input_names([given.method for given in run.inputs]),
        strict=True,
    )
    if any(len(vertex.members) > 1 for vertex in run.vertices):
        caption += " A vertex of several colours was found by several methods."
    if not all(vertex.in_objective for vertex in run.vertices):
        caption += " Pale ones have no positive weight and are kept out of the objective."
    if drawn < all_vertices:
        caption += f" Too many to read: only the selected and the heaviest, {drawn:,} in all, are drawn."
    tall = 640 if drawn > 60 else 520
    pictures = svg(graph.draw(run, view, 1120, tall), "wide") + svg(graph.draw(run, view, 330, 460), "narrow")
    key = ", ".join(f"{short} = {escape(name)}" for short, name in letters)
    return _figure(pictures, f"{caption} {key}.") + _details("The selected clusters as a table", selected_table(run))


def _proved(run: Run) -> str:
    return "proved optimal" if run.proved_optimal else "not proved optimal"


def _figure(picture: str, caption: str) -> str:
    return f'<figure><div class="card">{picture}</div><figcaption>{caption}</figcaption></figure>'


def _details(title: str, inside: str) -> str:
    return f"<details><summary>{title}</summary>{inside}</details>"


def _footer(run: Run) -> str:
    started = min(step.started for one in run.iterations for step in one.steps)
    try:
        when = datetime.datetime.fromtimestamp(started, datetime.UTC).strftime(
            "First step started %Y-%m-%d %H:%M UTC. "
        )
    except (OverflowError, ValueError, OSError):
        when = ""
    return f"{when}Iterations count from 0, as in the files. The labels are in labels.csv, in the order of the points."


def _data(value: float, form: str = ",") -> str:
    shown = value_text(value) if form == "," else format(value, form).replace("-", "−")
    return f'<data value="{value!r}">{shown}</data>'
