"""Pods: containers that run together on one node. How they are read and checked is in ``podstrategy``."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from drachma.api import pod as pods
from drachma.server.kinds.core import binding, connections, podstatustypes, podstrategy, podsummary, podtypes
from drachma.server.kinds.policy import eviction
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout, resources, selectable, verbs
from drachma.server.surface.apisurface import Kind

_TYPES: Final = """\
Pod: apiVersion=str kind=str metadata=ObjectMeta! spec=PodSpec! status=PodStatus!
"""
_NUMBERS: Final = """\
Pod: metadata spec status
"""
_TEXTS: Final = """\
Pod: Containers that run together on one node.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.core.v1",
    _TYPES,
    numbers=_NUMBERS,
    texts=_TEXTS,
    docs=(pods,),
    uses=(metatypes.META, podtypes.PODS, podstatustypes.POD_STATUS),
)

_DONE: Final = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


def _cells(pod: layout.Document, now: datetime) -> layout.Cells:
    summary = podsummary.summarize(pod, now=now)
    status, spec = cells.part(pod, "status"), cells.part(pod, "spec")
    addresses = status.get("podIPs") or [{}]
    wide = (addresses[0].get("ip"), spec.get("nodeName"), status.get("nominatedNodeName"))
    shown = [value or "<none>" for value in wide]
    return [cells.name(pod), *summary, cells.since_creation(pod, now), *shown, podsummary.readiness_gates(pod)]


def _conditions(pod: layout.Document) -> Sequence[layout.Document]:
    phase = cells.part(pod, "status").get("phase")
    if phase not in _DONE:
        return ()
    return ({"type": "Completed", "status": "True", "reason": phase, "message": _DONE[phase]},)


def _first_address(pod: Mapping[str, Any]) -> str:
    addresses = selectable.dig(pod, ("status", "podIPs"))
    return addresses[0].get("ip", "") if isinstance(addresses, list) and addresses else ""


_FIELDS: Final = frozenset(
    {
        selectable.NAME,
        selectable.NAMESPACE,
        "spec.hostNetwork",
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.nominatedNodeName",
        "status.phase",
        "status.podIP",
        "status.podIPs",
    }
)

KIND: Final = Kind(
    group="",
    versions=("v1",),
    plural="pods",
    kind="Pod",
    namespaced=True,
    short_names=("po",),
    categories=("all",),
    subresources=(
        connections.ATTACH,
        binding.SUBRESOURCE,
        eviction.SUBRESOURCE,
        connections.EXEC,
        connections.LOG,
        connections.PORT_FORWARD,
        resources.Subresource(
            name=podstrategy.EPHEMERAL_CONTAINERS,
            verbs=verbs.STATUS,
            resets=(
                ("status",),
                *(("spec", name) for name in _PACKAGE.object("PodSpec").fields if name != "ephemeralContainers"),
            ),
        ),
        resources.Subresource(name=podstrategy.RESIZE, verbs=verbs.STATUS, resets=(("status",),)),
        resources.status(("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")),
    ),
    schemas={"v1": _PACKAGE.object("Pod")},
    traits=resources.Traits(returns_deleted=True, dies_gracefully=True),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Ready", "How many of the pod's containers are ready."),
            layout.text("Status", "The state of the pod in one word."),
            layout.text("Restarts", "How often containers were restarted, and when last."),
            layout.AGE,
            layout.wide("IP", "The pod's address."),
            layout.wide("Node", "Where the pod runs or will run."),
            layout.wide("Nominated Node", "Where the pod will run once others have made room."),
            layout.wide("Readiness Gates", "How many of the pod's extra conditions for readiness hold."),
        ),
        _cells,
        _conditions,
    ),
    selectable=selectable.Selectable(
        fields=_FIELDS,
        special={"spec.hostNetwork": selectable.boolean("spec", "hostNetwork"), "status.podIPs": _first_address},
        aliases={"spec.host": "spec.nodeName"},
        unknown=selectable.unknown_in_core,
    ),
    strategy=podstrategy.PodStrategy,
)
