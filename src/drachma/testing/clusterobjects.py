"""Builders for Node, Namespace, ResourceQuota, Event and Lease."""

from collections.abc import Mapping

from drachma.api import event as events
from drachma.api import lease as leases
from drachma.api import meta
from drachma.api import namespace as namespaces
from drachma.api import node as nodes
from drachma.api import resourcequota as quotas
from drachma.api.struct import ABSENT_MAP, ABSENT_TUPLE
from drachma.driver import devices as device_builders
from drachma.testing import builder


def node(
    name: str,
    *,
    labels: Mapping[str, str] = ABSENT_MAP,
    allocatable: Mapping[str, device_builders.Amount] | None = None,
    taints: tuple[nodes.Taint, ...] = ABSENT_TUPLE,
) -> builder.Builder[nodes.Node]:
    """A ready node; 4 CPUs, 16 GiB and 110 pods unless said otherwise."""
    amounts = allocatable or {"cpu": "4", "memory": "16Gi", "pods": "110"}
    resources = {key: device_builders.amount(value) for key, value in amounts.items()}
    ready = nodes.NodeCondition(type="Ready", status="True")
    return builder.Builder(
        nodes.Node(
            metadata=meta.ObjectMeta(name=name, labels=labels),
            spec=nodes.NodeSpec(taints=taints),
            status=nodes.NodeStatus(capacity=resources, allocatable=resources, conditions=(ready,)),
        )
    )


def namespace(name: str, *, labels: Mapping[str, str] = ABSENT_MAP) -> builder.Builder[namespaces.Namespace]:
    """An active namespace."""
    status = namespaces.NamespaceStatus(phase="Active")
    return builder.Builder(namespaces.Namespace(metadata=meta.ObjectMeta(name=name, labels=labels), status=status))


def resource_quota(
    name: str, *, hard: Mapping[str, device_builders.Amount], namespace: str = "default"
) -> builder.Builder[quotas.ResourceQuota]:
    """A quota with these limits."""
    limits = {key: device_builders.amount(value) for key, value in hard.items()}
    metadata = meta.ObjectMeta(name=name, namespace=namespace)
    return builder.Builder(quotas.ResourceQuota(metadata=metadata, spec=quotas.ResourceQuotaSpec(hard=limits)))


def event(
    name: str, *, reason: str, message: str, about: events.ObjectReference, type_: str = "Normal"
) -> builder.Builder[events.Event]:
    """An event about an object, in that object's namespace."""
    metadata = meta.ObjectMeta(name=name, namespace=about.namespace)
    return builder.Builder(
        events.Event(metadata=metadata, involved_object=about, reason=reason, message=message, type=type_)
    )


def lease(
    name: str, *, holder: str, namespace: str = "kube-node-lease", renew_time: str | None = None
) -> builder.Builder[leases.Lease]:
    """A lease held by someone for 40 seconds at a time."""
    spec = leases.LeaseSpec(holder_identity=holder, lease_duration_seconds=40, renew_time=renew_time)
    return builder.Builder(leases.Lease(metadata=meta.ObjectMeta(name=name, namespace=namespace), spec=spec))
