"""What drivers say of their resources (:data:`drachma.nodewire.rpc.messages.DRA_1_30`) in the words of v1alpha2."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from drachma import errors
from drachma.api.v1alpha2 import resourceslice
from drachma.values import quantity

Resources = tuple[resourceslice.NamedResource, ...]


def read(models: Iterable[Any]) -> tuple[Resources, ...]:
    """The resources of each model.

    Raises:
        errors.NodeError: a model is none that is known here, or an attribute has no value, or a quantity is none.
    """
    return tuple(_resources(model, number) for number, model in enumerate(models))


def _resources(model: Any, number: int) -> Resources:
    if not model.HasField("namedResources"):
        raise errors.NodeError(f"resources[{number}]: its structured model is not known here")
    return tuple(
        resourceslice.NamedResource(
            name=instance.name, attributes=tuple(_attribute(each, instance.name) for each in instance.attributes)
        )
        for instance in model.namedResources.instances
    )


def _attribute(sent: Any, resource: str) -> resourceslice.Attribute:
    name, value = sent.name, sent.attributeValue
    if value.HasField("quantity"):
        try:
            return resourceslice.Attribute(name=name, quantity_value=quantity.Quantity.parse(value.quantity.string))
        except errors.InvalidValueError as error:
            raise errors.NodeError(f"resource {resource}, attribute {name}: {error}") from None
    if value.HasField("intSlice"):
        return resourceslice.Attribute(name=name, int_slice=tuple(value.intSlice.ints))
    if value.HasField("stringSlice"):
        return resourceslice.Attribute(name=name, string_slice=tuple(value.stringSlice.strings))
    for kind in ("bool", "int", "string", "version"):
        if value.HasField(kind):
            return resourceslice.Attribute(name=name, **{f"{kind}_value": getattr(value, kind)})
    raise errors.NodeError(f"resource {resource}, attribute {name}: it has no value")
