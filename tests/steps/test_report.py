"""The report: what its page says is what the files say, for any data, and it needs nothing but itself."""

from __future__ import annotations

import base64
import io
import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from qonduit_steps.commands.report import PICTURES, main
from qonduit_steps.outputs import Outputs
from qonduit_steps.partition import Partition, write_npz, write_partition
from qonduit_steps.report import axis, graph, times
from qonduit_steps.report.colours import CLUSTERS, DARK, LIGHT, follow, spread
from qonduit_steps.report.drawing import Disc
from qonduit_steps.report.projection import project
from qonduit_steps.report.raster import Raster
from qonduit_steps.report.run import read_run

METHODS = ("kmeans", "dbscan", "hierarchical")
PARAMETERS = ({"k": 4}, {"eps": 2.3125, "min_points": 10}, {"linkage": "single", "k": 3})


def blobs(n: int = 120, dimensions: int = 2) -> npt.NDArray[np.float64]:
    random = np.random.default_rng(5)
    return random.normal(size=(n, dimensions)) + 12 * random.normal(size=(4, dimensions))[np.arange(n) % 4]


def write_run(
    folder: Path,
    points: npt.NDArray[np.float64],
    scores: tuple[float, ...] = (0.31, 0.82671, 0.5),
    methods: tuple[str, ...] = METHODS,
    prefix: str = "",
) -> Path:
    """A run folder as the loop leaves it: points i, i+4, i+8, … are one blob; the second method calls some noise."""
    folder.mkdir(parents=True)
    n = len(points)
    base = np.arange(n) % min(4, n)
    noisy = np.where(np.arange(n) % 13 == 12, -1, base)
    labelled = [(base, noisy, np.minimum(base, 2))[place % 3].astype(np.int32) for place in range(len(methods))]
    clusters = [
        {
            "variable": f"{prefix}{methods[place]}-{place}:{number}",
            "members": [{"input": place, "method": methods[place], "cluster": number}],
            "size": int((labels == number).sum()),
            "weight": float((labels == number).sum()) * (0.9 - 0.1 * place),
            "in_objective": True,
        }
        for place, labels in enumerate(labelled)
        for number in range(int(labels.max()) + 1)
    ]
    edges = [
        [str(one["variable"]), str(other["variable"])]
        for i, one in enumerate(clusters)
        for other in clusters[:i]
        if np.any(_mask(labelled, one) & _mask(labelled, other))
    ]
    best = max(range(len(scores)), key=lambda place: scores[place])
    chosen = [str(cluster["variable"]) for cluster in clusters if _member(cluster)["input"] == 0]
    _json(folder / "history.json", [_record(number, score, methods) for number, score in enumerate(scores)])
    _json(
        folder / "summary.json",
        {
            "best_score": scores[best],
            "best_iteration": best,
            "scores": scores,
            "passed": scores[best] > 0.8,
            "threshold": 0.8,
            "max_iterations": 10,
            "width": 1,
            "labels": "labels.csv",
            "report": "report.html",
            "seconds": 7.53125,
        },
    )
    _json(
        folder / "problem.json",
        {
            "format": "qonduit-problem/1",
            "points": n,
            "iteration": best,
            "weights": "silhouette",
            "penalty": {"rule": "auto", "value": 27.25, "needed": 27.0},
            "clusters": clusters,
            "edges": edges,
        },
    )
    found = {"variables": chosen, "energy": -96.5, "source": "device", "proved_optimal": True}
    _json(folder / "samples.json", {"device": {"kind": "annealer"}, "best": found})
    np.save(folder / "points.npy", points)
    with Outputs() as outputs:
        for place, (labels, method) in enumerate(zip(labelled, methods, strict=True)):
            partition = Partition(labels, method, dict(PARAMETERS[place % 3]), best, 7)
            write_partition(outputs, folder / f"labels-{place}.npz", partition, "--out")
        kept = {"labels": base.astype(np.int32), "assigned": np.arange(n) % 40 == 1}
        write_npz(outputs, folder / "best.npz", "--out", **kept)
    return folder


def _member(cluster: dict[str, Any]) -> dict[str, Any]:
    member: dict[str, Any] = cluster["members"][0]
    return member


def _mask(labelled: list[npt.NDArray[np.int32]], cluster: dict[str, Any]) -> npt.NDArray[np.bool_]:
    return np.asarray(labelled[_member(cluster)["input"]] == _member(cluster)["cluster"])


def _record(number: int, score: float, methods: tuple[str, ...]) -> dict[str, Any]:
    def made(step: str, seconds: float, **summary: Any) -> dict[str, Any]:
        times = {"started": 1.7e9 + number, "seconds": seconds, "process_seconds": seconds + 0.5}
        return {"step": step, **times, "cpu_seconds": seconds, "peak_mb": 100.0, "summary": summary}

    clustered = [
        made(
            "cluster", 0.25 + place, method=method, parameters=PARAMETERS[place % 3], clusters=4, noise=9 * (place == 1)
        )
        for place, method in enumerate(methods)
    ]
    return {
        **made("score", 0.125, iteration=number, score=score, clusters=4, assigned_points=3),
        "earlier": [
            *clustered,
            made("aggregate", 0.375, iteration=number, variables=11, edges=17, penalty=27.25),
            made("solve", 0.0625, iteration=number, energy=-96.5 - number, source="repair", proved_optimal=number == 1),
        ],
    }


def _json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value))


def edit(path: Path, change: Callable[[Any], Any]) -> None:
    content = json.loads(path.read_text())
    change(content)
    _json(path, content)


def report(folder: Path, out: Path, *more: str) -> str:
    out.mkdir(exist_ok=True)
    with pytest.raises(SystemExit) as end:
        main(["--run", str(folder), "--out", str(out / "report.html"), *more])
    assert end.value.code == 0
    return (out / "report.html").read_text()


class Page(HTMLParser):
    """What the tests want to know of a page: its references, its numbers, its cells, and that its tags match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.references: list[str] = []
        self.values: list[float] = []
        self.rows: list[list[str]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "br", "img", "link", "input"):
            self._open.append(tag)
        self._attributes(attrs)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._attributes(attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "td" in self._open or "th" in self._open:
            self.rows[-1][-1] += data
        if "style" not in self._open:
            self.words.append(data)

    def _attributes(self, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.references += [found[name] for name in ("src", "href", "xlink:href", "action", "srcset") if name in found]
        if "value" in found:
            self.values.append(float(found["value"]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", blobs())


def test_the_page_refers_to_nothing_outside_itself(folder: Path, tmp_path: Path) -> None:
    text = report(folder, tmp_path / "out")
    page = Page(text)
    assert page.references
    assert all(reference.startswith("data:image/png;base64,") for reference in page.references)
    assert not {"script", "link", "iframe", "object", "embed"} & set(page.tags)
    assert "http://" not in text
    assert "https://" not in text
    assert "url(" not in text
    assert "@import" not in text


def test_every_picture_decodes_and_shows_something(folder: Path, tmp_path: Path) -> None:
    page = Page(report(folder, tmp_path / "out"))
    files = [tmp_path / "out" / name for name in PICTURES]
    inside = [io.BytesIO(base64.b64decode(reference.partition(",")[2])) for reference in page.references]
    assert len(inside) == 4  # the best clustering and three inputs
    for source in [*(io.BytesIO(file.read_bytes()) for file in files), *inside]:
        with Image.open(source) as picture:
            assert len(picture.convert("RGBA").getcolors(1 << 24) or []) > 3


def test_every_drawing_in_the_page_is_xml_with_a_text_for_those_who_do_not_see_it(folder: Path, tmp_path: Path) -> None:
    drawings = re.findall(r"<svg.*?</svg>", report(folder, tmp_path / "out"), re.DOTALL)
    assert len(drawings) == 4 + 3 * 2  # panels, and three charts in two widths
    for drawing in drawings:
        assert len(ElementTree.fromstring(drawing).attrib["aria-label"]) > 20


def test_colours_that_drawings_name_exist_in_both_themes(folder: Path, tmp_path: Path) -> None:
    used = set(re.findall(r"var\(--([\w-]+)\)", report(folder, tmp_path / "out")))
    assert used
    assert used <= set(LIGHT)
    assert set(LIGHT) == set(DARK)


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_text_has_enough_contrast_in_each_theme(theme: dict[str, str]) -> None:
    for back in ("page", "surface"):
        for text in ("ink", "muted", "good", "bad"):
            assert _contrast(theme[text], theme[back]) >= 4.5
    for number in range(6):
        assert _contrast(theme["on-method"], theme[f"method-{number}"]) >= 4.5


def _contrast(one: str, other: str) -> float:
    def light(code: str) -> float:
        parts = [int(code[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_headline_shows_the_numbers_of_the_files(folder: Path, tmp_path: Path) -> None:
    page = Page(report(folder, tmp_path / "out"))
    assert page.values[:6] == [0.82671, 0.8, 3, 120, 4, 7.53125]
    words = "".join(page.words)
    assert "Score 0.8267" in words
    assert "✓ Passed the threshold of 0.8" in words
    assert "best: number 1, limit 10" in words
    assert "annealer" in words


def test_a_run_that_did_not_pass_says_so(tmp_path: Path) -> None:
    page = Page(report(write_run(tmp_path / "run", blobs(), scores=(-0.25, 0.8)), tmp_path / "out"))
    words = "".join(page.words)
    assert "Did not pass the threshold of 0.8" in words
    assert "Passed" not in words


@settings(max_examples=5, deadline=None)
@given(scores=st.lists(st.floats(-1, 1), min_size=1, max_size=6))
def test_the_table_shows_every_score_and_marks_the_best(
    scores: list[float], tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("table")
    page = Page(report(write_run(place / "run", blobs(), scores=tuple(scores)), place / "out"))
    rows = [row for row in page.rows if row and re.fullmatch(r"\d+( · best)?", row[0])]
    assert [row[1] for row in rows] == [f"{score:.4f}".replace("-", "−") for score in scores]
    assert [index for index, row in enumerate(rows) if "best" in row[0]] == [scores.index(max(scores))]
    assert set(scores) <= set(page.values)


def test_the_table_shows_parameters_problem_and_solution_of_an_iteration(folder: Path, tmp_path: Path) -> None:
    page = Page(report(folder, tmp_path / "out"))
    row = next(row for row in page.rows if row and row[0] == "1 · best")
    inputs = ["4", "4", "2.3125", "10", "4", "9", "single", "3", "4"]
    assert row == ["1 · best", "0.8267", *inputs, "11", "17", "−97.5", "repair", "yes", "4", "3"]


def test_a_value_that_a_record_lacks_is_a_dash(folder: Path, tmp_path: Path) -> None:
    edit(folder / "history.json", lambda records: records[0].pop("earlier"))
    page = Page(report(folder, tmp_path / "out"))
    row = next(row for row in page.rows if row and row[0] == "0")
    assert row[2:] == ["–"] * 14 + ["4", "3"]


def test_the_times_are_the_sums_of_the_records(folder: Path) -> None:
    totals = {part.name: part.process_s for part in times.totals(read_run(folder))}
    assert totals == {
        "k-means": 3 * 0.75,
        "DBSCAN": 3 * 1.75,
        "Hierarchical": 3 * 2.75,
        "aggregate": 3 * 0.875,
        "solve": 3 * 0.5625,
        "score": 3 * 0.625,
    }


@pytest.mark.parametrize("dimensions", [1, 2, 5])
def test_points_of_any_dimension_are_shown_and_explained(dimensions: int, tmp_path: Path) -> None:
    words = "".join(Page(report(write_run(tmp_path / "run", blobs(90, dimensions)), tmp_path / "out")).words)
    assert ("one dimension" in words) == (dimensions == 1)
    assert ("5 dimensions, seen along the two principal components" in words) == (dimensions == 5)


@pytest.mark.parametrize(
    "points",
    [
        np.array([[0.0, 1.0], [2.0, 3.0]]),
        np.repeat([[7.0, 7.0, 7.0], [8.0, 8.0, 8.0]], (49, 1), axis=0),
        np.column_stack((np.arange(40.0), np.zeros(40))),
        np.vstack((blobs(300), [[1e149, -1e149]])),
        blobs(60) * 1e-140,
        blobs(60) + 1e15,
    ],
    ids=["two points", "nearly all equal", "collinear", "far outlier", "tiny", "far from zero"],
)
def test_strange_points_give_a_page_without_nan(points: npt.NDArray[np.float64], tmp_path: Path) -> None:
    text = report(write_run(tmp_path / "run", points), tmp_path / "out")
    without_pictures = re.sub(r"base64,[^\"]*", "", text)
    assert not re.search(r"\b(nan|inf)\b", without_pictures, re.IGNORECASE)


@pytest.mark.parametrize("methods", [("kmeans",), ("kmeans", "dbscan", "kmeans", "ward", "dbscan")])
def test_any_number_of_inputs_and_a_single_iteration_are_shown(methods: tuple[str, ...], tmp_path: Path) -> None:
    page = Page(report(write_run(tmp_path / "run", blobs(), scores=(0.9,), methods=methods), tmp_path / "out"))
    assert len(page.references) == len(methods) + 1
    if len(methods) == 5:
        assert {"k-means 1", "k-means 2", "DBSCAN 1", "DBSCAN 2", "ward"} <= set(page.words)


def test_names_are_text_and_never_markup(tmp_path: Path) -> None:
    evil = '"><script>alert(1)</script>&'
    text = report(write_run(tmp_path / "run", blobs(), methods=(evil, "dbscan"), prefix=evil), tmp_path / "out")
    page = Page(text)
    assert "script" not in page.tags
    assert any(evil in words for words in page.words)


def test_the_same_folder_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    for place in ("one", "two"):
        report(folder, tmp_path / place)
    for name in ("report.html", *PICTURES):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_points_and_pictures_may_lie_elsewhere(folder: Path, tmp_path: Path) -> None:
    shutil.move(folder / "points.npy", tmp_path / "mine.npy")
    (tmp_path / "pictures").mkdir()
    report(folder, tmp_path / "out", "--points", str(tmp_path / "mine.npy"), "--pictures", str(tmp_path / "pictures"))
    assert sorted(path.name for path in (tmp_path / "pictures").iterdir()) == sorted(PICTURES)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["report.html"]


def break_file(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def change(name: str, how: Callable[[Any], Any]) -> Callable[[Path], object]:
    return lambda folder: edit(folder / name, how)


BAD: dict[str, tuple[Callable[[Path], object], int, str]] = {
    "no folder": (shutil.rmtree, 2, "run"),
    "no summary": (lambda folder: (folder / "summary.json").unlink(), 2, "summary.json"),
    "no points": (lambda folder: (folder / "points.npy").unlink(), 2, "points.npy"),
    "a gap in the labels": (lambda folder: (folder / "labels-1.npz").unlink(), 2, "labels-1.npz"),
    "broken JSON": (break_file("history.json", b'[{"step": '), 65, "history.json"),
    "NaN in JSON": (
        change("history.json", lambda h: h[0]["earlier"][4]["summary"].update(energy=math.nan)),
        65,
        "holds NaN",
    ),
    "not UTF-8": (break_file("problem.json", b"\xff\xfe\x00"), 65, "problem.json"),
    "endless nesting": (break_file("problem.json", b"[" * 100000), 65, "problem.json"),
    "a list for an object": (break_file("summary.json", b"[]"), 65, "summary.json"),
    "broken points": (break_file("points.npy", b"\x93NUMPY"), 65, "points.npy"),
    "NaN points": (lambda f: np.save(f / "points.npy", np.full((120, 2), np.nan)), 65, "points.npy"),
    "equal points": (lambda f: np.save(f / "points.npy", np.zeros((120, 2))), 65, "points.npy"),
    "other points": (lambda f: np.save(f / "points.npy", blobs(77)), 65, "labels-0.npz"),
    "broken labels": (break_file("best.npz", b"PK"), 65, "best.npz"),
    "fewer records than scores": (change("history.json", lambda h: h.pop()), 65, "history.json"),
    "no seconds": (change("history.json", lambda h: h[0].pop("process_seconds")), 65, "history.json"),
    "a text for a number": (change("summary.json", lambda s: s.update(threshold="high")), 65, "summary.json"),
    "a yes for a number": (change("summary.json", lambda s: s.update(seconds=True)), 65, "summary.json"),
    "a number without end": (change("summary.json", lambda s: s.update(seconds=10**400)), 65, "summary.json"),
    "best beyond the scores": (change("summary.json", lambda s: s.update(best_iteration=3)), 65, "summary.json"),
    "other scores": (change("summary.json", lambda s: s["scores"].reverse()), 65, "summary.json"),
    "another best score": (change("summary.json", lambda s: s.update(best_score=0.9)), 65, "summary.json"),
    "an unknown selection": (
        change("samples.json", lambda s: s["best"]["variables"].append("x:0")),
        65,
        "samples.json",
    ),
    "an edge to nowhere": (change("problem.json", lambda p: p["edges"].append(["x:0", "x:1"])), 65, "problem.json"),
    "a cluster of no input": (
        change("problem.json", lambda p: _member(p["clusters"][0]).update(input=9)),
        65,
        "problem.json",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_and_leaves_nothing(
    case: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil, code, name = BAD[case]
    spoil(folder)
    (tmp_path / "out").mkdir()
    with pytest.raises(SystemExit) as end:
        main(["--run", str(folder), "--out", str(tmp_path / "out" / "report.html")])
    said = capsys.readouterr().err
    assert end.value.code == code
    assert said.count("\n") == 1
    assert name in said
    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_that_is_not_there_is_refused_before_any_work(folder: Path, tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("qonduit-report")), "--run", str(folder)]
    nowhere = str(tmp_path / "no")
    for more in (["--out", f"{nowhere}/r.html"], ["--out", str(tmp_path / "r.html"), "--pictures", nowhere]):
        done = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert more[-2] in done.stderr
    assert not (tmp_path / "r.html").exists()


finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(st.integers(1, 12), st.integers(1, 4)).flatmap(lambda shape: arrays(np.float64, shape, elements=finite))
)
def test_every_point_has_a_place_in_the_view(points: npt.NDArray[np.float64]) -> None:
    view = project(points)
    assert view.xy.shape == (len(points), 2)
    assert np.all((view.xy >= 0) & (view.xy <= 1))
    assert math.isfinite(view.aspect)


def test_a_plane_keeps_its_shape_and_an_outlier_does_not_squeeze_it() -> None:
    plain = blobs(1000)
    shown = project(plain)
    scale = (shown.xy[0] - shown.xy[1]) / (plain[0] - plain[1]) * (1, shown.aspect)
    assert scale[0] == pytest.approx(scale[1])
    with_outlier = project(np.vstack((plain, [[1e6, 1e6]])))
    assert np.ptp(with_outlier.xy[:1000], axis=0).max() > 0.85
    assert with_outlier.notes == ("1 far point is drawn at the edge.",)


def test_principal_components_show_the_plane_in_which_the_points_lie() -> None:
    random = np.random.default_rng(3)
    plane = random.normal(size=(500, 2)) * (5, 3)
    turned = plane @ np.linalg.qr(random.normal(size=(6, 6)))[0][:2]
    view = project(turned)
    assert "100%" in view.notes[0]
    places = view.xy[:50] * (1, view.aspect)
    gaps = [np.linalg.norm(what[:, None] - what[None, :50], axis=2) for what in (places, plane[:50])]
    assert np.corrcoef(gaps[0].ravel(), gaps[1].ravel())[0, 1] == pytest.approx(1.0)


def test_a_pixel_has_the_colour_of_its_points_and_the_rest_is_transparent() -> None:
    points = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])
    view = project(points)
    raster = Raster(view)
    with Image.open(io.BytesIO(raster.png(np.array([0, 1, 2, -1])))) as opened:
        picture = np.asarray(opened.convert("RGBA"))
    across = (view.xy[:, 0] * (raster.width - 1)).round().astype(int)
    down = ((1 - view.xy[:, 1]) * (raster.height - 1)).round().astype(int)
    colours = [tuple(picture[row, column, :3].tolist()) for row, column in zip(down, across, strict=True)]
    assert colours[:3] == list(CLUSTERS[:3])
    assert len(set(colours[3])) > 1
    assert max(colours[3]) - min(colours[3]) < 25  # grey
    assert picture[raster.height // 2, raster.width // 2, 3] == 0


@given(st.permutations(range(6)), st.integers(0, 100))
def test_a_clustering_that_only_renames_clusters_keeps_their_colours(names: list[int], seed: int) -> None:
    best = np.random.default_rng(seed).permutation(np.arange(60) % 6).astype(np.int32)
    colours = spread(np.random.default_rng(seed).random((6, 2)), np.bincount(best))
    assert len(set(colours.tolist())) == 6
    renamed = np.array(names, np.int32)[best]
    followed = follow(renamed, best, colours, 6)
    assert np.array_equal(followed[renamed], colours[best])


def test_clusters_beyond_the_palette_share_colours_only_when_far_apart() -> None:
    centres = np.column_stack((np.arange(20.0), np.zeros(20)))
    colours = spread(centres, np.full(20, 5))
    assert all(colours[place] != colours[place + 1] for place in range(19))


def test_discs_of_the_graph_do_not_touch_and_selected_ones_are_ringed(folder: Path) -> None:
    run = read_run(folder)
    drawn = graph.draw(run, project(run.points), 1120, 520)
    discs = [shape for shape in drawn.shapes if isinstance(shape, Disc) and shape.title]
    assert len(discs) == len(run.vertices)
    for place, one in enumerate(discs):
        for other in discs[:place]:
            assert math.hypot(one.x - other.x, one.y - other.y) > one.radius + other.radius
    ringed = [disc for disc in discs if disc.fill != "surface"]
    assert len(ringed) == sum(vertex.selected for vertex in run.vertices) == 4


def test_a_graph_that_is_too_large_to_read_is_cut_and_says_so(folder: Path, tmp_path: Path) -> None:
    def grow(problem: Any) -> None:
        problem["clusters"] += [
            {**problem["clusters"][5], "variable": f"more:{number}", "weight": 1e6} for number in range(400)
        ]

    edit(folder / "problem.json", grow)
    words = "".join(Page(report(folder, tmp_path / "out")).words)
    assert f"the selected and the heaviest, {graph.MOST} in all, are drawn" in words
    run = read_run(folder)
    assert {index for index, vertex in enumerate(run.vertices) if vertex.selected} <= set(graph.shown(run))


@given(finite, finite, st.integers(2, 8))
def test_ticks_lie_in_their_range_in_even_steps(one: float, other: float, about: int) -> None:
    low, high = sorted((one, other))
    values = [value for value, _ in axis.ticks(low, high, about)]
    slack = 1e-9 * max(abs(low), abs(high))
    assert all(low - slack <= value <= high + slack for value in values)
    assert len(values) <= about + 2
    assert values == sorted(values)


@given(st.integers(1, 5000), st.integers(2, 30))
def test_labels_along_an_axis_are_never_too_many(count: int, most: int) -> None:
    assert len(range(0, count, axis.every(count, most))) <= most
