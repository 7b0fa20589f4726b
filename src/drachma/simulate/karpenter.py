"""Karpenter's NodePools as node groups: one group for each pool and instance type that has a node already.

A NodePool does not say what a node has, because Karpenter asks the cloud for that. So the template is learned from a
node of the pool. Limits of the pool become the greatest number of nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from drachma import errors
from drachma.api import codec
from drachma.api import node as nodes
from drachma.simulate import grouplearning
from drachma.simulate.clusterstate import ClusterState
from drachma.values import quantity

GROUP: Final = "karpenter.sh"
POOL_LABEL: Final = "karpenter.sh/nodepool"
TYPE_LABEL: Final = "node.kubernetes.io/instance-type"

_NODES: Final = "nodes"
_NO_NAME: Final = re.compile(r"[^a-z0-9]+")
_LONGEST_NAME: Final = 63


class _Taint(msgspec.Struct, frozen=True):
    key: str


class _TemplateSpec(msgspec.Struct, frozen=True, rename="camel"):
    startup_taints: tuple[_Taint, ...] = ()


class _Template(msgspec.Struct, frozen=True):
    spec: _TemplateSpec = _TemplateSpec()


class _Spec(msgspec.Struct, frozen=True):
    template: _Template = _Template()
    limits: dict[str, str | int] = {}
    replicas: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Number of nodes of a static pool."""


class NodePool(NamedTuple):
    """The parts of a NodePool that decide about node groups."""

    name: str
    limits: Mapping[str, quantity.Quantity]
    startup_taints: frozenset[str]
    """Keys of taints that a node loses when it is ready."""
    replicas: int | None


def is_node_pool(document: Any) -> bool:
    """Return True for a NodePool in any version."""
    return (
        isinstance(document, dict)
        and document.get("kind") == "NodePool"
        and str(document.get("apiVersion", "")).partition("/")[0] == GROUP
    )


def read(document: Mapping[str, Any]) -> NodePool:
    """Return the NodePool of a manifest. Raises DecodeError with the field of the problem."""
    title = codec.title(document)
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not name:
        raise errors.DecodeError(f"{title}: metadata.name: expected a name")
    try:
        spec = msgspec.convert(document.get("spec") or {}, _Spec)
    except msgspec.ValidationError as error:
        raise errors.DecodeError(f"{title}: spec: {error}") from None
    limits = {}
    for resource, amount in spec.limits.items():
        try:
            limits[resource] = quantity.Quantity.parse(str(amount))
        except errors.InvalidValueError as error:
            raise errors.DecodeError(f"{title}: spec.limits[{resource}]: {error}") from None
    taints = frozenset(each.key for each in spec.template.spec.startup_taints)
    return NodePool(name, limits, taints, spec.replicas)


def learn(state: ClusterState, pools: Iterable[NodePool]) -> list[grouplearning.Learned]:
    """Return the node groups of pools, in their order, and by instance type."""
    learned = []
    for pool in pools:
        members: dict[str, nodes.Node] = {}
        for each in sorted(state.all(nodes.Node), key=lambda node: str(node.metadata.name)):
            if each.metadata.labels.get(POOL_LABEL) == pool.name:
                members.setdefault(each.metadata.labels.get(TYPE_LABEL, ""), each)
        learned += [_group(state, pool, instance_type, node) for instance_type, node in sorted(members.items())]
    return learned


def pools_without_nodes(state: ClusterState, pools: Iterable[NodePool]) -> list[str]:
    """Return the names of pools that no node belongs to, so that no group is learned from them."""
    pool_names = {each.metadata.labels.get(POOL_LABEL) for each in state.all(nodes.Node)}
    return [pool.name for pool in pools if pool.name not in pool_names]


def _group(state: ClusterState, pool: NodePool, instance_type: str, member: nodes.Node) -> grouplearning.Learned:
    name = _NO_NAME.sub("-", f"{pool.name}-{instance_type}".lower()).strip("-")[:_LONGEST_NAME].strip("-")
    learned = grouplearning.learn(state, member.metadata.name, name=name)
    spec = learned.document["spec"]
    spec["labels"] = {POOL_LABEL: pool.name, **({TYPE_LABEL: instance_type} if instance_type else {})}
    if pool.replicas is not None:
        spec["min"] = spec["max"] = pool.replicas
    else:
        limit = _most_nodes(pool, member)
        if limit is not None:
            spec["max"] = limit
    template = spec["template"]["objects"][0]
    taints = [each for each in template["spec"].get("taints", ()) if each["key"] not in pool.startup_taints]
    if taints:
        template["spec"]["taints"] = taints
    else:
        template["spec"].pop("taints", None)
    return learned


def _most_nodes(pool: NodePool, member: nodes.Node) -> int | None:
    """Return the number of nodes that the limits of a pool allow, or None without limits that matter."""
    counts = []
    for resource, limit in pool.limits.items():
        if resource == _NODES:
            counts.append(int(limit.nanos // 10**9))
            continue
        amount = member.status.capacity.get(resource)
        if amount is not None and amount.nanos > 0:
            counts.append(int(limit.nanos // amount.nanos))
    return min(counts, default=None)
