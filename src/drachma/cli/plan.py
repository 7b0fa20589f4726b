"""``drachma plan``: nodes to add so that pending pods run, nodes that could be removed, or pods to move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drachma.api import gates
from drachma.cli import options

if TYPE_CHECKING:
    from drachma.simulate.growth import Plan
    from drachma.simulate.nodeusage import NodeUsage
    from drachma.simulate.shrinkage import Shrinkage


def plan(
    file: options.Filenames = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    node_groups: Annotated[
        list[str] | None, typer.Option(help="Files with node groups, in addition to those in -f.")
    ] = None,
    objective: options.Objective = "nodes",
    max_: Annotated[
        list[str] | None, typer.Option("--max", help="GROUP=N: maximum number of nodes of a group; may be repeated.")
    ] = None,
    shrink: Annotated[bool, typer.Option("--shrink", help="Show the nodes that could be removed instead.")] = False,
    defragment: Annotated[
        bool, typer.Option("--defragment", help="Show the pods to move so that nodes or devices become whole instead.")
    ] = False,
    bring_back: Annotated[
        str, typer.Option(help="With --defragment: nodes (without used devices) or devices (partitioned or shared).")
    ] = "nodes",
    count: Annotated[
        int | None, typer.Option(min=1, help="With --defragment: number to bring back; as many as possible by default.")
    ] = None,
    driver: Annotated[str, typer.Option(help="With --defragment: driver whose devices count; all by default.")] = "",
    carry_out: Annotated[
        bool, typer.Option("--carry-out", help="With --defragment: make the moves, one eviction after the other.")
    ] = False,
    timeout: Annotated[float, typer.Option(min=1, help="With --carry-out: seconds that a move may take.")] = 300.0,
    output: options.Output = None,
    feature_gates: options.FeatureGates = "",
    gangs: options.Gangs = False,
    policy: options.Policy = "first-fit",
) -> None:
    """Plan capacity: the node groups to grow so that pending pods run, and the pods that stay pending.

    The cluster is read from manifests or a dump (-f), or from an API server. Node groups are manifests of kind
    NodeGroup in drachma.dev/v1. With --shrink: the nodes that could be removed, the nodes that their pods would move
    to, and the reasons that keep the other nodes. With --defragment: the fewest pods to move so that nodes or devices
    become whole; --carry-out moves them by evictions, and stops at the first surprise.

    Workloads that wait for quota get no nodes; drachma explain workload says what they lack.

    Exit code 1: some pod stays pending, some workload gets no quota, or moves were not made. 2: an input cannot be
    read.
    """
    from drachma import errors
    from drachma.cli import clusters
    from drachma.cli import defragment as defragmenting
    from drachma.scheduler import Settings
    from drachma.simulate import Simulation, growth, shrinkage
    from drachma.simulate.defragmentation import Goal

    if bring_back not in list(Goal):
        raise errors.InvalidValueError(f"--bring-back {bring_back!r}: expected {' or '.join(Goal)}")
    if carry_out and (file or not defragment):
        raise errors.InvalidValueError("--carry-out: expected --defragment, and no -f: moves need a running cluster")
    if defragment and shrink:
        raise errors.InvalidValueError("--defragment: goes without --shrink")
    enabled = gates.Gates.parse(options.with_gangs(feature_gates, gangs))
    cluster = clusters.read(
        file, kubeconfig, context=context, more=node_groups, enabled=enabled, expects_pods=not (shrink or defragment)
    )
    maxima = clusters.counts(max_ or [], {group.name for group in cluster.groups}, option="--max")
    settings = Settings(gates=enabled, policy=options.policy(policy))
    simulation = Simulation(cluster.state, settings=settings)
    if defragment:
        moving = defragmenting.show(simulation, Goal(bring_back), count=count, driver=driver, output=output)
        if carry_out:
            defragmenting.carry_out(moving, settings, kubeconfig=kubeconfig, context=context, patience=timeout)
        return
    if shrink:
        shrunk = shrinkage.shrink(simulation, groups=cluster.groups)
        clusters.write(_shrink_document(shrunk), _shrink_lines(shrunk), output)
        return
    growing = growth.Planner(simulation, cluster.groups, objective=growth.Objective(objective), maxima=maxima).plan()
    clusters.write(_document(growing, cluster.held), _lines(growing, cluster.held), output)
    if growing.pending or cluster.held:
        raise typer.Exit(1)


def _document(growing: Plan, held: Mapping[str, str]) -> dict[str, Any]:
    return {
        "grow": dict(growing.grow),
        "placed": dict(growing.placed),
        "pending": dict(growing.pending),
        "price": growing.price,
        **({"held": dict(held)} if held else {}),
    }


def _lines(growing: Plan, held: Mapping[str, str]) -> Iterator[str]:
    for name, reason in held.items():
        yield f"{name}: nodes would not help, because it gets no quota: {reason}"
    for group, count in growing.grow.items():
        yield f"grow node group {group} by {count}"
    if growing.grow:
        yield f"  which costs {growing.price:g}"
    for name, node in growing.placed.items():
        yield f"pod {name}: on node {node}"
    for name, reason in growing.pending.items():
        yield f"pod {name}: stays pending: {reason}"
    new = f"{sum(growing.grow.values())} new nodes" if growing.grow else "no new node"
    yield f"{len(growing.placed)} of {len(growing.placed) + len(growing.pending)} pending pods would run, with {new}"


# Shrinking


def _shrink_document(shrunk: Shrinkage) -> dict[str, Any]:
    return {
        "remove": [{"usage": _usage(each.usage), "moves": dict(each.moves)} for each in shrunk.removals],
        "keep": [{"usage": _usage(each.usage), "reason": each.reason} for each in shrunk.kept],
    }


def _usage(usage: NodeUsage) -> dict[str, Any]:
    return {
        "node": usage.node,
        "resources": {name: round(share, 4) for name, share in usage.resources.items()},
        "devices": {"used": usage.used_devices, "all": usage.devices},
    }


def _shrink_lines(shrunk: Shrinkage) -> Iterator[str]:
    for removal in shrunk.removals:
        yield f"node {removal.usage.node} could go: {_usage_text(removal.usage)}"
        for name, node in removal.moves.items():
            yield f"  pod {name}: to node {node}"
    for busy_node in shrunk.kept:
        yield f"node {busy_node.usage.node} stays: {_usage_text(busy_node.usage)}: {busy_node.reason}"
    yield f"{len(shrunk.removals)} of {len(shrunk.removals) + len(shrunk.kept)} nodes could go"


def _usage_text(usage: NodeUsage) -> str:
    shares = [f"{share:.0%} of {name}" for name, share in usage.resources.items() if share and name != "pods"]
    if usage.devices:
        shares.append(f"{usage.used_devices} of {usage.devices} devices")
    return f"{', '.join(shares) or 'nothing'} in use"
