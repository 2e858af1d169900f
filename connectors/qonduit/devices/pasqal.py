"""A neutral-atom machine of Pasqal, or an emulator of its cloud, through pasqal-cloud.

A request is one batch with one job, made for the device's specifications as the service gives them; the ledger's key
is the batch's tag, by which it can be found again.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from qonduit.devices.device import Capabilities
from qonduit.devices.independence import graph_of
from qonduit.devices.options import Choice, Flag, Number, Option, Text
from qonduit.devices.request import Request, Result
from qonduit.devices.samples import sample_set
from qonduit.devices.settings import Settings
from qonduit.devices.state import State, Status
from qonduit.devices.vendor import token_of, understood
from qonduit.errors import AwayError, DataError, DeviceError, StaleError, UnsettledError

if TYPE_CHECKING:
    import dimod

    from qonduit.devices.pasqal_connection import Connection

STATES = {
    "PENDING": State.QUEUED,
    "RUNNING": State.RUNNING,
    "PAUSED": State.RUNNING,
    "DONE": State.DONE,
    "ERROR": State.FAILED,
    "TIMED_OUT": State.FAILED,
    "CANCELED": State.CANCELLED,
}
TIMES = ("created_at", "start_timestamp", "end_timestamp")


class Pasqal:
    kind: ClassVar[str] = "pasqal"
    local: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ("pulser", "pasqal_cloud")
    required: ClassVar[tuple[str, ...]] = ("token_file", "project_id")
    known_options: ClassVar[dict[str, Option]] = {
        "project_id": Text(None, about="The project that pays for the shots."),
        "username": Text(None, about="Whose password the token file holds; without it the file holds an access token."),
        "device": Text("FRESNEL", about="The machine whose specifications the sequence keeps to."),
        "device_type": Choice(
            "QPU", ("QPU", "EMU_FREE", "EMU_SV", "EMU_MPS"), about="What runs it: the machine, or a cloud emulator."
        ),
        "region": Choice("fr", ("fr", "sa"), about="Where the service is, if no url is given."),
        "duration_us": Number(None, 0.1, 100, about="Duration of the sweep; 4 without it, or what the device allows."),
        "approximate": Flag(False, about="Also run a graph that does not embed exactly."),
        "timeout_s": Number(30.0, 0.1, 3600, about="How long one call to the service may take.", waiting=True),
    }

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.options = settings.checked(self.known_options)
        if settings.token_file is None:
            raise DataError(f"{settings.source}: the device kind 'pasqal' needs a 'token_file'; add its path")
        if self.options["project_id"] is None:
            raise DataError(f"{settings.source}: the device kind 'pasqal' needs the option 'project_id'; add it")
        self._connection: Connection | None = None

    def capabilities(self) -> Capabilities:
        specs = self._specs()
        atoms = json.loads(specs).get("max_atom_num")
        return Capabilities(self.kind, atoms, "unit disk", True, queue_length=None, calibration_id=_digest(specs))

    def prepare(
        self,
        qubo: dimod.BinaryQuadraticModel,
        shots: int,
        seed: int,
        starts: Sequence[Sequence[str]] = (),  # noqa: ARG002
    ) -> Request:
        asked = Request(self.kind, qubo.to_serializable(), shots, seed, {})
        # Atoms are numbered as the variables of the file, whose order dimod changes.
        graph = graph_of(asked.bqm())
        if not graph.weights:
            raise DataError("the problem has no variables; its solution is empty and needs no device")
        specs = self._specs()
        self._check_fits(len(graph.weights), shots, json.loads(specs))
        from pulser.json.abstract_repr.deserializer import deserialize_device

        from qonduit.devices.sweep import program

        try:
            device = deserialize_device(specs)
        except Exception as error:
            # Pulser names its own errors and its JSON schema's; either way the specifications are not usable.
            name = type(error).__name__
            raise DeviceError(f"this Pulser cannot read Pasqal's device ({name}); install a newer one") from None
        duration_us, approximate = self.options["duration_us"], self.options["approximate"]
        made = program(graph, device, seed=0, duration_us=duration_us, approximate=approximate)
        payload = made.payload() | {"device": self.options["device"], "specs_id": _digest(specs)}
        if self.options["device_type"] != "QPU":
            payload |= {"device_type": self.options["device_type"], "configuration": _emulation(shots)}
        return replace(asked, payload=payload)

    def submit(self, request: Request, key: str) -> str:
        payload = request.payload
        batch: dict[str, Any] = {
            "sequence_builder": payload["sequence"],
            "webhook": None,
            "jobs": [{"runs": request.shots}],
            "open": False,
            "device_type": payload.get("device_type"),
            "tags": [key],
        }
        if "configuration" in payload:
            # The cloud's emulators read the number of shots from their configuration.
            batch |= {"jobs": [{}], "backend_configuration": payload["configuration"]}
        try:
            answer = self._service().send_batch(batch)
        except DataError as error:
            self._blame_new_specs(request, error)
            raise
        with understood("Pasqal"):
            return _id(answer)

    def find(self, key: str) -> str | None:
        found = self._service().find_batches(key)
        with understood("Pasqal"):
            # A service that does not know the filter answers with batches of any tag, and perhaps not with ours.
            if not all(key in list(batch.get("tags") or ()) for batch in found):
                raise UnsettledError(
                    f"Pasqal's service did not search by the tag; look on its portal for a batch with the tag {key}"
                )
            return _id(min(found, key=lambda batch: str(batch.get("created_at")))) if found else None

    def poll(self, job: str) -> Status:
        from qonduit.devices.pasqal_connection import NotThereError

        try:
            said = self._service().get_batch_status(job)
        except NotThereError as error:
            return Status(State.UNKNOWN, reason=str(error))
        state = _state(said)
        if state is not State.FAILED:
            return Status(state)
        with understood("Pasqal"):
            errors = [text for item in self._jobs(job) for text in item.get("errors") or ()]
        return Status(state, reason="; ".join(map(str, errors)) or f"Pasqal says {said.get('status')}")

    def fetch(self, job: str) -> Result:
        done = [item for item in self._jobs(job) if item.get("status") == "DONE"]
        if not done:
            raise DeviceError(f"the batch {job} on '{self.kind}' has no job that is done; poll it first")
        with understood("Pasqal"):
            answer = self._service().get_job_results(_id(done[0]))
        counter = answer.get("counter") if isinstance(answer, dict) else None
        if not isinstance(counter, dict):
            raise AwayError(f"the result of batch {job} on '{self.kind}' holds no counter; ask again later")
        times = {name: done[0].get(name) for name in TIMES}
        return Result({"counter": counter, "batch": job, "job": done[0].get("id"), "times": times})

    def cancel(self, job: str) -> None:
        from qonduit.devices.pasqal_connection import NotThereError

        try:
            self._service().cancel_batch(job)
        except NotThereError:
            return
        except DataError:
            # The service refuses to cancel what has ended.
            if not self.poll(job).state.final:
                raise

    def decode(self, request: Request, result: Result) -> dimod.SampleSet:
        from qonduit.devices.sweep import rows_of

        bqm = request.bqm()
        rows = rows_of(result.payload["counter"], bqm.num_variables)
        if not len(rows):
            raise DeviceError(f"the batch {result.payload.get('batch')} on '{self.kind}' has no shot; run it again")
        payload = request.payload
        info = {
            "shots": request.shots,
            "measured": len(rows),
            "device": payload["device"],
            "device_type": payload.get("device_type", "QPU"),
            "calibration_id": payload["specs_id"],
            "embedding": payload["embedding"],
            "sweep": payload["sweep"],
            "times": result.payload.get("times"),
            "batch": result.payload.get("batch"),
        }
        return sample_set(bqm, rows, info)

    def _check_fits(self, atoms: int, shots: int, specs: dict[str, Any]) -> None:
        most, runs = specs.get("max_atom_num"), specs.get("max_runs")
        if most is not None and atoms > most:
            raise DataError(
                f"{atoms} variables do not fit the {most} atoms of {self.options['device']}; use a device with more "
                "qubits, or the kind 'annealer' or 'exact'"
            )
        if runs is not None and shots > runs:
            raise DataError(f"{shots} shots are more than the {runs} that {self.options['device']} runs; ask for fewer")

    def _specs(self) -> str:
        """The device's specifications as the service gives them: JSON in Pulser's abstract representation."""
        known = self._service().get_device_specs_dict()
        name = self.options["device"]
        if not isinstance(known, dict) or not all(isinstance(specs, str) for specs in known.values()):
            raise AwayError("Pasqal's list of devices is not as promised; ask again later")
        if name not in known:
            raise DataError(f"Pasqal offers no device '{name}'; set the option 'device' to one of {', '.join(known)}")
        with understood("Pasqal"):
            specs = json.loads(known[name])
            if not all(isinstance(specs.get(limit), int | None) for limit in ("max_atom_num", "max_runs")):
                raise TypeError(f"the limits of {name}")
        return known[name]

    def _blame_new_specs(self, request: Request, refusal: DataError) -> None:
        """A refused batch is stale if the device is no longer the one it was made for."""
        if _digest(self._specs()) != request.payload["specs_id"]:
            raise StaleError(
                f"{self.options['device']} has new specifications since the request was prepared; prepare it again "
                f"({refusal})"
            ) from None

    def _jobs(self, batch: str) -> list[dict[str, Any]]:
        return self._service().get_batch_jobs(batch)

    def _service(self) -> Connection:
        if self._connection is None:
            self._connection = _connect(self.settings, self.options)
        return self._connection


def _connect(settings: Settings, options: dict[str, Any]) -> Connection:
    from pasqal_cloud.endpoints import Endpoints, TokenProviderConf

    from qonduit.devices.pasqal_connection import Account, Connection

    login = TokenProviderConf.from_region(options["region"])
    endpoints = Endpoints.from_region(options["region"])
    if settings.url is not None:
        endpoints = Endpoints(core=f"{settings.url}/core-fast", account=f"{settings.url}/account")
        login.token_endpoint = f"{settings.url}/oauth/token"
    # A password may hold anything: it goes into a form, not into a header.
    secret = partial(token_of, settings, "Pasqal") if options["username"] is None else settings.secret
    account = Account(secret, options["username"], login, options["timeout_s"])
    return Connection(account, endpoints, options["project_id"])


def _emulation(shots: int) -> str:
    from pulser.backend import BitStrings, EmulationConfig

    made = json.loads(EmulationConfig(observables=[BitStrings(num_shots=shots)]).to_abstract_repr())
    for observable in made["observables"]:
        # Pulser draws it at random; the same question must make the same request.
        observable["uuid"] = str(uuid.UUID(int=shots))
    return json.dumps(made)


def _id(thing: dict[str, Any]) -> str:
    if not isinstance(thing["id"], str) or not thing["id"]:
        raise TypeError("no id")
    return thing["id"]


def _state(said: Any) -> State:
    """The one job's state where the service counts it, else the batch's."""
    if not isinstance(said, dict):
        return State.UNKNOWN
    counts = said.get("jobs_count_per_status")
    counted = [name for name, count in counts.items() if count] if isinstance(counts, dict) else []
    return STATES.get(counted[0] if len(counted) == 1 else str(said.get("status")), State.UNKNOWN)


def _digest(specs: str) -> str:
    """What tells one calibration from another: the service gives it no name."""
    return hashlib.sha256(json.dumps(json.loads(specs), sort_keys=True).encode()).hexdigest()[:16]
