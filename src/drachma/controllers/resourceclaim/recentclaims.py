"""Claims as they are known, including those that were made a moment ago and that the informer has not seen yet.

A claim that was created, whose pod's status could not be written, must be found when the pod comes again, or there
would be two. A created claim is remembered until the informer has come past it; then only the informer counts.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from drachma.api import meta, resourceclaim
from drachma.claims import ownership
from drachma.runtime import Informer, cache, resourceversion

OWNER_INDEX: Final = "resource claim controller: owning pod"

_REMEMBERED: Final = 1000


def _owners(claim: resourceclaim.ResourceClaim) -> tuple[str, ...]:
    owner = ownership.owning_pod(claim)
    return () if owner is None else (owner.uid,)


class RecentClaims:
    """The informer's claims, and newer ones."""

    def __init__(self, informer: Informer[resourceclaim.ResourceClaim]) -> None:
        self._informer: Final = informer
        self._made: Final[OrderedDict[cache.Key, resourceclaim.ResourceClaim]] = OrderedDict()
        self._dropped = ""
        """The informer's version when claims were last dropped."""
        informer.cache.add_index(OWNER_INDEX, _owners)

    def remember(self, made: resourceclaim.ResourceClaim) -> None:
        """A claim that was just created."""
        if resourceversion.number(made.metadata.resource_version) <= resourceversion.number(
            self._informer.resource_version
        ):
            return
        self._made[cache.key_of(made)] = made
        if len(self._made) > _REMEMBERED:
            self._made.popitem(last=False)

    def get(self, name: str, *, namespace: str) -> resourceclaim.ResourceClaim | None:
        """A claim by its name; it may be gone on the server already, which the informer will tell in time."""
        known = self._informer.cache.get(name, namespace=namespace)
        if known is not None or not self._made:
            return known
        self._drop_seen()
        return self._made.get(cache.Key(namespace, name))

    def of_pod(self, owner: meta.Object) -> Iterator[resourceclaim.ResourceClaim]:
        """All claims that a pod controls."""
        yield from self._informer.cache.by(OWNER_INDEX, owner.metadata.uid)
        if self._made:
            self._drop_seen()
            for made in self._made.values():
                if owner.metadata.uid in _owners(made):
                    yield made

    def _drop_seen(self) -> None:
        version = self._informer.resource_version
        if version == self._dropped:
            return
        self._dropped = version
        reached = resourceversion.number(version)
        for key, made in tuple(self._made.items()):
            if resourceversion.number(made.metadata.resource_version) <= reached:
                del self._made[key]
