"""An emulated IQM server: the calls of iqm-client and of IQM's API v1 that concern circuits, on a simulated chip.

A submission must fit the chip and its current calibration set, as on a machine that was calibrated anew. Pulse-level
calls, time slots and token management are not here: they are answered with 501.
"""

from __future__ import annotations

import hmac
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

from aiohttp import web

from qonduit.emulators.credential import Token
from qonduit.emulators.emulator import Config, Emulator, Route
from qonduit.emulators.iqm_chip import chip
from qonduit.emulators.iqm_circuit import LIMITS, check_request, mapping_of, run_circuit
from qonduit.emulators.store import Job, JobStore
from qonduit.errors import DataError

API = "/api/v1"
SPACE = uuid.UUID("6f4f3a2e-7a2c-5d1b-9e64-0c1d5c1b9a77")
VERSION = "emulated"
LONGEST_TAG = 50
LONGEST_WAIT_S = 30
STATUS = {
    "queued": "waiting",
    "running": "processing",
    "done": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}
CODES = {
    400: "invalid_input",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    409: "conflict",
    413: "request_payload_too_large",
    423: "locked",
    429: "rate_limit_exceeded",
    501: "not_implemented",
    502: "bad_gateway",
    503: "service_unavailable",
}


class IqmEmulator(Emulator):
    vendor = "iqm"
    port: ClassVar[int] = 8711

    def __init__(self, config: Config, jobs: JobStore, token: Token) -> None:
        super().__init__(config, jobs, token)
        self.chip = chip(config.qubits, config.topology)

    @property
    def calibration(self) -> str:
        """The id of the current calibration set; a server with the same seed begins with the same."""
        return str(uuid.uuid5(SPACE, f"{self.config.seed}:{self.chip.name}:{self.jobs.calibration}"))

    @property
    def computer(self) -> dict[str, Any]:
        name = self.chip.name
        ids = {"id": str(uuid.uuid5(SPACE, name)), "alias": name, "display_name": f"Emulated {name}"}
        return {**ids, "station_control_version": VERSION, "proxy_path": None}

    def device_options(self) -> dict[str, Any]:
        return {"quantum_computer": self.chip.name}

    def recalibrate(self) -> None:
        self.jobs.calibration += 1

    def authorised(self, request: web.Request) -> bool:
        given = request.headers.get("Authorization", "").encode()
        return hmac.compare_digest(given, f"Bearer {self.token.value}".encode())

    def refusal(
        self, status: int, sentence: str, headers: Mapping[str, str] | None = None, code: str | None = None
    ) -> web.StreamResponse:
        content = {
            "message": sentence,
            "error_code": code or CODES.get(status, "internal_error"),
            "request_id": str(uuid.uuid4()),
            "source": "iqm-server",
        }
        return web.json_response(content, status=status, headers=headers)

    def routes(self) -> Iterable[Route]:
        computer, calibration, job = (
            f"{API}/quantum-computers/{{qc}}",
            f"{API}/calibration-sets/{{qc}}/{{set}}",
            f"{API}/jobs/{{job}}",
        )
        return [
            Route("GET", f"{API}/about", "discover", self._about),
            Route("GET", f"{API}/quantum-computers", "discover", self._computers),
            Route("GET", f"{computer}/health", "discover", self._health),
            Route("GET", f"{computer}/limits", "discover", self._limits),
            Route("GET", f"{computer}/queue-availability", "discover", self._queue),
            Route("GET", f"{computer}/artifacts/about", "discover", self._about_station),
            Route("GET", f"{computer}/artifacts/static-quantum-architectures", "discover", self._static),
            Route("GET", calibration, "discover", self._calibration_set),
            Route("GET", f"{calibration}/dynamic-quantum-architecture", "discover", self._dynamic),
            Route("GET", f"{calibration}/metrics", "discover", self._metrics),
            Route("POST", f"{API}/jobs/{{qc}}/circuit", "submit", self._submit),
            Route("GET", job, "poll", self._job),
            Route("GET", f"{job}/payload", "fetch", self._payload),
            Route("GET", f"{job}/artifacts/measurements", "fetch", self._measurements),
            Route("GET", f"{job}/artifacts/measurement_counts", "fetch", self._counts),
            Route("POST", f"{job}/cancel", "cancel", self._cancel),
            Route("DELETE", job, "cancel", self._delete),
        ]

    async def _about(self, _: web.Request) -> web.StreamResponse:
        return web.json_response({"version": VERSION, "server": "Qonduit's emulated IQM server"})

    async def _computers(self, _: web.Request) -> web.StreamResponse:
        return web.json_response({"quantum_computers": [self.computer]})

    async def _health(self, request: web.Request) -> web.StreamResponse:
        return self._of_computer(request, {"healthy": True, "updated_at": _time(None)})

    async def _limits(self, request: web.Request) -> web.StreamResponse:
        return self._of_computer(request, LIMITS)

    async def _queue(self, request: web.Request) -> web.StreamResponse:
        return self._of_computer(request, {"queue_length": self.jobs.waiting(), "available": []})

    async def _about_station(self, request: web.Request) -> web.StreamResponse:
        return self._of_computer(request, {"version": VERSION, "software_versions": {"iqm-emulated": VERSION}})

    async def _static(self, request: web.Request) -> web.StreamResponse:
        return self._of_computer(request, [self.chip.static_architecture()])

    async def _dynamic(self, request: web.Request) -> web.StreamResponse:
        return self._of_calibration(request, self.chip.dynamic_architecture(self.calibration))

    async def _calibration_set(self, request: web.Request) -> web.StreamResponse:
        return self._of_calibration(request, self._observed("calibration-set", []))

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        return self._of_calibration(request, self._observed("quality-metric-set", self.chip.metrics()))

    def _observed(self, kind: str, observations: list[tuple[str, float, str]]) -> dict[str, Any]:
        now, label = _time(None), self.chip.name
        about = {"dut_label": label, "invalid": False}
        made = {
            "created_timestamp": now,
            "modified_timestamp": now,
            "source": {"type": "specification_source"},
            "tags": [],
        }
        listed = [
            {
                "observation_id": number,
                "dut_field": name,
                "value": value,
                "unit": unit,
                "uncertainty": None,
                **about,
                **made,
            }
            for number, (name, value, unit) in enumerate(observations)
        ]
        described = self.calibration if kind == "quality-metric-set" else None
        ids = {"observation_set_type": kind, "observation_set_id": self.calibration, "describes_id": described}
        return {**ids, **about, "created_timestamp": now, "end_timestamp": now, "observations": listed}

    async def _submit(self, request: web.Request) -> web.StreamResponse:
        if not self._is_computer(request.match_info["qc"]):
            return self.refusal(404, "there is no such quantum computer", code="qc_not_found")
        tag = request.query.get("tag")
        if tag is not None and len(tag) > LONGEST_TAG:
            return self.refusal(400, f"a tag has at most {LONGEST_TAG} characters")
        try:
            body = await request.json()
            check_request(self.chip, self.calibration, body)
        except ValueError:
            return self.refusal(400, "the body is not JSON", code="invalid_data_format")
        except DataError as error:
            return self.refusal(400, str(error), code="invalid_job_payload")
        job = self.accept({"payload": body, "calibration_set_id": self.calibration}, tag, body.get("shots", 1))
        return web.json_response(self._about_job(job))

    async def _job(self, request: web.Request) -> web.StreamResponse:
        name, headers = request.match_info["job"], {}
        job = self.jobs.get(name)
        if job is not None and request.query.get("wait_until_terminal") == "true":
            wait = request.query.get("timeout_seconds", "10")
            if not wait.isdigit() or int(wait) > LONGEST_WAIT_S:
                return self.refusal(400, f"timeout_seconds must be from 0 to {LONGEST_WAIT_S}")
            job = await self.jobs.changed(name, int(wait))
            headers = {} if job is None or job.ended else {"IQM-Long-Poll-Timed-Out": "true"}
        if job is None:
            return self._no_job()
        return web.json_response(self._about_job(job), headers=headers)

    async def _payload(self, request: web.Request) -> web.StreamResponse:
        job = self.jobs.get(request.match_info["job"])
        if job is None:
            return self._no_job()
        return web.json_response(job.body["payload"], headers={"IQM-Job-Type": "circuit"})

    async def _measurements(self, request: web.Request) -> web.StreamResponse:
        return self._artifact(request, _measurements)

    async def _counts(self, request: web.Request) -> web.StreamResponse:
        return self._artifact(request, _counts)

    def _artifact(self, request: web.Request, form: Any) -> web.StreamResponse:
        job = self.jobs.get(request.match_info["job"])
        if job is None:
            return self._no_job()
        if job.answer is None:
            return self.refusal(404, "the job has no such artifact", code="job_artifact_not_found")
        return web.json_response([form(circuit) for circuit in job.answer["circuits"]])

    async def _cancel(self, request: web.Request) -> web.StreamResponse:
        job = self.jobs.get(request.match_info["job"])
        if job is None:
            return self._no_job()
        if job.ended:
            return self.refusal(403, f"the job is {STATUS[job.state]} already", code="illegal_job_status")
        self.jobs.cancel(job.id)
        return web.json_response(self._about_job(self.jobs.get(job.id) or job))

    async def _delete(self, request: web.Request) -> web.StreamResponse:
        job = self.jobs.get(request.match_info["job"])
        if job is None:
            return self._no_job()
        self.jobs.cancel(job.id)
        self.jobs.delete(job.id)
        return web.Response(status=204)

    def simulate(self, job: Job) -> dict[str, Any]:
        payload = job.body["payload"]
        mapping = mapping_of(payload)
        seed = self.seed_of(job)
        circuits = [
            run_circuit(self.chip, circuit, mapping, job.shots, seed + number, self.config.noise)
            for number, circuit in enumerate(payload["circuits"])
        ]
        return {"circuits": circuits}

    def spoil(self, job: Job, answer: dict[str, Any], fault: str) -> dict[str, Any]:
        def spoiled(shots: list[str]) -> list[str]:
            if fault == "infeasible-samples":
                return ["1" * len(shot) for shot in shots]
            return shots[: max(1, 2 * job.shots // 3)]

        return {"circuits": [{**circuit, "shots": spoiled(circuit["shots"])} for circuit in answer["circuits"]]}

    def _about_job(self, job: Job) -> dict[str, Any]:
        steps = [("iqm-server", "created", job.created_at), ("iqm-station-control", "received", job.started_at)]
        steps.append(("iqm-server", STATUS[job.state], job.ended_at))
        timeline = [
            {"source": source, "status": status, "timestamp": _time(when)} for source, status, when in steps if when
        ]
        error = {"message": job.error, "error_code": "execution_failed", "source": "iqm-station-control"}
        artifacts = [{"type": "measurements"}, {"type": "measurement_counts"}] if job.answer else []
        ran = job.started_at is not None and job.ended_at is not None
        return {
            "id": job.id,
            "type": "circuit",
            "qc": {"id": self.computer["id"]},
            "status": STATUS[job.state],
            "tag": job.label,
            "queue_position": self.jobs.position(job.id),
            "compilation": {"calibration_set_id": job.body["calibration_set_id"]},
            "execution": None,
            "messages": [],
            "errors": [error] if job.error else [],
            "timeline": timeline,
            "artifacts": artifacts,
            "runtime_ms": round(1000 * ((job.ended_at or 0) - (job.started_at or 0))) if ran else None,
        }

    def _is_computer(self, name: str) -> bool:
        return name in (self.computer["id"], self.computer["alias"])

    def _of_computer(self, request: web.Request, content: Any) -> web.StreamResponse:
        if not self._is_computer(request.match_info["qc"]):
            return self.refusal(404, "there is no such quantum computer", code="qc_not_found")
        return web.json_response(content)

    def _of_calibration(self, request: web.Request, content: Any) -> web.StreamResponse:
        if request.match_info["set"] not in ("default", self.calibration):
            return self.refusal(404, "there is no such calibration set", code="calibration_set_not_found")
        return self._of_computer(request, content)

    def _no_job(self) -> web.StreamResponse:
        return self.refusal(404, "there is no such job", code="job_not_found")


def _measurements(circuit: Mapping[str, Any]) -> dict[str, list[list[int]]]:
    """Of each key the bits of each shot."""
    found, begin = {}, 0
    for key, width in circuit["keys"]:
        found[key] = [[int(bit) for bit in shot[begin : begin + width]] for shot in circuit["shots"]]
        begin += width
    return found


def _counts(circuit: Mapping[str, Any]) -> dict[str, Any]:
    return {"measurement_keys": [key for key, _ in circuit["keys"]], "counts": Counter(circuit["shots"])}


def _time(unix_s: float | None) -> str:
    return (datetime.now(UTC) if unix_s is None else datetime.fromtimestamp(unix_s, UTC)).isoformat()
