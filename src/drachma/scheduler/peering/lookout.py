"""The lookout: the view of one scheduler on its peers. It knows which ones live and what they have announced.

It reads the leases of all schedulers (:mod:`drachma.scheduler.peering.peerlease`), has decisions count their
announcements, notices dead schedulers, and reports pods whose scheduler changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from drachma import errors
from drachma.api import lease, pod, resourceclaim
from drachma.client import patches, protocol
from drachma.runtime import cache, clock, informer, informers, resourceversion
from drachma.scheduler.peering import announcements, anticipation, membership, peerlease, progress

_LOOK_SECONDS: Final = 1.0
_FORGET_SECONDS: Final = 60.0
"""Time after which the lease of a dead scheduler is deleted."""

_PAGE: Final = 500

Claim = resourceclaim.ResourceClaim


class Lookout:
    """View of one scheduler on its peers."""

    def __init__(
        self,
        client: protocol.Client,
        informers: informers.Informers,
        *,
        own: str,
        members: membership.Membership,
        anticipation: anticipation.Anticipation,
        clock: clock.Clock,
    ) -> None:
        """``own`` is the name of this scheduler's lease."""
        self._client: Final = client
        self._pods: Final = informers.of(pod.Pod)
        self._claims: Final = informers.of(Claim)
        self._leases: Final = informers.of(lease.Lease, peerlease.SELECTION)
        self._own: Final = own
        self._members: Final = members
        self._anticipation: Final = anticipation
        self._clock: Final = clock
        self.announced: Final = announcements.Announced()
        self.has_gap = True
        """True if announcements may have come and gone unseen, as after a list."""
        self._pod_progress: Final = progress.Progress(self._pods)
        self._lease_progress: Final = progress.Progress(self._leases)
        self._silent_since: Final[dict[str, float]] = {}
        self._allocated: Final[set[str]] = set()
        """Keys of claims that were seen with devices."""
        self._catching_up: Final = asyncio.Lock()
        self._assign: Callable[[pod.Pod], None] = lambda waiting_pod: None

    def register(self, assign: Callable[[pod.Pod], None]) -> None:
        """Register handlers, after all other handlers.

        ``assign`` is called with waiting pods whenever the responsibility for them may have changed.
        """
        self._assign = assign
        self._pods.add_handler(informer.Handler.on_write(self._pod_changed, deleted=self._pod_gone))
        self._claims.add_handler(informer.Handler.on_write(self._claim_changed, deleted=self._claim_gone))
        self._leases.add_handler(informer.Handler.on_write(self._lease_changed, deleted=self._lease_gone))

    async def run(self) -> None:
        """Notice dead schedulers and delete their leases, until cancelled."""
        while True:
            await self._clock.sleep(_LOOK_SECONDS)
            now = self._clock.monotonic()
            silent = self._members.silent()
            for name in silent:
                self._silent_since[name] = now
                self._discount(self.announced.drop_all(name))
            self._discount(self.announced.expire(now=now))
            if silent:
                self.reassign()
            for name in [name for name, since in self._silent_since.items() if since + _FORGET_SECONDS <= now]:
                await self._delete_lease(name)

    def reassign(self) -> None:
        """Report all waiting pods, since the responsibility for them may have changed."""
        for each in self._pods.cache:
            if not each.spec.node_name:
                self._assign(each)

    async def wait_for_own(self, version: int) -> None:
        """Return once a version of this scheduler's lease was read back, with all earlier announcements of peers."""
        await self._lease_progress.wait_for_version(cache.Key(peerlease.NAMESPACE, self._own), version)

    async def catch_up(self) -> None:
        """Return once all pods are seen as bound that were bound before the current announcements were read."""
        async with self._catching_up:
            if not self.has_gap:
                return
            await self._leases.wait_synced()
            self.has_gap = False
            try:
                await self._see_bound()
            except errors.DrachmaError:
                self.has_gap = True
                raise

    async def _see_bound(self) -> None:
        token = ""
        while True:
            page = await self._client.list(pod.Pod, limit=_PAGE, continue_token=token)
            for listed in page.items:
                if listed.spec.node_name:
                    await self._pod_progress.wait_for(listed)
            token = page.continue_token
            if not token:
                return

    # Handlers

    def _lease_changed(self, peer_lease: lease.Lease) -> None:
        name, now = peer_lease.metadata.name, self._clock.monotonic()
        is_exact = bool(self._leases.resource_version)
        self.has_gap = self.has_gap or not is_exact
        texts = announcements.split(peer_lease.metadata.annotations.get(peerlease.ANNOTATION, ""))
        version = resourceversion.number(peer_lease.metadata.resource_version) if is_exact else 0
        added, removed = self.announced.read(name, texts, version=version, now=now)
        self._discount(removed)
        for record in added if name != self._own else ():
            self._anticipation.count(record)
        self._silent_since.pop(name, None)
        if self._members.heard(peer_lease):
            self.reassign()
        self._lease_progress.heard(peer_lease)

    def _lease_gone(self, peer_lease: lease.Lease) -> None:
        name = peer_lease.metadata.name
        self.announced.end_all(name, now=self._clock.monotonic())
        self._silent_since.pop(name, None)
        if self._members.gone(name):
            self.reassign()
        self._lease_progress.heard(peer_lease)

    async def _delete_lease(self, name: str) -> None:
        del self._silent_since[name]
        dead = self._leases.cache.get(name, namespace=peerlease.NAMESPACE)
        if dead is None:
            return
        try:
            await self._client.delete(
                lease.Lease, name, namespace=peerlease.NAMESPACE, preconditions=patches.unchanged(dead)
            )
        except errors.DrachmaError:
            # The scheduler lives after all, or another one has deleted the lease or will.
            return

    def _pod_changed(self, changed_pod: pod.Pod) -> None:
        if changed_pod.spec.node_name:
            self._discount(self.announced.bound(changed_pod.metadata.uid, allocated=self._allocated))
        self._pod_progress.heard(changed_pod)

    def _pod_gone(self, deleted_pod: pod.Pod) -> None:
        self._discount(self.announced.gone(deleted_pod.metadata.uid))
        self._pod_progress.heard(deleted_pod)

    def _claim_changed(self, changed_claim: Claim) -> None:
        key = announcements.claim_key(changed_claim)
        if changed_claim.status.allocation is None:
            self._allocated.discard(key)
        elif key not in self._allocated:
            self._allocated.add(key)
            self._discount(self.announced.allocate(key, allocated=self._allocated))

    def _claim_gone(self, deleted_claim: Claim) -> None:
        self._allocated.discard(announcements.claim_key(deleted_claim))

    def _discount(self, records: Iterable[announcements.Record]) -> None:
        for record in records:
            waiting_pod = self._anticipation.discount(record) if record.peer != self._own else None
            if waiting_pod is not None:
                self._assign(waiting_pod)
