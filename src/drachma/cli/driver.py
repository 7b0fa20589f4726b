"""``drachma driver``: what authors of drivers need."""

import asyncio
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final

import typer

from drachma import errors
from drachma.cli import options
from drachma.driver.conformance import checks, report, subject
from drachma.driver.conformance.check import Check
from drachma.process import drivercheck
from drachma.server.wire import serving

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
        pathlib.Path | None, typer.Option(help="The registration socket of a driver that somebody else starts.")
    ] = None,
    listen: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="With --socket: where the driver is to find an API server that can be made to fail; without "
            "--kubeconfig, one with its node alone.",
        ),
    ] = "",
    kubeconfig_out: Annotated[
        pathlib.Path | None,
        typer.Option(help="With --listen: where to write the kubeconfig that the driver is to be started with."),
    ] = None,
    kubeconfig: options.Kubeconfig = None,
    node: Annotated[str, typer.Option(help="With --socket: the node that the driver is on.")] = "",
    cdi_dir: Annotated[
        pathlib.Path, typer.Option(help="With --socket: where the driver writes CDI files.")
    ] = pathlib.Path("/var/run/cdi"),
    start_with: Annotated[
        str, typer.Option(help="With --socket: the command that starts the driver, as systemctl start NAME.")
    ] = "",
    stop_with: Annotated[
        str, typer.Option(help="With --socket: the command that stops it, and returns when it has ended.")
    ] = "",
    kill_with: Annotated[
        str, typer.Option(help="With --socket: the command that kills it, and returns when it has ended.")
    ] = "",
    only: Annotated[
        list[str] | None,
        typer.Option(help="A rule to try, by its name in the report; may be repeated. All."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Check whether a driver, in whatever language, does what kubelets and clusters rely on.

    A driver that is started here is also killed and restarted; it gets an API server of its own. One that somebody
    else starts can have that too, by --listen, --start-with and so on. Exits with 1 if a rule is broken, with 2 if the
    driver does not run at all.
    """
    if sum(map(bool, (module, command, socket))) != 1:
        raise errors.InvalidValueError("driver check: name the driver by one of --module, --command and --socket")
    chosen = checks.chosen(only) if only else checks.ALL
    if socket is not None:
        if not node:
            raise errors.InvalidValueError("driver check: --socket needs --node, the node that the driver is on")
        running = drivercheck.RunningDriver(
            socket=socket,
            kubeconfig=kubeconfig,
            node=node,
            cdi=cdi_dir,
            subject=_subject({"--start-with": start_with, "--stop-with": stop_with, "--kill-with": kill_with}),
        )
        made = _carried_out(lambda: _checked(running, chosen, listen=listen, kubeconfig_out=kubeconfig_out))
    else:
        if listen or kubeconfig_out or start_with or stop_with or kill_with:
            raise errors.InvalidValueError(
                "driver check: --listen, --kubeconfig-out, --start-with, --stop-with and --kill-with are for --socket"
            )
        started = drivercheck.command_of_module(module) if module else drivercheck.parse_command(command)
        made = _carried_out(lambda: drivercheck.check_command(started, chosen))
    typer.echo(report.json(made) if json else report.text(made), nl=False)
    if not made.has_passed:
        raise typer.Exit(_FAILED)


def _subject(commands: Mapping[str, str]) -> subject.Subject:
    if not any(commands.values()):
        return subject.RunningSubject()
    for option, text in commands.items():
        if not text:
            raise errors.InvalidValueError(f"driver check: {option} is missing; {', '.join(commands)} go together")
    start, stop, kill = map(drivercheck.parse_command, commands.values())
    return subject.ServiceSubject(start=start, stop=stop, kill=kill)


def _checked(
    running: drivercheck.RunningDriver, chosen: Sequence[Check], *, listen: str, kubeconfig_out: pathlib.Path | None
) -> report.Report:
    if not listen:
        return asyncio.run(drivercheck.check_running(running, chosen))
    if kubeconfig_out is None:
        raise errors.InvalidValueError("driver check: --listen needs --kubeconfig-out, for the driver")

    def tell() -> None:
        if not running.subject.can_restart:
            kubeconfig = f"the kubeconfig {kubeconfig_out}"
            typer.echo(f"drachma: start the driver on node {running.node} with {kubeconfig}", err=True)
            typer.echo(f"drachma: waiting for its registration socket {running.socket}", err=True)

    listening = drivercheck.Listening(address=serving.Address.parse(listen), kubeconfig=kubeconfig_out)
    return drivercheck.check_listening(running, listening, chosen, told=tell)


def _carried_out(act: Callable[[], report.Report]) -> report.Report:
    try:
        return act()
    except errors.DriverError as error:
        typer.echo(f"drachma: {error}", err=True)
        raise typer.Exit(_NOT_RUNNING) from None
