"""``drachma plan``: which nodes would let pods run that wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from drachma.api import gates
from drachma.cli import clusters, options
from drachma.scheduler import Settings
from drachma.simulate import Simulation, nodeusage, shrinkage
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
    shrink: Annotated[bool, typer.Option("--shrink", help="Say which nodes could go instead.")] = False,
    output: Annotated[options.Format | None, typer.Option("-o", "--output", help="As a document.")] = None,
    feature_gates: options.FeatureGates = "",
    gangs: options.Gangs = False,
    policy: options.Policy = "first-fit",
) -> None:
    """Say which node groups to grow by how many nodes, so that pending pods run; and what stays pending.

    The cluster is read from manifests or a dump (-f), or from a server; node groups are manifests of kind NodeGroup in
    drachma.dev/v1. With --shrink: which nodes could go, where their pods would go, and what keeps the others. Exit code
    1: some pod stays pending; 2: something cannot be read.
    """
    enabled = gates.Gates.parse(options.with_gangs(feature_gates, gangs))
    cluster = clusters.read(
        file, kubeconfig, context=context, more=node_groups, enabled=enabled, expects_pods=not shrink
    )
    maxima = clusters.maxima(max_ or [], {group.name for group in cluster.groups})
    simulation = Simulation(cluster.state, chosen=Settings(gates=enabled, policy=options.policy(policy)))
    if shrink:
        shrunk = shrinkage.shrink(simulation, groups=cluster.groups)
        clusters.write(_shrink_document(shrunk), _shrink_lines(shrunk), output)
        return
    made = Planner(simulation, cluster.groups, objective=objective, maxima=maxima).plan()
    clusters.write(_document(made), _lines(made), output)
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


# Shrinking


def _shrink_document(shrunk: shrinkage.Shrinkage) -> dict[str, Any]:
    return {
        "remove": [{"usage": _usage(each.usage), "moves": dict(each.moves)} for each in shrunk.removals],
        "keep": [{"usage": _usage(each.usage), "reason": each.reason} for each in shrunk.kept],
    }


def _usage(usage: nodeusage.NodeUsage) -> dict[str, Any]:
    return {
        "node": usage.node,
        "resources": {name: round(share, 4) for name, share in usage.resources.items()},
        "devices": {"used": usage.used_devices, "all": usage.devices},
    }


def _shrink_lines(shrunk: shrinkage.Shrinkage) -> Iterator[str]:
    for removal in shrunk.removals:
        yield f"node {removal.usage.node} could go: {_used(removal.usage)}"
        for name, node in removal.moves.items():
            yield f"  pod {name}: to node {node}"
    for kept in shrunk.kept:
        yield f"node {kept.usage.node} stays: {_used(kept.usage)}: {kept.reason}"
    yield f"{len(shrunk.removals)} of {len(shrunk.removals) + len(shrunk.kept)} nodes could go"


def _used(usage: nodeusage.NodeUsage) -> str:
    shares = [f"{share:.0%} of {name}" for name, share in usage.resources.items() if share and name != "pods"]
    if usage.devices:
        shares.append(f"{usage.used_devices} of {usage.devices} devices")
    return f"{', '.join(shares) or 'nothing'} in use"
