"""Reading, making and refusing points."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from qonduit.errors import DataError, UsageError
from qonduit_steps.blobs import blobs
from qonduit_steps.points import read_points


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, arguments)), capture_output=True, text=True, timeout=120)


def test_the_default_blobs_are_the_papers_points() -> None:
    expected, _ = make_blobs(80_000, centers=8, n_features=2, random_state=0x1337, center_box=(-20, 20))
    assert np.array_equal(blobs(80_000, 8, 2, 1.0, 20.0, 0x1337), expected)


def test_blobs_equal_scikit_learns_for_sizes_that_do_not_divide() -> None:
    expected, _ = make_blobs(101, centers=7, n_features=5, random_state=3, center_box=(-1, 1), cluster_std=0.3)
    assert np.array_equal(blobs(101, 7, 5, 0.3, 1.0, 3), expected)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("1,2\n3,4\n5,7\n", None),
        ("x,y\n1,2\n3,4\n5,7\n", None),
        ("name,x,y\na,1,2\nb,3,4\nc,5,7\n", ["x", "y"]),
        ("name,x,y\na,1,2\nb,3,4\nc,5,7\n", ["2", "3"]),
        ("1;2\n3;4\n\n5;7", None),
        ("1 2\n3   4\n5 7\n", None),
        ("1\t2\n3\t4\n5\t7\n", None),
        ("\ufeffx,y\r\n1,2\r\n3,4\r\n5,7\r\n", None),
        ('"x","y"\n"1","2"\n"3","4"\n5,7\n', None),
        ("y,x\n2,1\n4,3\n7,5\n", ["x", "y"]),
    ],
)
def test_csv_is_read_with_and_without_header_and_by_columns(
    text: str, columns: list[str] | None, tmp_path: Path
) -> None:
    file = tmp_path / "points.csv"
    file.write_text(text, encoding="utf-8")
    assert read_points(file, columns=columns).tolist() == [[1, 2], [3, 4], [5, 7]]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("x,y\n", "header line but no points"),
        ("1,2\n", "holds 1 point;"),
        ("1,2\n3,4,5\n", "line 2 has 3 columns instead of 2"),
        ("1,2\n\n3\n", "line 3 has 1 columns instead of 2"),
        ("1,2\n3,four\n", "line 2: 'four' is not a number"),
        ("x,y\n1,2\n3,\n", "line 3: '' is not a number"),
        ("1,2\nnan,4\n", "nan in column 1 of point 2"),
        ("1,2\n3,inf\n", "inf in column 2 of point 2"),
        ("1,2\n1,2\n1,2\n", "all 3 points"),
        ("1,2\n1e200,2\n", "rescale"),
    ],
)
def test_bad_csv_is_refused_by_a_sentence_that_names_the_line(text: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "points.csv"
    file.write_text(text)
    with pytest.raises(DataError) as error:
        read_points(file)
    assert sentence in str(error.value)
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [b"\x93NUMPY", b"", b"not numpy", b"\x93NUMPY\x01\x00v\x00{'descr'"])
def test_broken_npy_is_refused(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "points.npy"
    file.write_bytes(content)
    with pytest.raises(DataError):
        read_points(file)


def test_npy_of_text_objects_or_cubes_is_refused(tmp_path: Path) -> None:
    for array in (np.array(["a", "b"]), np.zeros((2, 2, 2)), np.array([[1 + 1j], [2]]), np.empty((0, 2))):
        np.save(tmp_path / "points.npy", array)
        with pytest.raises(DataError):
            read_points(tmp_path / "points.npy")


def test_binary_rubbish_is_refused(tmp_path: Path) -> None:
    (tmp_path / "points.csv").write_bytes(bytes(range(128, 256)))
    with pytest.raises(DataError, match="is not text"):
        read_points(tmp_path / "points.csv")


def test_an_unknown_column_is_named_with_those_that_there_are(tmp_path: Path) -> None:
    (tmp_path / "points.csv").write_text("x,y\n1,2\n3,4\n")
    with pytest.raises(UsageError, match="no column 'z'; it has x, y"):
        read_points(tmp_path / "points.csv", columns=["z"])


def test_the_command_converts_and_makes_points(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y,z\n1,2,3\n3,4,5\n")
    done = run(
        "qonduit-points", "csv", tmp_path / "a.csv", "--columns", "z", "x", "--out", tmp_path / "p.npy", "--json"
    )
    assert done.returncode == 0
    assert json.loads(done.stdout) == {"points": 2, "dimensions": 2}
    assert np.load(tmp_path / "p.npy").tolist() == [[3, 1], [5, 3]]
    assert (
        run("qonduit-points", "npy", tmp_path / "p.npy", "--columns", "1", "--out", tmp_path / "q.npy").returncode == 0
    )
    assert np.load(tmp_path / "q.npy").tolist() == [[3], [5]]
    blobs = run("qonduit-points", "blobs", "--points", 50, "--dimensions", 4, "--out", tmp_path / "b.npy")
    assert (blobs.returncode, np.load(tmp_path / "b.npy").shape) == (0, (50, 4))


def test_a_folder_that_is_not_there_is_refused_before_any_work_and_nothing_is_left(tmp_path: Path) -> None:
    done = run("qonduit-points", "blobs", "--out", tmp_path / "no" / "points.npy")
    assert done.returncode == 2
    assert done.stderr == f"qonduit-points: --out: there is no folder {tmp_path / 'no'}; make it first\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere; a full device below serves instead")
def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    done = run("qonduit-points", "blobs", "--out", tmp_path / "points.npy")
    assert done.returncode == 2
    assert "cannot be written" in done.stderr


def test_a_device_that_is_full_leaves_one_sentence(tmp_path: Path) -> None:
    limited = f"ulimit -f 8; exec qonduit-points blobs --out {tmp_path}/points.npy"
    done = run("bash", "-c", limited)
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
