"""IQM's machines: a QAOA circuit, compiled here to native gates for the machine's own calibration.

The calibration set is pinned in the request, so that a machine that was calibrated meanwhile refuses it. IQM's API
has no list of jobs: a submission whose answer was lost is looked up by a person, by its tag.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from qonduit.devices.angles import OPTIONS, ansatz_of, next_ansatz
from qonduit.devices.device import Capabilities
from qonduit.devices.iqm_server import IqmServer, RefusedError
from qonduit.devices.local import Rows
from qonduit.devices.native import KEY, native_circuit
from qonduit.devices.options import Number, Option, Text
from qonduit.devices.qaoa import Ansatz
from qonduit.devices.request import Request, Result, seed_of_round
from qonduit.devices.routing import Machine, best_course, largest_part
from qonduit.devices.samples import sample_set
from qonduit.devices.settings import Settings
from qonduit.devices.state import State, Status
from qonduit.devices.vendor import understood
from qonduit.errors import AwayError, DataError, DeviceError, StaleError, UnsettledError

if TYPE_CHECKING:
    import dimod

SERVER = "IQM's server"
STATES = {
    "waiting": State.QUEUED,
    "processing": State.RUNNING,
    "completed": State.DONE,
    "failed": State.FAILED,
    "cancelled": State.CANCELLED,
}


class Iqm:
    kind = "iqm"
    known_options: ClassVar[dict[str, Option]] = {
        **OPTIONS,
        "quantum_computer": Text(None, about="Alias of the machine; needed if the server has several."),
        "timeout_s": Number(30.0, 0.1, 3600, about="How long one call to the server may take.", waiting=True),
    }
    local: ClassVar[bool] = False
    required: ClassVar[tuple[str, ...]] = ("url", "token_file")

    def __init__(self, settings: Settings) -> None:
        self.options = settings.checked(self.known_options)
        for key in self.required:
            if getattr(settings, key) is None:
                raise DataError(f"{settings.source}: the device kind 'iqm' needs a '{key}'; add it")
        self._server = IqmServer(settings, self.options["quantum_computer"], self.options["timeout_s"])

    def capabilities(self) -> Capabilities:
        architecture = self._server.architecture()
        machine = _machine(architecture, {})
        online = self._server.health().get("healthy") is not False
        return Capabilities(
            self.kind, len(machine.qubits), _topology(machine), online, self._queue(), _calibration(architecture)
        )

    def prepare(
        self,
        qubo: dimod.BinaryQuadraticModel,
        shots: int,
        seed: int,
        starts: Sequence[Sequence[str]] = (),  # noqa: ARG002
    ) -> Request:
        architecture = self._server.architecture()
        self._check_fits(qubo.num_variables, _machine(architecture, {}))
        return self._request(qubo.to_serializable(), ansatz_of(qubo, self.options), shots, seed, architecture)

    def _check_fits(self, variables: int, machine: Machine) -> None:
        if not variables:
            raise DataError("a problem without variables needs no device; nothing is to be selected")
        if not machine.couplers:
            raise DataError(
                "this IQM machine has no cz between two qubits (its qubits meet in a resonator), which is not "
                "supported; use another machine, or the device kind 'gate' or 'annealer'"
            )
        if variables > len(machine.qubits):
            raise DataError(
                f"{variables} variables do not fit the {len(machine.qubits)} connected qubits of this IQM machine; "
                "use a larger machine, or the device kind 'gate' or 'annealer'"
            )

    def _request(
        self, qubo: Mapping[str, Any], ansatz: Ansatz, shots: int, seed: int, architecture: Mapping[str, Any]
    ) -> Request:
        calibration = _calibration(architecture)
        machine = _machine(architecture, self._metrics(calibration))
        course = best_course(ansatz.ising.pairs(), len(ansatz.ising.fields), machine, seed)
        circuit = native_circuit(ansatz.ising, ansatz.angles, course, machine)
        gates = [instruction["name"] for instruction in circuit]
        payload = {
            "ansatz": ansatz.to_json(),
            "calibration_set_id": calibration,
            "circuit": circuit,
            "compiled": {
                "cz": gates.count("cz"),
                "prx": gates.count("prx"),
                "swaps": course.swaps * ansatz.angles.layers,
                "qubits": sorted(machine.qubits[qubit] for qubit in course.qubits()),
            },
        }
        return Request(self.kind, qubo, shots, seed, payload)

    def submit(self, request: Request, key: str) -> str:
        payload = request.payload
        try:
            job = self._server.submit(payload["circuit"], payload["calibration_set_id"], request.shots, key)
        except RefusedError as error:
            if self._recalibrated(payload["calibration_set_id"]):
                raise StaleError(
                    "IQM's machine was calibrated after the circuit was compiled and refuses it; prepare it again"
                ) from None
            raise error from None
        if not isinstance(job.get("id"), str):
            raise AwayError("IQM's server did not say which job it made of the submission; look it up by its tag")
        return str(job["id"])

    def find(self, key: str) -> str | None:
        raise UnsettledError(
            f"IQM's API cannot search for jobs; look on the server's dashboard for a job with the tag {key}"
        )

    def poll(self, job: str) -> Status:
        try:
            found = self._server.job(job)
        except RefusedError as error:
            if error.status in (400, 404):
                return Status(State.UNKNOWN, reason=str(error))
            raise
        position = found.get("queue_position")
        with understood(SERVER):
            errors = [error for error in found.get("errors") or () if isinstance(error, dict)]
        return Status(
            STATES.get(str(found.get("status")), State.UNKNOWN),
            position if isinstance(position, int) else None,
            "; ".join(str(error.get("message")) for error in errors),
        )

    def fetch(self, job: str) -> Result:
        found = self._server.job(job)
        if STATES.get(str(found.get("status"))) is not State.DONE:
            raise DeviceError(f"job {job} has no result: IQM's server says it is {found.get('status')}")
        with understood(SERVER):
            calibration = (found.get("compilation") or {}).get("calibration_set_id")
        return Result(
            {
                "counts": self._server.counts(job),
                "calibration_set_id": calibration,
                "timeline": found.get("timeline", []),
                "messages": found.get("messages", []),
            }
        )

    def cancel(self, job: str) -> None:
        try:
            self._server.cancel(job)
        except RefusedError:
            # It has ended, or there is none: `poll` says which.
            return

    def decode(self, request: Request, result: Result) -> dimod.SampleSet:
        bqm = request.bqm()
        rows = _rows(result, bqm.num_variables, request.shots)
        angles = Ansatz.from_json(request.payload["ansatz"]).angles
        info = {
            "shots": request.shots,
            "measured": len(rows),
            "calibration_id": result.payload["calibration_set_id"] or request.payload["calibration_set_id"],
            "layers": angles.layers,
            "gammas": list(angles.gammas),
            "betas": list(angles.betas),
            "compiled": request.payload["compiled"],
            "timeline": result.payload["timeline"],
        }
        return sample_set(bqm, rows, info)

    def refine(self, rounds: Sequence[tuple[Request, Result]]) -> Request | None:
        """The next round, if the angles are to be found on the machine and there is one left."""
        if self.options["angles"] != "device" or len(rounds) >= self.options["rounds"]:
            return None
        first = rounds[0][0]
        tried = [(Ansatz.from_json(asked.payload["ansatz"]), _measured(asked, result)) for asked, result in rounds]
        seed = seed_of_round(first.seed, len(rounds))
        return self._request(first.qubo, next_ansatz(tried), first.shots, seed, self._server.architecture())

    def _queue(self) -> int | None:
        """Only IQM's cloud has this call."""
        try:
            length = self._server.queue().get("queue_length")
        except RefusedError:
            return None
        return length if isinstance(length, int) else None

    def _metrics(self, calibration: str) -> dict[str, Any]:
        """A machine may publish none."""
        try:
            return self._server.metrics(calibration)
        except RefusedError:
            return {}

    def _recalibrated(self, calibration: str) -> bool:
        try:
            return _calibration(self._server.architecture()) != calibration
        except DeviceError:
            return False


def _calibration(architecture: Mapping[str, Any]) -> str:
    if not isinstance(architecture.get("calibration_set_id"), str):
        raise AwayError("IQM's server sent an architecture without a calibration set; try again")
    return str(architecture["calibration_set_id"])


def _machine(architecture: Mapping[str, Any], metrics: Mapping[str, Any]) -> Machine:
    """The qubits that can be turned and measured, and the couplers between them, with their errors."""
    with understood(SERVER):
        loci = {
            gate: [tuple(locus) for kind in about["implementations"].values() for locus in kind["loci"]]
            for gate, about in architecture["gates"].items()
        }
        whole = {locus[0] for locus in loci.get("prx", ())} & {
            qubit for one in loci.get("measure", ()) for qubit in one
        }
        qubits = tuple(qubit for qubit in architecture["qubits"] if qubit in whole)
        number = {qubit: index for index, qubit in enumerate(qubits)}
        couplers = frozenset(
            (min(number[a], number[b]), max(number[a], number[b]))
            for a, b in (locus for locus in loci.get("cz", ()) if len(locus) == 2)
            if a in number and b in number
        )
        errors = _errors(metrics, number)
    return largest_part(Machine(qubits, couplers, *errors))


def _errors(
    metrics: Mapping[str, Any], number: Mapping[str, int]
) -> tuple[dict[tuple[int, int], float], dict[int, float]]:
    """1 - fidelity of each cz and of each readout, from names such as metrics.irb.cz.crf.QB1__QB3.fidelity."""
    gates: dict[tuple[int, int], float] = {}
    readouts: dict[int, float] = {}
    for observation in metrics.get("observations") or ():
        name, value = observation.get("dut_field"), observation.get("value")
        parts = str(name).split(".")
        if len(parts) != 6 or parts[5].split(":")[0] != "fidelity" or not isinstance(value, int | float):
            continue
        locus = [number[qubit] for qubit in parts[4].split("__") if qubit in number]
        if parts[2] == "cz" and len(locus) == 2:
            gates[min(locus), max(locus)] = 1 - value
        elif parts[2] in ("measure", "measure_fidelity") and len(locus) == 1:
            readouts[locus[0]] = 1 - value
    return gates, readouts


def _topology(machine: Machine) -> str:
    ends = [qubit for pair in machine.couplers for qubit in pair]
    is_star = len(ends) > 2 and len(machine.couplers) == len(machine.qubits) - 1 == ends.count(
        max(ends, key=ends.count)
    )
    return "star" if is_star else f"{len(machine.couplers)} couplers"


def _measured(request: Request, result: Result) -> Rows:
    return _rows(result, len(request.payload["ansatz"]["fields"]), request.shots)


def _rows(result: Result, variables: int, shots: int) -> Rows:
    """One row for each shot; fewer than were asked for are taken, none or more are not."""
    answer = result.payload["counts"]
    counts = answer.get("counts")
    if answer.get("measurement_keys") != [KEY] or not isinstance(counts, dict):
        raise DeviceError("IQM's server answered with measurements that were not asked for; run it again")
    for bits, times in counts.items():
        if len(bits) != variables or not set(bits) <= {"0", "1"} or not isinstance(times, int) or times < 1:
            raise DeviceError(f"IQM's server answered with '{bits[:80]}' for {variables} qubits; run it again")
    total = sum(counts.values())
    if not 0 < total <= shots:
        raise DeviceError(f"IQM's server answered with {total} shots of {shots}; run it again")
    distinct = np.array([[bit == "1" for bit in bits] for bits in sorted(counts)], dtype=np.int8)
    rows: Rows = np.repeat(distinct, [counts[bits] for bits in sorted(counts)], axis=0)
    return rows
