"""Volume work: volumes are given to the claims of a pod before it is bound, and the pod waits until they are bound.

The scheduler only says which volume is for which claim, or on which node one is needed; binding them is up to a
controller. As upstream, what was said is not taken back: whoever tries next finds it as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from drachma.api import persistentvolume, persistentvolumeclaim
from drachma.claims import volumeclaims
from drachma.client import patches
from drachma.runtime import cache
from drachma.scheduler.framework import bindingwork, verdict
from drachma.scheduler.plugins.volumebinding import podvolumes, volumematching
from drachma.scheduler.snapshot import volumes as snapshotvolumes

Claim = persistentvolumeclaim.PersistentVolumeClaim
Volume = persistentvolume.PersistentVolume

_POLL_SECONDS: Final = 1.0


class VolumeWork(bindingwork.BindingWork):
    """The volumes of a pod that is about to be bound."""

    __slots__ = ("_handle", "_known", "_matched", "_node", "_seconds")

    def __init__(
        self,
        matched: volumematching.Matched,
        *,
        node: str,
        known: snapshotvolumes.Volumes,
        handle: bindingwork.Handle,
        seconds: float,
    ) -> None:
        """``seconds`` is how long binding may take."""
        self._matched: Final = matched
        self._node: Final = node
        self._known: Final = known
        self._handle: Final = handle
        self._seconds: Final = seconds

    async def write(self) -> None:
        """Says which volume is for which claim, and where volumes are needed."""
        for volume, claim in self._matched.volumes:
            await self._give(volume, claim)
        for claim in self._matched.provisioned:
            if claim.metadata.annotations.get(volumeclaims.SELECTED_NODE) != self._node:
                await self._select_node(claim)

    async def _give(self, volume: Volume, claim: Claim) -> None:
        reference = volume.spec.claim_ref
        if reference is not None and reference.uid == claim.metadata.uid:
            return
        change = {
            "spec": {
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": claim.metadata.namespace,
                    "name": claim.metadata.name,
                    "uid": claim.metadata.uid,
                    "resourceVersion": claim.metadata.resource_version,
                }
            }
        }
        if reference is None:
            change["metadata"] = {"annotations": {volumeclaims.BOUND_BY_CONTROLLER: "yes"}}
        patch = patches.merge(change, patches.unchanged(volume))
        self._known.put_volume(await self._handle.client.patch(Volume, volume.metadata.name, patch=patch))
        # Now it says itself whose it is.
        self._known.take_back(volume.metadata.name)

    async def _select_node(self, claim: Claim) -> None:
        change = {"metadata": {"annotations": {volumeclaims.SELECTED_NODE: self._node}}}
        written = await self._handle.client.patch(
            Claim,
            claim.metadata.name,
            namespace=claim.metadata.namespace,
            patch=patches.merge(change, patches.unchanged(claim)),
        )
        self._known.put_claim(written)

    @property
    def is_waiting(self) -> bool:
        """Whether some claim is not bound yet."""
        return not self._are_bound(lambda claim: None)

    async def wait(self) -> None:
        """Returns once all claims are bound."""
        clock = self._handle.clock
        until = clock.monotonic() + self._seconds
        while not self._are_bound(self._check):
            if clock.monotonic() >= until:
                raise verdict.AbortError("binding volumes: context deadline exceeded")
            await clock.sleep(_POLL_SECONDS)

    def _are_bound(self, check: Callable[[Claim], None]) -> bool:
        for claim in (*(claim for _, claim in self._matched.volumes), *self._matched.provisioned):
            current = self._known.claims.get(cache.key_of(claim))
            if current is None or current.metadata.uid != claim.metadata.uid:
                raise verdict.AbortError(f'binding volumes: persistentvolumeclaim "{claim.metadata.name}" not found')
            check(current)
            if not podvolumes.is_fully_bound(current):
                return False
        return True

    def _check(self, claim: Claim) -> None:
        """Raises AbortError where a controller gave up."""
        provisioned = {each.metadata.uid for each in self._matched.provisioned}
        chosen = claim.metadata.annotations.get(volumeclaims.SELECTED_NODE)
        if claim.metadata.uid in provisioned and chosen != self._node:
            raise verdict.AbortError(f'binding volumes: provisioning failed for PVC "{claim.metadata.name}"')
