"""The secret that an emulated device makes for itself: a file that only its owner can read."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


class Token:
    """A token that is kept over restarts and can be renewed in place."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.value = path.read_text(encoding="utf-8").strip() if path.is_file() else ""
        if not self.value:
            self.renew()

    def renew(self) -> None:
        self.value = secrets.token_hex(24)
        fresh = self.path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(self.value + "\n")
        fresh.replace(self.path)
