"""The published schema of a device file: up to date, true of the examples, and of one mind with the program."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qonduit.devices.options import Choice, Flag, Number, Option, Text
from qonduit.devices.registry import open_device
from qonduit.devices.schema import PUBLISHED, device_file_schema, installed, to_json
from qonduit.devices.settings import KEYS, read_settings
from qonduit.errors import DataError

ROOT = Path(__file__).parents[2]
CLASSES = installed("qonduit")
VALIDATOR = jsonschema.Draft202012Validator(device_file_schema(CLASSES))
JSON_IN_DOCS = re.compile(r"^\s*(?:\$ )?(?:echo ')?(\{\s*\"kind\".*?\})'?(?: >.*)?$", re.MULTILINE)

# JSON Schema counts 2.0 among the whole numbers and Python does not; neither NaN nor infinity is JSON.
fractions = st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not number.is_integer())
junk = st.one_of(st.none(), st.booleans(), st.integers(), fractions, st.text(max_size=5), st.just([]), st.just({}))
ADDRESSES = ("https://example.org", "http://127.0.0.1:8080/a/b", "HTTPS://[::1]:1", "http://localhost?x=1")
NO_ADDRESSES = ("", "localhost", "ftp://example.org", "http://", "https:///path", "http://:80", "//example.org")


def mostly(good: st.SearchStrategy[Any], bad: st.SearchStrategy[Any] = junk) -> st.SearchStrategy[Any]:
    """A file with one wrong thing in it tells more than one in which everything is wrong."""
    return st.integers(0, 9).flatmap(lambda number: bad if number == 9 else good)


def values(option: Option) -> st.SearchStrategy[Any]:
    """What an option takes, and what is just beyond it or not of its kind."""
    if isinstance(option, Number):
        low, high = math.ceil(option.low), math.floor(option.high)
        inside = st.integers(low, high) if option.whole else st.one_of(st.integers(low, high), fractions)
        return mostly(inside, st.one_of(st.sampled_from([low - 1, high + 1]), fractions, junk))
    if isinstance(option, Choice):
        return mostly(st.sampled_from(option.choices))
    assert isinstance(option, Text | Flag)
    return mostly(st.booleans() if isinstance(option, Flag) else st.text(min_size=1, max_size=9))


@st.composite
def device_files(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(mostly(st.sampled_from(sorted(CLASSES)), st.sampled_from(["", "abacus", None, 3])))
    known: Mapping[str, Option] = CLASSES[kind].known_options if kind in CLASSES else {}
    required = set(getattr(CLASSES.get(kind), "required", ()))
    some = draw(st.sets(st.sampled_from(sorted(known)), max_size=3)) | (required & set(known)) if known else set()
    options: dict[str, Any] = {name: draw(values(known[name])) for name in sorted(some)}
    content = {
        "url": draw(mostly(st.sampled_from(ADDRESSES), st.one_of(st.sampled_from(NO_ADDRESSES), junk))),
        "shots": draw(mostly(st.integers(1, 1_000_000), st.one_of(st.sampled_from([0, 1_000_001]), junk))),
        "wait_s": draw(mostly(st.integers(0, 100_000_000), st.one_of(st.sampled_from([-1, 100_000_001]), junk))),
        "token_file": draw(mostly(st.sampled_from(["token", None]), st.sampled_from(["", 1, True]))),
        "options": draw(mostly(st.just(options), st.one_of(st.just({**options, "no-such-option": 1}), junk))),
    }
    present = draw(st.sets(st.sampled_from(sorted(content)))) | draw(
        mostly(st.just(required | {"options"}), st.just(set()))
    )
    strange: dict[str, Any] = draw(mostly(st.just({}), st.just({"token": "x"})))
    return {"kind": kind} | {key: value for key, value in content.items() if key in present} | strange


def accepted(content: Mapping[str, Any], folder: Path) -> bool:
    (folder / "token").write_text("secret")
    path = folder / "device.json"
    path.write_text(json.dumps(content))
    try:
        open_device(read_settings(path))
    except DataError:
        return False
    return True


@settings(max_examples=600)
@given(device_files())
@example({"kind": "annealer", "shots": True})
@example({"kind": "annealer", "options": {"sweeps": 10**400}})
def test_the_schema_accepts_what_the_program_accepts(
    tmp_path_factory: pytest.TempPathFactory, content: dict[str, Any]
) -> None:
    assert VALIDATOR.is_valid(content) == accepted(content, tmp_path_factory.getbasetemp())


@pytest.mark.parametrize("kind", sorted(CLASSES))
def test_the_least_file_of_every_kind_is_accepted_by_both(kind: str, tmp_path: Path) -> None:
    given_for = {"url": "https://example.org", "token_file": "token"}
    required = getattr(CLASSES[kind], "required", ())
    content: dict[str, Any] = {"kind": kind, **{key: given_for[key] for key in required if key in given_for}}
    content |= {"options": {name: "x" for name in required if name not in given_for}}
    assert VALIDATOR.is_valid(content)
    assert accepted(content, tmp_path)
    for key in required:
        without = {name: value for name, value in content.items() if name not in (key, "options")}
        assert not VALIDATOR.is_valid(without)
        assert not accepted(without, tmp_path)


def test_the_published_file_is_what_the_kinds_say_now() -> None:
    again = "; write it anew: python -m qonduit.devices.schema > connectors/qonduit/devices/device-file.schema.json"
    assert PUBLISHED.read_text(encoding="utf-8") == to_json(device_file_schema(CLASSES)), again


def test_the_schema_is_a_schema_and_describes_every_key_and_option() -> None:
    schema = device_file_schema(CLASSES)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema["properties"]) == set(KEYS)
    described = list(schema["properties"].values())
    for block in schema["allOf"]:
        described += block["then"]["properties"]["options"]["properties"].values()
    assert [item for item in described if not item["description"].endswith(".")] == []


def test_every_device_file_in_the_documentation_fits_the_schema() -> None:
    found = []
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        found += [json.loads(text) for text in JSON_IN_DOCS.findall(page.read_text(encoding="utf-8"))]
    assert found
    assert {json.dumps(content): str(error) for content in found for error in VALIDATOR.iter_errors(content)} == {}


def test_a_kind_that_requires_a_key_and_an_option_says_so_in_the_schema() -> None:
    class Far:
        known_options: ClassVar[dict[str, Option]] = {"project": Text(None, about="Whose budget it is.")}
        required: ClassVar[tuple[str, ...]] = ("url", "project")

    validator = jsonschema.Draft202012Validator(device_file_schema({"far": Far}))
    whole = {"kind": "far", "url": "https://example.org", "options": {"project": "p"}}
    assert validator.is_valid(whole)
    wrong: list[dict[str, Any]] = [{"url": None}, {"options": {}}, {"options": None}, {"options": {"project": 1}}]
    for broken in wrong:
        assert not validator.is_valid({**whole, **broken})
    for key in ("url", "options"):
        assert not validator.is_valid({name: value for name, value in whole.items() if name != key})
