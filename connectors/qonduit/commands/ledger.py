"""`qonduit ledger`: what was bought, for people and for machines, and the decision on what nobody else can settle."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from qonduit.devices.ledger import DONE, PLANNED, SENDING, STATES, SUBMITTED, Entry, Ledger, ledger_path
from qonduit.errors import UsageError

app = typer.Typer(
    help="What was bought from which device, and what became of it.",
    epilog="Example: qonduit ledger list --state sending",
    no_args_is_help=True,
)
Path_ = Annotated[Path | None, typer.Option("--ledger", help="The ledger; else QONDUIT_LEDGER or the user's own.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")]
Key = Annotated[str, typer.Argument(help="The entry's key, or how it begins.")]


@app.command("list", epilog="Example: qonduit ledger list --run monday --json")
def list_entries(
    run: Annotated[str | None, typer.Option(help="Only this run's entries.")] = None,
    state: Annotated[str | None, typer.Option(help=f"Only entries that are {', '.join(STATES)}.")] = None,
    ledger: Path_ = None,
    as_json: Json = False,
) -> None:
    """List the entries, oldest first."""
    if state is not None and state not in STATES:
        raise UsageError(f"--state: there is no state '{state}'; choose one of {', '.join(STATES)}")
    entries = _open(ledger).entries(run, state)
    if as_json:
        print(json.dumps([entry.summary() for entry in entries]))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("key", "state", "device", "run", "shots", "job", "since"):
        table.add_column(name, overflow="fold")
    for entry in entries:
        content = entry.summary()
        since = datetime.fromtimestamp(entry.created_at).strftime("%Y-%m-%d %H:%M:%S")
        cells = (
            entry.key[:12],
            entry.state,
            content["device"][0],
            entry.run,
            content["shots"],
            entry.job or "-",
            since,
        )
        table.add_row(*(escape(str(cell)) for cell in cells))
    Console().print(table if entries else "The ledger has no such entry.", markup=False)


@app.command(epilog="Example: qonduit ledger show 3f9a --json")
def show(key: Key, ledger: Path_ = None, as_json: Json = False) -> None:
    """Show one entry, with the request and the result as JSON."""
    entry = _open(ledger).entry(key)
    if as_json:
        print(json.dumps(_whole(entry)))
        return
    for name, value in entry.summary().items():
        if value is not None and value != "":
            text = datetime.fromtimestamp(value).isoformat(" ", "seconds") if name.endswith("_at") else value
            print(f"{name:13} {text}")
    print(f"{'result':13} {'in the ledger' if entry.result_json else 'none'}")
    if entry.state == SENDING:
        print(f"It may have been sent: qonduit ledger resolve {entry.key[:12]} --job ID, or --not-sent")


@app.command(epilog="Example: qonduit ledger resolve 3f9a --job 0190f1a2")
def resolve(
    key: Key,
    job: Annotated[str | None, typer.Option(help="It was accepted: this is its job at the vendor.")] = None,
    not_sent: Annotated[bool, typer.Option("--not-sent", help="It was not accepted: it may be sent again.")] = False,
    abandon: Annotated[bool, typer.Option("--abandon", help="Close it: the next run buys anew.")] = False,
    ledger: Path_ = None,
) -> None:
    """Decide on an entry that may have been sent, after a look at the vendor's own list of jobs."""
    if [bool(job), not_sent, abandon].count(True) != 1:
        raise UsageError("say exactly one of --job ID, --not-sent and --abandon")
    opened = _open(ledger)
    subject = opened.entry(key).subject
    with opened.hold(subject):
        entry = opened.entry(key)
        fitting = (SENDING,) if not_sent else (SENDING, SUBMITTED) if job else (PLANNED, SENDING, SUBMITTED, DONE)
        if entry.state not in fitting:
            raise UsageError(f"the entry {entry.key} is {entry.state}; this cannot be decided of it")
        if job:
            entry = opened.submitted(entry, job)
        elif not_sent:
            entry = opened.not_sent(entry, "said by a person")
        else:
            entry = opened.abandoned(entry)
    print(f"{entry.key} is {entry.state}", file=sys.stderr)


@app.command(epilog="Example: qonduit ledger export --run monday > purchases.json")
def export(
    run: Annotated[str | None, typer.Option(help="Only this run's entries.")] = None,
    ledger: Path_ = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON is what it prints in any case.")] = True,  # noqa: ARG001
) -> None:
    """Print all entries with their requests and results as JSON."""
    print(json.dumps([_whole(entry) for entry in _open(ledger).entries(run)]))


def _open(path: Path | None) -> Ledger:
    found = path or ledger_path()
    if not found.is_file():
        raise UsageError(f"there is no ledger {found}: nothing was bought, or it is elsewhere (--ledger)")
    return Ledger(found)


def _whole(entry: Entry) -> dict[str, object]:
    result = None if entry.result_json is None else json.loads(entry.result_json)
    return {**entry.summary(), "request": json.loads(entry.request_json), "result": result}
