"""``drachma apiserver``: the Kubernetes API on a data directory, for kubectl and everything else that speaks it."""

import typer

from drachma.api import gates
from drachma.cli import options
from drachma.process import hosting, logs
from drachma.server.wire import serving


def apiserver(
    data: options.Data = None,
    listen: options.Listen = options.DEFAULT_LISTEN,
    kubeconfig_out: options.KubeconfigOut = None,
    feature_gates: options.FeatureGates = "",
) -> None:
    """Serve the Kubernetes API.

    TLS certificates and the admin's token are made on the first start and kept in the data directory.
    """
    logs.to_stderr()
    hosting.run(
        hosting.Options(
            data=data,
            address=serving.Address.parse(listen),
            kubeconfig_out=kubeconfig_out,
            gates=gates.Gates.parse(feature_gates),
            announce=typer.echo,
        )
    )
