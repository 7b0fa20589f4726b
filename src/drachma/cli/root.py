"""The root command, and the one place where errors become messages and exit codes.

Commands load lazily. ``drachma --help`` imports no command. ``drachma COMMAND --help`` imports the module of that
command, which declares its options and imports everything else inside its functions.
"""

import difflib
import gc
import importlib
import inspect
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

import typer
import typer.core

import drachma
from drachma import errors

_COLLECTOR_THRESHOLDS: Final = (200_000, 20, 50)
"""Allocations between garbage collections. Reading the dump of a large cluster takes twice as long with Python's own
thresholds, because the collector scans objects without cycles again and again."""

COMMANDS: Final[dict[str, str]] = {
    "allocate": "Find devices for claims as kube-scheduler would, from manifests or from a dump of a cluster.",
    "apiserver": "Serve the Kubernetes API.",
    "apply": "Apply manifests to a cluster, as kubectl apply --server-side does.",
    "autoscaler": "Grow and shrink node groups as pods need.",
    "bench": "Measure drachma on this machine.",
    "cel": "Check selector expressions and try them on devices.",
    "controllers": "Run controllers: claims from templates, garbage collection, namespaces, nodes, taints, jobs.",
    "convert": "Convert manifests to another version of resource.k8s.io.",
    "dashboard": "Serve the dashboard of a cluster: devices, pods, claims, queues, and why pods are pending.",
    "doctor": "Find mistakes in how a cluster uses devices and claims, and repair them.",
    "down": "Stop a cluster that drachma up started on this machine.",
    "driver": "Tools for drivers.",
    "dump": "Write the state that scheduling decisions depend on into a folder, to replay them elsewhere.",
    "example": "Print manifests to try on drachma up, or list them.",
    "explain": "Explain why pods, claims and workloads are pending, and what would help.",
    "exporter": "Export metrics about a cluster: devices, claims, pending pods by reason, and queues.",
    "get": "Show devices, drivers, claims, pools, nodes, pods, queues or workloads.",
    "logs": "Show the logs of a container.",
    "manifests": "Print the objects that run components on a Kubernetes cluster, for kubectl apply.",
    "migrate": "Migrate resource.k8s.io/v1alpha2 and v1alpha3 to v1.",
    "node": "Run a node agent: register the node, have drivers prepare claims, run the pods bound to the node.",
    "nodegroups": "Learn node groups from existing nodes, and find mistakes in node groups.",
    "plan": "Plan capacity: the node groups to grow so that pending pods run, and the pods that stay pending.",
    "play": "Start a control plane, apply manifests to it, and show the node and devices that each pod gets.",
    "queueing": "Admit jobs by queues and quota, devices included, as Kueue does.",
    "replay": "Replay recorded scheduling decisions, and show the first one that comes out differently.",
    "report": "Report the utilisation or the fragmentation of a cluster.",
    "scheduler": "Schedule pods: choose nodes, allocate and reserve the devices of their claims, bind.",
    "simulate": "Simulate workloads on clusters, and compare scheduling policies.",
    "status": "Show the clusters that drachma up started on this machine, running or stopped.",
    "store": "Back up, restore, check, compact and repair the data directory of an API server.",
    "top": "Show the usage of nodes, pods and devices.",
    "up": "Run a cluster: API server, controllers, scheduler and simulated nodes with GPUs, until Ctrl-C or SIGTERM.",
    "validate": "Check manifests of any kind that drachma serves as its server would when they are created.",
    "whatif": "Apply a change to a simulated copy of a cluster, and show the difference that it makes.",
    "when": "Estimate when a job starts, from simulated futures of the cluster.",
}
"""Help line of each command.

The module of the command's name in this package holds a function of that name, or a Typer ``app`` for a group.
"""


def load(name: str) -> Any:
    """Return the Click command of a name, from its module."""
    module = importlib.import_module(f"drachma.cli.{name}")
    group = getattr(module, "app", None)
    if group is None:
        group = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
        group.command(name)(getattr(module, name))
    # Plain help never cuts the name of an option, however narrow the terminal is.
    group.rich_markup_mode = None
    command = typer.main.get_command(group)
    command.name = name
    for part in getattr(command, "commands", {}).values():
        # Lists of commands wrap whole sentences; by default they cut them.
        part.short_help = inspect.cleandoc(part.help or "").partition("\n\n")[0].replace("\n", " ")
    return command


class _LazyCommand(typer.core.TyperCommand):
    """Command with a name and a help line; it loads the real command when it is invoked."""

    def make_context(self, info_name: str | None, args: Sequence[str], parent: Any = None, **extra: Any) -> Any:
        return load(str(self.name)).make_context(info_name, list(args), parent, **extra)


class _Commands(typer.core.TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            near = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"No such command {name!r}.{hint}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _LazyCommand(cmd_name, short_help=COMMANDS[cmd_name]) if cmd_name in COMMANDS else None


BAD_INPUT: Final = 2
"""Exit code for invalid input and invalid options."""

_BAD_INPUT: Final = (errors.DecodeError, errors.InvalidValueError)

app = typer.Typer(
    name="drachma",
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"drachma {drachma.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Dynamic Resource Allocation as a whole system, wire-compatible with Kubernetes."""


def _print_refusals(refusals: Sequence[errors.DrachmaError]) -> int:
    """Print one line for each distinct refusal, and return the exit code."""
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
    """Run a command. A refusal is one line on standard error, with exit code 2 for bad input and 1 otherwise."""
    gc.set_threshold(*_COLLECTOR_THRESHOLDS)
    try:
        app()
    except errors.DrachmaError as error:
        sys.exit(_print_refusals([error]))
    except BaseExceptionGroup as group:
        # Several tasks may have failed at once; print one line for each.
        leaves = list(_leaves(group))
        refusals = [each for each in leaves if isinstance(each, errors.DrachmaError)]
        if len(refusals) < len(leaves):
            # A defect: its own traceback says most.
            raise next(each for each in leaves if each not in refusals) from None
        sys.exit(_print_refusals(refusals))
    except BrokenPipeError:
        # The reader of our output has closed the pipe (`drachma ... | head`), so nothing can be printed.
        sys.stderr.close()
        sys.exit(1)
