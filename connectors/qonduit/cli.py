"""The `qonduit` command: what people and make targets call. Each subcommand imports what it needs when it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from qonduit.errors import QonduitError

app = typer.Typer(
    help="Hybrid HPC-quantum workflows on StreamFlow.",
    epilog="Example: qonduit run --points my.csv --set threshold=0.7",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _qonduit() -> None:
    """Keeps `run` a subcommand while it is the only one."""


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
    name: Annotated[str | None, typer.Option(help="StreamFlow's name for the run.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON, and nothing else.")] = False,
) -> None:
    """Run a workflow under StreamFlow: progress, a summary, and all results in one folder."""
    from qonduit.launch import Launch

    Launch(file, points, outdir, settings or [], name, quiet=json).run()


def main() -> None:
    try:
        app()
    except QonduitError as error:
        print(f"qonduit: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
