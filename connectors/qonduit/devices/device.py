"""The one interface of every quantum device, real or simulated.

A kind is a class with these methods whose constructor takes `Settings`; it is found by its entry point in the
group `qonduit.devices`. `prepare` and `decode` run on a CPU and may be called in different processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from qonduit.devices.request import Request, Result
from qonduit.devices.state import State

if TYPE_CHECKING:
    import dimod


@dataclass(frozen=True)
class Capabilities:
    """What a device can take now; `qubits` is None where there is no limit, `topology` names its couplings."""

    kind: str
    qubits: int | None
    topology: str
    online: bool
    queue_length: int
    calibration_id: str | None


class Device(Protocol):
    def capabilities(self) -> Capabilities: ...

    def prepare(
        self, qubo: dimod.BinaryQuadraticModel, shots: int, seed: int, starts: Sequence[Sequence[str]] = ()
    ) -> Request:
        """`starts` are known feasible solutions (the selected variables), for devices that can begin from them."""

    def submit(self, request: Request, key: str) -> str:
        """Sends the request and returns the job's id; a key that was sent before is the same job, not another."""

    def poll(self, job: str) -> State: ...

    def fetch(self, job: str) -> Result: ...

    def cancel(self, job: str) -> None: ...

    def decode(self, request: Request, result: Result) -> dimod.SampleSet:
        """The samples as they were measured, with energies and feasibility that are computed here, not believed."""
