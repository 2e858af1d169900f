"""The documentation as a reader uses it: its commands run, print what it says, its links lead somewhere.

Each page's `console` and `bash` blocks run in order in a fresh folder with the workflows and the page's own files in
it. Lines without a prompt are what a command prints; they are compared, times and chances apart.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import jsonschema
import pytest
import yaml

from qonduit.devices.schema import device_file_schema, installed
from qonduit.devices.settings import KEYS
from qonduit.emulators.faults import NAMES
from qonduit.emulators.latency import PRESETS

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
BIN = Path(sys.executable).parent
# Not run here: they clone, install or build a whole environment. `make run` and the clone are tested in tests/run, the
# other targets are what runs these tests.
ELSEWHERE = re.compile(
    r"git clone REPOSITORY qonduit|cd qonduit|\. \.venv/bin/activate"
    r"|make (run( POINTS=my\.csv)?|test|lint|unit|docs|lock)"
)
# Its commands need a package that is installed: tests/docs/test_add_a_device.py runs them.
ADD_A_DEVICE = ROOT / "docs" / "devices" / "add-a-device.md"
BLOCK = re.compile(r"^```(console|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
# A page's own files: written before its commands run.
FILE = re.compile(r'^```\w+ title="([\w.-]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
# What another run, clock or port changes; with the port the ledger's key changes, and with that an emulator's samples.
CHANGING = (
    (re.compile(r"\d+\.\d+ s\b"), "… s"),
    (re.compile(r"\b(\d+ passed)\b.*"), r"\1"),
    (re.compile(r"http://127\.0\.0\.1:\d+"), "http://127.0.0.1:…"),
    (re.compile(r"^(job|P\(optimum\) raw|after repair|feasible|seconds) .*"), r"\1 …"),
    (re.compile(r"^(energy .*) \(from the \w+\)"), r"\1"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "KEY"),
    (re.compile(r"\b[0-9a-f]{12} "), "KEY "),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "DATE"),
    (re.compile(r" \d+ ms\b"), " … ms"),
)
# A reader gives an emulated device a terminal of its own. Here it runs beside the page's other commands, on a free
# port, and the page goes on when the device has said where it listens.
EMULATE = re.compile(r"qonduit emulate .*")
SAID_LINES = 4
LEDGER = ("list", "show", "resolve", "export")


@dataclass
class Command:
    text: str
    prints: list[str] = field(default_factory=list)


def commands(page: Path) -> list[Command]:
    """A prompt begins a command; a here-document belongs to the command that opens it; what follows is its output."""
    found: list[Command] = []
    for kind, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        ending = None
        for line in block.splitlines():
            if ending is not None:
                found[-1].text += "\n" + line
                ending = None if line == ending else ending
            elif kind == "bash" or line.startswith("$ "):
                found.append(Command(line.removeprefix("$ ")))
                here = re.search(r"<<'(\w+)'$", line)
                ending = here[1] if here else None
            else:
                found[-1].prints.append(line)
    return found


def run_here(page: Path) -> list[Command]:
    if page == ADD_A_DEVICE:
        return []
    return [command for command in commands(page) if not ELSEWHERE.fullmatch(command.text)]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def files(page: Path) -> dict[str, str]:
    return dict(FILE.findall(page.read_text(encoding="utf-8")))


def lasting(line: str) -> str:
    for pattern, shown in CHANGING:
        line = pattern.sub(shown, line)
    return " ".join(line.split())


def as_script(steps: list[Command]) -> str:
    lines = ["started=()", "trap 'kill ${started[@]} 2>/dev/null || true' EXIT"]
    for number, step in enumerate(steps):
        lines.append(f"echo '@@ {number}'")
        if EMULATE.fullmatch(step.text):
            log = f"2>> temporary/emulator-{number}.log"
            lines.append(f"exec {{said}}< <(exec {step.text} --port 0 {log}); started+=($!)")
            lines.append(f"head -n {SAID_LINES} <&$said")
        else:
            lines.append(step.text)
    return "\n".join(lines)


@pytest.mark.parametrize("page", [page for page in PAGES if run_here(page)], ids=name)
def test_every_command_of_a_page_works_and_prints_what_the_page_says(page: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "workflows", tmp_path / "workflows")
    shutil.copy(ROOT / "streamflow.yml", tmp_path)
    for folder in ("home", "temporary"):
        (tmp_path / folder).mkdir()
    for file, content in files(page).items():
        (tmp_path / file).write_text(content, encoding="utf-8")
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("QONDUIT_", "PYTEST_"))}
    environment = outside | {
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path / "temporary"),
        "COLUMNS": "100",
        "QONDUIT_LEDGER": str(tmp_path / "temporary" / "ledger.db"),
    }
    steps = run_here(page)
    done = subprocess.run(
        ["bash", "-eu", "-c", as_script(steps)],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    parts = re.split(r"^@@ \d+\n", done.stdout, flags=re.MULTILINE)[1:]
    for step, output in zip(steps, parts, strict=True):
        printed = [lasting(line) for line in output.replace(f"{tmp_path}/", "/home/me/").splitlines()]
        said = [lasting(line) for line in step.prints]
        assert [line for line in said if line not in printed] == [], f"{step.text}\n{output[-3000:]}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_within_the_repository_leads_to_a_file(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    targets = [link.partition("#")[0] for link in LINK.findall(text) if "://" not in link]
    assert [target for target in targets if target and not (page.parent / target).exists()] == []


def test_every_device_file_in_the_documentation_fits_the_schema() -> None:
    shown = {
        (name(page), file): json.loads(content)
        for page in PAGES
        for file, content in files(page).items()
        if file.endswith(".json") and '"kind"' in content
    }
    assert len(shown) >= 3
    validator = jsonschema.Draft202012Validator(device_file_schema(installed("qonduit")))
    assert {where: [fault.message for fault in validator.iter_errors(content)] for where, content in shown.items()} == {
        where: [] for where in shown
    }


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    # Not --quiet: it hides warnings from --strict, which then counts none.
    done = subprocess.run(
        [BIN / "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_the_reference_names_every_input_output_and_tool_of_the_workflow(site: Path) -> None:
    page = (site / "reference" / "workflow" / "index.html").read_text(encoding="utf-8")
    workflow = yaml.safe_load((ROOT / "workflows" / "clustering-aggregation.cwl").read_text())
    expected = [*workflow["inputs"], *workflow["outputs"]]
    expected += [f"tools/{tool.name}" for tool in (ROOT / "workflows" / "tools").glob("*.cwl")]
    assert [one for one in expected if f"<code>{one}</code>" not in page] == []


def test_the_reference_has_the_help_of_every_installed_command(site: Path) -> None:
    page = (site / "reference" / "commands" / "index.html").read_text(encoding="utf-8")
    tables = (ROOT / "pyproject.toml").read_text().partition("[project.scripts]")[2].partition("\n[")[0]
    scripts = re.findall(r"^([\w-]+) = ", tables, re.MULTILINE)
    assert scripts
    assert [script for script in scripts if f"{script} --help" not in page] == []
    asked = ("run", "devices", "solve", "emulate", "ledger", *(f"ledger {name}" for name in LEDGER))
    assert [command for command in asked if f"qonduit {command} --help" not in page] == []
    assert "generated:" not in page


def test_the_page_on_emulators_has_every_fault_and_every_latency(site: Path) -> None:
    page = (site / "emulators" / "index.html").read_text(encoding="utf-8")
    assert [one for one in (*NAMES, *PRESETS) if f"<code>{one}</code>" not in page] == []
    assert "generated:" not in page


def test_the_reference_has_every_key_of_a_device_file_and_every_option_of_every_kind(site: Path) -> None:
    page = (site / "reference" / "devices" / "index.html").read_text(encoding="utf-8")
    kinds = installed("qonduit")
    expected = [*KEYS, *kinds, *(name for made in kinds.values() for name in made.known_options)]
    assert [one for one in expected if f"<code>{one}</code>" not in page] == []
    assert [code for code in (2, 65, 69, 70, 74, 75, 77) if f"<td>{code}</td>" not in page] == []
    assert "generated:" not in page


def test_a_page_of_the_site_fetches_nothing_from_the_network(site: Path) -> None:
    fetching = re.compile(r"""<(?:script|img|iframe|link)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//[^>]*>""")
    found = {page.name: fetching.findall(page.read_text(encoding="utf-8")) for page in site.rglob("*.html")}
    assert found
    assert {page: tags for page, tags in found.items() if tags} == {}


def test_pictures_stay_small() -> None:
    assert [picture.name for picture in (ROOT / "docs" / "images").iterdir() if picture.stat().st_size > 300_000] == []
