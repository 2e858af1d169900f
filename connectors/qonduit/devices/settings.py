"""Which device a step shall use: the small JSON file, or the kind's name, in the variable QONDUIT_DEVICE.

The file holds `kind` and may hold `url`, `shots`, `wait_s`, `options` (the kind's own) and `token_file`, the path of
a secret and never the secret. Without the variable a step uses the local annealer.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from qonduit.devices.options import Number, Options
from qonduit.errors import AccessError, DataError, UsageError

VARIABLE = "QONDUIT_DEVICE"
MOST_SHOTS = 1_000_000
LONGEST_WAIT_S = 1e8
KEYS = ("kind", "url", "shots", "wait_s", "token_file", "options")


@dataclass(frozen=True)
class Settings:
    """A validated device file; `source` is what an error message names."""

    kind: str
    shots: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    token_file: Path | None = None
    source: str = VARIABLE
    url: str | None = None
    wait_s: float | None = None

    def checked(self, known: Options) -> dict[str, Any]:
        """The kind's options with their defaults; an unknown or unfit one is refused."""
        for name, value in self.options.items():
            if name not in known:
                choice = f"it knows {', '.join(known)}" if known else "it has none"
                raise DataError(f"{self.source}: the device kind '{self.kind}' has no option '{name}'; {choice}")
            if not known[name].accepts(value):
                raise DataError(f"{self.source}: the option '{name}' must be {known[name]}")
        return {name: self.options.get(name, option.default) for name, option in known.items()}

    def identity(self, known: Options) -> str:
        """What makes two devices the same one for the ledger: where it is and how it is used, not how long to wait."""
        used = {name: value for name, value in self.checked(known).items() if not known[name].waiting}
        return json.dumps([self.kind, self.url, dict(sorted(used.items()))])

    def secret(self) -> str:
        """The token, read where it is needed and kept nowhere else; a file that others can read is refused."""
        if self.token_file is None:
            raise DataError(f"{self.source}: the device kind '{self.kind}' needs a 'token_file'; add its path")
        try:
            mode = self.token_file.stat().st_mode
            text = self.token_file.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise AccessError(f"the token file {self.token_file} cannot be read ({error}); check its path") from None
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise AccessError(f"others can read the token file {self.token_file}; run chmod 600 on it")
        if not text:
            raise AccessError(f"the token file {self.token_file} is empty; put the vendor's token into it")
        return text


def settings_from_environment() -> Settings:
    """What QONDUIT_DEVICE says: a kind's name, or a path, which has a dot or a slash in it."""
    return settings_named(os.environ.get(VARIABLE, ""))


def settings_named(value: str) -> Settings:
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
    unknown = sorted(set(content) - set(KEYS))
    if unknown:
        raise DataError(f"{path}: there is no key '{unknown[0]}' in a device file; use {', '.join(KEYS)}")
    return _checked(path, content)


def _checked(path: Path, content: Mapping[str, Any]) -> Settings:
    kind, options, url, token_file = (content.get(key) for key in ("kind", "options", "url", "token_file"))
    numbers = {"shots": Number(None, 1, MOST_SHOTS, whole=True), "wait_s": Number(None, 0, LONGEST_WAIT_S)}
    if not isinstance(kind, str) or not kind:
        raise DataError(f"{path}: 'kind' must name a kind of device, such as \"annealer\"")
    for key, number in numbers.items():
        if content.get(key) is not None and not number.accepts(content[key]):
            raise DataError(f"{path}: '{key}' must be {number}")
    if not isinstance(options, dict | None):
        raise DataError(f"{path}: 'options' must be an object")
    if url is not None and not _is_address(url):
        raise DataError(f"{path}: 'url' must be an address that begins with https:// or http://, without a user")
    if token_file is not None and not _is_file(path.parent, token_file):
        raise DataError(f"{path}: 'token_file' must be the path of a file that exists")
    return Settings(
        kind,
        content.get("shots"),
        options or {},
        None if token_file is None else path.parent / str(token_file),
        str(path),
        url if url is None else url.rstrip("/"),
        content.get("wait_s"),
    )


def _is_file(folder: Path, name: object) -> bool:
    try:
        return isinstance(name, str) and (folder / name).is_file()
    except (OSError, ValueError):
        return False


def _is_address(url: object) -> bool:
    try:
        if not isinstance(url, str):
            return False
        parts = urlsplit(url)
        # A name before the host could come with a password, which has no place in this file.
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
    except ValueError:
        return False
