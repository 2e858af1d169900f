"""Kills clients of a vendor at random moments and starts them again: run as a program, prints a report as JSON.

    python tests/faults/killer.py DEVICE_FILE --kills 100 --seed 1 --ledger FILE

Each client is a child of this process, which has imported everything, so that a start costs milliseconds and a kill
falls into the work and not into the imports. A question is asked until a client has answered it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import signal
import sys
import time
from pathlib import Path

import dimod

from qonduit.devices.ledger import Ledger
from qonduit.devices.patience import Patience
from qonduit.devices.registry import open_device
from qonduit.devices.settings import Settings, read_settings
from qonduit.devices.solve import Solver
from qonduit.emulators.running import Server
from qonduit.errors import QonduitError, UnsettledError

QUBO = dimod.BinaryQuadraticModel({"a": -1.0, "b": -2.0, "c": -1.5}, {("a", "b"): 3.0, ("b", "c"): 3.0}, 0.0, "BINARY")
SHOTS = 8
KILLS_PER_QUESTION = 3
HANG_S = 120.0
SETTLE_S = 0.4


def ask(settings: Settings, seed: int) -> None:
    patience = Patience(limit_s=30.0, settle_s=SETTLE_S, first_pause_s=0.02, poll_s=0.05)
    solved = Solver(open_device(settings), settings, patience=patience).solve(QUBO, SHOTS, seed)
    measured = int(solved.samples.record.num_occurrences.sum())
    # So few shots may miss {a, c}; repaired they are at least {b}.
    if measured != SHOTS or solved.answer.energy not in (-2.5, -2.0):
        raise QonduitError(f"{measured} shots with a best energy of {solved.answer.energy} are not what was asked for")


def client(settings: Settings, seed: int) -> int:
    """A child that asks one question; returns its process id."""
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        ask(settings, seed)
        code = 0
    except QonduitError as error:
        code = error.exit_code
        if not isinstance(error, UnsettledError):
            print(f"question {seed}: {error}", file=sys.stderr)
    except BaseException as error:
        print(f"question {seed}: {type(error).__name__}: {error}", file=sys.stderr)
    finally:
        os._exit(code)


def ended(child: int, limit_s: float) -> int | None:
    """The exit code of a child, None if it is still at work when the time is over."""
    handle = os.pidfd_open(child)
    try:
        ready, _, _ = select.select([handle], [], [], limit_s)
    finally:
        os.close(handle)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if ready else None


def kill(child: int) -> int:
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def settle(server: Server, ledger: Path) -> int:
    """What a person does where the vendor cannot be asked: look at its list of jobs and say what is there."""
    time.sleep(SETTLE_S)
    opened = Ledger(ledger)
    accepted = {job["label"]: job["id"] for job in server.jobs()}
    entries = opened.entries(state="sending")
    for entry in entries:
        if entry.key in accepted:
            opened.submitted(entry, accepted[entry.key])
        else:
            opened.not_sent(entry)
    opened.close()
    return len(entries)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("device", type=Path)
    parser.add_argument("--kills", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--ledger", type=Path, required=True)
    options = parser.parse_args()
    os.environ["QONDUIT_LEDGER"] = str(options.ledger)
    os.environ["QONDUIT_RUN"] = "killed"
    settings = read_settings(options.device)
    server = Server(settings.kind, options.device.parent, [])
    server.url = settings.url or ""
    chance = random.Random(options.seed)
    begun = time.monotonic()
    # Two questions without a kill: the first imports everything, the second tells how long one takes.
    for question in range(2):
        since = time.monotonic()
        ask(settings, question)
    typical_s = time.monotonic() - since
    kills = settled = hung = 0
    failures: list[int] = []
    question = 1
    while kills < options.kills:
        question += 1
        left = KILLS_PER_QUESTION
        while True:
            child = client(settings, question)
            code = ended(child, chance.uniform(0.0, 1.3 * typical_s) if left and kills < options.kills else HANG_S)
            if code is None:
                kill(child)
                hung += not left
                kills += 1
                left = max(0, left - 1)
            elif code == UnsettledError.exit_code:
                settled += settle(server, options.ledger)
            else:
                failures += [code] if code else []
                break
    report = {
        "kills": kills,
        "questions": question + 1,
        "typical_s": typical_s,
        "settled_by_hand": settled,
        "hung": hung,
        "failures": failures,
        "seconds": time.monotonic() - begun,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
