"""Node groups learned from a node that is there: its template is that node, as if it had just come up.

Left out is what became of the node since: pods' images, conditions, marks of its life cycle, taints of devices. What
names it, or was drawn for it, is made another's (:mod:`drachma.simulate.nodetemplate`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from msgspec import structs

from drachma import errors
from drachma.api import codec, meta, resourceslice, struct
from drachma.api import node as nodes
from drachma.simulate import nodegroup, nodetemplate
from drachma.simulate.clusterstate import ClusterState

_LIFE_CYCLE: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""How the keys of taints begin that tell how a node is, not what it is."""


class Learned(NamedTuple):
    """A node group, and what is to be known about it."""

    document: dict[str, Any]
    """The manifest."""
    notes: tuple[str, ...]


def learn(state: ClusterState, node: str, *, name: str) -> Learned:
    """A group of this name, whose nodes are like one that is there.

    Raises:
        errors.DecodeError: there is no such node.
    """
    member = next((each for each in state.all(nodes.Node) if each.metadata.name == node), None)
    if member is None:
        there_are = ", ".join(sorted(str(each.metadata.name) for each in state.all(nodes.Node))) or "none at all"
        raise errors.DecodeError(f"there is no node {node}, but {there_are}")
    slices = _newest(each for each in state.all(resourceslice.ResourceSlice) if each.spec.node_name == node)
    template, made = nodetemplate.renamed(_fresh(member), [_published(each, slices) for each in slices], name)
    document = {
        "apiVersion": nodegroup.API_VERSION,
        "kind": nodegroup.KIND,
        "metadata": {"name": name},
        "spec": {"min": 0, "price": 1, "template": {"objects": [codec.encode(each) for each in (template, *made)]}},
    }
    nodegroup.read(document)
    return Learned(document, tuple(_notes(node, slices)))


def _newest(slices: Iterator[resourceslice.ResourceSlice]) -> list[resourceslice.ResourceSlice]:
    """Those of the newest generation of each pool, by name."""
    there = sorted(slices, key=lambda each: str(each.metadata.name))
    newest: dict[tuple[str, str], int] = {}
    for each in there:
        key = each.spec.driver, each.spec.pool.name
        newest[key] = max(newest.get(key, 0), each.spec.pool.generation)
    return [each for each in there if each.spec.pool.generation == newest[each.spec.driver, each.spec.pool.name]]


def _fresh(member: nodes.Node) -> nodes.Node:
    labels = {key: value for key, value in member.metadata.labels.items() if key != nodegroup.LABEL}
    taints = tuple(each for each in member.spec.taints if not each.key.startswith(_LIFE_CYCLE))
    return nodes.Node(
        metadata=meta.ObjectMeta(name=member.metadata.name, labels=labels),
        spec=nodes.NodeSpec(taints=taints or struct.ABSENT_TUPLE),
        status=nodes.NodeStatus(
            capacity=member.status.capacity,
            allocatable=member.status.allocatable,
            declared_features=member.status.declared_features,
        ),
    )


def _published(
    of: resourceslice.ResourceSlice, slices: list[resourceslice.ResourceSlice]
) -> resourceslice.ResourceSlice:
    """A slice as its driver publishes it on a new node."""
    spec = of.spec
    together = [each for each in slices if (each.spec.driver, each.spec.pool) == (spec.driver, spec.pool)]
    pool = structs.replace(spec.pool, generation=1, resource_slice_count=len(together))
    devices = tuple(structs.replace(each, taints=struct.ABSENT_TUPLE) for each in spec.devices)
    metadata = meta.ObjectMeta(name=f"{of.spec.node_name}-{spec.driver}-{together.index(of)}")
    return resourceslice.ResourceSlice(metadata=metadata, spec=structs.replace(spec, pool=pool, devices=devices))


def _notes(node: str, slices: list[resourceslice.ResourceSlice]) -> Iterator[str]:
    if not slices:
        yield f"node {node}: no driver has published anything for it"
    for each in slices:
        title = f"slice {each.metadata.name}"
        for device in each.spec.devices:
            for taint in device.taints:
                yield f"{title}: device {device.name}: taint {taint.key}: is left out"
