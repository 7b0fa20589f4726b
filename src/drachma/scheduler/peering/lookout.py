"""The lookout: what a scheduler sees of the others. Who lives, what each has announced, and when that is complete.

It reads the leases of all schedulers (:mod:`drachma.scheduler.peering.peerlease`), has decisions count what others
announced, notices who is dead, and tells whenever pods come to this scheduler or go from it.
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
"""How long after its end the lease of a dead scheduler is deleted."""

_PAGE: Final = 500

Claim = resourceclaim.ResourceClaim


class Lookout:
    """What one scheduler sees."""

    def __init__(
        self,
        client: protocol.Client,
        shared: informers.Informers,
        *,
        own: str,
        members: membership.Membership,
        counting: anticipation.Anticipation,
        time: clock.Clock,
    ) -> None:
        """``own`` is the name of this scheduler's lease."""
        self._client: Final = client
        self._pods: Final = shared.of(pod.Pod)
        self._claims: Final = shared.of(Claim)
        self._leases: Final = shared.of(lease.Lease, peerlease.SELECTION)
        self._own: Final = own
        self._members: Final = members
        self._anticipation: Final = counting
        self._clock: Final = time
        self.announced: Final = announcements.Announced()
        self.has_gap = True
        """Whether announcements may have come and gone that nobody told of, as when all were listed."""
        self._pod_progress: Final = progress.Progress(self._pods)
        self._lease_progress: Final = progress.Progress(self._leases)
        self._silent_since: Final[dict[str, float]] = {}
        self._allocated: Final[set[str]] = set()
        """The keys of claims that are seen with devices."""
        self._catching_up: Final = asyncio.Lock()
        self._assign: Callable[[pod.Pod], None] = lambda waiting: None

    def register(self, assign: Callable[[pod.Pod], None]) -> None:
        """Hear of everything that matters, after all other handlers.

        ``assign`` gets pods that have no node whenever they may be this scheduler's to look after, or no longer.
        """
        self._assign = assign
        self._pods.add_handler(
            informer.Handler(
                added=self._pod_changed, updated=lambda _, new: self._pod_changed(new), deleted=self._pod_gone
            )
        )
        self._claims.add_handler(
            informer.Handler(
                added=self._claim_changed, updated=lambda _, new: self._claim_changed(new), deleted=self._claim_gone
            )
        )
        self._leases.add_handler(
            informer.Handler(
                added=self._lease_changed, updated=lambda _, new: self._lease_changed(new), deleted=self._lease_gone
            )
        )

    async def run(self) -> None:
        """Notices who is dead, and clears away what they left, until cancelled."""
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
        """Look again at who looks after which of the pods that wait."""
        for known in self._pods.cache:
            if not known.spec.node_name:
                self._assign(known)

    async def until_own(self, version: int) -> None:
        """Returns once a version of the own lease came back, and with it all that others announced before."""
        await self._lease_progress.until(cache.Key(peerlease.NAMESPACE, self._own), version)

    async def catch_up(self) -> None:
        """Returns once all that was bound before the announcements at hand were read is seen as bound."""
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
                    await self._pod_progress.until_seen(listed)
            token = page.continue_token
            if not token:
                return

    # What is heard

    def _lease_changed(self, known: lease.Lease) -> None:
        name, now = known.metadata.name, self._clock.monotonic()
        is_exact = bool(self._leases.resource_version)
        self.has_gap = self.has_gap or not is_exact
        texts = announcements.split(known.metadata.annotations.get(peerlease.ANNOTATION, ""))
        version = resourceversion.number(known.metadata.resource_version) if is_exact else 0
        added, removed = self.announced.read(name, texts, version=version, now=now)
        self._discount(removed)
        for record in added if name != self._own else ():
            self._anticipation.count(record)
        self._silent_since.pop(name, None)
        if self._members.heard(known):
            self.reassign()
        self._lease_progress.heard(known)

    def _lease_gone(self, known: lease.Lease) -> None:
        name = known.metadata.name
        self.announced.end_all(name, now=self._clock.monotonic())
        self._silent_since.pop(name, None)
        if self._members.gone(name):
            self.reassign()
        self._lease_progress.heard(known)

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
            # It lives after all, somebody else deleted it, or whoever comes next will.
            return

    def _pod_changed(self, known: pod.Pod) -> None:
        if known.spec.node_name:
            self._discount(self.announced.bound(known.metadata.uid, allocated=self._allocated))
        self._pod_progress.heard(known)

    def _pod_gone(self, known: pod.Pod) -> None:
        self._discount(self.announced.gone(known.metadata.uid))
        self._pod_progress.heard(known)

    def _claim_changed(self, known: Claim) -> None:
        key = announcements.claim_key(known)
        if known.status.allocation is None:
            self._allocated.discard(key)
        elif key not in self._allocated:
            self._allocated.add(key)
            self._discount(self.announced.allocate(key, allocated=self._allocated))

    def _claim_gone(self, known: Claim) -> None:
        self._allocated.discard(announcements.claim_key(known))

    def _discount(self, records: Iterable[announcements.Record]) -> None:
        for record in records:
            waiting = self._anticipation.discount(record) if record.peer != self._own else None
            if waiting is not None:
                self._assign(waiting)
