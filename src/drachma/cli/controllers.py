"""``drachma controllers``: the controllers on their own, on any Kubernetes API server."""

import pathlib
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from drachma import errors
from drachma.api import gates as features
from drachma.client import Client, http
from drachma.controllers import catalog, environment, group
from drachma.process import component
from drachma.runtime import Informers

_LEASE = "kube-controller-manager"


def controllers(
    kubeconfig: Annotated[
        pathlib.Path | None, typer.Option(help="How to reach the API server; found where kubectl looks by default.")
    ] = None,
    context: Annotated[str, typer.Option(help="The context of the kubeconfig.")] = "",
    which: Annotated[
        str,
        typer.Option("--controllers", help="Which to run: * for all, a name for one, -name for all but this one."),
    ] = "*",
    feature_gates: Annotated[str, typer.Option(help="Name=true,Other=false; features by upstream's names.")] = "",
    leader_elect: Annotated[bool, typer.Option(help="Work only while holding the lease.")] = True,
    leader_elect_resource_name: Annotated[str, typer.Option(help="The name of the lease.")] = _LEASE,
    leader_elect_resource_namespace: Annotated[str, typer.Option(help="Its namespace.")] = "kube-system",
    metrics_port: Annotated[int, typer.Option(help="Serve metrics on this port of the loopback address; 0: no.")] = 0,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more about what is done.")] = False,
) -> None:
    """Run controllers: claims from templates, garbage collection, namespaces, nodes, taints, jobs.

    By default they wait for the lease that kube-controller-manager holds, so that nothing is done twice.
    """
    component.log_to_stderr("drachma.controllers", verbose=verbose)
    gates = features.Gates.parse(feature_gates)
    makes = catalog.chosen(which, gates=gates)
    if not makes:
        raise errors.InvalidValueError(f"controllers {which!r}: that is none")
    registry = component.metrics(metrics_port)

    def make(client: Client, informers: Informers) -> Callable[[], Awaitable[None]]:
        surroundings = environment.Environment(client, informers, registry=registry, gates=gates)

        async def work() -> None:
            await group.run(surroundings, [each(surroundings) for each in makes.values()])

        return work

    lead = component.Lead(namespace=leader_elect_resource_namespace, name=leader_elect_resource_name)
    reached = http.find_access(kubeconfig, context=context)
    component.run(make, reached, manager="drachma-controllers", lead=lead if leader_elect else None)
