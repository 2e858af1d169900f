"""The JSON Schema (draft 2020-12) of a device file, made of what the kinds say of their options.

`python -m qonduit.devices.schema` prints the schema of every installed kind; that of Qonduit's own kinds is published
beside this module as `device-file.schema.json`. The reference pages are made of it too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qonduit.devices.options import Option
from qonduit.devices.registry import kinds
from qonduit.devices.settings import LONGEST_WAIT_S, MOST_SHOTS
from qonduit.errors import DeviceError

PUBLISHED = Path(__file__).with_name("device-file.schema.json")
ADDRESS = r"^[Hh][Tt][Tt][Pp][Ss]?://([^\s/?#:@\[\]\\]+|\[[0-9A-Fa-f:.]+\])(:[0-9]*)?([/?#]\S*)?$"
KEYS: dict[str, dict[str, Any]] = {
    "url": {
        "type": ["string", "null"],
        "pattern": ADDRESS,
        "description": "Where the device is, for kinds that are reached over a network.",
    },
    "shots": {
        "type": ["integer", "null"],
        "minimum": 1,
        "maximum": MOST_SHOTS,
        "description": "Samples to take when `--shots` is not given.",
    },
    "wait_s": {
        "type": ["number", "null"],
        "minimum": 0,
        "maximum": LONGEST_WAIT_S,
        "description": "Seconds to wait for a job before it is cancelled; without it there is no limit.",
    },
    "token_file": {
        "type": ["string", "null"],
        "minLength": 1,
        "description": "Path of a file with a secret, relative to the device file; never the secret itself.",
    },
}


def installed(distribution: str | None = None) -> dict[str, type[Any]]:
    """The classes of all kinds, or of those that one distribution brings."""
    found = {}
    for kind, entry in kinds().items():
        if distribution is None or (entry.dist is not None and entry.dist.name == distribution):
            try:
                found[kind] = entry.load()
            except ImportError as error:
                raise DeviceError(f"the device kind '{kind}' cannot be loaded ({error}); install it again") from None
    return found


def device_file_schema(classes: Mapping[str, type[Any]]) -> dict[str, Any]:
    """The schema for these kinds, each with its own options."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Qonduit device file",
        "description": "Which device a quantum step uses and how; QONDUIT_DEVICE names the file.",
        "type": "object",
        "required": ["kind"],
        "additionalProperties": False,
        "properties": {
            "kind": {"enum": list(classes), "description": "The kind of device."},
            **KEYS,
            "options": {"type": ["object", "null"], "description": "The kind's own options."},
        },
        "allOf": [_of_kind(kind, made) for kind, made in classes.items()],
    }


def _of_kind(kind: str, made: type[Any]) -> dict[str, Any]:
    """What holds for one kind. What its class lists as `required` has to be there, and not null."""
    required = getattr(made, "required", ())
    keys = [key for key in required if key in KEYS]
    options = {
        "properties": {name: _of_option(option) for name, option in made.known_options.items()},
        "additionalProperties": False,
    }
    if needed := [name for name in required if name not in KEYS]:
        keys.append("options")
        options |= {"type": "object", "required": needed}
    present = {key: {"type": "string"} for key in keys if key != "options"}
    return {
        "if": {"properties": {"kind": {"const": kind}}},
        "then": {"required": keys, "properties": {**present, "options": options}},
    }


def _of_option(option: Option) -> dict[str, Any]:
    # Without a default the device chooses, which a schema can only say by saying nothing.
    default = {} if option.default is None else {"default": option.default}
    return {**option.schema(), **default, "description": option.about}


def to_json(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(to_json(device_file_schema(installed())), end="")
