"""``drachma whatif``: who starts, waits and is evicted after a change, on a simulated copy of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drachma.cli import options
from drachma.cli import when as whencommand

if TYPE_CHECKING:
    from drachma.simulate.timeline.whatif import Difference


def whatif(
    file: Annotated[
        list[str] | None,
        typer.Option("-f", "--filename", help="Manifests to apply: nodes, queues, classes, pods; may be repeated."),
    ] = None,
    remove_node: Annotated[list[str] | None, typer.Option(help="Node to remove; may be repeated.")] = None,
    grow: Annotated[
        list[str] | None, typer.Option(metavar="GROUP=N", help="Nodes of a node group to add; may be repeated.")
    ] = None,
    node_groups: Annotated[
        list[str] | None, typer.Option(help="Files with node groups, in addition to those in -f.")
    ] = None,
    cluster: whencommand.Cluster = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    output: options.Output = None,
    feature_gates: options.FeatureGates = "",
) -> None:
    """Apply a change to a simulated copy of a cluster, and show the difference that it makes.

    The cluster is read from manifests or a dump (--cluster), or from an API server. Objects with a known name replace
    the stored ones. A node that becomes unschedulable is drained. With node groups, the cost before and after is shown.

    Exit code 2: an input cannot be read.
    """
    from drachma import errors
    from drachma.api import gates as features
    from drachma.cli import clusters
    from drachma.offline import clusterfiles
    from drachma.simulate.timeline import whatif as questions

    if not file and not remove_node and not grow:
        raise errors.InvalidValueError("whatif: expected -f FILE, --remove-node NAME or --grow GROUP=N")
    enabled = features.Gates.parse(feature_gates)
    content = clusterfiles.read(
        [*(file or ()), *(node_groups or ())], enabled=enabled, expects_pods=True, with_queues=True
    )
    clusters.exit_on_problems(content.problems)
    current = whencommand.read_cluster(cluster, kubeconfig, context=context, enabled=enabled)
    names = {str(each.metadata.name) for each in current.state.objects}
    for name in remove_node or ():
        if name not in names:
            raise errors.InvalidValueError(f"--remove-node {name!r}: there is no such node")
    groups = {group.name: group for group in content.groups}
    counts = clusters.counts(grow or [], set(groups), option="--grow")
    new_nodes = [each for name, count in counts.items() for each in questions.new_nodes(current, groups[name], count)]
    applied = (*content.state.objects, *content.queueing, *new_nodes)
    difference = questions.compare(
        current, applied, removed_nodes=tuple(remove_node or ()), groups=tuple(groups.values())
    )
    clusters.write(_document(difference), _lines(difference), output)


def _document(difference: Difference) -> dict[str, Any]:
    return {
        "starts": {key: list(nodes) for key, nodes in difference.starts.items()},
        "waits": dict(difference.waits),
        "evicted": list(difference.evicted),
        "moves": {key: {"from": list(old), "to": list(new)} for key, (old, new) in difference.moves.items()},
        "stillWaiting": dict(difference.still_waiting),
        **(_cost(difference) if difference.groups else {}),
    }


def _cost(difference: Difference) -> dict[str, Any]:
    return {
        "groups": {
            each.group: {"price": each.price, "before": each.before, "after": each.after} for each in difference.groups
        },
        "price": {
            "before": sum(each.price * each.before for each in difference.groups),
            "after": sum(each.price * each.after for each in difference.groups),
        },
    }


def _lines(difference: Difference) -> Iterator[str]:
    for key, nodes in difference.starts.items():
        yield f"{key} starts on {', '.join(nodes)}"
    for key, (old, new) in difference.moves.items():
        yield f"{key} moves from {', '.join(old)} to {', '.join(new)}"
    for key in difference.evicted:
        if key not in difference.moves:
            yield f"{key} is evicted"
    for key, reason in difference.waits.items():
        yield f"{key} waits: {reason}"
    if not (difference.starts or difference.moves or difference.evicted or difference.waits):
        yield "the change makes no difference"
    for key, reason in difference.still_waiting.items():
        yield f"{key} still waits: {reason}"
    for each in difference.groups:
        if each.after != each.before:
            yield f"node group {each.group} has {each.after} nodes instead of {each.before}"
    if difference.groups:
        price = _cost(difference)["price"]
        instead = f" instead of {price['before']:g}" if price["after"] != price["before"] else " as before"
        yield f"the nodes of all groups cost {price['after']:g}{instead}"
