"""Where the time went: the seconds of every step, stacked for each iteration."""

from __future__ import annotations

from dataclasses import dataclass

from qonduit_steps.report.axis import every, ticks
from qonduit_steps.report.colours import METHODS
from qonduit_steps.report.drawing import Drawing, Shape, Text, box, line, text_width
from qonduit_steps.report.run import Iteration, Run
from qonduit_steps.report.scatter import input_names


@dataclass(frozen=True)
class Part:
    """One step of one iteration: its name in the report, its colour, its seconds and its memory."""

    name: str
    colour: str
    process_s: float
    cpu_s: float
    peak_mb: float


def parts(iteration: Iteration) -> list[Part]:
    """The steps in order, the clustering methods told apart."""
    names = iter(input_names([str(given.get("method", "cluster")) for given in iteration.inputs]))
    made: list[Part] = []
    for step in iteration.steps:
        name, colour = step.name, step.name if step.name in ("aggregate", "solve", "score") else "edge"
        if step.name == "cluster":
            name, colour = next(names), f"method-{sum(part.colour.startswith('method') for part in made) % METHODS}"
        made.append(Part(name, colour, step.process_s, step.cpu_s, step.peak_mb))
    return made


def totals(run: Run) -> list[Part]:
    """Each step over all iterations: sums of the times, the peak of the memory."""
    found: dict[str, Part] = {}
    for iteration in run.iterations:
        for part in parts(iteration):
            one = found.get(part.name, Part(part.name, part.colour, 0.0, 0.0, 0.0))
            found[part.name] = Part(
                one.name,
                one.colour,
                one.process_s + part.process_s,
                one.cpu_s + part.cpu_s,
                max(one.peak_mb, part.peak_mb),
            )
    return list(found.values())


def draw(run: Run, width: float, height: float) -> Drawing:
    legend, below = _legend(totals(run), width)
    left, right, top, bottom = 42.0, width - 14.0, below + 38.0, height - 38.0
    stacks = [parts(iteration) for iteration in run.iterations]
    most = max(sum(part.process_s for part in stack) for stack in stacks) * 1.05 or 1.0
    slot = (right - left) / len(stacks)
    bar = min(0.62 * slot, 54.0)
    shapes: list[Shape] = [*legend, Text(left - 36, below + 24, "seconds", 12, fill="muted")]
    for value, text in ticks(0.0, most, 4):
        y = bottom - (bottom - top) * value / most
        shapes += [line(left, y, right, y, "line"), Text(left - 7, y + 4, text, 12, "end", "muted")]
    for index, stack in enumerate(stacks):
        y = bottom
        for part in stack:
            high = (bottom - top) * part.process_s / most
            y -= high
            title = f"Iteration {run.iterations[index].number}, {part.name}: {part.process_s:.2f} s"
            # A hairline between segments tells them apart without their colours.
            shapes.append(box(left + slot * (index + 0.5) - bar / 2, y, bar, max(high - 1, 0.4), part.colour, title))
    for index in range(0, len(stacks), every(len(stacks), int((right - left) / 34))):
        number = str(run.iterations[index].number)
        shapes.append(Text(left + slot * (index + 0.5), bottom + 18, number, 12, "middle", "muted"))
    shapes.append(Text((left + right) / 2, bottom + 34, "iteration", 12, "middle", "muted"))
    return Drawing(width, height, tuple(shapes), _label(run))


def _legend(entries: list[Part], width: float) -> tuple[list[Shape], float]:
    shapes: list[Shape] = []
    x, y = 6.0, 12.0
    for part in entries:
        length = 18 + text_width(part.name, 12) + 14
        if x > 6.0 and x + length > width:
            x, y = 6.0, y + 20
        shapes += [box(x, y - 10, 12, 12, part.colour), Text(x + 18, y, part.name, 12)]
        x += length
    return shapes, y


def _label(run: Run) -> str:
    return "Seconds of each step. " + ", ".join(f"{part.name}: {part.process_s:.2f} s in all" for part in totals(run))
