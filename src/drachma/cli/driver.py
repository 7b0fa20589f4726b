"""``drachma driver``: tools for authors of drivers."""

from __future__ import annotations

import asyncio
import importlib.resources
import keyword
import pathlib
import re
import string
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from drachma import errors
from drachma.cli import options
from drachma.values import names

if TYPE_CHECKING:
    from drachma.driver.conformance.check import Check
    from drachma.driver.conformance.report import Report
    from drachma.driver.conformance.subject import Subject
    from drachma.process.drivercheck import RunningDriver

app = typer.Typer(no_args_is_help=True, help="Tools for drivers.", pretty_exceptions_enable=False, add_completion=False)

_FAILED: Final = 1
_NOT_RUNNING: Final = 2
_INTERRUPTED: Final = 130

_FILES: Final = {"{module}.py": "driver.py.txt", "test_{module}.py": "test_driver.py.txt"}
_LONGEST_NAME: Final = 63


@app.callback()
def group() -> None:
    """Tools for drivers."""


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Name of the driver, a DNS subdomain such as lamp.example.com.")],
    folder: Annotated[
        pathlib.Path | None, typer.Option(help="Folder to create; by default the first part of the name.")
    ] = None,
) -> None:
    """Write a driver to start with, and its test, into a new folder.

    Exit code 2: the name is not one of a driver, or a file exists already.
    """
    files = _write_files(name, folder)
    for path in files:
        typer.echo(f"wrote {path}")
    module = files[0].stem
    typer.echo(f"\nNext:\n  cd {files[0].parent}\n  pytest\n  drachma driver check --module {module}")


@app.command()
def check(
    module: Annotated[str, typer.Option(help="A driver in Python: a module to run, or module:Class.")] = "",
    command: Annotated[
        str,
        typer.Option(help="A command that runs a driver; {node} {kubeconfig} {plugins} {registry} {cdi} are replaced."),
    ] = "",
    socket: Annotated[
        pathlib.Path | None, typer.Option(help="Registration socket of a driver that is started separately.")
    ] = None,
    listen: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="With --socket: address of an API server for the driver, which the check can make fail; without "
            "--kubeconfig it has only the driver's node.",
        ),
    ] = "",
    kubeconfig_out: Annotated[
        pathlib.Path | None,
        typer.Option(help="With --listen: file for the kubeconfig to start the driver with."),
    ] = None,
    kubeconfig: options.Kubeconfig = None,
    node: Annotated[str, typer.Option(help="With --socket: node of the driver.")] = "",
    cdi_dir: Annotated[
        pathlib.Path, typer.Option(help="With --socket: folder where the driver writes CDI files.")
    ] = pathlib.Path("/var/run/cdi"),
    start_with: Annotated[
        str, typer.Option(help="With --socket: command that starts the driver, such as systemctl start NAME.")
    ] = "",
    stop_with: Annotated[
        str, typer.Option(help="With --socket: command that stops the driver, and returns when it has ended.")
    ] = "",
    kill_with: Annotated[
        str, typer.Option(help="With --socket: command that kills the driver, and returns when it has ended.")
    ] = "",
    admin_parameters: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="File, JSON or YAML, with parameters that the driver takes from a DeviceClass and not from a claim."
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Rule to check, by its name in the report; may be repeated. All rules by default."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Check that a driver, written in any language, behaves as kubelets and clusters require.

    With --module or --command the check starts the driver with an API server of its own, and also kills and restarts
    it. With --socket it can do so by --listen, --start-with, --stop-with and --kill-with.

    Exit code 1: the driver breaks a rule. 2: the driver does not run.
    """
    from drachma.driver.conformance import checks, report
    from drachma.process import drivercheck

    if sum(map(bool, (module, command, socket))) != 1:
        raise errors.InvalidValueError("driver check: name the driver by one of --module, --command and --socket")
    rules = checks.chosen(only) if only else checks.ALL
    parameters = None if admin_parameters is None else _read_parameters(admin_parameters)
    if socket is not None:
        if not node:
            raise errors.InvalidValueError("driver check: --socket needs --node, the node that the driver is on")
        running = drivercheck.RunningDriver(
            socket=socket,
            kubeconfig=kubeconfig,
            node=node,
            cdi=cdi_dir,
            subject=_subject({"--start-with": start_with, "--stop-with": stop_with, "--kill-with": kill_with}),
            admin_parameters=parameters,
        )
        result = _run(lambda: _check_running(running, rules, listen=listen, kubeconfig_out=kubeconfig_out))
    else:
        if listen or kubeconfig_out or start_with or stop_with or kill_with:
            raise errors.InvalidValueError(
                "driver check: --listen, --kubeconfig-out, --start-with, --stop-with and --kill-with are for --socket"
            )
        driver_command = drivercheck.command_of_module(module) if module else drivercheck.parse_command(command)
        result = _run(lambda: drivercheck.check_command(driver_command, rules, admin_parameters=parameters))
    typer.echo(report.json(result) if json else report.text(result), nl=False)
    if not result.has_passed:
        raise typer.Exit(_FAILED)


def _read_parameters(path: pathlib.Path) -> dict[str, Any]:
    from drachma.offline import manifestfiles

    sources = manifestfiles.read_all([str(path)])
    if len(sources) != 1 or not isinstance(sources[0].content, dict):
        raise errors.InvalidValueError(f"driver check: --admin-parameters {path}: expected one document with fields")
    return sources[0].content


def _subject(commands: Mapping[str, str]) -> Subject:
    from drachma.driver.conformance import subject
    from drachma.process import drivercheck

    if not any(commands.values()):
        return subject.RunningSubject()
    for option, text in commands.items():
        if not text:
            raise errors.InvalidValueError(f"driver check: {option} is missing; {', '.join(commands)} go together")
    start, stop, kill = map(drivercheck.parse_command, commands.values())
    return subject.ServiceSubject(start=start, stop=stop, kill=kill)


def _check_running(
    running: RunningDriver, rules: Sequence[Check], *, listen: str, kubeconfig_out: pathlib.Path | None
) -> Report:
    from drachma.listening import addresses
    from drachma.process import drivercheck

    if not listen:
        return asyncio.run(drivercheck.check_running(running, rules))
    if kubeconfig_out is None:
        raise errors.InvalidValueError("driver check: --listen needs --kubeconfig-out, for the driver")

    def announce() -> None:
        if not running.subject.can_restart:
            kubeconfig = f"the kubeconfig {kubeconfig_out}"
            typer.echo(f"drachma: start the driver on node {running.node} with {kubeconfig}", err=True)
            typer.echo(f"drachma: waiting for its registration socket {running.socket}", err=True)

    listening = drivercheck.Listening(address=addresses.Address.parse(listen), kubeconfig=kubeconfig_out)
    return drivercheck.check_listening(running, listening, rules, announce=announce)


def _run(check_driver: Callable[[], Report]) -> Report:
    try:
        return check_driver()
    except errors.DriverError as error:
        typer.echo(f"drachma: {error}", err=True)
        raise typer.Exit(_NOT_RUNNING) from None
    except KeyboardInterrupt:
        typer.echo("drachma: interrupted; the driver is stopped", err=True)
        raise typer.Exit(_INTERRUPTED) from None


def _write_files(driver: str, folder: pathlib.Path | None) -> list[pathlib.Path]:
    """Write the files of a driver into a folder, and return their paths, the driver first.

    Raises:
        errors.InvalidValueError: the name is not one of a driver, or a file exists or cannot be written.
    """
    problems = names.dns1123_subdomain(driver)
    if problems or len(driver) > _LONGEST_NAME:
        problem = problems[0] if problems else f"must have at most {_LONGEST_NAME} characters"
        raise errors.InvalidValueError(f"driver {driver!r}: {problem}")
    first = re.sub(r"[^a-z0-9]+", "_", driver.partition(".")[0]).strip("_")
    is_taken = keyword.iskeyword(first) or first == "drachma"
    module = f"driver_{first}" if first[:1].isdigit() or is_taken else first
    words = {"driver": driver, "module": module, "class": "".join(part.title() for part in module.split("_"))}
    root = folder or pathlib.Path(driver.partition(".")[0])
    templates = importlib.resources.files("drachma.cli").joinpath("driverfiles")
    contents = {
        root / pattern.format(module=module): string.Template(
            templates.joinpath(template).read_text(encoding="utf-8")
        ).substitute(words)
        for pattern, template in _FILES.items()
    }
    for path in contents:
        if path.exists():
            raise errors.InvalidValueError(f"{path}: exists already")
    try:
        root.mkdir(parents=True, exist_ok=True)
        for path, content in contents.items():
            path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise errors.InvalidValueError(f"{root}: cannot be written: {error.strerror or error}") from error
    return list(contents)
