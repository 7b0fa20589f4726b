"""``drachma nodegroups``: node groups from nodes that are there, and what is likely wrong with node groups."""

from __future__ import annotations

from typing import Annotated

import typer

from drachma.api import gates, manifest
from drachma.cli import clusters, options
from drachma.simulate import grouplearning, grouplint

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False, no_args_is_help=True)

Files = Annotated[
    list[str] | None,
    typer.Option("-f", "--filename", help="A file, a folder, or - for standard input, in place of a server."),
]


@app.callback()
def _group() -> None:
    """Learn node groups from nodes that are there, and find what is wrong with them."""


@app.command()
def learn(
    node: Annotated[str, typer.Argument(help="The node that those of the group are like.")],
    name: Annotated[str, typer.Option(help="The name of the group; else that of the node.")] = "",
    file: Files = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
) -> None:
    """Write a node group whose nodes are like one that is there, with what drivers have published on it.

    Names, pools, hostnames and values that hold a UUID are made another's; taints and conditions that tell how the node
    is at the moment are left out. The result is a manifest: set its limits and price, and give it to drachma plan.
    """
    cluster = clusters.read(file, kubeconfig, context=context)
    learned = grouplearning.learn(cluster.state, node, name=name or node)
    for note in learned.notes:
        typer.echo(f"drachma: {note}", err=True)
    typer.echo(manifest.write_yaml([learned.document]), nl=False)


@app.command()
def lint(
    node_groups: Annotated[list[str], typer.Argument(help="Files with node groups.")],
    file: Files = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    output: Annotated[options.Format | None, typer.Option("-o", "--output", help="As a document.")] = None,
    feature_gates: options.FeatureGates = "",
) -> None:
    """Say what is likely wrong with node groups, beside the classes and claims of a cluster.

    Templates whose pools never become complete, pools that nodes of a group have and its template lacks, pools of equal
    names, attributes that selectors ask for and nobody has, selectors that match no device. Exit code 1: something was
    found.
    """
    enabled = gates.Gates.parse(feature_gates)
    cluster = clusters.read(file, kubeconfig, context=context, enabled=enabled)
    findings = grouplint.lint((*clusters.groups(node_groups), *cluster.groups), cluster.state, enabled=enabled)
    lines = [*map(str, findings), f"{len(findings) or 'no'} finding{'' if len(findings) == 1 else 's'}"]
    clusters.write({"findings": [each._asdict() for each in findings]}, lines, output)
    if findings:
        raise typer.Exit(1)
