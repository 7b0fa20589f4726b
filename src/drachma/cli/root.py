"""The root command, and the one place where errors become messages and exit codes.

A command's module is imported when the command is used: `drachma convert` need not load an API server, and the list of
commands loads none of them.
"""

import importlib
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

import typer
import typer.core

import drachma
from drachma import errors

COMMANDS: Final[dict[str, str]] = {
    "allocate": "Find devices for claims as kube-scheduler would, from manifests or from a dump of a cluster.",
    "apiserver": "Serve the Kubernetes API.",
    "autoscaler": "Grow and shrink node groups as pods need.",
    "bench": "Measure drachma on this machine.",
    "cel": "Check selector expressions and try them on devices.",
    "controllers": "Run controllers: claims from templates, garbage collection, namespaces, nodes, taints, jobs.",
    "convert": "Convert manifests to another version of resource.k8s.io.",
    "driver": "Tools for drivers.",
    "dump": "Write all that decisions depend on into a folder, so that they can be repeated elsewhere.",
    "explain": "Say why pods, claims and workloads get nothing, and what would help.",
    "logs": "Show what a container of a pod writes.",
    "get": "Show devices, claims, pools, nodes, pods, queues or workloads: who has what, what is free, who waits.",
    "migrate": "Migrate resource.k8s.io/v1alpha2 and v1alpha3 to v1.",
    "node": "Run the agent of a node: register it, have drivers prepare claims, run the pods that are bound to it.",
    "nodegroups": "Learn node groups from nodes that are there, and find what is wrong with them.",
    "plan": "Say which node groups to grow by how many nodes, so that pending pods run; and what stays pending.",
    "play": "Start a control plane, apply manifests to it, and show where the pods go and which devices they get.",
    "queueing": "Admit jobs by queues and quota, devices included, as Kueue does.",
    "replay": "Repeat the decisions of a recording, and show the first that comes out otherwise.",
    "report": "Say how much of a cluster is in use, and what of the rest could be had in one piece.",
    "scheduler": "Schedule pods: choose nodes, allocate and reserve the devices of their claims, bind.",
    "store": "Back up, restore, check, compact and repair the data directory of an API server.",
    "top": "Show what nodes and pods use.",
    "up": "Run a control plane: API server, controllers and scheduler, until Ctrl-C or SIGTERM.",
    "validate": "Check manifests of any kind that drachma serves as its server would when they are created.",
}
"""Each command, and the first line of its help. The module of its name in this package holds a function of its name, or
a Typer ``app`` for a group of commands."""


def load(name: str) -> Any:
    """The command of a name, from its module."""
    module = importlib.import_module(f"drachma.cli.{name}")
    group = getattr(module, "app", None)
    if group is None:
        group = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
        group.command(name)(getattr(module, name))
    command = typer.main.get_command(group)
    command.name = name
    return command


class _LazyCommand(typer.core.TyperCommand):
    """A command as far as lists show it; it becomes the real one when it is used."""

    def make_context(self, info_name: str | None, args: Sequence[str], parent: Any = None, **extra: Any) -> Any:
        return load(str(self.name)).make_context(info_name, list(args), parent, **extra)


class _Commands(typer.core.TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _LazyCommand(cmd_name, help=COMMANDS[cmd_name]) if cmd_name in COMMANDS else None


BAD_INPUT: Final = 2
"""The exit code for what cannot be read or makes no sense, as that of wrong options."""

_BAD_INPUT: Final = (errors.DecodeError, errors.InvalidValueError)

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


def _tell(refusals: Sequence[errors.DrachmaError]) -> int:
    """Says what was refused; the exit code that goes with it."""
    for line in dict.fromkeys(map(str, refusals)):
        typer.echo(f"drachma: {line}", err=True)
    return BAD_INPUT if all(isinstance(each, _BAD_INPUT) for each in refusals) else 1


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for each in group.exceptions:
        if isinstance(each, BaseExceptionGroup):
            yield from _leaves(each)
        else:
            yield each


def main() -> None:
    """Run a command; what drachma refuses is one line on standard error, and exit code 2 for bad input, else 1."""
    try:
        app()
    except errors.DrachmaError as error:
        sys.exit(_tell([error]))
    except BaseExceptionGroup as group:
        # Several tasks failed at once, or one of several: who runs a command is told of each, one line each.
        leaves = list(_leaves(group))
        refusals = [each for each in leaves if isinstance(each, errors.DrachmaError)]
        if len(refusals) < len(leaves):
            # A defect, which its own traceback tells best.
            raise next(each for each in leaves if each not in refusals) from None
        sys.exit(_tell(refusals))
    except BrokenPipeError:
        # The reader of our output went away (`drachma ... | head`); there is nobody left to tell.
        sys.stderr.close()
        sys.exit(1)
