"""Admission of slices for nodes that declare the feature which their devices need, after validation.

A device that stands for a node's own resources (KEP-5517) is only useful on a node that accounts for them. Upstream's
NodeDeclaredFeatures admission lets such a slice in only if all its nodes exist and declare the feature.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from drachma.api import gates as feature
from drachma.api import nodeselector, resourceslice
from drachma.api.v1alpha2 import resourceslice as alpha
from drachma.values import nodes, quotation

FEATURE: Final = feature.Gate.NODE_ALLOCATABLE_RESOURCES
"""Feature that a node must declare in ``status.declaredFeatures``."""


class DeclaredNode(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a node that admission checks."""

    name: str
    labels: Mapping[str, str] = {}
    declared_features: frozenset[str] = frozenset()


def slice_refusal(
    slice_: resourceslice.ResourceSlice | alpha.ResourceSlice,
    cluster: Mapping[str, DeclaredNode],
    *,
    gates: feature.Gates,
) -> str | None:
    """Return why a valid slice is refused (a 403), or None; ``cluster`` has all nodes by name.

    Devices of the first alpha never stand for resources of nodes.
    """
    if not gates.on(feature.Gate.NODE_ALLOCATABLE_RESOURCES) or isinstance(slice_, alpha.ResourceSlice):
        return None
    for device in slice_.spec.devices:
        if device.node_allocatable_resources or device.node_allocatable_resource_mappings:
            refusal = _device_refusal(device, slice_.spec, cluster)
            if refusal is not None:
                return refusal
    return None


def _device_refusal(
    device: resourceslice.Device, spec: resourceslice.ResourceSliceSpec, cluster: Mapping[str, DeclaredNode]
) -> str | None:
    owner = device if spec.per_device_node_selection else spec
    if owner.node_name:
        if owner.node_name not in cluster:
            display = quotation.quote(owner.node_name), quotation.quote(device.name)
            return f"node {display[0]} not found for device {display[1]}"
        selected_nodes = [cluster[owner.node_name]]
    elif owner.node_selector is not None:
        matcher = _compile(owner.node_selector)
        selected_nodes = [node for node in cluster.values() if matcher.matches(node.labels, node.name)]
    elif owner.all_nodes:
        selected_nodes = list(cluster.values())
    else:
        shown_device = quotation.quote(device.name)
        return f"device {shown_device} in ResourceSlice has NodeAllocatableResources but does not map to any nodes"
    lacking = next((node for node in selected_nodes if FEATURE not in node.declared_features), None)
    return f"node {quotation.quote(lacking.name)} does not support {FEATURE} feature" if lacking else None


def _compile(selector: nodeselector.NodeSelector) -> nodes.NodeSelectorMatcher:
    """Return the matcher of a valid selector."""
    return nodes.NodeSelectorMatcher.compile(
        nodes.Term(
            [nodes.Expression(part.key, part.operator, part.values) for part in term.match_expressions],
            [nodes.Expression(part.key, part.operator, part.values) for part in term.match_fields],
        )
        for term in selector.node_selector_terms
    )
