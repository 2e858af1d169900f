"""The documentation as a reader uses it: its commands run, print what it says, its links lead somewhere.

Each page's `console` and `bash` blocks run in order in a fresh folder with the workflows in it. Lines without a prompt
are what a command prints; they are compared, seconds apart.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from qonduit.devices.schema import installed
from qonduit.devices.settings import KEYS

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
LINK = re.compile(r"\]\(([^)\s]+)\)")
SECONDS = re.compile(r"\d+\.\d+ s\b")


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


def same_but_for_seconds(line: str) -> str:
    return " ".join(SECONDS.sub("… s", line).split())


@pytest.mark.parametrize("page", [page for page in PAGES if run_here(page)], ids=name)
def test_every_command_of_a_page_works_and_prints_what_the_page_says(page: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "workflows", tmp_path / "workflows")
    shutil.copy(ROOT / "streamflow.yml", tmp_path)
    for folder in ("home", "temporary"):
        (tmp_path / folder).mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("QONDUIT_")} | {
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path / "temporary"),
        "COLUMNS": "100",
    }
    steps = run_here(page)
    script = "\n".join(f"echo '@@ {number}'\n{step.text}" for number, step in enumerate(steps))
    done = subprocess.run(
        ["bash", "-eu", "-c", script],
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
        printed = [same_but_for_seconds(line) for line in output.splitlines()]
        said = [same_but_for_seconds(line) for line in step.prints]
        assert [line for line in said if line not in printed] == [], f"{step.text}\n{output[-3000:]}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_within_the_repository_leads_to_a_file(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    targets = [link.partition("#")[0] for link in LINK.findall(text) if "://" not in link]
    assert [target for target in targets if target and not (page.parent / target).exists()] == []


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
    assert "generated:" not in page


def test_the_reference_has_every_key_of_a_device_file_and_every_option_of_every_kind(site: Path) -> None:
    page = (site / "reference" / "devices" / "index.html").read_text(encoding="utf-8")
    kinds = installed("qonduit")
    expected = [*KEYS, *kinds, *(name for made in kinds.values() for name in made.known_options)]
    assert [one for one in expected if f"<code>{one}</code>" not in page] == []
    assert "generated:" not in page


def test_a_page_of_the_site_fetches_nothing_from_the_network(site: Path) -> None:
    fetching = re.compile(r"""<(?:script|img|iframe|link)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//[^>]*>""")
    found = {page.name: fetching.findall(page.read_text(encoding="utf-8")) for page in site.rglob("*.html")}
    assert found
    assert {page: tags for page, tags in found.items() if tags} == {}


def test_pictures_stay_small() -> None:
    assert [picture.name for picture in (ROOT / "docs" / "images").iterdir() if picture.stat().st_size > 300_000] == []
