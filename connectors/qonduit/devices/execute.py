"""Running one request on a device to its end: submit, wait, fetch."""

from __future__ import annotations

import time
from collections.abc import Callable

from qonduit.devices.device import Device
from qonduit.devices.request import Request, Result
from qonduit.devices.state import State
from qonduit.errors import DeviceError

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 5.0
UNKNOWN_LIMIT_S = 600.0


def execute(device: Device, request: Request, pause: Callable[[float], object] = time.sleep) -> Result:
    """The result. A job whose state stays unknown is given up: it is not taken as done and not sent again."""
    job = device.submit(request, request.digest())
    pause_s, unknown_s = FIRST_PAUSE_S, 0.0
    while not (state := device.poll(job)).final:
        unknown_s = unknown_s + pause_s if state is State.UNKNOWN else 0.0
        if unknown_s > UNKNOWN_LIMIT_S:
            raise DeviceError(
                f"the state of job {job} on '{request.kind}' stays unknown; look it up before running again"
            )
        pause(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
    if state is not State.DONE:
        raise DeviceError(f"job {job} on '{request.kind}' {state.value}; see the device's own log")
    return device.fetch(job)
