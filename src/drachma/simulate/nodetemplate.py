"""Nodes made from another node: everything that must differ between two nodes of a sort is replaced.

That is the node's name wherever it occurs, and random values of devices: attributes with a UUID. Equal values stay
equal within a node, and two nodes never share one. So constraints on common attributes mean the same on new nodes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec import structs

from drachma.api import node as nodes
from drachma.api import resourceslice
from drachma.api.struct import ABSENT_TEXT
from drachma.values import serialnumbers

HOSTNAME: Final = "kubernetes.io/hostname"

Slices = tuple[resourceslice.ResourceSlice, ...]


def rename(template: nodes.Node, slices: Iterable[resourceslice.ResourceSlice], name: str) -> tuple[nodes.Node, Slices]:
    """Return the node and its slices under another name, without metadata of the server."""
    before = str(template.metadata.name)
    return _node(template, before, name), tuple(_slice(each, before, name) for each in slices)


def _node(template: nodes.Node, before: str, name: str) -> nodes.Node:
    labels = {key: name if value == before else value for key, value in template.metadata.labels.items()}
    metadata = structs.replace(template.metadata, name=name, uid="", labels={**labels, HOSTNAME: name})
    # Every node is a machine of its own.
    return structs.replace(template, metadata=metadata, spec=structs.replace(template.spec, provider_id=ABSENT_TEXT))


def _slice(template: resourceslice.ResourceSlice, before: str, name: str) -> resourceslice.ResourceSlice:
    def value(text: str) -> str:
        return name if text == before else serialnumbers.replaced(text, owner=name)

    spec = template.spec
    devices = tuple(
        structs.replace(
            each,
            node_name=name if each.node_name == before else each.node_name,
            attributes=_attributes(each.attributes, value),
        )
        for each in spec.devices
    )
    metadata = structs.replace(template.metadata, name=_unique_name(str(template.metadata.name), before, name), uid="")
    return structs.replace(
        template,
        metadata=metadata,
        spec=structs.replace(
            spec,
            node_name=name if spec.node_name else spec.node_name,
            pool=structs.replace(spec.pool, name=_unique_name(str(spec.pool.name), before, name)),
            devices=devices,
        ),
    )


def _attributes(
    template: Mapping[str, resourceslice.DeviceAttribute], value: Callable[[str], str]
) -> Mapping[str, resourceslice.DeviceAttribute]:
    changed = {key: _attribute(each, value) for key, each in template.items()}
    return template if changed == template else changed


def _attribute(template: resourceslice.DeviceAttribute, value: Callable[[str], str]) -> resourceslice.DeviceAttribute:
    if template.string_value is not None:
        return structs.replace(template, string_value=value(template.string_value))
    if template.string_values:
        return structs.replace(template, string_values=tuple(map(value, template.string_values)))
    return template


def _unique_name(text: str, before: str, name: str) -> str:
    """Return the name of an object for another node: with the new node's name instead of the old one."""
    if not before:
        return f"{text}-{name}"
    replaced = re.sub(rf"(?<![a-z0-9]){re.escape(before)}(?![a-z0-9])", name, text)
    return replaced if replaced != text or before == name else f"{text}-{name}"
