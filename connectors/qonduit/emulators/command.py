"""The command `qonduit emulate`, also `python -m qonduit.emulators`."""

from __future__ import annotations

import json
import logging
import os
import sys
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from qonduit.errors import QonduitError


class Vendor(Enum):
    IQM = "iqm"
    PASQAL = "pasqal"
    DWAVE = "dwave"


def emulate(
    vendor: Annotated[Vendor, typer.Argument(help="Whose API to speak.")],
    port: Annotated[int | None, typer.Option(help="Where to listen; 0 takes a free port.", min=0, max=65535)] = None,
    qubits: Annotated[int | None, typer.Option(help="Size of the device; its own default without.", min=1)] = None,
    topology: Annotated[str | None, typer.Option(help="iqm: star, crystal; dwave: pegasus, chimera.")] = None,
    noise: Annotated[bool, typer.Option(help="With the device's noise, or ideal.")] = True,
    latency: Annotated[
        str, typer.Option(help="none, superconducting, neutral-atom, annealer, or a JSON file.", metavar="NAME|FILE")
    ] = "none",
    faults: Annotated[Path | None, typer.Option(help="JSON list of scripted faults.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed, the same samples and faults.", min=0)] = 0,
    home: Annotated[Path | None, typer.Option(help="Where token and jobs are kept.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Say where it listens as JSON.")] = False,
) -> None:
    """Run a server on this machine that speaks a vendor's API and simulates its device. Ctrl-C ends it."""
    from qonduit.emulators.emulator import Config
    from qonduit.emulators.faults import read_rules
    from qonduit.emulators.latency import latency_named
    from qonduit.emulators.serve import Ready, serve

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(message)s")
    logging.getLogger("qonduit.emulators").setLevel(logging.INFO)

    def announce(ready: Ready) -> None:
        if as_json:
            print(json.dumps(asdict(ready)), flush=True)
            return
        print(f"An emulated {ready.vendor} device listens at {ready.url}")
        print(f"  token file:   {ready.token_file}")
        print(f"  device file:  {ready.device_file}")
        print(f"Use it:         QONDUIT_DEVICE={ready.device_file} qonduit-solve ...", flush=True)

    config = Config(qubits, noise, seed, latency_named(latency), topology)
    rules = [] if faults is None else read_rules(faults)
    serve(vendor.value, home or default_home(vendor.value), port, config, rules, announce)


def default_home(vendor: str) -> Path:
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "qonduit" / "emulators" / vendor


def main() -> None:
    try:
        typer.run(emulate)
    except QonduitError as error:
        print(f"qonduit emulate: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
