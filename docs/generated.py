"""The reference pages that cannot go stale: MkDocs calls this hook, which fills their markers when a page is built.

Inputs and outputs come from the workflow's CWL, options from the commands' own `--help`, keys and options of a device
file from its schema and the kinds themselves, errors and faults from the modules that define them.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from qonduit import errors
from qonduit.devices.schema import device_file_schema, installed
from qonduit.devices.settings import KEYS
from qonduit.devices.spool import WaitingError
from qonduit.emulators import faults
from qonduit.emulators.latency import PRESETS

ROOT = Path(__file__).parents[1]
WORKFLOWS = ROOT / "workflows"
COMMANDS = {
    "qonduit": [
        "run",
        "solve",
        "devices",
        "emulate",
        "ledger",
        "ledger list",
        "ledger show",
        "ledger resolve",
        "ledger export",
    ],
    "qonduit-points": ["blobs", "csv", "npy", "convert"],
    "qonduit-tree": [],
    "qonduit-cluster": [],
    "qonduit-aggregate": [],
    "qonduit-solve": [],
    "qonduit-score": [],
    "qonduit-loop": ["start", "gate", "select"],
    "qonduit-report": [],
}


def on_page_markdown(markdown: str, **_: Any) -> str:
    for name, make in MAKERS.items():
        marker = f"<!-- generated: {name} -->"
        if marker in markdown:
            markdown = markdown.replace(marker, make())
    return markdown


def workflow() -> str:
    """Inputs and outputs of the main workflow as tables."""
    content = yaml.safe_load((WORKFLOWS / "clustering-aggregation.cwl").read_text(encoding="utf-8"))
    inputs = [
        [f"`{name}`", _type(item), _default(item), _cell(item["doc"])] for name, item in content["inputs"].items()
    ]
    outputs = [[f"`{name}`", _type(item), _cell(item["doc"])] for name, item in content["outputs"].items()]
    return "\n\n".join(
        (
            content["doc"].strip(),
            "## Inputs\n\n" + _table(["Input", "Type", "Default", "Meaning"], inputs),
            "## Outputs\n\n" + _table(["Output", "Type", "Meaning"], outputs),
        )
    )


def tools() -> str:
    """One row for each tool: its file, its command and its doc."""
    rows = []
    for path in sorted((WORKFLOWS / "tools").glob("*.cwl")):
        tool = yaml.safe_load(path.read_text(encoding="utf-8"))
        rows.append([f"`tools/{path.name}`", f"`{' '.join(tool['baseCommand'])}`", _cell(tool["doc"])])
    return _table(["File", "Command", "What it does"], rows)


def commands() -> str:
    """The `--help` of every command and subcommand."""
    return "\n\n".join(
        f"## {command}\n\n" + "\n\n".join(_help(command, *name.split()) for name in ("", *subcommands))
        for command, subcommands in COMMANDS.items()
    )


def device_file() -> str:
    """One row for each key of a device file."""
    schema = device_file_schema(installed("qonduit"))
    return _table(
        ["Key", "Meaning"], [[f"`{key}`", _cell(item["description"])] for key, item in schema["properties"].items()]
    )


def kinds() -> str:
    """Every kind with a table of its options."""
    parts = []
    for kind, made in installed("qonduit").items():
        rows = [
            [f"`{name}`", _fallback(option.default), _cell(str(option)), _cell(option.about)]
            for name, option in made.known_options.items()
        ]
        about = inspect.getdoc(inspect.getmodule(made)) or ""
        required = [f"`{key}`" if key in KEYS else f"the option `{key}`" for key in getattr(made, "required", ())]
        needs = f"Its device file must have {' and '.join(required)}.\n\n" if required else ""
        parts.append(
            f"### {kind}\n\n`{kind}`. {about}\n\n{needs}{_table(['Option', 'Default', 'Accepts', 'Meaning'], rows)}"
        )
    return "\n\n".join(parts)


def error_family() -> str:
    """One row for each error that a user may meet, by exit code."""
    family: list[type[errors.QonduitError]] = [
        WaitingError,
        *(one for one in vars(errors).values() if inspect.isclass(one) and issubclass(one, errors.QonduitError)),
    ]
    family.sort(key=lambda one: (one.exit_code, len(one.__mro__), one.__name__))
    rows = [[str(one.exit_code), f"`{one.__name__}`", _cell(_first_paragraph(one))] for one in family]
    return _table(["Exit code", "Error", "Meaning"], rows)


def fault_table() -> str:
    """One row for each fault that can be scripted, in three groups."""
    groups = {"the call": faults.CONNECTION, "the service": faults.SERVICE, "the job": faults.JOB}
    rows = [
        [f"`{name}`", strikes, _cell(meaning)] for strikes, group in groups.items() for name, meaning in group.items()
    ]
    return _table(["Fault", "Strikes", "What happens"], rows)


def latencies() -> str:
    """One row for each preset."""
    rows = [[f"`{name}`", *(f"{value:g}" for value in vars(one).values())] for name, one in PRESETS.items()]
    return _table(["Name", *(f"`{name}`" for name in vars(PRESETS["none"]))], rows)


MAKERS: Mapping[str, Callable[[], str]] = {
    "workflow": workflow,
    "tools": tools,
    "commands": commands,
    "device-file": device_file,
    "kinds": kinds,
    "errors": error_family,
    "faults": fault_table,
    "latencies": latencies,
}


def _help(*command: str) -> str:
    program = Path(sys.executable).with_name(command[0])
    environment = {**os.environ, "COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1", "PYTHONUTF8": "1"}
    done = subprocess.run(
        [program, *command[1:], "--help"], capture_output=True, encoding="utf-8", check=True, env=environment
    )
    text = "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines()).strip("\n")
    return f'```text title="{" ".join(command)} --help"\n{text}\n```'


def _first_paragraph(one: type) -> str:
    return (inspect.getdoc(one) or "").partition("\n\n")[0]


def _type(item: Mapping[str, Any]) -> str:
    return f"`{item['type']}`"


def _default(item: Mapping[str, Any]) -> str:
    if "default" in item:
        value = item["default"]
        return f"`{', '.join(value) if isinstance(value, list) else value}`"
    return "optional" if item["type"].endswith("?") else "required"


def _fallback(default: Any) -> str:
    return "none" if default is None else f"`{json.dumps(default)}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
