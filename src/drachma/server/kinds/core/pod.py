"""Record of pods. Their strategy is in ``podstrategy``."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from drachma.api import types
from drachma.server.kinds import policy
from drachma.server.kinds.core import connections, podstrategy, podsummary
from drachma.server.surface import cells, layout, resources, selectable, verbs
from drachma.server.surface.apisurface import Kind

_DONE: Final = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


def _cells(pod: layout.Document, now: datetime) -> layout.Cells:
    summary = podsummary.summarize(pod, now=now)
    status, spec = cells.part(pod, "status"), cells.part(pod, "spec")
    addresses = status.get("podIPs") or [{}]
    wide = (addresses[0].get("ip"), spec.get("nodeName"), status.get("nominatedNodeName"))
    wide_cells = [value or "<none>" for value in wide]
    return [cells.name(pod), *summary, cells.since_creation(pod, now), *wide_cells, podsummary.readiness_gates(pod)]


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
        resources.Subresource(
            name="binding",
            verbs=(verbs.CREATE,),
            kind="Binding",
            api_version="v1",
            schema=types.get("core/v1.Binding"),
        ),
        policy.EVICTION,
        connections.EXEC,
        connections.LOG,
        connections.PORT_FORWARD,
        connections.POD_PROXY,
        resources.Subresource(
            name=podstrategy.EPHEMERAL_CONTAINERS,
            verbs=verbs.STATUS,
            resets=(
                ("status",),
                *(("spec", name) for name in types.get("core/v1.PodSpec").fields if name != "ephemeralContainers"),
            ),
        ),
        resources.Subresource(name=podstrategy.RESIZE, verbs=verbs.STATUS, resets=(("status",),)),
        resources.status(("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")),
    ),
    traits=resources.Traits(returns_deleted=True, grace_period=podstrategy.grace_period),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Ready", "The numbers of ready and of all containers."),
            layout.text("Status", "The state of the pod in one word."),
            layout.text("Restarts", "The number of restarts, and the age of the last one."),
            layout.AGE,
            layout.wide("IP", "The pod's address."),
            layout.wide("Node", "The node of the pod."),
            layout.wide("Nominated Node", "The node that preemption makes room on."),
            layout.wide("Readiness Gates", "The numbers of true and of all readiness gates."),
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
    fast_path=podstrategy.PodFastPath,
)
