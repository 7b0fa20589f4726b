"""Options of commands that run nodes, and their values."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from drachma.node.runtimes.runtimename import RuntimeName

if TYPE_CHECKING:
    from drachma.node.runtimes.mixed import Rule
    from drachma.node.simulation import hardware
    from drachma.node.simulation.runtime import Defaults

DEFAULT_UP_NODES: Final = 3
DEFAULT_PROFILE: Final = "gpu-server"

Nodes: TypeAlias = Annotated[int, typer.Option(min=0, max=10_000, help="Number of simulated nodes.")]
Profile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--profile",
        help="Hardware of the simulated nodes: gpu-server by default; cpu, mig, nic, numa, rack; of vendors "
        "amd-mi300x, dra-cpu, dranet, google-tpu, intel-gaudi, intel-gpu, nvidia-a100, nvidia-a100-mig, "
        "nvidia-gb200, nvidia-h100, nvidia-h100-mig; or a file with a Node and its slices, or with a node group, and "
        "device classes.",
    ),
]
RunFor: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--run-for",
        min=0,
        help="Seconds that simulated containers of jobs run, if neither their command nor an annotation says it.",
    ),
]
ExitCode: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--exit-code", min=0, max=255, help="Exit code of simulated containers of jobs, likewise; 0 by default."
    ),
]
PretendNodes: TypeAlias = Annotated[
    bool, typer.Option("--pretend-nodes", help="Keep nodes that other clients create ready, as if they were machines.")
]
PluginDirectory: TypeAlias = Annotated[
    pathlib.Path | None,
    typer.Option(help="Folder with one registration folder per node for real drivers; without it they are simulated."),
]
ContainerRuntime: TypeAlias = Annotated[RuntimeName, typer.Option("--runtime", help="Runtime of the containers.")]
Simulate: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--simulate",
        help="Containers to simulate with a runtime that runs the others: namespace=NAME, label=KEY[=VALUE] or "
        "image=PATTERN; may be repeated.",
    ),
]
AllowUnenforcedSecurity: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--allow-unenforced-security",
        help="Run containers whose security context the runtime cannot enforce, with a warning event.",
    ),
]


def machines(profile: str, count: int) -> hardware.Hardware | None:
    """Return the simulated machines, or None for none. Raises InvalidValueError or DecodeError for a bad profile."""
    from drachma.offline import machineprofiles

    return machineprofiles.build(profile, count) if count else None


def simulated_containers(rules: list[str] | None) -> tuple[Rule, ...]:
    """Return the rules of --simulate. Raises InvalidValueError."""
    from drachma.node.runtimes.mixed import Rule

    return tuple(Rule.parse(each) for each in rules or ())


def run_defaults(run_for: float | None, exit_code: int | None) -> Defaults:
    """Return the runs of simulated containers that end by themselves."""
    from drachma.node.simulation.runtime import Defaults

    defaults = Defaults()
    return defaults._replace(
        seconds=defaults.seconds if run_for is None else run_for,
        code=defaults.code if exit_code is None else exit_code,
    )
