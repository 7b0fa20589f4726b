"""``drachma up``: a whole control plane in one process: API server, controllers and scheduler."""

import functools

import typer

from drachma.api import gates
from drachma.cli import options
from drachma.process import embedded, hosting, logs
from drachma.server.wire import serving


def up(
    data: options.Data = None,
    listen: options.Listen = options.DEFAULT_LISTEN,
    kubeconfig_out: options.KubeconfigOut = None,
    feature_gates: options.FeatureGates = "",
) -> None:
    """Run a control plane: API server, controllers and scheduler, until Ctrl-C or SIGTERM.

    Nodes and pods are objects: nothing is started on any machine.
    """
    logs.to_stderr()
    hosted = hosting.Options(
        data=data,
        address=serving.Address.parse(listen),
        kubeconfig_out=kubeconfig_out,
        gates=gates.Gates.parse(feature_gates),
        announce=typer.echo,
    )
    hosting.run(hosted, functools.partial(embedded.beside, gates=hosted.gates))
