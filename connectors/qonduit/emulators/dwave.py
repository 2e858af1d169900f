"""An emulated D-Wave server: the Solver API as the vendor's own client speaks it, with one annealer and one hybrid.

The machines are `annealing` and `hybrid`. Parameters and problem types that are not simulated are refused.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

import numpy as np
from aiohttp import web

from qonduit.emulators import annealing, hybrid, qp
from qonduit.emulators.credential import Token
from qonduit.emulators.emulator import Config, Emulator, Refused, Route
from qonduit.emulators.store import Job, JobStore

STATES = {
    "queued": "PENDING",
    "running": "IN_PROGRESS",
    "done": "COMPLETED",
    "failed": "FAILED",
    "cancelled": "CANCELLED",
}
UNKNOWN_PROBLEM = "Problem does not exist or apitoken does not have access"
LONGEST_POLL_S = 60.0


class DwaveEmulator(Emulator):
    vendor: ClassVar[str] = "dwave"
    path: ClassVar[str] = "/sapi/v2"
    port: ClassVar[int] = 8733

    def __init__(self, config: Config, jobs: JobStore, token: Token) -> None:
        super().__init__(config, jobs, token)
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.uploaded: dict[str, bytes] = {}
        self._describe()

    def _describe(self) -> None:
        topology = self.config.topology or annealing.TOPOLOGIES[0]
        generation = self.jobs.calibration
        graph, made = annealing.working_graph(topology, self.config.qubits, self.config.seed + generation)
        self.properties = annealing.properties(graph, made, topology)
        self.graph_id = annealing.graph_id(self.properties, generation)

    def recalibrate(self) -> None:
        """Other qubits fail and those that failed work again."""
        self.jobs.calibration += 1
        self._describe()

    def routes(self) -> Iterable[Route]:
        root, upload = self.path, f"{self.path}/bqm/multipart"
        yield Route("GET", f"{root}/solvers/remote/", "discover", self.list_solvers)
        yield Route("GET", f"{root}/solvers/remote/{{name}}", "discover", self.show_solver)
        yield Route("GET", f"{root}/solvers/remote/{{name}}/", "discover", self.show_solver)
        yield Route("POST", f"{root}/problems/", "submit", self.submit)
        yield Route("GET", f"{root}/problems/", "find", self.list_problems)
        yield Route("DELETE", f"{root}/problems/", "cancel", self.cancel_several)
        for end in ("", "/"):
            yield Route("GET", f"{root}/problems/{{id}}{end}", "fetch", self.show_problem)
            yield Route("DELETE", f"{root}/problems/{{id}}{end}", "cancel", self.cancel_one)
        yield Route("GET", f"{root}/problems/{{id}}/info", "fetch", self.show_info)
        yield Route("GET", f"{root}/problems/{{id}}/answer", "fetch", self.show_answer)
        yield Route("GET", f"{root}/problems/{{id}}/messages", "other", self.show_messages)
        yield Route("POST", upload, "other", self.begin_upload)
        yield Route("GET", f"{upload}/{{id}}/status", "other", self.show_upload)
        yield Route("PUT", f"{upload}/{{id}}/part/{{number}}", "other", self.take_part)
        yield Route("POST", f"{upload}/{{id}}/combine", "other", self.combine)
        yield Route("GET", "/metadata/v1/regions/", "discover", self.list_regions)

    def phase_of(self, request: web.Request, route: Route) -> str:
        """The client asks for a job's state and looks for jobs at one address."""
        return "poll" if route.phase == "find" and "id" in request.query else route.phase

    def authorised(self, request: web.Request) -> bool:
        return hmac.compare_digest(request.headers.get("X-Auth-Token", "").encode(), self.token.value.encode())

    def refusal(self, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> web.StreamResponse:
        return web.json_response({"error_code": status, "error_msg": sentence}, status=status, headers=headers)

    # Solvers

    def solvers(self) -> list[dict[str, Any]]:
        load = min(1.0, self.jobs.waiting() / 10)
        name = self.properties["chip_id"]
        qpu = {"name": name, "version": {"graph_id": self.graph_id}}
        return [
            _solver(qpu, "An emulated quantum annealer", self.properties, load),
            _solver({"name": hybrid.NAME}, "An emulated hybrid solver", hybrid.PROPERTIES, 0.0),
        ]

    async def list_solvers(self, request: web.Request) -> web.StreamResponse:
        wanted = request.query.get("filter")
        return _versioned([_filtered(solver, wanted) for solver in self.solvers()], "solver-definition-list")

    async def show_solver(self, request: web.Request) -> web.StreamResponse:
        for solver in self.solvers():
            if solver["identity"]["name"] == request.match_info["name"]:
                return _versioned(_filtered(solver, request.query.get("filter")), "solver-definition")
        return self.refusal(404, "Solver does not exist or apitoken does not have access")

    async def list_regions(self, request: web.Request) -> web.StreamResponse:
        region = {"code": "emulated", "name": "This machine", "endpoint": f"http://{request.host}{self.path}/"}
        kind = "application/vnd.dwave.metadata.regions+json; version=1.0.0"
        return web.Response(text=json.dumps([region]), headers={"Content-Type": kind, "Cache-Control": "no-store"})

    # Problems

    async def submit(self, request: web.Request) -> web.StreamResponse:
        """A list is answered with an entry for each problem, a single problem with its state or an error."""
        content = json.loads(await request.read())
        if not isinstance(content, list):
            entry = self._take(content)
            if "error_code" in entry:
                return self.refusal(entry["error_code"], entry["error_msg"])
            return _versioned(entry, "problems")
        return _versioned([self._take(problem) for problem in content], "problems")

    def _take(self, problem: Any) -> dict[str, Any]:
        try:
            body, shots = self._checked(problem)
        except Refused as refused:
            return {"error_code": refused.status, "error_msg": str(refused)}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return {"error_code": 400, "error_msg": f"the problem cannot be read: {type(error).__name__}: {error}"}
        return _status(self.accept(body, problem.get("label"), shots))

    def _checked(self, problem: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
        asked = problem["solver"]
        identity: dict[str, Any] = {"name": asked} if isinstance(asked, str) else asked
        solver = next((one for one in self.solvers() if one["identity"]["name"] == identity["name"]), None)
        if solver is None:
            raise Refused(404, "Solver does not exist or apitoken does not have access")
        version = identity.get("version") or {}
        if version.get("graph_id", self.graph_id) != self.graph_id and solver["identity"]["name"] != hybrid.NAME:
            raise Refused(400, f"the solver's working graph is {self.graph_id}, not {version['graph_id']}")
        described, params = solver["properties"], problem.get("params") or {}
        if problem["type"] not in described["supported_problem_types"]:
            raise Refused(400, f"{identity['name']} takes no problems of type {problem['type']}")
        for name in params:
            if name not in described["parameters"]:
                raise Refused(400, f"{name} is not a parameter of {identity['name']}")
        body = {"problem": {**problem, "solver": solver["identity"], "params": params}}
        if problem["type"] == "bqm":
            return {**body, **self._checked_upload(problem["data"], params)}, 1
        return {**body, **self._programmed(problem, params)}, int(params.get("num_reads", 1))

    def _programmed(self, problem: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
        """The problem as spins on qubits, so that a job outlives the graph that it was sent for."""
        if problem["data"]["format"] != "qp":
            raise Refused(400, "the solver takes problems in the format qp")
        time_us = float(params.get("annealing_time") or annealing.DEFAULT_ANNEALING_TIME_US)
        reads = params.get("num_reads", 1)
        described = self.properties
        for name, value in (("num_reads", reads), ("annealing_time", time_us)):
            low, high = described[f"{name}_range"]
            if not low <= value <= high or (name == "num_reads" and int(value) != value):
                raise Refused(400, f"{name} must be in [{low:g}, {high:g}], not {value}")
        h, j = qp.decoded(problem["data"], described)
        if problem["type"] == "qubo":
            h, j = qp.spins(h, j)
        overload = annealing.overload(h, j, described)
        if params.get("auto_scale", True):
            scale = 1 / overload if overload else 1.0
            h, j = {qubit: scale * bias for qubit, bias in h.items()}, [[u, v, scale * bias] for u, v, bias in j]
        elif overload > 1:
            raise Refused(400, f"a bias exceeds the solver's range by the factor {overload:.3g}")
        times = annealing.timing(described, len(h), int(reads), time_us)
        if times["qpu_access_time"] > described["problem_run_duration_range"][1]:
            raise Refused(400, f"the run duration of {times['qpu_access_time']:.0f} us exceeds the solver's range")
        return {"h": sorted(h.items()), "j": j, "timing": times, "num_qubits": described["num_qubits"]}

    def _checked_upload(self, data: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
        content = self.uploaded.get(data["data"]) if data["format"] == "ref" else None
        if content is None:
            raise Refused(400, "the problem's data was not uploaded")
        time_s = hybrid.checked_time_s(content, params.get("time_limit"))
        return {"bqm": base64.b64encode(content).decode(), "time_s": time_s}

    async def list_problems(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        if "id" in query:
            return await self._states(query["id"].split(","), min(float(query.get("timeout", 0)), LONGEST_POLL_S))
        jobs = self.jobs.find(query["label"]) if "label" in query else self.jobs.all()
        found = [_status(job) for job in reversed(jobs)]
        for key in ("status", "solver"):
            if key in query:
                found = [one for one in found if query[key] in (one[key], one["solver"]["name"])]
        return _versioned(found[: int(query.get("max_results", 1000))], "problems")

    async def _states(self, names: list[str], timeout_s: float) -> web.StreamResponse:
        """With a time-out, when one of them has ended or the time is over."""
        until = time.monotonic() + timeout_s
        while True:
            jobs = [job for name in names if (job := self.jobs.get(name)) is not None]
            left_s = until - time.monotonic()
            if not jobs:
                return self.refusal(404, UNKNOWN_PROBLEM)
            if left_s <= 0 or any(job.ended for job in jobs):
                return _versioned([_status(job) for job in jobs], "problems")
            await self.jobs.change(left_s)

    async def show_problem(self, request: web.Request) -> web.StreamResponse:
        job = self.jobs.get(request.match_info["id"])
        if job is None:
            return self.refusal(404, UNKNOWN_PROBLEM)
        return _versioned(_status(job) | ({"answer": job.answer} if job.state == "done" else {}), "problem")

    async def show_answer(self, request: web.Request) -> web.StreamResponse:
        job = self.jobs.get(request.match_info["id"])
        if job is None or job.state != "done":
            return self.refusal(404, UNKNOWN_PROBLEM if job is None else "Problem has no answer")
        return _versioned({"answer": job.answer}, "problem-answer")

    async def show_info(self, request: web.Request) -> web.StreamResponse:
        job = self.jobs.get(request.match_info["id"])
        if job is None:
            return self.refusal(404, UNKNOWN_PROBLEM)
        problem, state = job.body["problem"], _status(job)
        metadata = {"submitted_by": "emulated", "messages": [], **{key: state[key] for key in state if key != "id"}}
        info = {"id": job.id, "data": problem["data"], "params": problem["params"], "metadata": metadata}
        return _versioned(info | ({"answer": job.answer} if job.state == "done" else {}), "problem-data")

    async def show_messages(self, request: web.Request) -> web.StreamResponse:
        known = self.jobs.get(request.match_info["id"]) is not None
        return _versioned([], "problem-message") if known else self.refusal(404, UNKNOWN_PROBLEM)

    async def cancel_several(self, request: web.Request) -> web.StreamResponse:
        names = json.loads(await request.read())
        return _versioned([self._cancelled(str(name)) for name in names], "problems")

    async def cancel_one(self, request: web.Request) -> web.StreamResponse:
        entry = self._cancelled(request.match_info["id"])
        if "error_code" in entry:
            return self.refusal(entry["error_code"], entry["error_msg"])
        return _versioned(entry, "problem")

    def _cancelled(self, name: str) -> dict[str, Any]:
        job = self.jobs.get(name)
        if job is None:
            return {"error_code": 404, "error_msg": UNKNOWN_PROBLEM}
        if job.ended:
            return {"error_code": 409, "error_msg": "Problem has been finished."}
        self.jobs.cancel(name)
        return _status(self.jobs.get(name) or job)

    # Uploads, which are kept in memory only: what was submitted has its data in the job

    async def begin_upload(self, _: web.Request) -> web.StreamResponse:
        name = str(uuid.uuid4())
        self.uploads[name] = {}
        return web.json_response({"id": name})

    async def show_upload(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["id"]
        if name in self.uploaded:
            return web.json_response({"status": "UPLOAD_COMPLETED", "parts": []})
        if name not in self.uploads:
            return self.refusal(404, "there is no such upload")
        parts = [{"part_number": number, "checksum": _md5(part)} for number, part in sorted(self.uploads[name].items())]
        return web.json_response({"status": "UPLOAD_IN_PROGRESS", "parts": parts})

    async def take_part(self, request: web.Request) -> web.StreamResponse:
        name, number, content = request.match_info["id"], request.match_info["number"], await request.read()
        if name not in self.uploads or not number.isdecimal():
            return self.refusal(404, "there is no such upload")
        claimed = request.headers.get("Content-MD5", "")
        if claimed != base64.b64encode(bytes.fromhex(_md5(content))).decode():
            return self.refusal(400, "Content-MD5 does not fit the content")
        self.uploads[name][int(number)] = content
        return web.json_response({})

    async def combine(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["id"]
        if name not in self.uploads:
            return self.refusal(404, "there is no such upload")
        parts = [part for _, part in sorted(self.uploads[name].items())]
        if json.loads(await request.read())["checksum"] != _md5(b"".join(bytes.fromhex(_md5(part)) for part in parts)):
            return self.refusal(400, "the checksum does not fit the parts")
        self.uploaded[name] = b"".join(parts)
        del self.uploads[name]
        return web.json_response({})

    # The machine

    def simulate(self, job: Job) -> dict[str, Any]:
        if "bqm" in job.body:
            content = base64.b64decode(job.body["bqm"])
            return hybrid.solved(content, job.body["time_s"], job.id, self.seed_of(job))
        time_us = job.body["timing"]["qpu_anneal_time_per_sample"]
        h, j = dict(job.body["h"]), job.body["j"]
        spins = annealing.sampled(h, j, job.shots, time_us, self.config.noise, self.seed_of(job))
        return qp.answer(job.body, ((spins + 1) // 2).astype(np.uint8))

    def spoil(self, job: Job, answer: dict[str, Any], fault: str) -> dict[str, Any]:
        if "bqm" in job.body:
            # A hybrid solver gives one sample: none of it can be missing.
            return hybrid.all_selected(answer) if fault == "infeasible-samples" else answer
        rows = qp.rows(answer)
        return qp.answer(job.body, np.ones_like(rows) if fault == "infeasible-samples" else rows[: len(rows) // 2])


def _solver(identity: dict[str, Any], about: str, described: Mapping[str, Any], load: float) -> dict[str, Any]:
    return {
        "identity": identity,
        "status": "ONLINE",
        "description": about,
        "properties": dict(described),
        "avg_load": load,
    }


def _filtered(solver: dict[str, Any], wanted: str | None) -> dict[str, Any]:
    """`all` or `none`, then `-field` or `+field`; a field of the properties has their name and a dot before it."""
    kept: dict[str, Any] = {**solver, "properties": dict(solver["properties"])}
    for step in (wanted or "all").split(","):
        owner, name = (kept, step[1:])
        source: Mapping[str, Any] = solver
        if name.startswith("properties."):
            owner, source, name = kept.setdefault("properties", {}), solver["properties"], name.split(".", 1)[1]
        if step == "none":
            kept = {}
        elif step.startswith("-"):
            owner.pop(name, None)
        elif step.startswith("+") and name in source:
            owner[name] = source[name]
    return kept


def _status(job: Job) -> dict[str, Any]:
    problem = job.body["problem"]
    state = {
        "id": job.id,
        "type": problem["type"],
        "solver": problem["solver"],
        "label": job.label,
        "status": STATES[job.state],
        "submitted_on": _moment(job.created_at),
    }
    if job.ended_at is not None:
        state["solved_on"] = _moment(job.ended_at)
    if job.error:
        state["error_message"] = job.error
    return state


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _versioned(content: Any, kind: str) -> web.Response:
    # Not stored by the client: another server may listen at this address tomorrow.
    headers = {
        "Content-Type": f"application/vnd.dwave.sapi.{kind}+json; version=3.0.0",
        "Cache-Control": "no-store",
    }
    return web.Response(body=json.dumps(content).encode(), headers=headers)


def _md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()
