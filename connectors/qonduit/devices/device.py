"""The one interface of every quantum device, real or simulated.

A kind is a class with these methods whose constructor takes `Settings`; it is found by its entry point in the
group `qonduit.devices`. A class may name in `needs` the modules that its vendor's client brings. `prepare` and
`decode` run on a CPU and may be called in different processes. Every call that reaches a vendor is one attempt, whose
failure is one of `qonduit.errors`; trying again is the caller's (`patience`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from qonduit.devices.options import Option
from qonduit.devices.request import Request, Result
from qonduit.devices.state import Status

if TYPE_CHECKING:
    import dimod


@dataclass(frozen=True)
class Capabilities:
    """What a device can take now; `qubits` is None where there is no limit, `topology` names its couplings."""

    kind: str
    qubits: int | None
    topology: str
    online: bool
    queue_length: int | None
    calibration_id: str | None


class Device(Protocol):
    kind: ClassVar[str]
    known_options: ClassVar[dict[str, Option]]
    local: ClassVar[bool]
    """Computes in this process: nothing is bought, so that nothing need be remembered of a job."""

    def capabilities(self) -> Capabilities: ...

    def prepare(
        self, qubo: dimod.BinaryQuadraticModel, shots: int, seed: int, starts: Sequence[Sequence[str]] = ()
    ) -> Request:
        """`starts` are known feasible solutions (the selected variables), for devices that can begin from them."""

    def submit(self, request: Request, key: str) -> str:
        """Sends the request once, with the key in the vendor's label, and returns the job's id."""

    def find(self, key: str) -> str | None:
        """The id of the job that was sent with this key, None if the device has none.

        A device whose vendor cannot be asked raises `UnsettledError`.
        """

    def poll(self, job: str) -> Status:
        """What the device says now; a job it does not know is `unknown`."""

    def fetch(self, job: str) -> Result: ...

    def cancel(self, job: str) -> None:
        """Asks the device to give the job up; no error for a job that has ended. What became of it, `poll` says."""

    def decode(self, request: Request, result: Result) -> dimod.SampleSet:
        """The samples as they were measured, with energies and feasibility that are computed here, not believed."""
