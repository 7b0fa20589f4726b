"""Nodes: machines that run pods."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from drachma.api import node as nodes
from drachma.server import objectmeta
from drachma.server.kinds.core import connections
from drachma.server.kinds.document import Document, DocumentStrategy, taken
from drachma.server.schema import metatypes, notation
from drachma.server.surface import age, cells, layout, resources, selectable
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import node as rules
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
AttachedVolume: devicePath=str* name=str*
ConfigMapNodeConfigSource: kubeletConfigKey=str* name=str* namespace=str* resourceVersion=str uid=str
ContainerImage: names=[str]! sizeBytes=int64
DaemonEndpoint: Port=int32*
Node: apiVersion=str kind=str metadata=ObjectMeta! spec=NodeSpec! status=NodeStatus!
NodeAddress: address=str* type=str*
NodeCondition: lastHeartbeatTime=Time! lastTransitionTime=Time! message=str reason=str status=str* type=str*
NodeConfigSource: configMap=ConfigMapNodeConfigSource
NodeConfigStatus: active=NodeConfigSource assigned=NodeConfigSource error=str lastKnownGood=NodeConfigSource
NodeDaemonEndpoints: kubeletEndpoint=DaemonEndpoint!
NodeFeatures: supplementalGroupsPolicy=bool?
NodePodPreemptionPolicy: disableResizePreemption={str}
NodeRuntimeHandler: features=NodeRuntimeHandlerFeatures name=str!/
NodeRuntimeHandlerFeatures: recursiveReadOnlyMounts=bool? userNamespaces=bool?
NodeSpec: configSource=NodeConfigSource externalID=str podCIDR=str podCIDRs={str}~
    podPreemptionPolicy=NodePodPreemptionPolicy providerID=str taints=[Taint] unschedulable=bool
NodeStatus: addresses={NodeAddress:type}~ allocatable=<Quantity> capacity=<Quantity> conditions={NodeCondition:type}~
    config=NodeConfigStatus daemonEndpoints=NodeDaemonEndpoints! declaredFeatures=[str] features=NodeFeatures
    images=[ContainerImage] nodeInfo=NodeSystemInfo! phase=str runtimeHandlers=[NodeRuntimeHandler]
    volumesAttached=[AttachedVolume] volumesInUse=[str]
NodeSwapStatus: capacity=int64?
NodeSystemInfo: architecture=str* bootID=str* containerRuntimeVersion=str* kernelVersion=str* kubeProxyVersion=str*
    kubeletVersion=str* machineID=str* operatingSystem=str* osImage=str* runningInUserNamespace=bool?
    swap=NodeSwapStatus systemUUID=str*
Taint: effect=str* key=str* timeAdded=Time value=str
"""
_NUMBERS: Final = """\
AttachedVolume: name devicePath
ConfigMapNodeConfigSource: namespace name uid resourceVersion kubeletConfigKey
ContainerImage: names sizeBytes
DaemonEndpoint: Port
Node: metadata spec status
NodeAddress: type address
NodeCondition: type status lastHeartbeatTime lastTransitionTime reason message
NodeConfigSource: 2:configMap
NodeConfigStatus: assigned active lastKnownGood error
NodeDaemonEndpoints: kubeletEndpoint
NodeFeatures: supplementalGroupsPolicy?
NodePodPreemptionPolicy: disableResizePreemption
NodeRuntimeHandler: name features
NodeRuntimeHandlerFeatures: recursiveReadOnlyMounts? userNamespaces?
NodeSpec: podCIDR externalID providerID unschedulable taints configSource podCIDRs podPreemptionPolicy
NodeStatus: capacity allocatable phase conditions addresses daemonEndpoints nodeInfo images volumesInUse volumesAttached
    config runtimeHandlers features declaredFeatures
NodeSwapStatus: capacity?
NodeSystemInfo: machineID systemUUID bootID kernelVersion osImage containerRuntimeVersion kubeletVersion
    kubeProxyVersion operatingSystem architecture swap runningInUserNamespace?
Taint: key value effect timeAdded
"""
_TEXTS: Final = """\
Node: A machine that runs pods.
NodeSpec.taints: What keeps pods away from the node.
NodeSpec.unschedulable: Whether new pods stay away.
NodeStatus.capacity: What the node has.
NodeStatus.allocatable: What pods can have of it.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.core.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, docs=(nodes,), uses=(metatypes.META,)
)


class NodeStrategy(DocumentStrategy):
    """Nodes bring their status along when they are created: kubelet registers them so."""

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
        taken(content, old, "spec")

    def check_new(self, content: Document, subject: Subject) -> Errors:
        yield from rules.check(content.get("spec") or {}, content.get("status") or {})

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        spec, status = content.get("spec") or {}, content.get("status") or {}
        yield from rules.check_update(spec, status, old=old.get("spec") or {})

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from self.check_update(content, old, subject)

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
    named = {key.removeprefix(prefix) for key, _ in labels if key.startswith(prefix)}
    return {role for role in (*named, *(value for key, value in labels if key == "kubernetes.io/role")) if role}


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
    schemas={"v1": _PACKAGE.object("Node")},
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Status", "Whether the node is ready and takes pods."),
            layout.text("Roles", "What the node is for, from its labels."),
            layout.AGE,
            layout.text("Version", "The version of the node agent."),
            layout.wide("Internal-IP", "The node's address inside the cluster."),
            layout.wide("External-IP", "The node's address outside the cluster."),
            layout.wide("OS-Image", "The operating system."),
            layout.wide("Kernel-Version", "The kernel and its architecture."),
            layout.wide("Container-Runtime", "What runs the containers."),
        ),
        _cells,
    ),
    selectable=selectable.Selectable(
        fields=frozenset({selectable.NAME, "spec.unschedulable"}),
        special={"spec.unschedulable": selectable.boolean("spec", "unschedulable")},
        unknown=selectable.unknown_in_core,
    ),
    strategy=NodeStrategy,
)
