"""Volume work: assigns volumes to the claims of a pod before it is bound, and waits until they are bound.

The scheduler only writes which volume is for which claim, or on which node one is needed. A controller binds them. As
upstream, these writes are not taken back: the next attempt uses them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from drachma.api import persistentvolume, persistentvolumeclaim
from drachma.claims import volumeclaims
from drachma.client import patches
from drachma.runtime import cache
from drachma.scheduler.framework import bindingwork, handle, verdict
from drachma.scheduler.plugins.volumebinding import podvolumes, volumematching
from drachma.scheduler.snapshot import volumes as snapshotvolumes

Claim = persistentvolumeclaim.PersistentVolumeClaim
Volume = persistentvolume.PersistentVolume

_POLL_SECONDS: Final = 1.0


class VolumeWork(bindingwork.BindingWork):
    """Volumes of a pod that is about to be bound."""

    __slots__ = ("_handle", "_matched", "_node", "_seconds", "_volumes")

    def __init__(
        self,
        matched: volumematching.Matched,
        *,
        node: str,
        snapshot_volumes: snapshotvolumes.Volumes,
        handle: handle.Handle,
        seconds: float,
    ) -> None:
        """``seconds`` is the time limit for the binding of volumes."""
        self._matched: Final = matched
        self._node: Final = node
        self._volumes: Final = snapshot_volumes
        self._handle: Final = handle
        self._seconds: Final = seconds

    async def write(self) -> None:
        """Write the volume of each claim, or the node on which one is needed."""
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
        self._volumes.put_volume(await self._handle.client.patch(Volume, volume.metadata.name, patch=patch))
        # The volume itself now names its claim.
        self._volumes.take_back(volume.metadata.name)

    async def _select_node(self, claim: Claim) -> None:
        change = {"metadata": {"annotations": {volumeclaims.SELECTED_NODE: self._node}}}
        patched_claim = await self._handle.client.patch(
            Claim,
            claim.metadata.name,
            namespace=claim.metadata.namespace,
            patch=patches.merge(change, patches.unchanged(claim)),
        )
        self._volumes.put_claim(patched_claim)

    @property
    def is_waiting(self) -> bool:
        """True if a claim is not bound yet."""
        return not self._are_bound(lambda claim: None)

    async def wait(self) -> None:
        """Return once all claims are bound."""
        clock = self._handle.clock
        until = clock.monotonic() + self._seconds
        while not self._are_bound(self._check):
            if clock.monotonic() >= until:
                raise verdict.AbortError("binding volumes: context deadline exceeded")
            await clock.sleep(_POLL_SECONDS)

    def _are_bound(self, check: Callable[[Claim], None]) -> bool:
        for claim in (*(claim for _, claim in self._matched.volumes), *self._matched.provisioned):
            current = self._volumes.claims.get(cache.key_of(claim))
            if current is None or current.metadata.uid != claim.metadata.uid:
                raise verdict.AbortError(f'binding volumes: persistentvolumeclaim "{claim.metadata.name}" not found')
            check(current)
            if not podvolumes.is_fully_bound(current):
                return False
        return True

    def _check(self, claim: Claim) -> None:
        """Raise AbortError if a controller has given up."""
        provisioned = {each.metadata.uid for each in self._matched.provisioned}
        selected_node = claim.metadata.annotations.get(volumeclaims.SELECTED_NODE)
        if claim.metadata.uid in provisioned and selected_node != self._node:
            raise verdict.AbortError(f'binding volumes: provisioning failed for PVC "{claim.metadata.name}"')
