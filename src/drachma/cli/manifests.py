"""``drachma manifests``: the objects that run components on a Kubernetes cluster."""

from __future__ import annotations

from typing import Annotated

import typer

import drachma
from drachma import errors

_COMPONENTS = ("controllers", "exporter", "queueing", "scheduler")


def manifests(
    component: Annotated[list[str], typer.Argument(help=f"Components: {', '.join(_COMPONENTS)}.")],
    image: Annotated[str, typer.Option(help="Container image; see deploy/Containerfile.")] = (
        f"drachma:{drachma.__version__}"
    ),
    namespace: Annotated[str, typer.Option("-n", "--namespace", help="Namespace to run in.")] = "drachma-system",
    replicas: Annotated[int, typer.Option(min=1, help="Replicas of each component; one of them leads.")] = 2,
    scheduler_name: Annotated[
        str, typer.Option(help="schedulerName of the pods to schedule, next to kube-scheduler.")
    ] = "drachma-scheduler",
    neighbours: Annotated[
        bool, typer.Option(help="Let the scheduler undo the later of two allocations of one device; see its help.")
    ] = False,
    controllers: Annotated[
        str, typer.Option(help="Comma-separated controllers to run; turn them off in kube-controller-manager.")
    ] = "",
) -> None:
    """Print the objects that run components on a Kubernetes cluster, for kubectl apply.

    Each component has an account with the permissions that it needs, leader election, probes, a disruption budget and a
    network policy, and runs in a namespace with the restricted Pod Security level.
    """
    from drachma import deployment
    from drachma.api import manifest
    from drachma.deployment import components

    unknown = [each for each in component if each not in _COMPONENTS]
    if unknown:
        raise errors.InvalidValueError(f"component {unknown[0]!r}: expected {', '.join(_COMPONENTS)}")
    if "controllers" in component and not controllers:
        raise errors.InvalidValueError("component controllers: name the controllers to run with --controllers")
    if controllers and "controllers" not in component:
        raise errors.InvalidValueError("--controllers: goes with the component controllers")
    selected = []
    for name in dict.fromkeys(component):
        match name:
            case "controllers":
                selected.append(components.controllers(controllers))
            case "exporter":
                selected.append(components.exporter())
            case "queueing":
                selected.append(components.queueing())
            case _:
                selected.append(components.scheduler(scheduler_name, has_neighbours=neighbours))
    settings = deployment.Settings(image=image, namespace=namespace, replicas=replicas)
    typer.echo(manifest.write_yaml(deployment.documents(selected, settings)), nl=False)
