"""An emulated Pasqal cloud: login, devices, batches, jobs and results, as pasqal-cloud speaks to them.

Every job of a batch is one job of the store; the machine that runs them is `pasqal_machine`. A query that would have
to be guessed is answered with 501.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from aiohttp import web

from qonduit.emulators import pasqal_machine as machine
from qonduit.emulators.credential import Token
from qonduit.emulators.emulator import Config, Emulator, Refused, Route
from qonduit.emulators.store import Job, JobStore
from qonduit.errors import UsageError

CORE, ACCOUNT = "/core-fast/api", "/account/api"
PROJECT = "00000000-0000-4000-8000-000000000001"
USER = "user@emulated.invalid"
STATES = {"queued": "PENDING", "running": "RUNNING", "done": "DONE", "failed": "ERROR", "cancelled": "CANCELED"}
TOKEN_LASTS_S = 24 * 3600
PAGE = 100
PAGING = ("offset", "limit", "order_by", "order_by_direction")


class PasqalEmulator(Emulator):
    vendor: ClassVar[str] = "pasqal"
    unreadable: ClassVar[int] = 422
    port: ClassVar[int] = 8722

    def __init__(self, config: Config, jobs: JobStore, token: Token) -> None:
        super().__init__(config, jobs, token)
        if config.topology is not None:
            raise UsageError("--topology: atoms of the emulated 'pasqal' are placed by the client; leave it out")
        # Loaded now, so that the first job does not wait for it.
        import pulser_simulation  # noqa: F401

        self.state = State(token.path.parent / "pasqal.json")
        self.batches: dict[str, list[str]] = {}
        for job in jobs.all():
            self.batches.setdefault(job.body["batch"]["id"], []).append(job.id)
        self._calibrate()

    def _calibrate(self) -> None:
        self.device = machine.device(self.config.qubits, self.state.calibration)
        self.specs = self.device.to_abstract_repr()

    def recalibrate(self) -> None:
        self.state.calibration += 1
        self.state.save()
        self._calibrate()

    def device_options(self) -> dict[str, Any]:
        return {"project_id": PROJECT, "username": USER, "device": machine.NAME}

    def routes(self) -> Iterable[Route]:
        one, several = f"{CORE}/v2/batches/{{batch}}", f"{CORE}/v1/batches"
        yield Route("POST", "/oauth/token", "auth", self.log_in)
        yield Route("GET", f"{ACCOUNT}/v1/projects", "other", self.list_projects)
        yield Route("GET", f"{CORE}/v1/devices/specs", "discover", self.list_specs)
        yield Route("GET", f"{CORE}/v1/devices/public-specs", "discover", self.list_public_specs)
        yield Route("POST", several, "submit", self.create_batch)
        yield Route("GET", several, "find", self.list_batches)
        yield Route("PATCH", f"{several}/cancel", "cancel", self.cancel_batches)
        yield Route("GET", f"{several}/{{batch}}/status", "poll", self.show_batch_status)
        yield Route("PATCH", f"{several}/{{batch}}/tags", "other", self.set_tags)
        yield Route("GET", one, "poll", self.show_batch)
        yield Route("POST", f"{one}/jobs", "submit", self.add_jobs)
        yield Route("PATCH", f"{one}/complete", "other", self.close_batch)
        yield Route("PATCH", f"{one}/cancel", "cancel", self.cancel_batch)
        yield Route("GET", f"{CORE}/v2/jobs", "fetch", self.list_jobs)
        yield Route("GET", f"{CORE}/v2/jobs/{{job}}", "poll", self.show_job)
        yield Route("PATCH", f"{CORE}/v2/jobs/{{job}}/cancel", "cancel", self.cancel_job)
        yield Route("GET", f"{CORE}/v1/jobs/{{job}}/status", "poll", self.show_job_status)
        yield Route("GET", f"{CORE}/v1/jobs/{{job}}/results_link", "fetch", self.show_link)
        yield Route("GET", "/results/{job}", "fetch", self.show_results)

    def refusal(self, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> web.StreamResponse:
        kind = "fail" if status < 500 else "error"
        content = {"status": kind, "code": str(status), "message": sentence, "data": {"description": sentence}}
        return web.json_response(content, status=status, headers=headers)

    # Who may ask

    def authorised(self, request: web.Request) -> bool:
        """By a token of the login or the one in the token file; what a link leads to, by its signature."""
        if request.path.startswith("/results/"):
            return hmac.compare_digest(request.query.get("signature", ""), self._sign(request.path))
        if request.path.endswith("/public-specs"):
            return True
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if hmac.compare_digest(given.encode(), self.token.value.encode()):
            return True
        until, _, signature = given.partition(".")
        signed = hmac.compare_digest(signature.encode(), self._sign(until).encode())
        return signed and until.isdigit() and int(until) > time.time()

    def _sign(self, text: str) -> str:
        """By the secret in the token file, so that a new one ends every token that was given out."""
        return hmac.new(self.token.value.encode(), text.encode(), hashlib.sha256).hexdigest()

    async def log_in(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        right = hmac.compare_digest(str(form.get("password", "")).encode(), self.token.value.encode())
        if not right or not form.get("username"):
            wrong = {"error": "invalid_grant", "error_description": "Wrong email or password."}
            return web.json_response(wrong, status=403)
        until = str(int(time.time()) + TOKEN_LASTS_S)
        token = f"{until}.{self._sign(until)}"
        return web.json_response({"access_token": token, "expires_in": TOKEN_LASTS_S, "token_type": "Bearer"})

    async def list_projects(self, _: web.Request) -> web.StreamResponse:
        return _ok([{"id": PROJECT, "name": "emulated", "status": "ACTIVE"}])

    # Devices

    async def list_specs(self, _: web.Request) -> web.StreamResponse:
        return _ok({machine.NAME: self.specs})

    async def list_public_specs(self, _: web.Request) -> web.StreamResponse:
        return _ok([{"device_type": machine.NAME, "specs": self.specs}])

    # Batches

    async def create_batch(self, request: web.Request) -> web.StreamResponse:
        asked = json.loads(await request.read())
        if asked.get("project_id") != PROJECT:
            raise Refused(403, f"the project {asked.get('project_id')} is not yours")
        tags = asked.get("tags") or []
        if not all(isinstance(tag, str) for tag in tags):
            raise Refused(422, "tags are a list of texts")
        batch = {
            "id": str(uuid.uuid4()),
            "sequence_builder": asked.get("sequence_builder"),
            "device_type": asked.get("device_type"),
            "backend_configuration": asked.get("backend_configuration"),
            "webhook": asked.get("webhook"),
            "open": bool(asked.get("open")),
            "tags": tags,
        }
        self._take(batch, asked.get("jobs"))
        return _ok(self._batch(batch["id"]))

    def _take(self, batch: dict[str, Any], jobs: Any) -> None:
        if not isinstance(jobs, list) or not jobs:
            raise Refused(400, "a batch needs a job")
        works = [machine.work_of(batch, job, self.device) for job in jobs]
        label = batch["tags"][0] if batch["tags"] else None
        for work in works:
            taken = self.accept({"batch": batch, "work": asdict(work)}, label, work.shots)
            self.batches.setdefault(batch["id"], []).append(taken.id)

    async def add_jobs(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["batch"]
        if not self._batch(name)["open"]:
            raise Refused(400, "the batch is closed and takes no more jobs")
        self._take(self._jobs_of(name)[0].body["batch"], json.loads(await request.read()))
        return _ok(self._batch(name))

    async def show_batch(self, request: web.Request) -> web.StreamResponse:
        return _ok(self._batch(request.match_info["batch"]))

    async def show_batch_status(self, request: web.Request) -> web.StreamResponse:
        shown = self._batch(request.match_info["batch"])
        return _ok({name: shown[name] for name in ("id", "status", "jobs_count", "jobs_count_per_status")})

    async def list_batches(self, request: web.Request) -> web.StreamResponse:
        _known(request, "tag", "id", "status", "device_type", "open", "project_id")
        tag, wanted = request.query.get("tag"), request.query
        # A tag that was set at the start is the label of its jobs, which the store finds without reading them all.
        names = [job.body["batch"]["id"] for job in self.jobs.find(tag)] if tag else list(self.batches)
        names += [name for name, tags in self.state.tags.items() if tag in tags]
        shown = [self._batch(name) for name in dict.fromkeys(names) if self._rows(name)]
        for field in ("id", "status", "device_type", "project_id"):
            if field in wanted:
                shown = [batch for batch in shown if batch[field] in wanted.getall(field)]
        if "open" in wanted:
            shown = [batch for batch in shown if str(batch["open"]).lower() == wanted["open"].lower()]
        return _page([batch for batch in shown if not tag or tag in batch["tags"]], request)

    async def close_batch(self, request: web.Request) -> web.StreamResponse:
        name = self._batch(request.match_info["batch"])["id"]
        self.state.closed.add(name)
        self.state.save()
        return _ok(self._batch(name))

    async def set_tags(self, request: web.Request) -> web.StreamResponse:
        name = self._batch(request.match_info["batch"])["id"]
        self.state.tags[name] = [str(tag) for tag in json.loads(await request.read())]
        self.state.save()
        return _ok(self._batch(name))

    async def cancel_batch(self, request: web.Request) -> web.StreamResponse:
        return _ok(self._cancelled(request.match_info["batch"]))

    async def cancel_batches(self, request: web.Request) -> web.StreamResponse:
        done, errors = [], {}
        for name in json.loads(await request.read())["batch_ids"]:
            try:
                done.append(self._cancelled(name))
            except Refused as refused:
                errors[name] = str(refused)
        return _ok({"batches": done, "errors": errors})

    def _cancelled(self, name: str) -> dict[str, Any]:
        jobs = self._jobs_of(name)
        if all(job.ended for job in jobs):
            raise Refused(400, f"the batch {name} has ended and cannot be cancelled")
        for job in jobs:
            self.jobs.cancel(job.id)
        self.state.closed.add(name)
        self.state.save()
        return self._batch(name)

    def _rows(self, name: str) -> list[Job]:
        found = [self.jobs.get(job) for job in self.batches.get(name, ())]
        return [job for job in found if job is not None]

    def _jobs_of(self, name: str) -> list[Job]:
        jobs = self._rows(name)
        if not jobs:
            raise Refused(404, f"there is no batch {name}")
        return jobs

    def _batch(self, name: str) -> dict[str, Any]:
        jobs = self._jobs_of(name)
        batch = jobs[0].body["batch"]
        is_open = batch["open"] and name not in self.state.closed
        states = [STATES[job.state] for job in jobs]
        times = [_time(job.ended_at or job.started_at or job.created_at) for job in jobs]
        return {
            **batch,
            "device_type": jobs[0].body["work"]["device_type"],
            "tags": self.state.tags.get(name, batch["tags"]),
            "open": is_open,
            "complete": not is_open,
            "status": _status(states, is_open),
            "project_id": PROJECT,
            "user_id": USER,
            "created_at": _time(jobs[0].created_at),
            "updated_at": max(time for time in times if time),
            "start_datetime": _time(jobs[0].started_at),
            "end_datetime": _time(jobs[-1].ended_at),
            "jobs_count": len(jobs),
            "jobs_count_per_status": {state: states.count(state) for state in dict.fromkeys(states)},
        }

    # Jobs

    def _job(self, request: web.Request) -> Job:
        job = self.jobs.get(request.match_info["job"])
        if job is None:
            raise Refused(404, f"there is no job {request.match_info['job']}")
        return job

    async def list_jobs(self, request: web.Request) -> web.StreamResponse:
        _known(request, "batch_id", "id", "status")
        wanted = request.query
        batches = wanted.getall("batch_id", list(self.batches))
        shown = [_job_view(job) for name in batches for job in self._rows(name)]
        for field in ("id", "status"):
            if field in wanted:
                shown = [job for job in shown if job[field] in wanted.getall(field)]
        return _page(shown, request)

    async def show_job(self, request: web.Request) -> web.StreamResponse:
        return _ok(_job_view(self._job(request)))

    async def show_job_status(self, request: web.Request) -> web.StreamResponse:
        job = self._job(request)
        return _ok({"id": job.id, "status": STATES[job.state]})

    async def cancel_job(self, request: web.Request) -> web.StreamResponse:
        job = self._job(request)
        if job.ended:
            raise Refused(400, f"the job {job.id} has ended and cannot be cancelled")
        self.jobs.cancel(job.id)
        return _ok(_job_view(self._job(request)))

    async def show_link(self, request: web.Request) -> web.StreamResponse:
        job = self._job(request)
        path = f"/results/{job.id}"
        link = f"{request.scheme}://{request.host}{path}?signature={self._sign(path)}"
        return _ok({"results_link": link if job.state == "done" else None})

    async def show_results(self, request: web.Request) -> web.StreamResponse:
        job = self._job(request)
        if job.answer is None:
            raise Refused(404, f"the job {job.id} has no result")
        return web.json_response(job.answer)

    # The machine

    def simulate(self, job: Job) -> dict[str, Any]:
        return machine.run(machine.Work(**job.body["work"]), self.config.noise, self.seed_of(job))

    def spoil(self, job: Job, answer: dict[str, Any], fault: str) -> dict[str, Any]:
        counter: dict[str, int] = answer["counter"]
        width = len(next(iter(counter)))
        spoilt = {"1" * width: job.shots}
        if fault == "missing-shots":
            # Every second of the outcomes is lost, one at least is left.
            spoilt = {bits: counter[bits] for bits in sorted(counter)[::2]}
            if len(counter) == 1:
                spoilt = {bits: max(1, count // 2) for bits, count in counter.items()}
        return {**answer, "counter": spoilt, "serialised_results": None}


class State:
    """What clients changed after a batch was taken, and the calibration: a small file beside the jobs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        self.calibration: int = known.get("calibration", 0)
        self.closed: set[str] = set(known.get("closed", ()))
        self.tags: dict[str, list[str]] = known.get("tags", {})

    def save(self) -> None:
        content = {"calibration": self.calibration, "closed": sorted(self.closed), "tags": self.tags}
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps(content), encoding="utf-8")
        fresh.replace(self._path)


def _status(states: list[str], is_open: bool) -> str:
    if "RUNNING" in states:
        return "RUNNING"
    if "PENDING" in states or is_open:
        return "PENDING"
    if "ERROR" in states:
        return "ERROR"
    return "DONE" if "DONE" in states else "CANCELED"


def _job_view(job: Job) -> dict[str, Any]:
    work = job.body["work"]
    return {
        "id": job.id,
        "batch_id": job.body["batch"]["id"],
        "project_id": PROJECT,
        "status": STATES[job.state],
        "runs": job.shots,
        "variables": work["variables"] or None,
        "sequence": None if work["sequence"] == job.body["batch"]["sequence_builder"] else work["sequence"],
        "errors": None if job.error is None else [job.error],
        "created_at": _time(job.created_at),
        "updated_at": _time(job.ended_at or job.started_at or job.created_at),
        "start_timestamp": _time(job.started_at),
        "end_timestamp": _time(job.ended_at),
    }


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()


def _known(request: web.Request, *names: str) -> None:
    for name in request.query:
        if name not in (*names, *PAGING):
            raise Refused(501, f"this emulated server does not implement the filter '{name}'")


def _ok(data: Any, **more: Any) -> web.Response:
    return web.json_response({"status": "success", "code": "200", "message": "OK", "data": data, **more})


def _page(items: list[dict[str, Any]], request: web.Request) -> web.Response:
    offset = int(request.query.get("offset", 0))
    page = items[offset : offset + min(PAGE, int(request.query.get("limit", PAGE)))]
    return _ok(page, pagination={"total": len(items), "offset": offset, "end": offset + len(page)})
