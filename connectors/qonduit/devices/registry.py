"""The kinds of devices that are installed, ours and others', found by their entry points."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec

from qonduit.devices.device import Device
from qonduit.devices.settings import VARIABLE, Settings
from qonduit.errors import DataError, DeviceError, UsageError

GROUP = "qonduit.devices"


def kinds() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)}


def open_device(settings: Settings) -> Device:
    """The device that the settings name; only its own module is imported."""
    known = kinds()
    if settings.kind not in known:
        wrong = UsageError if settings.source == VARIABLE else DataError
        raise wrong(f"{settings.source}: there is no device kind '{settings.kind}'; choose one of {', '.join(known)}")
    try:
        made = known[settings.kind].load()
    except ImportError as error:
        raise DeviceError(
            f"the device kind '{settings.kind}' cannot be loaded ({error}); install what it needs"
        ) from None
    for module in getattr(made, "needs", ()):
        if not _installed(module):
            kind = settings.kind
            raise DeviceError(f"the device kind '{kind}' needs {module}; run: pip install 'qonduit[{kind}]'")
    device: Device = made(settings)
    return device


def _installed(module: str) -> bool:
    """Whether a module could be imported, without importing it."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
