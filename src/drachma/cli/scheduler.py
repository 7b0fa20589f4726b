"""``drachma scheduler``: the scheduler on its own, on any Kubernetes API server."""

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
from drachma.api import gates
from drachma.cli import eventloop
from drachma.client import Informers, access, http, lease
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
    level = logging.DEBUG if verbose else logging.INFO
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("drachma.scheduler").setLevel(level)
    chosen = Settings(
        name=scheduler_name,
        gates=gates.Gates.parse(feature_gates),
        filter_seconds=filter_timeout,
        binding_seconds=binding_timeout,
        has_peers=peers or not leader_elect,
    )
    registry = prometheus_client.CollectorRegistry()
    if metrics_port:
        prometheus_client.start_http_server(metrics_port, "127.0.0.1", registry=registry)
    lead = (leader_elect_resource_namespace, leader_elect_resource_name) if leader_elect else None
    with eventloop.runner() as runner:
        runner.run(_run(http.find_access(kubeconfig, context=context), chosen, registry=registry, lead=lead))


async def _run(
    reached: access.Access,
    chosen: Settings,
    *,
    registry: prometheus_client.CollectorRegistry,
    lead: tuple[str, str] | None,
) -> None:
    task = asyncio.current_task()
    assert task is not None, "runs as a task"
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        async with http.HttpClient(reached, manager=chosen.name) as client, Informers(client) as shared:
            worker = Scheduler(client, shared, chosen=chosen, registry=registry)
            if lead is None:
                await worker.run()
                return
            identity = f"{socket.gethostname()}_{os.getpid()}"
            namespace, name = lead
            leadership = lease.Leadership(client, name=name, namespace=namespace, identity=identity)
            try:
                await leadership.lead(worker.run)
            except lease.LeadershipLostError as lost:
                # As upstream: whoever runs it starts it again, and it stands for election anew.
                raise errors.UnreachableError(str(lost)) from lost
    except asyncio.CancelledError:
        # Asked to stop: that is no failure.
        pass
