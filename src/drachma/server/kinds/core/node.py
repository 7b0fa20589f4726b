"""Nodes."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.core import connections
from drachma.server.kinds.document import Document, DocumentStrategy, restore_fields
from drachma.server.surface import age, cells, layout, resources, selectable
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import node


class NodeStrategy(DocumentStrategy):
    """Strategy of nodes, which keep the status that a kubelet registers them with."""

    rechecks_names = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        current = content.get("status") or {}
        if current.get("capacity") and not current.get("allocatable"):
            content["status"] = {**current, "allocatable": dict(current["capacity"])}

        spec = content["spec"] = {
            name: value for name, value in content.get("spec", {}).items() if name != "configSource"
        }
        if spec.get("podCIDR") and spec.get("podCIDR") not in (spec.get("podCIDRs") or ())[:1]:
            content["spec"] = {**spec, "podCIDRs": [spec["podCIDR"]]}
        elif spec.get("podCIDRs") and not spec.get("podCIDR"):
            content["spec"] = {**spec, "podCIDR": spec["podCIDRs"][0]}

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content.setdefault("spec", {})

    def prepare_status(self, content: Document, old: Mapping[str, Any], subject: Subject, write: Write) -> None:
        restore_fields(content, old, "spec")

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        if (content.get("spec") or {}).get("externalID"):
            yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"


def _cells(node: Document, now: datetime) -> layout.Cells:
    status = cells.part(node, "status")
    info = cells.part(status, "nodeInfo")
    ready = next((each for each in reversed(status.get("conditions") or []) if each.get("type") == "Ready"), None)
    state = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    if cells.part(node, "spec").get("unschedulable"):
        state += ",SchedulingDisabled"
    kernel = info.get("kernelVersion") or age.UNKNOWN
    if info.get("architecture"):
        kernel += f" ({info['architecture']})"
    roles = ",".join(sorted(_roles(node))) or "<none>"
    wide = [info.get("osImage") or age.UNKNOWN, kernel, info.get("containerRuntimeVersion") or age.UNKNOWN]
    addresses = [_address(status, "InternalIP"), _address(status, "ExternalIP")]
    since, version = cells.since_creation(node, now), info.get("kubeletVersion", "")
    return [cells.name(node), state, roles, since, version, *addresses, *wide]


def _roles(node: Document) -> set[str]:
    labels = (cells.part(node, "metadata").get("labels") or {}).items()
    prefix = "node-role.kubernetes.io/"
    role_names = {key.removeprefix(prefix) for key, _ in labels if key.startswith(prefix)}
    return {role for role in (*role_names, *(value for key, value in labels if key == "kubernetes.io/role")) if role}


def _address(status: Document, kind: str) -> str:
    addresses = (each.get("address", "") for each in status.get("addresses") or [] if each.get("type") == kind)
    return next(addresses, "<none>")


KIND: Final = Kind(
    group="",
    versions=("v1",),
    plural="nodes",
    kind="Node",
    namespaced=False,
    short_names=("no",),
    subresources=(connections.NODE_PROXY, resources.status()),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Status", "The readiness and schedulability of the node."),
            layout.text("Roles", "The roles of the node, from its labels."),
            layout.AGE,
            layout.text("Version", "The version of the node agent."),
            layout.wide("Internal-IP", "The node's address inside the cluster."),
            layout.wide("External-IP", "The node's address outside the cluster."),
            layout.wide("OS-Image", "The operating system."),
            layout.wide("Kernel-Version", "The kernel and its architecture."),
            layout.wide("Container-Runtime", "The container runtime."),
        ),
        _cells,
    ),
    selectable=selectable.Selectable(
        fields=frozenset({selectable.NAME, "spec.unschedulable"}),
        special={"spec.unschedulable": selectable.boolean("spec", "unschedulable")},
        unknown=selectable.unknown_in_core,
    ),
    rules=node.KINDS["Node"],
    strategy=NodeStrategy,
)
