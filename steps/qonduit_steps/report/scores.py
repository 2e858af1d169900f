"""The score of each iteration, against the threshold that ends the loop."""

from __future__ import annotations

from qonduit_steps.report.axis import every, ticks
from qonduit_steps.report.drawing import Disc, Drawing, Path, Shape, Text, line
from qonduit_steps.report.run import Run


def draw(run: Run, width: float, height: float) -> Drawing:
    left, right, top, bottom = 42.0, width - 14.0, 26.0, height - 38.0
    low, high = _range(run)
    count = len(run.iterations)

    def x(index: int) -> float:
        return left + (right - left) * (index + 0.5) / count

    def y(score: float) -> float:
        return bottom - (bottom - top) * (score - low) / (high - low)

    shapes: list[Shape] = []
    for value, text in ticks(low, high, 4):
        shapes += [
            line(left, y(value), right, y(value), "line"),
            Text(left - 7, y(value) + 4, text, 12, "end", "muted"),
        ]
    shapes += _threshold(run, left, right, y(run.threshold))
    shapes.append(Path(tuple((x(i), y(one.score)) for i, one in enumerate(run.iterations)), stroke="muted", width=1.5))
    radius = 4.5 if count <= 60 else 2.5
    for index, one in enumerate(run.iterations):
        fill = "accent" if index == run.best_index else "surface"
        title = f"Iteration {one.number}: {one.score:.4f}"
        shapes.append(Disc(x(index), y(one.score), radius, fill, "accent", 2, title))
    shapes += _best(run, x(run.best_index), y(run.best_score), left, right, y(run.threshold))
    step = every(count, int((right - left) / 34))
    shapes += [
        Text(x(index), bottom + 18, str(run.iterations[index].number), 12, "middle", "muted")
        for index in range(0, count, step)
    ]
    shapes.append(Text((left + right) / 2, bottom + 34, "iteration", 12, "middle", "muted"))
    shapes.append(Text(left - 36, 12, "mean silhouette", 12, fill="muted"))
    return Drawing(width, height, tuple(shapes), _label(run))


def _range(run: Run) -> tuple[float, float]:
    values = [run.threshold, *(one.score for one in run.iterations)]
    margin = max(0.12 * (max(values) - min(values)), 0.02)
    return min(values) - margin, max(values) + margin


def _threshold(run: Run, left: float, right: float, y: float) -> list[Shape]:
    text = f"threshold {run.threshold:g}"
    # At the left end the best score is rarely found: a loop ends with it.
    return [line(left, y, right, y, "bad", 1.5), Text(left + 4, y - 6, text, 12, fill="bad", halo=True)]


def _best(run: Run, x: float, y: float, left: float, right: float, threshold: float) -> list[Shape]:
    at = min(max(x, left + 52), right - 46)
    above = y - 12 if abs(y - 12 - (threshold - 6)) > 14 or at > left + 190 else y + 22
    text = f"best {run.best_score:.4f}".replace("-", "−")
    return [
        Disc(x, y, 8, stroke="accent", width=1.5),
        Text(at, above, text, 13, "middle", bold=True, halo=True),
    ]


def _label(run: Run) -> str:
    scores = ", ".join(f"{one.number}: {one.score:.4f}" for one in run.iterations[:50])
    return (
        f"Score of each iteration. {scores}. Best: iteration {run.best_iteration.number}. Threshold {run.threshold:g}."
    )
