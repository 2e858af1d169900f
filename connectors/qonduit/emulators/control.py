"""What a test may ask of an emulated device beside the vendor's API: its jobs and its faults, under `/_emulator`.

The token for it is in the file `control` of the server's folder; no fault strikes these calls.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import asdict

from aiohttp import web

from qonduit.emulators.credential import Token
from qonduit.emulators.emulator import Emulator
from qonduit.emulators.faults import rules_from
from qonduit.errors import DataError

HEADER = "X-Emulator-Token"


def control_routes(emulator: Emulator, token: Token) -> list[web.RouteDef]:
    async def jobs(_: web.Request) -> web.Response:
        return web.json_response([asdict(job) for job in emulator.jobs.all()])

    async def forget(_: web.Request) -> web.Response:
        emulator.jobs.clear()
        return web.json_response({})

    async def inject(request: web.Request) -> web.Response:
        try:
            rules = rules_from(await request.json(), "faults")
        except ValueError:
            return web.json_response({"error": "the body is not JSON"}, status=422)
        except DataError as error:
            return web.json_response({"error": str(error)}, status=422)
        for rule in [rule for rule in rules if rule.fault == "refuse" and rule.on == "any"]:
            await emulator.refuse(rule.seconds)
        emulator.script.add([rule for rule in rules if rule.fault != "refuse" or rule.on != "any"])
        return web.json_response({})

    async def clear(_: web.Request) -> web.Response:
        emulator.script.clear()
        emulator.maintained_until = 0.0
        return web.json_response({})

    def guarded(handler: Callable[[web.Request], Awaitable[web.Response]]) -> Callable[..., Awaitable[web.Response]]:
        async def guard(request: web.Request) -> web.Response:
            if not hmac.compare_digest(request.headers.get(HEADER, ""), token.value):
                return web.json_response({"error": f"the header {HEADER} is missing or wrong"}, status=401)
            return await handler(request)

        return guard

    return [
        web.get("/_emulator/jobs", guarded(jobs)),
        web.delete("/_emulator/jobs", guarded(forget)),
        web.post("/_emulator/faults", guarded(inject)),
        web.delete("/_emulator/faults", guarded(clear)),
    ]
