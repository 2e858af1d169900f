"""The frame of an emulated device: routes with their phases, faults, a queue for one worker, one log line a call.

A vendor's module adds the routes, the shape of its errors and the simulation. A call that it does not know is answered
with 501 and logged, never guessed.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from aiohttp import web

from qonduit.emulators.credential import Token
from qonduit.emulators.faults import Rule, Script
from qonduit.emulators.latency import Latency
from qonduit.emulators.store import Job, JobStore
from qonduit.errors import QonduitError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
LOG = logging.getLogger("qonduit.emulators")
LARGEST_BODY = 1 << 28
MALFORMED = b'{"cut": [1, 2'


class EmulatorError(QonduitError):
    """A job that the emulated device cannot run: it ends as failed with this sentence."""


class Refused(Exception):  # noqa: N818 - an answer, not a failure of the server
    """A call that a handler does not carry out, with the status and the sentence that the vendor would send."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Route(NamedTuple):
    method: str
    path: str
    phase: str
    handler: Handler


@dataclass(frozen=True)
class Config:
    """What `qonduit emulate` was asked; `qubits` of None is the vendor's default."""

    qubits: int | None = None
    noise: bool = True
    seed: int = 0
    latency: Latency = field(default_factory=Latency)
    topology: str | None = None


class Emulator(ABC):
    vendor: ClassVar[str]
    path: ClassVar[str] = ""
    """What follows host and port in the address that clients are given."""
    unreadable: ClassVar[int] = 400
    """The status that answers a body which is not what the API asks for."""
    port: ClassVar[int]
    """Where it listens when no port is asked for."""

    def __init__(self, config: Config, jobs: JobStore, token: Token) -> None:
        self.config = config
        self.jobs = jobs
        self.token = token
        self.script = Script((), config.seed)
        self.maintained_until = 0.0
        self.refuse: Callable[[float], Awaitable[None]] = _stay_open

    @abstractmethod
    def routes(self) -> Iterable[Route]: ...

    @abstractmethod
    def authorised(self, request: web.Request) -> bool: ...

    @abstractmethod
    def refusal(self, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> web.StreamResponse:
        """An error in the vendor's own shape."""

    @abstractmethod
    def simulate(self, job: Job) -> dict[str, Any]:
        """The device's work, in a thread of its own, one job at a time."""

    @abstractmethod
    def spoil(self, job: Job, answer: dict[str, Any], fault: str) -> dict[str, Any]:
        """The answer with 'infeasible-samples' or 'missing-shots'."""

    @abstractmethod
    def recalibrate(self) -> None:
        """A new calibration: what was prepared for the old one is refused from now on."""

    def device_options(self) -> dict[str, Any]:
        """The options of a device file that fits this server."""
        return {}

    def phase_of(self, request: web.Request, route: Route) -> str:  # noqa: ARG002 - for vendors that need it
        """For a vendor whose one address serves several phases, told apart by the query."""
        return route.phase

    def expire_tokens(self) -> None:
        self.token.renew()

    def accept(self, body: dict[str, Any], label: str | None, shots: int) -> Job:
        """Takes a submission: from here on it counts."""
        return self.jobs.add(body, label, shots, self.script.on_job())

    def seed_of(self, job: Job) -> int:
        """The same for the same work on a server with the same seed, whatever ran before."""
        return zlib.crc32(f"{self.config.seed}:{job.label}:{job.shots}".encode())

    def application(self, control: Iterable[web.RouteDef]) -> web.Application:
        # Compressed bodies are inflated by aiohttp; the vendors' clients send gzip and deflate.
        app = web.Application(client_max_size=LARGEST_BODY)
        app.router.add_routes(control)
        for route in self.routes():
            app.router.add_route(route.method, route.path, self._watched(route))
        app.router.add_route("*", "/{unknown:.*}", self._watched(Route("*", "", "other", self._not_implemented)))
        return app

    async def _not_implemented(self, request: web.Request) -> web.StreamResponse:
        LOG.warning("not implemented: %s %s", request.method, request.path)
        return self.refusal(501, f"this emulated server does not implement {request.method} {request.path}")

    def _watched(self, route: Route) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            begun = time.monotonic()
            phase = self.phase_of(request, route)
            rule = self.script.on_call(phase)
            response = await self._answer(request, route, rule)
            struck = f" fault={rule.fault}" if rule else ""
            milliseconds = 1000 * (time.monotonic() - begun)
            # The query may carry what a client would not want in a log, so only the path is written.
            LOG.info("%s %s %s %s %.0fms%s", request.method, request.path, phase, response.status, milliseconds, struck)
            return response

        return handle

    async def _answer(self, request: web.Request, route: Route, rule: Rule | None) -> web.StreamResponse:
        if rule is not None:
            return await self._struck(request, route, rule)
        if time.monotonic() < self.maintained_until:
            left = max(1, round(self.maintained_until - time.monotonic()))
            return self.refusal(503, "the device is in maintenance", {"Retry-After": str(left)})
        return await self._handled(request, route)

    async def _handled(self, request: web.Request, route: Route) -> web.StreamResponse:
        if route.phase != "auth" and not self.authorised(request):
            return self.refusal(401, "the token is missing, wrong or expired")
        try:
            return await route.handler(request)
        except Refused as refused:
            return self.refusal(refused.status, str(refused))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            return self.refusal(self.unreadable, f"the request cannot be read: {type(error).__name__}: {error}")

    async def _struck(self, request: web.Request, route: Route, rule: Rule) -> web.StreamResponse:
        done = rule.accepted or rule.fault in ("reset-after", "malformed", "refuse")
        if rule.fault == "token-expires":
            self.expire_tokens()
        elif rule.fault == "calibration-changes":
            self.recalibrate()
        elif rule.fault == "maintenance":
            self.maintained_until = time.monotonic() + rule.seconds
        if rule.fault in ("token-expires", "calibration-changes", "maintenance"):
            return await self._answer(request, route, None)
        response = await self._handled(request, route) if done else web.Response()
        if rule.status is not None:
            headers = {} if rule.retry_after_s is None else {"Retry-After": f"{rule.retry_after_s:g}"}
            return self.refusal(rule.status, "a scripted fault", headers)
        if rule.fault == "hang":
            await asyncio.sleep(rule.seconds)
        if rule.fault == "refuse":
            response.force_close()
            await self.refuse(rule.seconds)
        elif rule.fault == "malformed":
            return web.Response(body=MALFORMED, status=response.status, content_type=response.content_type)
        else:
            _reset(request)
        return response

    async def work(self) -> None:
        """Runs the jobs in their order, one at a time, as a QPU does."""
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, thread_name_prefix="qpu") as qpu:
            while True:
                job = self.jobs.next()
                if job is None:
                    await self.jobs.change()
                    continue
                await asyncio.sleep(max(0.0, job.created_at + self.config.latency.queue_s - time.time()))
                # A job that was cancelled while it waited must not start.
                if (now := self.jobs.get(job.id)) is None or now.state != "queued":
                    continue
                job = self.jobs.start(job.id)
                until = time.monotonic() + self.config.latency.run_s(job.shots)
                state, answer, error = await loop.run_in_executor(qpu, self._outcome, job)
                while time.monotonic() < until and (now := self.jobs.get(job.id)) is not None and not now.ended:
                    await self.jobs.change(until - time.monotonic())
                self.jobs.end(job.id, state, answer, error)
                LOG.info("job %s %s%s", job.id, state, f": {error}" if error else "")

    def _outcome(self, job: Job) -> tuple[str, dict[str, Any] | None, str | None]:
        if job.fault == "job-fails":
            return "failed", None, "the device failed (a scripted fault)"
        if job.fault == "job-cancelled":
            return "cancelled", None, "cancelled by the operator (a scripted fault)"
        try:
            answer = self.simulate(job)
        except EmulatorError as error:
            return "failed", None, str(error)
        except Exception as error:
            LOG.exception("job %s", job.id)
            return "failed", None, f"the simulation failed: {type(error).__name__}: {error}"
        if job.fault in ("infeasible-samples", "missing-shots"):
            answer = self.spoil(job, answer, job.fault)
        return "done", answer, None


async def _stay_open(_: float) -> None:
    """A server that has no door of its own to shut."""


def _reset(request: web.Request) -> None:
    """Ends the connection as a broken network does: the client sees a reset, not an orderly end."""
    transport = request.transport
    if transport is None:
        return
    connection = transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
