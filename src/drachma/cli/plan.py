"""``drachma plan``: which nodes would let pods run that wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from drachma.api import gates, manifest
from drachma.cli import clusters, options
from drachma.scheduler import Settings
from drachma.simulate import Simulation
from drachma.simulate.growth import Objective, Plan, Planner


def plan(
    file: Annotated[
        list[str] | None, typer.Option("-f", "--filename", help="A file, a folder, or - for standard input.")
    ] = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    node_groups: Annotated[
        list[str] | None, typer.Option(help="Files with node groups, beside those that -f has.")
    ] = None,
    objective: Annotated[Objective, typer.Option(help="What to have little of.")] = Objective.NODES,
    max_: Annotated[
        list[str] | None, typer.Option("--max", help="GROUP=N: at most so many nodes of a group; may be repeated.")
    ] = None,
    output: Annotated[options.Format | None, typer.Option("-o", "--output", help="As a document.")] = None,
    feature_gates: options.FeatureGates = "",
) -> None:
    """Say which node groups to grow by how many nodes, so that pending pods run; and what stays pending.

    The cluster is read from manifests or a dump (-f), or from a server; node groups are manifests of kind NodeGroup in
    drachma.dev/v1. Exit code 1: some pod stays pending; 2: something cannot be read.
    """
    enabled = gates.Gates.parse(feature_gates)
    cluster = clusters.read(file, kubeconfig, context=context, more=node_groups, enabled=enabled)
    maxima = clusters.maxima(max_ or [], {group.name for group in cluster.groups})
    simulation = Simulation(cluster.state, chosen=Settings(gates=enabled))
    made = Planner(simulation, cluster.groups, objective=objective, maxima=maxima).plan()
    if output is None:
        for line in _lines(made):
            typer.echo(line)
    else:
        write = manifest.write_json if output is options.Format.JSON else manifest.write_yaml
        typer.echo(write([_document(made)]), nl=False)
    if made.pending:
        raise typer.Exit(1)


def _document(made: Plan) -> dict[str, Any]:
    return {"grow": dict(made.grow), "placed": dict(made.placed), "pending": dict(made.pending), "price": made.price}


def _lines(made: Plan) -> Iterator[str]:
    for group, count in made.grow.items():
        yield f"grow node group {group} by {count}"
    if made.grow:
        yield f"  which costs {made.price:g}"
    for name, node in made.placed.items():
        yield f"pod {name}: on node {node}"
    for name, reason in made.pending.items():
        yield f"pod {name}: stays pending: {reason}"
    new = f"{sum(made.grow.values())} new nodes" if made.grow else "no new node"
    yield f"{len(made.placed)} of {len(made.placed) + len(made.pending)} pending pods would run, with {new}"
