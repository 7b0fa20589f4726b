"""``drachma exporter``: metrics about the devices, claims, pending pods and queues of any cluster."""

from typing import Annotated

import typer

from drachma.cli import options


def exporter(
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    seconds: Annotated[float, typer.Option("--interval", min=1, help="Seconds between two counts.")] = 15.0,
    most_nodes: Annotated[
        int, typer.Option("--max-nodes", min=1, help="Nodes with series of their own; others count as 'other'.")
    ] = 500,
    most_names: Annotated[
        int,
        typer.Option(
            "--max-names",
            min=1,
            help="Classes, drivers, taints, namespaces, reasons and counters with series of their own.",
        ),
    ] = 100,
    most_pod_claims: Annotated[
        int, typer.Option("--max-pod-claims", min=0, help="Claims of pods with series of their own.")
    ] = 1000,
    metrics_port: options.MetricsPort = 0,
    secure_address: options.SecureAddress = "",
    log_format: options.LogFormat = options.LogLines.TEXT,
    verbose: options.Verbose = False,
) -> None:
    """Export metrics about a cluster: devices, claims, pending pods by reason, and queues.

    Devices are counted by class, driver, node, state, taint and health, and so are free devices that no usual claim
    could use, and the use of shared counters and capacity. The number of series is bounded. The exporter reads the
    cluster and writes nothing.
    """
    from drachma import errors
    from drachma.client import http
    from drachma.exporter import Census, Exporter, Limits
    from drachma.process import components, logs, standalone
    from drachma.runtime import Surroundings

    logs.to_stderr("drachma.exporter", verbose=verbose, is_json=log_format.is_json)
    if not metrics_port and not secure_address:
        raise errors.InvalidValueError("--metrics-port or --secure-address: one of them is needed to serve metrics")
    census = Census(Limits(nodes=most_nodes, names=most_names, pod_claims=most_pod_claims))

    def build(surroundings: Surroundings) -> components.Run:
        return Exporter(surroundings, census, seconds=seconds).run

    standalone.run(
        build,
        standalone.Options(
            access=http.find_access(kubeconfig, context=context),
            manager="drachma-exporter",
            metrics_port=metrics_port,
            secure_address=options.secure_address(secure_address),
        ),
    )
