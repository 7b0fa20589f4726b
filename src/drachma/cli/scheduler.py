"""``drachma scheduler``: the scheduler on its own, on any Kubernetes API server."""

import pathlib
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from drachma.api import gates
from drachma.client import Client, http
from drachma.process import component
from drachma.runtime import Informers
from drachma.scheduler import Scheduler, Settings
from drachma.scheduler.settings import DEFAULT_NAME

_LEASE = "kube-scheduler"


def scheduler(
    kubeconfig: Annotated[
        pathlib.Path | None, typer.Option(help="How to reach the API server; found where kubectl looks by default.")
    ] = None,
    context: Annotated[str, typer.Option(help="The context of the kubeconfig.")] = "",
    scheduler_name: Annotated[str, typer.Option(help="Schedule the pods with this schedulerName.")] = DEFAULT_NAME,
    feature_gates: Annotated[str, typer.Option(help="Name=true,Other=false; features by upstream's names.")] = "",
    leader_elect: Annotated[bool, typer.Option(help="Work only while holding the lease.")] = True,
    leader_elect_resource_name: Annotated[str, typer.Option(help="The name of the lease.")] = _LEASE,
    leader_elect_resource_namespace: Annotated[str, typer.Option(help="Its namespace.")] = "kube-system",
    peers: Annotated[
        bool, typer.Option(help="Other schedulers work at the same time: check every allocation before binding.")
    ] = False,
    filter_timeout: Annotated[float, typer.Option(help="Seconds that allocating on one node may take.")] = 10.0,
    binding_timeout: Annotated[float, typer.Option(help="Seconds that devices may take to become ready.")] = 600.0,
    metrics_port: Annotated[int, typer.Option(help="Serve metrics on this port of the loopback address; 0: no.")] = 0,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say what becomes of every pod.")] = False,
) -> None:
    """Schedule pods: choose nodes, allocate and reserve the devices of their claims, bind."""
    component.log_to_stderr("drachma.scheduler", verbose=verbose)
    chosen = Settings(
        name=scheduler_name,
        gates=gates.Gates.parse(feature_gates),
        filter_seconds=filter_timeout,
        binding_seconds=binding_timeout,
        has_peers=peers or not leader_elect,
    )
    registry = component.metrics(metrics_port)

    def make(client: Client, informers: Informers) -> Callable[[], Awaitable[None]]:
        return Scheduler(client, informers, chosen=chosen, registry=registry).run

    lead = component.Lead(namespace=leader_elect_resource_namespace, name=leader_elect_resource_name)
    reached = http.find_access(kubeconfig, context=context)
    component.run(make, reached, manager=chosen.name, lead=lead if leader_elect else None)
