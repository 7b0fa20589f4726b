"""``drachma apiserver``: the Kubernetes API on a data directory, for kubectl and everything else that speaks it."""

import pathlib
from typing import Annotated

import typer

from drachma.api import gates as feature
from drachma.process import hosting
from drachma.server.wire import serving


def apiserver(
    data: Annotated[
        pathlib.Path | None,
        typer.Option(help="The data directory; without one, everything is forgotten when the server stops."),
    ] = None,
    listen: Annotated[str, typer.Option(help="host:port to listen on; port 0 takes any.")] = "127.0.0.1:6443",
    kubeconfig_out: Annotated[
        pathlib.Path | None, typer.Option(help="Where to write a kubeconfig for the admin.")
    ] = None,
    feature_gates: Annotated[str, typer.Option(help="Name=true,Other=false; features by upstream's names.")] = "",
) -> None:
    """Serve the Kubernetes API.

    TLS certificates and the admin's token are made on the first start and kept in the data directory.
    """
    hosting.log_to_stderr()
    hosting.run(
        hosting.Options(
            data=data,
            address=serving.Address.parse(listen),
            kubeconfig_out=kubeconfig_out,
            gates=feature.Gates.parse(feature_gates),
        )
    )
