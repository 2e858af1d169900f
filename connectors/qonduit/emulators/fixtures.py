"""Emulated devices as pytest fixtures: `iqm_emulator`, `pasqal_emulator` and `dwave_emulator`.

pytest finds them by itself where Qonduit is installed. A server starts when the first test asks for it and serves all
of them; each test begins with no fault in force and no job on the server.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from qonduit.emulators.running import Server


def _started(vendor: str) -> Iterator[Server]:
    # Other projects' test runs load this module too: they shall not pay for it.
    from qonduit.emulators.running import running

    with running(vendor) as server:
        yield server


def _fresh(server: Server) -> Server:
    server.clear()
    server.forget()
    return server


@pytest.fixture(scope="session")
def iqm_server() -> Iterator[Server]:
    yield from _started("iqm")


@pytest.fixture(scope="session")
def pasqal_server() -> Iterator[Server]:
    yield from _started("pasqal")


@pytest.fixture(scope="session")
def dwave_server() -> Iterator[Server]:
    yield from _started("dwave")


@pytest.fixture
def iqm_emulator(iqm_server: Server) -> Server:
    return _fresh(iqm_server)


@pytest.fixture
def pasqal_emulator(pasqal_server: Server) -> Server:
    return _fresh(pasqal_server)


@pytest.fixture
def dwave_emulator(dwave_server: Server) -> Server:
    return _fresh(dwave_server)
