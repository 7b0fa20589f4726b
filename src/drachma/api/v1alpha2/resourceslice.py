"""NodeResourceSlice, and the ResourceSlice of 1.30: resources of a node that a driver publishes.

Exactly one model is set. An object without a model uses one that drachma does not know.
"""

import msgspec

from drachma.api import meta
from drachma.api.struct import ABSENT_TEXT, ABSENT_TUPLE, ZERO_TEXT, ZERO_TUPLE, Int64, Struct
from drachma.values import quantity


class Attribute(Struct, frozen=True, kw_only=True):
    """A named value; exactly one other field is set."""

    name: str = ZERO_TEXT
    quantity_value: quantity.Quantity | None = msgspec.field(default=None, name="quantity")
    bool_value: bool | None = msgspec.field(default=None, name="bool")
    int_value: Int64 | None = msgspec.field(default=None, name="int")
    int_slice: tuple[Int64, ...] | None = None
    string_value: str | None = msgspec.field(default=None, name="string")
    string_slice: tuple[str, ...] | None = None
    version_value: str | None = msgspec.field(default=None, name="version")


class NamedResource(Struct, frozen=True, kw_only=True):
    """A resource with a name and attributes."""

    name: str = ZERO_TEXT
    attributes: tuple[Attribute, ...] = ABSENT_TUPLE


class NodeResourceSliceSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a slice."""

    node_name: str = ZERO_TEXT
    driver_name: str = ZERO_TEXT
    named_resources_with_attributes: tuple[NamedResource, ...] | None = None


class NodeResourceSlice(meta.Object, frozen=True, kw_only=True):
    """``resource.k8s.io/v1alpha2`` NodeResourceSlice, cluster-scoped."""

    spec: NodeResourceSliceSpec = NodeResourceSliceSpec()


class NamedResourcesIntSlice(Struct, frozen=True, kw_only=True):
    """List of integers."""

    ints: tuple[Int64, ...] = ZERO_TUPLE


class NamedResourcesStringSlice(Struct, frozen=True, kw_only=True):
    """List of strings."""

    strings: tuple[str, ...] = ZERO_TUPLE


class NamedResourcesAttribute(Struct, frozen=True, kw_only=True):
    """A named value, in the spelling of 1.30; exactly one other field is set."""

    name: str = ZERO_TEXT
    quantity_value: quantity.Quantity | None = msgspec.field(default=None, name="quantity")
    bool_value: bool | None = msgspec.field(default=None, name="bool")
    int_value: Int64 | None = msgspec.field(default=None, name="int")
    int_slice: NamedResourcesIntSlice | None = None
    string_value: str | None = msgspec.field(default=None, name="string")
    string_slice: NamedResourcesStringSlice | None = None
    version_value: str | None = msgspec.field(default=None, name="version")


class NamedResourcesInstance(Struct, frozen=True, kw_only=True):
    """A resource with a name and attributes, in the spelling of 1.30."""

    name: str = ZERO_TEXT
    attributes: tuple[NamedResourcesAttribute, ...] = ABSENT_TUPLE


class NamedResourcesResources(Struct, frozen=True, kw_only=True):
    """All resources of a slice, in the spelling of 1.30."""

    instances: tuple[NamedResourcesInstance, ...] = ZERO_TUPLE


class ResourceSlice(meta.Object, frozen=True, kw_only=True):
    """``resource.k8s.io/v1alpha2`` ResourceSlice, cluster-scoped, as 1.30 has it."""

    node_name: str = ABSENT_TEXT
    driver_name: str = ZERO_TEXT
    named_resources: NamedResourcesResources | None = None
