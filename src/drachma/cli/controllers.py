"""``drachma controllers``: the controllers on their own, on any Kubernetes API server."""

import asyncio
import logging
import os
import pathlib
import signal
import socket
from typing import Annotated

import prometheus_client
import typer

from drachma import errors
from drachma.api import gates as features
from drachma.cli import eventloop
from drachma.client import Informers, access, http, lease
from drachma.controllers import catalog, environment, group

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
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("drachma.controllers").setLevel(logging.DEBUG if verbose else logging.INFO)
    gates = features.Gates.parse(feature_gates)
    makes = catalog.chosen(which, gates=gates)
    if not makes:
        raise errors.InvalidValueError(f"controllers {which!r}: that is none")
    registry = prometheus_client.CollectorRegistry()
    if metrics_port:
        prometheus_client.start_http_server(metrics_port, "127.0.0.1", registry=registry)
    lead = (leader_elect_resource_namespace, leader_elect_resource_name) if leader_elect else None
    reached = http.find_access(kubeconfig, context=context)
    with eventloop.runner() as runner:
        runner.run(_run(reached, makes, gates=gates, registry=registry, lead=lead))


async def _run(
    reached: access.Access,
    makes: dict[str, catalog.Make],
    *,
    gates: features.Gates,
    registry: prometheus_client.CollectorRegistry,
    lead: tuple[str, str] | None,
) -> None:
    task = asyncio.current_task()
    assert task is not None, "runs as a task"
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        async with http.HttpClient(reached, manager="drachma-controllers") as client, Informers(client) as shared:
            surroundings = environment.Environment(client, shared, registry=registry, gates=gates)

            async def work() -> None:
                await group.run(surroundings, [make(surroundings) for make in makes.values()])

            if lead is None:
                await work()
                return
            namespace, name = lead
            identity = f"{socket.gethostname()}_{os.getpid()}"
            leadership = lease.Leadership(client, name=name, namespace=namespace, identity=identity)
            try:
                await leadership.lead(work)
            except lease.LeadershipLostError as lost:
                # As upstream: whoever runs it starts it again, and it stands for election anew.
                raise errors.UnreachableError(str(lost)) from lost
    except asyncio.CancelledError:
        # Asked to stop: that is no failure.
        pass
