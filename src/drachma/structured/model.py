"""Structured models: how drivers describe resources, what claims ask of them, and what they are given.

A model is a plug-in: one module that reads the fields that are its own in slices, requests and filters, and writes
results. All others are common to the models and handled by whoever asks. Slices, requests and filters of a model that
is not known here are nobody's: who reads a slice skips it and says so.
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
    """The devices that a slice stands for.

    ``names`` has the resource that each device is, under the device's name; ``omissions`` what devices cannot express.
    """

    devices: tuple[devices.Device, ...]
    names: Mapping[str, str]
    omissions: tuple[str, ...] = ()


class Model(Protocol):
    """One structured model; None from any of its functions says that something is not of this model."""

    def inventory(self, published: Slice) -> Inventory | None:
        """The devices of a slice."""

    def selectors(self, request: Request) -> tuple[str, ...] | None:
        """What a request asks for: a selector, as it is written, for each resource."""

    def filter(self, given: parameters.ResourceFilter) -> str | None:
        """What a class asks of all resources: a selector, as it is written."""

    def translate(self, selector: str, driver: str) -> str:
        """A selector of devices of a driver that is true where the model's own is.

        Raises:
            cel.CompilationError: it is no selector of the model.
        """

    def result(self, resources: Sequence[str]) -> resourceclaim.StructuredResourceHandle:
        """Resources of one driver that were allocated, in the KEP's spelling."""

    def result_of_1_30(self, results: Iterable[tuple[str, object]]) -> resourceclaim.StructuredResourceHandle:
        """The same in the spelling of 1.30: each resource with the vendor's parameters of its request."""


def node_of(published: Slice) -> str:
    """The node whose resources a slice has; empty where they are not local to one."""
    if isinstance(published, resourceslice.NodeResourceSlice):
        return str(published.spec.node_name)
    return str(published.node_name)


def driver_of(published: Slice) -> str:
    """The driver that published a slice."""
    if isinstance(published, resourceslice.NodeResourceSlice):
        return str(published.spec.driver_name)
    return str(published.driver_name)
