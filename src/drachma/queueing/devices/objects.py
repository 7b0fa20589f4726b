"""Objects that describe devices and requests for them: templates, classes, slices, groups of pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from drachma.api import deviceclass, meta, podgroup, resourceclaimtemplate, resourceslice
from drachma.claims.identity import DeviceID


class DeviceObjects(msgspec.Struct, frozen=True):
    """Objects of a cluster at a moment. Slices are ordered by name, so that results do not depend on a cache."""

    templates: Mapping[tuple[str, str], resourceclaimtemplate.ResourceClaimTemplate]
    classes: Mapping[str, deviceclass.DeviceClass]
    slices: tuple[resourceslice.ResourceSlice, ...]
    slices_error: str = ""
    """Reason why the slices could not be read; nothing is known about devices then."""
    groups: Mapping[tuple[str, str], podgroup.PodGroup] | None = None
    """Groups of pods; None if groups do not share claims."""

    @classmethod
    def of(cls, objects: Iterable[meta.Object], *, has_groups: bool = False) -> DeviceObjects:
        """Return the relevant objects among all. With ``has_groups``, groups of pods share claims."""
        templates: dict[tuple[str, str], resourceclaimtemplate.ResourceClaimTemplate] = {}
        classes: dict[str, deviceclass.DeviceClass] = {}
        slices: list[resourceslice.ResourceSlice] = []
        groups: dict[tuple[str, str], podgroup.PodGroup] = {}
        for each in objects:
            match each:
                case resourceclaimtemplate.ResourceClaimTemplate():
                    templates[each.metadata.namespace, each.metadata.name] = each
                case deviceclass.DeviceClass():
                    classes[each.metadata.name] = each
                case resourceslice.ResourceSlice():
                    slices.append(each)
                case podgroup.PodGroup():
                    groups[each.metadata.namespace, each.metadata.name] = each
        by_name = tuple(sorted(slices, key=lambda each: each.metadata.name))
        return cls(templates, classes, by_name, groups=groups if has_groups else None)

    def slices_of(self, driver: str) -> tuple[resourceslice.ResourceSlice, ...]:
        """Return the slices of a driver."""
        return tuple(each for each in self.slices if each.spec.driver == driver)

    @property
    def drivers(self) -> tuple[str, ...]:
        """Drivers with slices."""
        return tuple(dict.fromkeys(each.spec.driver for each in self.slices))

    def class_for(self, extended_resource: str) -> deviceclass.DeviceClass | None:
        """Return the class that provides an extended resource: the latest, then the first by name."""
        rivals = [each for each in self.classes.values() if each.spec.extended_resource_name == extended_resource]
        return select_class(rivals) if rivals else None


def select_class(rivals: Iterable[deviceclass.DeviceClass]) -> deviceclass.DeviceClass:
    """Return the class that pods get of several with one extended resource: the latest, then the first by name."""
    by_name = sorted(rivals, key=lambda each: each.metadata.name)
    return max(by_name, key=lambda each: _seconds(each.metadata))


def _seconds(metadata: meta.ObjectMeta) -> float:
    return metadata.creation_timestamp.timestamp() if metadata.creation_timestamp is not None else float("-inf")


class Located(NamedTuple):
    """A device and its node, or no node if several can reach it."""

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


def devices_by_id(objects: DeviceObjects) -> dict[DeviceID, Located]:
    """Return all devices of the newest generations by their id."""
    return {
        DeviceID(driver, each.pool, each.device.name): each
        for driver in objects.drivers
        for pool in pools(objects.slices_of(driver)).values()
        for each in pool.devices
    }


def pools(slices: Iterable[resourceslice.ResourceSlice]) -> dict[str, Pool]:
    """Return the pools of one driver's slices; the first slice of a pool has its number of slices."""
    newest: dict[str, Pool] = {}
    for each in slices:
        pool = each.spec.pool
        before = newest.get(pool.name)
        if before is None or pool.generation > before.generation:
            newest[pool.name] = Pool(pool.generation, pool.resource_slice_count, (each,))
        elif pool.generation == before.generation:
            newest[pool.name] = Pool(before.generation, before.slice_count, (*before.slices, each))
    return newest
