"""Extended resources that device classes back.

Every class has an implicit name, ``deviceclass.resource.kubernetes.io/<class>``, and may have an explicit one. Of
several classes with the same name the newest counts, and of equally old ones the first in alphabetical order.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from drachma.accounting import resourcenames
from drachma.api import deviceclass

_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


class ExtendedResources:
    """Device classes by the names of resources."""

    def __init__(self, classes: Iterable[deviceclass.DeviceClass] = ()) -> None:
        self._classes: Final[dict[str, deviceclass.DeviceClass]] = {}
        self._by_name: Final[dict[str, dict[str, deviceclass.DeviceClass]]] = {}
        for entry in classes:
            self.put(entry)

    def fork(self) -> ExtendedResources:
        """Return a copy that can be changed separately."""
        return ExtendedResources(self._classes.values())

    def get(self, resource: str) -> deviceclass.DeviceClass | None:
        """Return the class that backs a resource, or None."""
        if resource.startswith(resourcenames.DEVICE_CLASS_PREFIX):
            return self._classes.get(resource.removeprefix(resourcenames.DEVICE_CLASS_PREFIX))
        candidates = self._by_name.get(resource, {}).values()
        newest = max(map(_age, candidates), default=None)
        return min(
            (entry for entry in candidates if _age(entry) == newest),
            key=lambda entry: str(entry.metadata.name),
            default=None,
        )

    def put(self, entry: deviceclass.DeviceClass) -> None:
        """Add or update a class."""
        name = str(entry.metadata.name)
        self.remove(name)
        self._classes[name] = entry
        if entry.spec.extended_resource_name:
            self._by_name.setdefault(entry.spec.extended_resource_name, {})[name] = entry

    def remove(self, name: str) -> None:
        """Remove a class."""
        before = self._classes.pop(name, None)
        if before is not None and before.spec.extended_resource_name:
            classes = self._by_name[before.spec.extended_resource_name]
            del classes[name]
            if not classes:
                del self._by_name[before.spec.extended_resource_name]


def _age(entry: deviceclass.DeviceClass) -> datetime:
    return entry.metadata.creation_timestamp or _LONG_AGO
