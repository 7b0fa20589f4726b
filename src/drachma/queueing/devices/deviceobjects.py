"""The objects that say what devices there are and what is asked of them: templates, classes, slices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from drachma.api import deviceclass, meta, resourceclaimtemplate, resourceslice
from drachma.claims.identity import DeviceID


class DeviceObjects(msgspec.Struct, frozen=True):
    """A moment of a cluster. Slices are in the order of their names, so that answers do not depend on a cache."""

    templates: Mapping[tuple[str, str], resourceclaimtemplate.ResourceClaimTemplate]
    classes: Mapping[str, deviceclass.DeviceClass]
    slices: tuple[resourceslice.ResourceSlice, ...]
    slices_error: str = ""
    """Why the slices could not be had; then nothing can be said of devices."""

    @classmethod
    def of(cls, objects: Iterable[meta.Object]) -> DeviceObjects:
        """Those objects that matter among all."""
        templates: dict[tuple[str, str], resourceclaimtemplate.ResourceClaimTemplate] = {}
        classes: dict[str, deviceclass.DeviceClass] = {}
        slices: list[resourceslice.ResourceSlice] = []
        for each in objects:
            match each:
                case resourceclaimtemplate.ResourceClaimTemplate():
                    templates[each.metadata.namespace, each.metadata.name] = each
                case deviceclass.DeviceClass():
                    classes[each.metadata.name] = each
                case resourceslice.ResourceSlice():
                    slices.append(each)
        return cls(templates, classes, tuple(sorted(slices, key=lambda each: each.metadata.name)))

    def slices_of(self, driver: str) -> tuple[resourceslice.ResourceSlice, ...]:
        """The slices that a driver published."""
        return tuple(each for each in self.slices if each.spec.driver == driver)

    @property
    def drivers(self) -> tuple[str, ...]:
        """Everybody who published slices."""
        return tuple(dict.fromkeys(each.spec.driver for each in self.slices))

    def class_for(self, extended_resource: str) -> deviceclass.DeviceClass | None:
        """The class that stands for an extended resource: the latest, then the first by name."""
        rivals = [each for each in self.classes.values() if each.spec.extended_resource_name == extended_resource]
        return select_class(rivals) if rivals else None


def select_class(rivals: Iterable[deviceclass.DeviceClass]) -> deviceclass.DeviceClass:
    """Of classes with one extended resource that which pods get: created last, then first by name."""
    by_name = sorted(rivals, key=lambda each: each.metadata.name)
    return max(by_name, key=lambda each: _seconds(each.metadata))


def _seconds(of: meta.ObjectMeta) -> float:
    return of.creation_timestamp.timestamp() if of.creation_timestamp is not None else float("-inf")


class Located(NamedTuple):
    """A device, and where it is: on one node, or (without one) for several to reach."""

    driver: str
    pool: str
    node: str
    device: resourceslice.Device


class Pool(msgspec.Struct, frozen=True):
    """The newest generation of a pool."""

    generation: int
    slice_count: int
    slices: tuple[resourceslice.ResourceSlice, ...]

    @property
    def is_complete(self) -> bool:
        return len(self.slices) == self.slice_count

    @property
    def devices(self) -> tuple[Located, ...]:
        return tuple(
            Located(each.spec.driver, each.spec.pool.name, each.spec.node_name or device.node_name or "", device)
            for each in self.slices
            for device in each.spec.devices
        )


def by_id(objects: DeviceObjects) -> dict[DeviceID, Located]:
    """All devices of the newest generations."""
    return {
        DeviceID(driver, each.pool, each.device.name): each
        for driver in objects.drivers
        for pool in pools(objects.slices_of(driver)).values()
        for each in pool.devices
    }


def pools(slices: Iterable[resourceslice.ResourceSlice]) -> dict[str, Pool]:
    """The pools of one driver's slices; how many slices belong to one is what its first slice says."""
    newest: dict[str, Pool] = {}
    for each in slices:
        pool = each.spec.pool
        before = newest.get(pool.name)
        if before is None or pool.generation > before.generation:
            newest[pool.name] = Pool(pool.generation, pool.resource_slice_count, (each,))
        elif pool.generation == before.generation:
            newest[pool.name] = Pool(before.generation, before.slice_count, (*before.slices, each))
    return newest
