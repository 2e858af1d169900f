"""Outputs that appear whole or not at all.

Every step writes through an `Outputs`: files go to temporary names beside their targets and are renamed
together when the step has succeeded; after an error nothing is left.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from qonduit.errors import UsageError


class Outputs:
    def __init__(self) -> None:
        self._pending: list[tuple[Path, Path, str]] = []
        self._folders: list[tuple[Path, Path, str]] = []

    def __enter__(self) -> Outputs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            for temporary, target, option in self._pending + self._folders:
                try:
                    os.replace(temporary, target)
                except OSError as failure:
                    self._discard()
                    raise UsageError(f"{option}: {target} cannot be written ({failure.strerror})") from None
        self._discard()

    def check(self, target: Path, option: str) -> None:
        """Fails early, before any work, if `target` could not be written."""
        folder = target.parent
        if not folder.is_dir():
            raise UsageError(f"{option}: there is no folder {folder}; make it first")
        if target.is_dir():
            raise UsageError(f"{option}: {target} is a folder; name a file in it")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise UsageError(f"{option}: the folder {folder} cannot be written; choose another")

    def write(self, target: Path, option: str, fill: Callable[[IO[bytes]], object]) -> None:
        """Has `fill` write the file's content; it gets its name when the step has succeeded."""
        self.check(target, option)
        try:
            handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
            temporary = Path(name)
            self._pending.append((temporary, target, option))
            with os.fdopen(handle, "wb") as stream:
                fill(stream)
            temporary.chmod(0o666 & ~_umask())
        except OSError as failure:
            raise UsageError(f"{option}: {target} cannot be written ({failure.strerror})") from None

    def folder(self, target: Path, option: str) -> Path:
        """A folder to write into; it gets its name when the step has succeeded."""
        if not target.parent.is_dir() or not os.access(target.parent, os.W_OK | os.X_OK):
            raise UsageError(f"{option}: the folder {target.parent} is not there or cannot be written; choose another")
        if target.exists() and not (target.is_dir() and not any(target.iterdir())):
            raise UsageError(f"{option}: {target} is not an empty folder; name a new one")
        try:
            temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        except OSError as failure:
            raise UsageError(f"{option}: {target} cannot be made ({failure.strerror})") from None
        temporary.chmod(0o777 & ~_umask())
        self._folders.append((temporary, target, option))
        return temporary

    def copy(self, source: Path, target: Path, option: str) -> None:
        with source.open("rb") as content:
            self.write(target, option, lambda stream: shutil.copyfileobj(content, stream))

    def write_text(self, target: Path, text: str, option: str) -> None:
        self.write(target, option, lambda stream: stream.write(text.encode()))

    def write_json(self, target: Path, value: Any, option: str) -> None:
        self.write_text(target, json.dumps(value, indent=1, allow_nan=False) + "\n", option)

    def _discard(self) -> None:
        for temporary, _, _ in self._pending:
            temporary.unlink(missing_ok=True)
        for temporary, _, _ in self._folders:
            shutil.rmtree(temporary, ignore_errors=True)
        self._pending.clear()
        self._folders.clear()


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
