"""The root command, and the one place where errors become messages and exit codes.

A command's module is imported when the command is used: `drachma convert` need not load an API server.
"""

import importlib
import sys
from typing import Annotated, Any, Final

import typer
import typer.core

import drachma
from drachma import errors

COMMANDS: Final[dict[str, str]] = {
    "allocate": "drachma.cli.allocate",
    "apiserver": "drachma.cli.apiserver",
    "bench": "drachma.cli.bench",
    "cel": "drachma.cli.cel",
    "controllers": "drachma.cli.controllers",
    "convert": "drachma.cli.convert",
    "play": "drachma.cli.play",
    "scheduler": "drachma.cli.scheduler",
    "up": "drachma.cli.up",
    "validate": "drachma.cli.validate",
}
"""Each command and its module, which holds a function of that name, or a Typer ``app`` for a group of commands."""


class _Commands(typer.core.TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(COMMANDS[cmd_name])
        group = getattr(module, "app", None)
        if group is None:
            group = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
            group.command(cmd_name)(getattr(module, cmd_name))
        command = typer.main.get_command(group)
        command.name = cmd_name
        return command


app = typer.Typer(
    name="drachma",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


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
