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
    cluster: whencommand.Cluster = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    output: options.Output = None,
    feature_gates: options.FeatureGates = "",
) -> None:
    """Apply a change to a simulated copy of a cluster, and show the difference that it makes.

    The cluster is read from manifests or a dump (--cluster), or from an API server. Objects with a known name replace
    the stored ones. A node that becomes unschedulable is drained.

    Exit code 2: an input cannot be read.
    """
    from drachma import errors
    from drachma.api import gates as features
    from drachma.cli import clusters
    from drachma.offline import clusterfiles
    from drachma.simulate.timeline import whatif as questions

    if not file and not remove_node:
        raise errors.InvalidValueError("whatif: expected -f FILE or --remove-node NAME")
    enabled = features.Gates.parse(feature_gates)
    content = clusterfiles.read(file or [], enabled=enabled, expects_pods=True, with_queues=True)
    clusters.exit_on_problems(content.problems)
    current = whencommand.read_cluster(cluster, kubeconfig, context=context, enabled=enabled)
    names = {str(each.metadata.name) for each in current.state.objects}
    for name in remove_node or ():
        if name not in names:
            raise errors.InvalidValueError(f"--remove-node {name!r}: there is no such node")
    applied = (*content.state.objects, *content.queueing)
    difference = questions.compare(current, applied, removed_nodes=tuple(remove_node or ()))
    clusters.write(_document(difference), _lines(difference), output)


def _document(difference: Difference) -> dict[str, Any]:
    return {
        "starts": {key: list(nodes) for key, nodes in difference.starts.items()},
        "waits": dict(difference.waits),
        "evicted": list(difference.evicted),
        "moves": {key: {"from": list(old), "to": list(new)} for key, (old, new) in difference.moves.items()},
        "stillWaiting": dict(difference.still_waiting),
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
