"""What devices that compute in this process share: a job is done when `submit` returns.

A kind adds `payload`, the part of a request that is its own, and `compute`, which answers a request.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from qonduit.devices.device import Capabilities
from qonduit.devices.request import Request, Result
from qonduit.devices.samples import sample_set
from qonduit.devices.settings import Number, Settings
from qonduit.devices.state import State
from qonduit.errors import DeviceError

if TYPE_CHECKING:
    import dimod

Rows = npt.NDArray[np.int8]


class LocalDevice(ABC):
    kind: ClassVar[str]
    known_options: ClassVar[dict[str, Number]]

    def __init__(self, settings: Settings) -> None:
        self.options = settings.numbers(self.known_options)
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
        return Request(self.kind, qubo.to_serializable(), shots, seed, self.payload(qubo, shots, starts))

    def submit(self, request: Request, key: str) -> str:
        if key not in self._results:
            rows, info = self.compute(request)
            self._results[key] = Result({"rows": rows.tolist(), "info": info})
        return key

    def poll(self, job: str) -> State:
        return State.DONE if job in self._results else State.UNKNOWN

    def fetch(self, job: str) -> Result:
        if job not in self._results:
            raise DeviceError(f"the device '{self.kind}' knows no job {job}; it forgets its jobs when its process ends")
        return self._results[job]

    def cancel(self, job: str) -> None:
        """Only forgets the job: it ended before `submit` returned."""
        self._results.pop(job, None)

    def decode(self, request: Request, result: Result) -> dimod.SampleSet:
        bqm = request.bqm()
        rows = np.array(result.payload["rows"], dtype=np.int8).reshape(-1, bqm.num_variables)
        return sample_set(bqm, rows, result.payload["info"])
