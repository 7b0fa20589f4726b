"""Structured models: descriptions of resources by drivers, requests of claims, and results.

A model is a plug-in: one module that reads its own fields in slices, requests and filters, and writes results. All
other fields are common to the models and handled by the caller. Slices, requests and filters of an unknown model belong
to no model: a reader skips such a slice and reports it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from drachma.api import resourceslice as devices
from drachma.api.v1alpha2 import parameters, resourceclaim, resourceslice

Slice = resourceslice.NodeResourceSlice | resourceslice.ResourceSlice
Request = parameters.ResourceRequest | parameters.DriverResourceRequest


class Inventory(msgspec.Struct, frozen=True, kw_only=True):
    """Devices of a slice.

    ``names`` has the resource of each device, by the device's name. ``omissions`` are what devices cannot express.
    """

    devices: tuple[devices.Device, ...]
    names: Mapping[str, str]
    omissions: tuple[str, ...] = ()


class Model(Protocol):
    """Structured model. Its functions return None for objects of another model."""

    def inventory(self, published: Slice) -> Inventory | None:
        """Return the devices of a slice."""

    def selectors(self, request: Request) -> tuple[str, ...] | None:
        """Return the selectors of a request, as written, one for each resource."""

    def filter(self, resource_filter: parameters.ResourceFilter) -> str | None:
        """Return the selector of a class for all resources, as written."""

    def translate(self, selector: str, driver: str) -> str:
        """Return a selector of a driver's devices that is true if the model's own selector is.

        Raises:
            cel.CompilationError: the selector is not valid in the model.
        """

    def result(self, resources: Sequence[str]) -> resourceclaim.StructuredResourceHandle:
        """Return allocated resources of one driver, in the KEP's spelling."""

    def result_of_1_30(self, results: Iterable[tuple[str, object]]) -> resourceclaim.StructuredResourceHandle:
        """Return allocated resources in the spelling of 1.30: each with the vendor's parameters of its request."""


def node_of(published: Slice) -> str:
    """Return the node of a slice; empty if its resources are not local to one."""
    if isinstance(published, resourceslice.NodeResourceSlice):
        return str(published.spec.node_name)
    return str(published.node_name)


def driver_of(published: Slice) -> str:
    """Return the driver that published a slice."""
    if isinstance(published, resourceslice.NodeResourceSlice):
        return str(published.spec.driver_name)
    return str(published.driver_name)
