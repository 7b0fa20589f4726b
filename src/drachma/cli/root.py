"""The root command, and the one place where errors become messages and exit codes."""

import sys
from typing import Annotated

import typer

import drachma
from drachma import errors
from drachma.cli import convert

app = typer.Typer(
    name="drachma",
    help="Dynamic Resource Allocation as a whole system, wire-compatible with Kubernetes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("convert")(convert.convert)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"drachma {drachma.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Dynamic Resource Allocation as a whole system, wire-compatible with Kubernetes."""


def main() -> None:
    """Run a command; what drachma refuses ends with one line on standard error and exit code 1."""
    try:
        app()
    except errors.DrachmaError as error:
        typer.echo(f"drachma: {error}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        # The reader of our output went away (`drachma ... | head`); there is nobody left to tell.
        sys.stderr.close()
        sys.exit(1)
