"""``drachma autoscaler``: node groups of a live cluster grow and shrink as its pods need."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from drachma import errors
from drachma.api import gates
from drachma.cli import clusters, options
from drachma.client import http
from drachma.process import components, logs, standalone
from drachma.runtime import Surroundings, controller, lease
from drachma.simulate.autoscaler import Autoscaler, Provider, Settings
from drachma.simulate.autoscaler.commandprovider import CommandProvider
from drachma.simulate.autoscaler.simulatedprovider import SimulatedProvider
from drachma.simulate.growth import Objective


def autoscaler(
    node_groups: Annotated[list[str], typer.Option(help="Files with node groups; may be repeated.")],
    command: Annotated[
        str,
        typer.Option(help="Run for each change, with 'grow GROUP COUNT' or 'remove GROUP NODE' behind it."),
    ] = "",
    simulated: Annotated[
        bool,
        typer.Option("--simulated", help="Only make and delete the objects of nodes: no machine is behind."),
    ] = False,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    objective: Annotated[Objective, typer.Option(help="What to have little of.")] = Objective.NODES,
    interval: Annotated[float, typer.Option(min=1, help="Seconds between two looks at the cluster.")] = 10.0,
    unneeded: options.Unneeded = options.DEFAULT_UNNEEDED,
    cooldown: options.Cooldown = options.DEFAULT_COOLDOWN,
    most_new: Annotated[int, typer.Option(min=1, help="Nodes of a group that are asked for at once at most.")] = 100,
    shrink: Annotated[bool, typer.Option(help="Whether nodes go at all.")] = True,
    feature_gates: options.FeatureGates = "",
    leader_elect: options.LeaderElect = True,
    lease_name: options.LeaseName = "drachma-autoscaler",
    lease_namespace: options.LeaseNamespace = "kube-system",
    metrics_port: options.MetricsPort = 0,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more.")] = False,
) -> None:
    """Grow and shrink node groups as pods need."""
    logs.to_stderr("drachma.simulate", verbose=verbose)
    if bool(command) == simulated:
        raise errors.DecodeError("--command or --simulated: exactly one of them says where nodes come from")
    groups = clusters.groups(node_groups)
    chosen = Settings(
        objective=objective,
        interval=interval,
        unneeded=unneeded,
        cooldown=cooldown,
        most_new=most_new,
        shrinks=shrink,
    )

    def component(surroundings: Surroundings) -> components.Run:
        provider: Provider = CommandProvider(shlex.split(command))
        if simulated:
            provider = SimulatedProvider(surroundings.client)
        made = Autoscaler(surroundings, groups, provider, chosen=chosen)
        return lambda: controller.run_all(surroundings, [made])

    standalone.run(
        component,
        standalone.Options(
            access=http.find_access(kubeconfig, context=context),
            manager="drachma-autoscaler",
            gates=gates.Gates.parse(feature_gates),
            lease_name=lease.LeaseName(lease_namespace, lease_name) if leader_elect else None,
            metrics_port=metrics_port,
        ),
    )
