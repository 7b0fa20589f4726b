"""``drachma autoscaler``: grow and shrink the node groups of a live cluster as its pods need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from drachma.api import gates
from drachma.cli import options

if TYPE_CHECKING:
    from drachma.process import components
    from drachma.runtime import Surroundings


def autoscaler(
    node_groups: Annotated[list[str], typer.Option(help="Files with node groups; may be repeated.")],
    command: options.GroupCommand = "",
    simulated: options.SimulatedNodes = False,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    objective: options.Objective = "nodes",
    interval: Annotated[float, typer.Option(min=1, help="Seconds between two checks of the cluster.")] = 10.0,
    unneeded: options.Unneeded = options.DEFAULT_UNNEEDED,
    cooldown: options.Cooldown = options.DEFAULT_COOLDOWN,
    most_new: Annotated[int, typer.Option(min=1, help="Nodes to add to one group at once, at most.")] = 100,
    shrink: Annotated[bool, typer.Option(help="Remove nodes that are not needed.")] = True,
    feature_gates: options.FeatureGates = "",
    leader_elect: options.LeaderElect = True,
    lease_name: options.LeaseName = "drachma-autoscaler",
    lease_namespace: options.LeaseNamespace = "kube-system",
    metrics_port: options.MetricsPort = 0,
    secure_address: options.SecureAddress = "",
    log_format: options.LogFormat = options.LogLines.TEXT,
    verbose: options.Verbose = False,
) -> None:
    """Grow and shrink node groups as pods need."""
    from drachma.cli import clusters, providers
    from drachma.client import http
    from drachma.process import logs, standalone
    from drachma.runtime import controller, lease
    from drachma.simulate.autoscaler import Autoscaler, Settings
    from drachma.simulate.growth import Objective

    logs.to_stderr("drachma.simulate", verbose=verbose, is_json=log_format.is_json)
    source = providers.choose(command, is_simulated=simulated)
    groups = clusters.groups(node_groups)
    settings = Settings(
        objective=Objective(objective),
        interval=interval,
        unneeded=unneeded,
        cooldown=cooldown,
        most_new=most_new,
        shrinks=shrink,
    )

    def component(surroundings: Surroundings) -> components.Run:
        scaler = Autoscaler(surroundings, groups, source(surroundings.client), settings=settings)
        return lambda: controller.run_all(surroundings, [scaler])

    standalone.run(
        component,
        standalone.Options(
            access=http.find_access(kubeconfig, context=context),
            manager="drachma-autoscaler",
            gates=gates.Gates.parse(feature_gates),
            lease_name=lease.LeaseName(lease_namespace, lease_name) if leader_elect else None,
            metrics_port=metrics_port,
            secure_address=options.secure_address(secure_address),
        ),
    )
