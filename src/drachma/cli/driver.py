"""``drachma driver``: what authors of drivers need."""

import asyncio
import pathlib
from collections.abc import Callable
from typing import Annotated, Final

import typer

from drachma import errors
from drachma.cli import options
from drachma.driver.conformance import checks, report
from drachma.process import drivercheck

app = typer.Typer(no_args_is_help=True, help="Tools for drivers.")

_FAILED: Final = 1
_NOT_RUNNING: Final = 2


@app.callback()
def group() -> None:
    """Tools for drivers."""


@app.command()
def check(
    module: Annotated[str, typer.Option(help="A driver in Python: a module that is a program, or module:Class.")] = "",
    command: Annotated[
        str,
        typer.Option(
            help="A command that runs a driver; {node} {kubeconfig} {plugins} {registry} {cdi} are filled in."
        ),
    ] = "",
    socket: Annotated[
        pathlib.Path | None, typer.Option(help="The registration socket of a driver that runs already.")
    ] = None,
    kubeconfig: options.Kubeconfig = None,
    node: Annotated[str, typer.Option(help="With --socket: the node that the driver is on.")] = "",
    cdi_dir: Annotated[
        pathlib.Path, typer.Option(help="With --socket: where the driver writes CDI files.")
    ] = pathlib.Path("/var/run/cdi"),
    only: Annotated[
        list[str] | None,
        typer.Option(help="A rule to try, by its name in the report; may be repeated. All."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Check whether a driver, in whatever language, does what kubelets and clusters rely on.

    A driver that is started here is also killed and restarted; it gets an API server of its own. Exits with 1 if a
    rule is broken, with 2 if the driver does not run at all.
    """
    if sum(map(bool, (module, command, socket))) != 1:
        raise errors.InvalidValueError("driver check: name the driver by one of --module, --command and --socket")
    chosen = checks.chosen(only) if only else checks.ALL
    if socket is not None:
        if not node:
            raise errors.InvalidValueError("driver check: --socket needs --node, the node that the driver is on")
        running = drivercheck.RunningDriver(socket=socket, kubeconfig=kubeconfig, node=node, cdi=cdi_dir)
        made = _carried_out(lambda: asyncio.run(drivercheck.check_running(running, chosen)))
    else:
        started = drivercheck.command_of_module(module) if module else drivercheck.parse_command(command)
        made = _carried_out(lambda: drivercheck.check_command(started, chosen))
    typer.echo(report.json(made) if json else report.text(made), nl=False)
    if not made.has_passed:
        raise typer.Exit(_FAILED)


def _carried_out(act: Callable[[], report.Report]) -> report.Report:
    try:
        return act()
    except errors.DriverError as error:
        typer.echo(f"drachma: {error}", err=True)
        raise typer.Exit(_NOT_RUNNING) from None
