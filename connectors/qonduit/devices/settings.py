"""Which device a step shall use: the small JSON file, or the kind's name, in the variable QONDUIT_DEVICE.

The file holds `kind` and may hold `shots`, `options` (the kind's own) and `token_file`, the path of a secret and
never the secret. Without the variable a step uses the local annealer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qonduit.errors import DataError, UsageError

VARIABLE = "QONDUIT_DEVICE"
MOST_SHOTS = 1_000_000


@dataclass(frozen=True)
class Number:
    """An option that is a number in [low, high]; a default of None leaves the choice to the device."""

    default: float | None
    low: float
    high: float
    whole: bool = False

    def accepts(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int if self.whole else int | float):
            return False
        return self.low <= value <= self.high

    def __str__(self) -> str:
        return f"{'a whole number' if self.whole else 'a number'} from {self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class Settings:
    """A validated device file; `source` is what an error message names."""

    kind: str
    shots: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    token_file: Path | None = None
    source: str = VARIABLE

    def numbers(self, known: Mapping[str, Number]) -> dict[str, Any]:
        """The kind's options with their defaults; an unknown or unfit one is refused."""
        for name, value in self.options.items():
            if name not in known:
                choice = f"it knows {', '.join(known)}" if known else "it has none"
                raise DataError(f"{self.source}: the device kind '{self.kind}' has no option '{name}'; {choice}")
            if not known[name].accepts(value):
                raise DataError(f"{self.source}: the option '{name}' must be {known[name]}")
        return {name: self.options.get(name, number.default) for name, number in known.items()}


def settings_from_environment() -> Settings:
    """What QONDUIT_DEVICE says: a kind's name, or a path, which has a dot or a slash in it."""
    value = os.environ.get(VARIABLE, "")
    if not value:
        return Settings(kind="annealer")
    if "/" in value or "." in value:
        return read_settings(Path(value))
    return Settings(kind=value)


def read_settings(path: Path) -> Settings:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{VARIABLE}: {path} cannot be read ({error.strerror}); check the path") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: this is not JSON ({error}); write a device file") from None
    if not isinstance(content, dict):
        raise DataError(f"{path}: a device file is one JSON object with a 'kind'")
    unknown = sorted(set(content) - {"kind", "shots", "options", "token_file"})
    if unknown:
        raise DataError(
            f"{path}: there is no key '{unknown[0]}' in a device file; use kind, shots, options, token_file"
        )
    return _checked(path, content)


def _checked(path: Path, content: Mapping[str, Any]) -> Settings:
    kind, shots, options = content.get("kind"), content.get("shots"), content.get("options", {})
    if not isinstance(kind, str) or not kind:
        raise DataError(f"{path}: 'kind' must name a kind of device, such as \"annealer\"")
    if shots is not None and not (allowed := Number(None, 1, MOST_SHOTS, whole=True)).accepts(shots):
        raise DataError(f"{path}: 'shots' must be {allowed}")
    if not isinstance(options, dict):
        raise DataError(f"{path}: 'options' must be an object")
    token_file = content.get("token_file")
    if token_file is None:
        return Settings(kind, shots, options, None, str(path))
    if not isinstance(token_file, str) or not (path.parent / token_file).is_file():
        raise DataError(f"{path}: 'token_file' must be the path of a file that exists")
    return Settings(kind, shots, options, path.parent / token_file, str(path))
