"""`qonduit devices`: what the device files of a folder describe, asked of the devices themselves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from qonduit.devices.registry import open_device
from qonduit.devices.settings import read_settings
from qonduit.errors import DeviceError, QonduitError, UsageError

ASKED_AT_ONCE = 4


def show(folder: Path, as_json: bool) -> int:
    """Prints the table, or JSON; the exit code is 0 only if every device is online."""
    rows = _rows(_device_files(folder))
    if not rows:
        raise UsageError(f"{folder} has no device file (JSON with a 'kind'); name another folder")
    if as_json:
        print(json.dumps(rows))
    else:
        console = Console()
        console.print(_table(rows))
        for row in rows:
            if row["error"]:
                console.print(f"{row['file']}: {row['error']}", style="red", highlight=False, markup=False)
    return 0 if all(row["online"] for row in rows) else DeviceError.exit_code


def _device_files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*.json")) if _has_kind(path)]


def _has_kind(path: Path) -> bool:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and "kind" in content


def _rows(paths: Sequence[Path]) -> list[dict[str, Any]]:
    with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
        return list(pool.map(_row, paths))


def _row(path: Path) -> dict[str, Any]:
    row: dict[str, Any] = {"file": str(path), "kind": None, "online": False, "error": None}
    try:
        settings = read_settings(path)
        row["kind"] = settings.kind
        device = open_device(settings)
        begun = perf_counter()
        can = device.capabilities()
        row |= asdict(can) | {"latency_s": round(perf_counter() - begun, 4)}
    except QonduitError as error:
        row["error"] = str(error).removeprefix(f"{path}: ")
    except Exception as error:  # a kind that somebody else wrote must not cost the others their rows
        row["error"] = f"the device kind failed: {type(error).__name__}: {error}"
    return row


def _table(rows: Sequence[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("file", "kind", "online", "qubits", "topology", "queue", "calibration", "latency"):
        table.add_column(name, overflow="fold")
    for row in rows:
        if row["error"]:
            table.add_row(escape(Path(row["file"]).name), escape(str(row["kind"] or "?")), "[red]no[/]")
            continue
        table.add_row(
            escape(Path(row["file"]).name),
            escape(row["kind"]),
            "[green]yes[/]" if row["online"] else "[red]no[/]",
            "any" if row["qubits"] is None else str(row["qubits"]),
            escape(row["topology"]),
            "?" if row["queue_length"] is None else str(row["queue_length"]),
            row["calibration_id"] or "-",
            f"{1000 * row['latency_s']:.0f} ms",
        )
    return table
