"""What every emulated device has from its frame: scripts of faults, latencies, a token, a store of jobs, a command."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from qonduit.emulators import running as running_module
from qonduit.emulators import serve
from qonduit.emulators.control import HEADER
from qonduit.emulators.credential import Token
from qonduit.emulators.faults import CONNECTION, JOB, PHASES, Rule, Script, read_rules, rules_from
from qonduit.emulators.latency import PRESETS, Latency, latency_named
from qonduit.emulators.running import running
from qonduit.emulators.store import JobStore
from qonduit.errors import DataError, UsageError


@given(st.integers(0, 5), st.integers(0, 5), st.lists(st.sampled_from(PHASES), max_size=40), st.sampled_from(PHASES))
def test_a_rule_lets_some_calls_through_then_strikes_some_of_its_phase(
    skip: int, times: int, calls: list[str], on: str
) -> None:
    script = Script([Rule("http-500", on, times, skip)], seed=0)
    struck = [script.on_call(phase) is not None for phase in calls]
    matching = [hit for hit, phase in zip(struck, calls, strict=True) if phase == on]
    assert matching == [skip <= n < skip + times for n in range(len(matching))]
    assert sum(struck) == sum(matching)


def test_chances_are_drawn_from_the_seed() -> None:
    def struck(seed: int) -> list[bool]:
        script = Script([Rule("hang", "any", 1000, 0, 0.5)], seed)
        return [script.on_call("poll") is not None for _ in range(200)]

    assert struck(1) == struck(1) != struck(2)
    assert 60 < sum(struck(1)) < 140


def test_faults_of_calls_and_of_jobs_do_not_use_each_other_up() -> None:
    script = Script([Rule("job-fails"), Rule("reset-before", "poll")], seed=0)
    assert script.on_call("submit") is None
    assert script.on_job() == "job-fails"
    assert script.on_job() is None
    struck = script.on_call("poll")
    assert struck is not None
    assert struck.fault == "reset-before"
    script.add([Rule("hang")])
    script.clear()
    assert script.on_call("poll") is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not JSON"),
        ("{}", "a JSON list"),
        ('[{"fault": "gremlins"}]', "stays-queued"),
        ("[3]", "'fault'"),
        ('[{"fault": "hang", "when": 3}]', "no key 'when'"),
        ('[{"fault": "hang", "on": "monday"}]', "'on'"),
        ('[{"fault": "hang", "times": -1}]', "'times'"),
        ('[{"fault": "hang", "seconds": "long"}]', "'seconds'"),
        ('[{"fault": []}]', "'fault'"),
        ('[{"fault": "hang", "on": []}]', "'on'"),
        ('[{"fault": "hang", "times": 1.5}]', "'times'"),
        ('[{"fault": "hang", "skip": true}]', "'skip'"),
        ('[{"fault": "hang", "accepted": "no"}]', "'accepted'"),
    ],
)
def test_a_bad_script_of_faults_is_one_sentence_that_names_the_file(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "faults.json"
    path.write_text(content)
    with pytest.raises(DataError, match=r"faults\.json") as caught:
        read_rules(path)
    assert said in str(caught.value)


def test_every_fault_can_be_scripted() -> None:
    rules = rules_from([{"fault": name} for name in (*CONNECTION, *JOB)], "here")
    assert [rule.fault for rule in rules] == [*CONNECTION, *JOB]


def test_latencies_are_presets_or_a_file(tmp_path: Path) -> None:
    assert latency_named("annealer") is PRESETS["annealer"]
    path = tmp_path / "slow.json"
    path.write_text('{"setup_s": 2, "shot_s": 0.5}')
    assert latency_named(str(path)) == Latency(0.0, 2, 0.5)
    assert latency_named(str(path)).run_s(4) == 4.0
    for content in ("{", "[]", '{"speed": 1}', '{"setup_s": -1}', '{"setup_s": "1"}'):
        path.write_text(content)
        with pytest.raises(DataError, match=r"slow\.json"):
            latency_named(str(path))
    with pytest.raises(UsageError, match="neutral-atom"):
        latency_named("fast")


def test_a_token_is_its_owners_alone_and_stays_until_it_is_renewed(tmp_path: Path) -> None:
    token = Token(tmp_path / "token")
    assert stat.S_IMODE(token.path.stat().st_mode) == 0o600
    assert Token(token.path).value == token.value
    old = token.value
    token.renew()
    assert token.value != old
    assert token.path.read_text().strip() == token.value
    assert stat.S_IMODE(token.path.stat().st_mode) == 0o600


def test_jobs_are_kept_in_order_and_over_a_restart(tmp_path: Path) -> None:
    async def first() -> list[str]:
        store = JobStore(tmp_path / "jobs.db")
        made = [store.add({"n": n}, f"label {n}", 10).id for n in range(4)]
        assert [store.position(name) for name in made] == [0, 1, 2, 3]
        store.start(made[0])
        store.start(made[1])
        store.end(made[1], "done", {"answer": 1})
        store.cancel(made[2])
        store.cancel(made[1])
        store.close()
        return made

    async def second(made: list[str]) -> None:
        store = JobStore(tmp_path / "jobs.db")
        assert [job.state for job in store.all()] == ["queued", "done", "cancelled", "queued"]
        upcoming = store.next()
        assert upcoming is not None
        assert upcoming.id == made[0]
        assert [job.body for job in store.find("label 1")] == [{"n": 1}]
        ended = await store.changed(made[1], 10)
        assert ended is not None
        assert ended.answer == {"answer": 1}
        waiting = asyncio.create_task(store.changed(made[3], 60))
        await asyncio.sleep(0)
        store.cancel(made[3])
        cancelled = await waiting
        assert cancelled is not None
        assert cancelled.state == "cancelled"
        assert await store.changed("nobody", 60) is None
        store.close()

    asyncio.run(second(asyncio.run(first())))


def emulate(*arguments: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "qonduit.emulators", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["dwave", "--latency", "nowhere.json"], "--latency"),
        (["dwave", "--faults", "nowhere.json"], "--faults"),
        (["dwave", "--qubits", "0"], "--qubits"),
        (["acme"], "acme"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_served(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = emulate(*arguments, "--home", tmp_path / "home")
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "home").exists()


def test_help_shows_what_can_be_emulated() -> None:
    done = emulate("--help")
    assert done.returncode == 0
    assert all(word in done.stdout for word in ("iqm", "pasqal", "dwave", "--faults", "--latency", "--qubits"))


def test_bad_faults_are_refused_by_a_running_server(tmp_path: Path) -> None:
    with running("iqm", home=tmp_path) as server:
        headers = {HEADER: (tmp_path / "control").read_text().strip()}
        url = f"http://{urlsplit(server.url).netloc}/_emulator/faults"
        for body in ("{", b"\xff", '{"fault": []}', '[{"fault": []}]', '[{"fault": "hang", "accepted": 1}]'):
            assert requests.post(url, data=body, headers=headers, timeout=30).status_code == 422


def test_the_paths_that_are_announced_do_not_depend_on_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = [sys.executable, "-m", "qonduit.emulators", "iqm", "--json", "--port", "0", "--home", "here"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        said = json.loads(server.stdout.readline())
        server.terminate()
    assert said["home"] == str(tmp_path / "here")
    assert said["token_file"] == str(tmp_path / "here" / "token")
    assert said["device_file"] == str(tmp_path / "here" / "device.json")


def test_a_server_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_module, "STOP_LIMIT_S", 0.2)
    with running("iqm", home=tmp_path) as server:
        assert server._process is not None
        process = server._process
        os.kill(process.pid, signal.SIGSTOP)
        server.stop()
        assert process.returncode == -signal.SIGKILL


def taken(port: int) -> socket.socket:
    other = socket.socket()
    other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    other.bind(("127.0.0.1", port))
    other.listen()
    return other


async def shut_while_another_takes_the_port() -> tuple[web.AppRunner, serve.Door, socket.socket]:
    runner = web.AppRunner(web.Application())
    await runner.setup()
    door = serve.Door(runner, 0)
    await door.open()
    await door.refuse(0.05)
    return runner, door, taken(door.port)


def test_a_door_opens_again_once_its_port_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "REOPEN_PAUSE_S", 0.01)

    async def play() -> None:
        runner, door, other = await shut_while_another_takes_the_port()
        tried = asyncio.Event()
        opened = door.open

        async def watched() -> None:
            tried.set()
            await opened()

        monkeypatch.setattr(door, "open", watched)
        await tried.wait()
        other.close()
        assert door._task is not None
        await door._task
        assert runner.addresses[0][1] == door.port
        assert not door.broken.done()
        await runner.cleanup()

    asyncio.run(play())


def test_a_door_that_stays_shut_ends_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "REOPEN_PAUSE_S", 0.01)
    monkeypatch.setattr(serve, "REOPEN_LIMIT_S", 0.05)

    async def play() -> None:
        runner, door, other = await shut_while_another_takes_the_port()
        with other, pytest.raises(UsageError, match="cannot be used"):
            await door.broken
        await runner.cleanup()

    asyncio.run(play())
