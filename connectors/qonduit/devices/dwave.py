"""D-Wave's Leap: a quantum annealer with minor embedding, or the hybrid solver for problems of any shape.

Calls go through the HTTP session of the vendor's own client (tokens, versions and errors are its), without its threads
and retries: one call here is one call there.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from qonduit.devices.device import Capabilities
from qonduit.devices.embedding import WorkingGraph, embed, find_chains, unembedded
from qonduit.devices.independence import graph_of
from qonduit.devices.options import Choice, Number, Option, Text
from qonduit.devices.request import Request, Result
from qonduit.devices.samples import sample_set
from qonduit.devices.sapi import MissingError, RefusedError, Sapi, refusal
from qonduit.devices.settings import Settings
from qonduit.devices.state import State, Status
from qonduit.devices.vendor import understood
from qonduit.errors import AwayError, DataError, DeviceError, QonduitError, StaleError

if TYPE_CHECKING:
    import dimod

Rows = npt.NDArray[np.int8]
STATES = {
    "PENDING": State.QUEUED,
    "IN_PROGRESS": State.RUNNING,
    "COMPLETED": State.DONE,
    "FAILED": State.FAILED,
    "CANCELLED": State.CANCELLED,
}
ELSEWHERE = 'use "solver_type": "hybrid", or the device kind annealer'
UPLOAD_PART_BYTES = 5 * 1024 * 1024


class Dwave:
    kind: ClassVar[str] = "dwave"
    local: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ("dwave.cloud", "dwave.embedding", "dwave.graphs", "minorminer")
    known_options: ClassVar[dict[str, Option]] = {
        "solver_type": Choice("qpu", ("qpu", "hybrid"), about="A quantum annealer, or Leap's hybrid solver."),
        "solver": Text(None, about="The solver's name; without it the largest one that is online."),
        "region": Choice("na-west-1", ("na-west-1", "na-east-1", "eu-central-1"), about="Leap's region; 'url' wins."),
        "chain_strength": Number(1.0, 0.01, 100, about="Times the torque on a chain; weaker chains break more often."),
        "embedding_tries": Number(10, 0, 1000, whole=True, about="Searches for short chains; 0 takes a clique's."),
        "annealing_time_us": Number(None, 0.001, 1e6, about="Duration of one anneal; the solver's own without it."),
        "time_limit_s": Number(None, 0.1, 86400, about="Time of the hybrid solver; its least for the size without it."),
        "timeout_s": Number(30.0, 0.1, 3600, about="How long one call may go without an answer.", waiting=True),
    }

    def __init__(self, settings: Settings) -> None:
        self.options = settings.checked(self.known_options)
        self._sapi = Sapi(settings, self.options["region"], self.options["timeout_s"])
        self._hybrid = self.options["solver_type"] == "hybrid"

    def capabilities(self) -> Capabilities:
        """`qubits` are those that work; a problem whose variables need chains takes more than one for each."""
        solver = self._solver()
        online = solver.get("status") == "ONLINE"
        if self._hybrid:
            most = solver["properties"].get("maximum_number_of_variables")
            return Capabilities(self.kind, most, "complete", online, None, None)
        with understood("D-Wave"):
            graph = WorkingGraph.of(solver["properties"])
            topology = " ".join([graph.topology, *map(str, graph.shape[:1])])
            return Capabilities(self.kind, len(graph.qubits), topology, online, None, _graph_id(solver))

    def prepare(
        self,
        qubo: dimod.BinaryQuadraticModel,
        shots: int,
        seed: int,
        starts: Sequence[Sequence[str]] = (),  # noqa: ARG002 - the annealers of this vendor begin from no solution
    ) -> Request:
        graph_of(qubo)
        if not qubo.num_variables:
            raise DataError("the QUBO has no variables; there is nothing to send to D-Wave")
        solver = self._solver()
        if solver.get("status") != "ONLINE":
            name = solver["identity"]["name"]
            raise AwayError(f"D-Wave's solver {name} is not online; wait, or use another device", maybe_accepted=False)
        request = Request(self.kind, qubo.to_serializable(), shots, seed, {})
        # Written and read again, since that may put the variables in another order, and chains are counted by it.
        bqm = request.bqm()
        with understood("D-Wave"):
            payload = self._hybrid_payload(bqm, solver) if self._hybrid else self._payload(bqm, shots, seed, solver)
        return replace(request, payload=payload)

    def _payload(self, qubo: dimod.BinaryQuadraticModel, shots: int, seed: int, solver: Mapping[str, Any]) -> Any:
        properties, name = solver["properties"], solver["identity"]["name"]
        params = {"num_reads": shots, "answer_mode": "histogram", "auto_scale": False}
        _within(f"shots ({shots})", shots, properties.get("num_reads_range"), name)
        if (time_us := self.options["annealing_time_us"]) is not None:
            _within(f"'annealing_time_us' ({time_us:g})", time_us, properties.get("annealing_time_range"), name)
            params["annealing_time"] = time_us
        graph = WorkingGraph.of(properties)
        chains = find_chains(qubo, graph, seed % 2**31, self.options["embedding_tries"])
        if chains is None:
            raise DataError(
                f"the problem has {qubo.num_variables} variables with {qubo.num_interactions} couplings and finds no "
                f"place on the {len(graph.qubits)} working qubits of {name} ({graph.topology}), of which a variable "
                f"with many couplings takes several; {ELSEWHERE}"
            )
        embedded = embed(qubo, chains, graph, self.options["chain_strength"], properties)
        return {
            "solver": {"name": name, "version": {"graph_id": _graph_id(solver)}},
            "type": "ising",
            "data": _encoded(graph, embedded.h, embedded.j),
            "params": params,
            "chains": chains,
            "chain_strength": embedded.chain_strength,
            "scale": embedded.scale,
        }

    def _hybrid_payload(self, qubo: dimod.BinaryQuadraticModel, solver: Mapping[str, Any]) -> Any:
        properties, name = solver["properties"], solver["identity"]["name"]
        most = properties.get("maximum_number_of_variables", qubo.num_variables)
        if qubo.num_variables > most:
            raise DataError(
                f"the problem has {qubo.num_variables} variables and {name} takes {most}; "
                "make it smaller, or use the device kind annealer"
            )
        sizes, times_s = zip(*properties["minimum_time_limit"], strict=True)
        least_s = float(np.interp(qubo.num_variables, sizes, times_s))
        limit_s = least_s if self.options["time_limit_s"] is None else self.options["time_limit_s"]
        most_s = 3600 * properties.get("maximum_time_limit_hrs", 24.0)
        _within(f"'time_limit_s' ({limit_s:g})", limit_s, (least_s, most_s), name)
        return {"solver": {"name": name}, "type": "bqm", "params": {"time_limit": limit_s}}

    def submit(self, request: Request, key: str) -> str:
        payload = request.payload
        data = payload["data"] if payload["type"] == "ising" else {"format": "ref", "data": self._uploaded(request)}
        problem = {part: payload[part] for part in ("solver", "type", "params")} | {"data": data, "label": key}
        try:
            answer = self._sapi.call("POST", "problems/", "problems", json=[problem])
            accepted = _entries(answer)[0]
            if "error_code" in accepted:
                raise refusal(int(accepted["error_code"]), str(accepted.get("error_msg", "")))
            return _id(accepted)
        except RefusedError as error:
            if self._changed(payload["solver"]):
                raise StaleError(f"D-Wave's working graph has changed since this was prepared ({error})") from None
            raise
        except (KeyError, IndexError, ValueError, TypeError):
            raise AwayError("D-Wave's answer to a submission holds no job; look it up by its label") from None

    def _uploaded(self, request: Request) -> str:
        """The problem's address at the vendor. Nothing is bought by it, so that it may be tried again at any time."""
        bqm, _ = request.bqm().relabel_variables_as_integers()  # type: ignore[no-untyped-call]
        with bqm.to_file() as file:
            content = file.read()
        parts = [content[at : at + UPLOAD_PART_BYTES] for at in range(0, len(content), UPLOAD_PART_BYTES)]
        digests = [hashlib.md5(part, usedforsecurity=False).digest() for part in parts]
        try:
            name = str(self._sapi.call("POST", "bqm/multipart", json={"size": len(content)})["id"])
            address = f"bqm/multipart/{quote(name, safe='')}"
            for number, (part, digest) in enumerate(zip(parts, digests, strict=True), start=1):
                headers = {"Content-MD5": base64.b64encode(digest).decode(), "Content-Type": "application/octet-stream"}
                self._sapi.call("PUT", f"{address}/part/{number}", data=part, headers=headers)
            checksum = hashlib.md5(b"".join(digests), usedforsecurity=False).hexdigest()
            self._sapi.call("POST", f"{address}/combine", json={"checksum": checksum})
        except AwayError as error:
            raise AwayError(str(error), maybe_accepted=False, retry_after_s=error.retry_after_s) from None
        except (KeyError, TypeError):
            raise AwayError("D-Wave's answer to an upload has no id; try again", maybe_accepted=False) from None
        return name

    def _changed(self, identity: Mapping[str, Any]) -> bool:
        if "version" not in identity:
            return False
        try:
            now = self._sapi.call("GET", f"solvers/remote/{quote(identity['name'])}", "solver-definition")
            with understood("D-Wave"):
                return bool(_graph_id(now) != identity["version"]["graph_id"])
        except QonduitError:
            # The refusal itself is certain; why it came cannot be asked now, so its own words have to do.
            return False

    def find(self, key: str) -> str | None:
        found = _entries(self._sapi.call("GET", "problems/", "problems", params={"label": key, "max_results": 1000}))
        # Asked by label, but only the very label counts.
        with understood("D-Wave"):
            same = sorted((str(job.get("submitted_on")), _id(job)) for job in found if job.get("label") == key)
        return same[0][1] if same else None

    def poll(self, job: str) -> Status:
        try:
            found = _entries(self._sapi.call("GET", "problems/", "problems", params={"id": job}))
        except MissingError as error:
            return Status(State.UNKNOWN, reason=str(error))
        for entry in found:
            if entry.get("id") == job:
                state = STATES.get(str(entry.get("status")), State.UNKNOWN)
                return Status(state, reason=str(entry.get("error_message") or ""))
        return Status(State.UNKNOWN, reason=f"D-Wave knows no job {job}")

    def fetch(self, job: str) -> Result:
        try:
            found = self._sapi.call("GET", f"problems/{quote(job, safe='')}/", "problem")
        except MissingError:
            raise DeviceError(f"D-Wave knows no job {job}; check the token's project") from None
        if not isinstance(found, dict) or "status" not in found:
            raise AwayError("D-Wave's answer is no job; try again")
        if found["status"] != "COMPLETED" or not isinstance(found.get("answer"), dict):
            reason = found.get("error_message") or "it has no answer"
            raise DeviceError(f"job {job} on D-Wave is {found['status']}: {reason}")
        return Result(found)

    def cancel(self, job: str) -> None:
        # The vendor answers one entry for each job; what became of a job that had ended is asked by `poll`.
        try:
            self._sapi.call("DELETE", "problems/", "problems", json=[job])
        except MissingError:
            return

    def decode(self, request: Request, result: Result) -> dimod.SampleSet:
        bqm = request.bqm()
        answer = result.payload["answer"]
        reader = _measured if request.payload["type"] == "ising" else _hybrid_samples
        try:
            rows, info = reader(request, answer)
        except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
            raise DeviceError(f"D-Wave's answer is not as it promises ({error}); ask D-Wave about the job") from None
        if not len(rows):
            raise DeviceError("D-Wave's answer holds no sample; ask D-Wave about the job")
        solver = request.payload["solver"]
        about = {
            "solver": solver["name"],
            "calibration_id": solver.get("version", {}).get("graph_id"),
            "shots": request.shots,
            "measured": len(rows),
        }
        return sample_set(bqm, rows, about | info)

    def _solver(self) -> dict[str, Any]:
        """The one that is named, or of those that are online the largest (the latest hybrid one)."""
        if (name := self.options["solver"]) is not None:
            try:
                found = self._sapi.call("GET", f"solvers/remote/{quote(name, safe='')}", "solver-definition")
            except MissingError:
                raise DataError(f"D-Wave has no solver '{name}' for this token; check the option 'solver'") from None
            solvers = [found]
        else:
            solvers = self._sapi.call("GET", "solvers/remote/", "solver-definition-list")
        with understood("D-Wave"):
            fitting = [solver for solver in solvers if self._fits(solver["properties"])]
            fitting.sort(key=lambda solver: (solver["status"] == "ONLINE", *_rank(solver)))
        if not fitting:
            kind = self.options["solver_type"]
            raise DataError(f"D-Wave has no solver of type '{kind}' for this token; check 'solver' and 'solver_type'")
        best: dict[str, Any] = fitting[-1]
        return best

    def _fits(self, properties: Mapping[str, Any]) -> bool:
        wanted = ("hybrid", "bqm") if self._hybrid else ("qpu", "ising")
        return properties.get("category") == wanted[0] and wanted[1] in properties.get("supported_problem_types", ())


def _rank(solver: Mapping[str, Any]) -> tuple[int, str]:
    return len(solver["properties"].get("qubits", ())), str(solver["identity"]["name"])


def _graph_id(solver: Mapping[str, Any]) -> str:
    """The vendor's name for a working graph; a digest of it where there is none."""
    version = solver["identity"].get("version") or {}
    if version.get("graph_id"):
        return str(version["graph_id"])
    graph = [solver["properties"]["qubits"], solver["properties"]["couplers"]]
    return hashlib.sha256(json.dumps(graph).encode()).hexdigest()[:16]


def _within(what: str, value: float, limits: Sequence[float] | None, name: str) -> None:
    if limits and not limits[0] <= value <= limits[1]:
        raise DataError(f"{what} must be from {limits[0]:g} to {limits[1]:g} on {name}; change it")


def _id(job: Mapping[str, Any]) -> str:
    if not isinstance(job["id"], str) or not job["id"]:
        raise TypeError("no id")
    return job["id"]


def _entries(answer: Any) -> list[dict[str, Any]]:
    if not isinstance(answer, list) or not all(isinstance(entry, dict) for entry in answer):
        raise AwayError("D-Wave's answer is no list of jobs")
    return answer


def _encoded(graph: WorkingGraph, h: Mapping[int, float], j: Mapping[tuple[int, int], float]) -> dict[str, Any]:
    """The vendor's format `qp`: a bias for every working qubit, NaN where unused, and one for every coupler between."""
    biases = [h.get(qubit, np.nan) for qubit in graph.qubits]
    couplings = [j.get((u, v), 0.0) + j.get((v, u), 0.0) for u, v in graph.couplers if u in h and v in h]
    lin, quad = (base64.b64encode(np.array(part, dtype="<f8").tobytes()).decode() for part in (biases, couplings))
    return {"format": "qp", "lin": lin, "quad": quad, "offset": 0.0}


def _measured(request: Request, answer: Mapping[str, Any]) -> tuple[Rows, dict[str, Any]]:
    """One row per shot, from packed bits of each distinct measurement and how often it came."""
    chains = request.payload["chains"]
    active = _array(answer, "active_variables", "<i4")
    counts = _array(answer, "num_occurrences", "<i4")
    packed = _array(answer, "solutions", "u1")
    if set(active.tolist()) != {qubit for chain in chains for qubit in chain}:
        raise ValueError("other qubits were measured than were asked")
    if len(packed) != len(counts) * -(-len(active) // 8):
        raise ValueError("the samples have the wrong width")
    if np.any(counts < 1) or counts.sum() > request.shots:
        raise ValueError(f"{counts.sum()} shots where {request.shots} were asked")
    bits = np.unpackbits(packed.reshape(len(counts), -1), axis=1)[:, : len(active)]
    qubits = np.repeat(bits, counts, axis=0).astype(np.int8)
    rows, broken = unembedded(qubits, {qubit: column for column, qubit in enumerate(active.tolist())}, chains)
    info = {
        "embedding_qubits": len(active),
        "longest_chain": max(map(len, chains)),
        "chain_strength": request.payload["chain_strength"],
        "scale": request.payload["scale"],
        "chain_break_fraction": broken,
        "timing_us": answer.get("timing", {}),
    }
    return rows, info


def _hybrid_samples(request: Request, answer: Mapping[str, Any]) -> tuple[Rows, dict[str, Any]]:
    import dimod

    sent = dimod.SampleSet.from_serializable(answer["data"])  # type: ignore[no-untyped-call]
    found = sent.change_vartype("BINARY", inplace=False)
    size = request.bqm().num_variables
    if set(found.variables) != set(range(size)):
        raise ValueError("other variables were solved than were asked")
    values = found.record.sample[:, [found.variables.index(variable) for variable in range(size)]]
    if not np.isin(values, (0, 1)).all():
        raise ValueError("a sample holds other values than 0 and 1")
    rows = np.repeat(values, found.record.num_occurrences, axis=0).astype(np.int8)
    return rows, {"time_limit_s": request.payload["params"]["time_limit"], "timing_us": dict(found.info)}


def _array(answer: Mapping[str, Any], part: str, kind: str) -> npt.NDArray[Any]:
    return np.frombuffer(base64.b64decode(answer[part], validate=True), dtype=kind)
