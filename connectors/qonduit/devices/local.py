"""What devices that compute in this process share: a job is done when `submit` returns.

A kind adds `payload`, the part of a request that is its own, and `compute`, which answers a request.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from qonduit.devices.device import Capabilities
from qonduit.devices.options import Option
from qonduit.devices.request import Request, Result
from qonduit.devices.samples import sample_set
from qonduit.devices.settings import Settings
from qonduit.devices.state import State, Status
from qonduit.errors import DeviceError

if TYPE_CHECKING:
    import dimod

Rows = npt.NDArray[np.int8]


class LocalDevice(ABC):
    kind: ClassVar[str]
    known_options: ClassVar[dict[str, Option]]
    local: ClassVar[bool] = True

    def __init__(self, settings: Settings) -> None:
        self.options = settings.checked(self.known_options)
        self._results: dict[str, Result] = {}

    @abstractmethod
    def payload(self, qubo: dimod.BinaryQuadraticModel, shots: int, starts: Sequence[Sequence[str]]) -> dict[str, Any]:
        """The kind's own part of a request: plain JSON."""

    @abstractmethod
    def compute(self, request: Request) -> tuple[Rows, dict[str, Any]]:
        """Samples as rows of 0 and 1, columns as the QUBO's variables, and what to say of them."""

    def capabilities(self) -> Capabilities:
        return Capabilities(self.kind, None, "complete", online=True, queue_length=0, calibration_id=None)

    def prepare(
        self, qubo: dimod.BinaryQuadraticModel, shots: int, seed: int, starts: Sequence[Sequence[str]] = ()
    ) -> Request:
        request = Request(self.kind, qubo.to_serializable(), shots, seed, {})
        # dimod sorts variables when it writes them: a payload that counts them must count as `compute` will.
        return replace(request, payload=self.payload(request.bqm(), shots, starts))

    def submit(self, request: Request, key: str) -> str:
        if key not in self._results:
            rows, info = self.compute(request)
            self._results[key] = Result({"rows": rows.tolist(), "info": info})
        return key

    def find(self, key: str) -> str | None:
        return key if key in self._results else None

    def poll(self, job: str) -> Status:
        return Status(State.DONE if job in self._results else State.UNKNOWN)

    def fetch(self, job: str) -> Result:
        if job not in self._results:
            raise DeviceError(f"the device '{self.kind}' knows no job {job}; it forgets its jobs when its process ends")
        return self._results[job]

    def cancel(self, job: str) -> None:
        """Only forgets the job: it ended before `submit` returned."""
        self._results.pop(job, None)

    def decode(self, request: Request, result: Result) -> dimod.SampleSet:
        bqm = request.bqm()
        rows = result.payload["rows"]
        bits = np.array(rows, dtype=np.int8).reshape(len(rows), bqm.num_variables)
        return sample_set(bqm, bits, result.payload["info"])
