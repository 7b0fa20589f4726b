"""Device classes by name, updated one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from drachma.api import deviceclass


def not_found(name: str) -> str:
    """Return the message of a Kubernetes client about a class that does not exist."""
    return f'deviceclass.resource.k8s.io "{name}" not found'


class Classes:
    """The device classes of a cluster."""

    def __init__(
        self, classes: Iterable[deviceclass.DeviceClass] = (), *, missing: Callable[[str], str] = not_found
    ) -> None:
        """``missing`` says why there is no class of a name; it becomes a part of an error message."""
        self._classes = {str(entry.metadata.name): entry for entry in classes}
        self.missing = missing

    def get(self, name: str) -> deviceclass.DeviceClass | None:
        """Return the class of this name, or None."""
        return self._classes.get(name)

    def names(self) -> list[str]:
        """Return the names of all classes."""
        return list(self._classes)

    def fork(self) -> Classes:
        """Return an independent copy."""
        return Classes(self._classes.values(), missing=self.missing)

    def put(self, entry: deviceclass.DeviceClass) -> None:
        """Take in a class, in place of the one of the same name if there is one."""
        self._classes[str(entry.metadata.name)] = entry

    def remove(self, name: str) -> None:
        """Forget a class; nothing happens if there is none."""
        self._classes.pop(name, None)
