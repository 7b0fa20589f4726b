"""``drachma up``: a whole control plane in one process: API server, controllers and scheduler."""

import functools
import pathlib
from typing import Annotated

import typer

from drachma.api import gates as feature
from drachma.client import local
from drachma.process import embedded, hosting
from drachma.server import inprocess
from drachma.server.wire import serving


def up(
    data: Annotated[
        pathlib.Path | None,
        typer.Option(help="The data directory; without one, everything is forgotten when the control plane stops."),
    ] = None,
    listen: Annotated[str, typer.Option(help="host:port to listen on; port 0 takes any.")] = "127.0.0.1:6443",
    kubeconfig_out: Annotated[
        pathlib.Path | None, typer.Option(help="Where to write a kubeconfig for the admin.")
    ] = None,
    feature_gates: Annotated[str, typer.Option(help="Name=true,Other=false; features by upstream's names.")] = "",
) -> None:
    """Run a control plane: API server, controllers and scheduler, until Ctrl-C or SIGTERM.

    Nodes and pods are objects: nothing is started on any machine.
    """
    hosting.log_to_stderr()
    gates = feature.Gates.parse(feature_gates)
    options = hosting.Options(
        data=data, address=serving.Address.parse(listen), kubeconfig_out=kubeconfig_out, gates=gates
    )
    hosting.run(options, functools.partial(components, gates=gates))


async def components(host: hosting.Host, *, gates: feature.Gates = feature.ALL) -> None:
    """Runs controllers and scheduler beside a server."""
    given = embedded.Surroundings(gates=gates, registry=host.application.metrics.registry)
    async with local.LocalClient(inprocess.InProcess(host.application.dispatcher)) as client:
        await embedded.run(client, given, ready=host.ready)
