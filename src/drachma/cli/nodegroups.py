"""``drachma nodegroups``: node groups from existing nodes, and likely mistakes in node groups."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Annotated

import typer

from drachma.api import gates
from drachma.cli import options

if TYPE_CHECKING:
    from drachma.runtime import Surroundings

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False, no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Learn node groups from existing nodes, and find mistakes in node groups."""


@app.command()
def learn(
    node: Annotated[str, typer.Argument(help="Node to use as the template of the group.")],
    name: Annotated[str, typer.Option(help="Name of the group; the name of the node by default.")] = "",
    file: options.ClusterFiles = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
) -> None:
    """Write a node group whose nodes are like an existing one, with the devices that drivers published on it.

    Names, pools, hostnames and values with a UUID become placeholders. Taints and conditions of the node's present
    state are left out. The result is a manifest: set its limits and price, and pass it to drachma plan.
    """
    from drachma.api import manifest
    from drachma.cli import clusters
    from drachma.simulate import grouplearning

    cluster = clusters.read(file, kubeconfig, context=context)
    learned = grouplearning.learn(cluster.state, node, name=name or node)
    for note in learned.notes:
        typer.echo(f"drachma: {note}", err=True)
    typer.echo(manifest.write_yaml([learned.document]), nl=False)


@app.command()
def karpenter(
    node_pools: Annotated[list[str], typer.Argument(help="Files with NodePools: kubectl get nodepools -o yaml.")],
    file: options.ClusterFiles = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
) -> None:
    """Write Karpenter's NodePools as node groups, one for each instance type that a pool has a node of.

    The template of a group is learned from a node of the pool, with its devices. Limits of the pool become the greatest
    number of nodes. Set prices, and pass the result to drachma plan.
    """
    from drachma import errors
    from drachma.api import manifest
    from drachma.cli import clusters
    from drachma.offline import manifestfiles
    from drachma.simulate import karpenter as karpenterpools

    documents = [each.content for each in manifestfiles.read_all(node_pools)]
    pools = [karpenterpools.read(each) for each in documents if karpenterpools.is_node_pool(each)]
    if not pools:
        raise errors.DecodeError(f"{', '.join(node_pools)}: there is no NodePool of {karpenterpools.GROUP}")
    state = clusters.read(file, kubeconfig, context=context).state
    for name in karpenterpools.pools_without_nodes(state, pools):
        typer.echo(f"drachma: NodePool {name}: has no node to learn from", err=True)
    learned = karpenterpools.learn(state, pools)
    for note in (note for each in learned for note in each.notes):
        typer.echo(f"drachma: {note}", err=True)
    if not learned:
        raise typer.Exit(1)
    typer.echo(manifest.write_yaml([each.document for each in learned]), nl=False)


@app.command()
def serve(
    node_groups: Annotated[list[str], typer.Argument(help="Files with node groups.")],
    address: Annotated[str, typer.Option(help="HOST:PORT to serve at.")] = "127.0.0.1:8086",
    certificate: Annotated[pathlib.Path | None, typer.Option(help="Certificate of the server, as PEM.")] = None,
    key: Annotated[pathlib.Path | None, typer.Option(help="Key of the certificate, as PEM.")] = None,
    client_ca: Annotated[
        pathlib.Path | None, typer.Option(help="Authority of the certificates that clients must have, as PEM.")
    ] = None,
    command: options.GroupCommand = "",
    simulated: options.SimulatedNodes = False,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    metrics_port: options.MetricsPort = 0,
    log_format: options.LogFormat = options.LogLines.TEXT,
    verbose: options.Verbose = False,
) -> None:
    """Serve node groups to cluster-autoscaler, with the slices of their templates (--cloud-provider=externalgrpc).

    cluster-autoscaler decides; nodes come from --command or --simulated, as with drachma autoscaler. Addresses that
    other machines reach require --certificate, --key and --client-ca, because every client can remove nodes.
    """
    from drachma.cli import clusters, providers
    from drachma.client import http
    from drachma.process import cloudprovider, components, logs, standalone
    from drachma.process.providercredentials import read_credentials

    logs.to_stderr("drachma.process.cloudprovider", verbose=verbose, is_json=log_format.is_json)
    credentials = read_credentials(address, certificate=certificate, key=key, client_ca=client_ca)
    source = providers.choose(command, is_simulated=simulated)
    groups = clusters.groups(node_groups)

    def component(surroundings: Surroundings) -> components.Run:
        service = cloudprovider.CloudProvider(surroundings, groups, source(surroundings.client))
        return lambda: service.run(address, credentials)

    standalone.run(
        component,
        standalone.Options(
            access=http.find_access(kubeconfig, context=context),
            manager="drachma-cloud-provider",
            metrics_port=metrics_port,
        ),
    )


@app.command()
def lint(
    node_groups: Annotated[list[str], typer.Argument(help="Files with node groups.")],
    file: options.ClusterFiles = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    output: options.Output = None,
    feature_gates: options.FeatureGates = "",
) -> None:
    """Show likely mistakes in node groups, given the classes and claims of a cluster.

    Finds templates whose pools never become complete, pools that nodes of a group have and its template lacks, pools
    of equal names, attributes that selectors read and no device has, and selectors that match no device.

    Exit code 1: there is a finding.
    """
    from drachma.cli import clusters
    from drachma.simulate import grouplint

    enabled = gates.Gates.parse(feature_gates)
    cluster = clusters.read(file, kubeconfig, context=context, enabled=enabled)
    findings = grouplint.lint((*clusters.groups(node_groups), *cluster.groups), cluster.state, enabled=enabled)
    lines = [*map(str, findings), f"{len(findings) or 'no'} finding{'' if len(findings) == 1 else 's'}"]
    clusters.write({"findings": [each._asdict() for each in findings]}, lines, output)
    if findings:
        raise typer.Exit(1)
