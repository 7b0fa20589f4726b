"""Node groups: nodes that can be added, as a template with a price and limits.

A manifest has ``apiVersion: drachma.dev/v1``, ``kind: NodeGroup``, and in its spec ``min``, ``max``, ``price``,
``labels`` and ``template.objects``: one Node, and the slices that drivers would publish on it, in v1 or v1alpha2. Names
and random values are made different for every node (:mod:`drachma.simulate.nodetemplate`).
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import structs

from drachma import errors
from drachma.api import codec, meta, resourceslice
from drachma.api import node as nodes
from drachma.api.v1alpha2 import resourceslice as alpha
from drachma.simulate import nodetemplate
from drachma.structured import model
from drachma.structured import slices as pools
from drachma.values import names

API_VERSION: Final = "drachma.dev/v1"
KIND: Final = "NodeGroup"

LABEL: Final = "drachma.dev/node-group"
"""Label of a node with the name of its group."""

_UNBOUNDED: Final = 1000
_Count = Annotated[int, msgspec.Meta(ge=0)]


class _Template(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    objects: list[dict[str, Any]]


class _Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    template: _Template
    min: _Count = 0
    max: _Count = _UNBOUNDED
    price: Annotated[float, msgspec.Meta(ge=0)] = 1.0
    labels: dict[str, str] = {}


class NodeGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes of one sort, whose number can change."""

    name: str
    node: nodes.Node
    slices: tuple[resourceslice.ResourceSlice, ...] = ()
    min: int = 0
    max: int = _UNBOUNDED
    price: float = 1.0
    """Price of one node, in a unit that all groups share."""
    labels: Mapping[str, str] = {}
    """Labels of all its nodes, in addition to :data:`LABEL`. Nodes with all of these belong to the group too."""

    def has(self, member: nodes.Node) -> bool:
        """Return True if a node belongs to the group."""
        labels = member.metadata.labels
        if LABEL in labels:
            return labels[LABEL] == self.name
        return bool(self.labels) and all(labels.get(key) == value for key, value in self.labels.items())

    def make(self, name: str) -> tuple[meta.Object, ...]:
        """Return a new node of the group with this name, and its slices."""
        node, slices = nodetemplate.rename(self.node, self.slices, name)
        labels = {**node.metadata.labels, **self.labels, LABEL: self.name}
        metadata = structs.replace(node.metadata, labels=labels)
        return structs.replace(node, metadata=metadata), *slices

    def new_names(self, count: int, used_names: Container[str]) -> list[str]:
        """Return unused names for more nodes."""
        free = (name for number in itertools.count(1) if (name := f"{self.name}-new-{number}") not in used_names)
        return list(itertools.islice(free, count))


def is_node_group(api_version: str, kind: str) -> bool:
    """Return True for a document of this kind in any version."""
    return kind == KIND and api_version.partition("/")[0] == API_VERSION.partition("/")[0]


def read(document: Mapping[str, Any]) -> NodeGroup:
    """Return the group of a manifest. Raises DecodeError with the field of the problem."""
    title = codec.title(document)
    if document.get("apiVersion") != API_VERSION:
        raise errors.DecodeError(f"{title}: apiVersion: {document.get('apiVersion')}: expected {API_VERSION}")
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or names.dns1123_label(name):
        raise errors.DecodeError(f"{title}: metadata.name: expected a DNS label")
    try:
        spec = msgspec.convert(document.get("spec"), _Spec)
    except msgspec.ValidationError as error:
        raise errors.DecodeError(f"{title}: spec: {error}") from None
    if spec.max < spec.min:
        raise errors.DecodeError(f"{title}: spec.max: {spec.max}: must not be less than min, {spec.min}")
    template, slices = _objects(title, spec.template.objects)
    return NodeGroup(
        name=name, node=template, slices=slices, min=spec.min, max=spec.max, price=spec.price, labels=spec.labels
    )


def _objects(title: str, documents: list[dict[str, Any]]) -> tuple[nodes.Node, tuple[resourceslice.ResourceSlice, ...]]:
    machines: list[nodes.Node] = []
    slices: list[resourceslice.ResourceSlice] = []
    old: list[model.Slice] = []
    for number, document in enumerate(documents):
        place = f"{title}: spec.template.objects[{number}]"
        try:
            decoded = codec.decode(document)
        except errors.DecodeError as error:
            raise errors.DecodeError(f"{place}: {error}") from None
        if isinstance(decoded, nodes.Node):
            machines.append(decoded)
        elif isinstance(decoded, resourceslice.ResourceSlice):
            slices.append(decoded)
        elif isinstance(decoded, alpha.NodeResourceSlice | alpha.ResourceSlice):
            old.append(decoded)
        else:
            raise errors.DecodeError(
                f"{place}: {codec.title(document)}: only a Node and its ResourceSlices belong here"
            )
    if len(machines) != 1:
        raise errors.DecodeError(f"{title}: spec.template.objects: expected one Node, found {len(machines)}")
    for pool in pools.pools_of(old):
        slices += pool.slices(1, name=pool.node)
    return machines[0], tuple(slices)
