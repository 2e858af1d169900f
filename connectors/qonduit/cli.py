"""The `qonduit` command: what people and make targets call. Each subcommand imports what it needs when it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from qonduit.commands import ledger
from qonduit.emulators.command import emulate
from qonduit.errors import QonduitError

app = typer.Typer(
    help="Hybrid HPC-quantum workflows on StreamFlow.",
    epilog="Example: qonduit run --points my.csv --set threshold=0.7",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(ledger.app, name="ledger")
app.command(epilog="Example: qonduit emulate iqm --latency superconducting")(emulate)


@app.command(epilog="Example: qonduit run --points my.csv --set threshold=0.7 --set max_iterations=5")
def run(
    file: Annotated[Path, typer.Argument(help="The StreamFlow file.")] = Path("streamflow.yml"),
    points: Annotated[
        Path | None, typer.Option(help="Your points, CSV or .npy; the methods' ranges are then fitted to them.")
    ] = None,
    outdir: Annotated[Path, typer.Option(help="Where the results go.")] = Path("results/clustering-aggregation"),
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Another value for an input of the workflow."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="The run's name, for StreamFlow and the ledger.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON, and nothing else.")] = False,
) -> None:
    """Run a workflow under StreamFlow: progress, a summary, and all results in one folder."""
    from qonduit.launch import Launch

    Launch(file, points, outdir, settings or [], name, quiet=json).run()


@app.command(epilog="Example: qonduit devices ~/devices --json")
def devices(
    folder: Annotated[Path, typer.Argument(help="Where the device files are.")] = Path("."),
    json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")] = False,
) -> None:
    """Ask the devices that a folder's files describe: online, qubits, queue, calibration, latency."""
    from qonduit.commands.devices import show

    raise typer.Exit(show(folder, json))


@app.command(epilog="Example: qonduit solve problem.json --device iqm.json")
def solve(
    problem: Annotated[Path, typer.Argument(help="A problem of qonduit-aggregate.")],
    device: Annotated[str, typer.Option(help="A device file, or a kind's name.", metavar="FILE|KIND")] = "annealer",
    out: Annotated[Path | None, typer.Option(help="Also write the samples and the solution, as JSON.")] = None,
    shots: Annotated[int | None, typer.Option(help="Else the device file's.", min=1, max=1_000_000)] = None,
    seed: Annotated[int, typer.Option(help="The same seed, the same samples.", min=0)] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print the samples as JSON, and nothing else.")] = False,
) -> None:
    """Solve one problem on a device, with its progress and a comparison with the exact optimum where it is small."""
    from qonduit.commands.solve import solve

    solve(problem, device, out, shots, seed, json)


def main() -> None:
    try:
        app()
    except QonduitError as error:
        print(f"qonduit: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
