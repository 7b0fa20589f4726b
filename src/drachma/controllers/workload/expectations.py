"""What a controller expects its informers to have seen before it decides anything: all that it wrote itself.

A controller decides on caches. One that has not seen a pod which was just made would make it again.
"""

from __future__ import annotations

from typing import Any, Final

from drachma.runtime import Informer, resourceversion


class Expectations:
    """The newest versions that were written for each workload, by its uid, of the kind that an informer follows."""

    def __init__(self, informer: Informer[Any]) -> None:
        self._informer: Final = informer
        self._versions: Final[dict[str, int]] = {}

    def note(self, owner: str, resource_version: str) -> None:
        """Something was written for a workload."""
        number = resourceversion.number(resource_version)
        self._versions[owner] = max(self._versions.get(owner, 0), number)

    def are_met(self, owner: str) -> bool:
        """Whether the cache has seen all that was written for a workload."""
        return self._versions.get(owner, 0) <= resourceversion.number(self._informer.resource_version)

    def forget(self, owner: str) -> None:
        """Nothing more is asked about a workload."""
        self._versions.pop(owner, None)
