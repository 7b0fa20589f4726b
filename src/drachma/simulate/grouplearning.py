"""Node groups learned from an existing node: the template is the node as if it had just started.

It leaves out images, conditions, life-cycle labels and taints, and device taints. Names and random values of the node
are replaced (:mod:`drachma.simulate.nodetemplate`).
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
"""Prefixes of taints that describe the state of a node."""


class Learned(NamedTuple):
    """Node group, with notes about it."""

    document: dict[str, Any]
    """Manifest of the group."""
    notes: tuple[str, ...]


def learn(state: ClusterState, node: str, *, name: str) -> Learned:
    """Return a group of this name, with nodes like an existing one.

    Raises:
        errors.DecodeError: the node does not exist.
    """
    member = next((each for each in state.all(nodes.Node) if each.metadata.name == node), None)
    if member is None:
        there_are = ", ".join(sorted(str(each.metadata.name) for each in state.all(nodes.Node))) or "none at all"
        raise errors.DecodeError(f"there is no node {node}, but {there_are}")
    slices = _newest(each for each in state.all(resourceslice.ResourceSlice) if each.spec.node_name == node)
    template, slices_made = nodetemplate.rename(_fresh(member), [_republish(each, slices) for each in slices], name)
    document = {
        "apiVersion": nodegroup.API_VERSION,
        "kind": nodegroup.KIND,
        "metadata": {"name": name},
        "spec": {
            "min": 0,
            "price": 1,
            "template": {"objects": [codec.encode(each) for each in (template, *slices_made)]},
        },
    }
    nodegroup.read(document)
    return Learned(document, tuple(_notes(node, slices)))


def _newest(slices: Iterator[resourceslice.ResourceSlice]) -> list[resourceslice.ResourceSlice]:
    """Return the slices of the newest generation of each pool, by name."""
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


def _republish(
    published: resourceslice.ResourceSlice, slices: list[resourceslice.ResourceSlice]
) -> resourceslice.ResourceSlice:
    """Return a slice as its driver publishes it on a new node."""
    spec = published.spec
    together = [each for each in slices if (each.spec.driver, each.spec.pool) == (spec.driver, spec.pool)]
    pool = structs.replace(spec.pool, generation=1, resource_slice_count=len(together))
    devices = tuple(structs.replace(each, taints=struct.ABSENT_TUPLE) for each in spec.devices)
    metadata = meta.ObjectMeta(name=f"{published.spec.node_name}-{spec.driver}-{together.index(published)}")
    return resourceslice.ResourceSlice(metadata=metadata, spec=structs.replace(spec, pool=pool, devices=devices))


def _notes(node: str, slices: list[resourceslice.ResourceSlice]) -> Iterator[str]:
    if not slices:
        yield f"node {node}: no driver has published anything for it"
    for each in slices:
        title = f"slice {each.metadata.name}"
        for device in each.spec.devices:
            for taint in device.taints:
                yield f"{title}: device {device.name}: taint {taint.key}: is left out"
