"""The binder: writes what was decided (claims, what a pod's status says of them, the binding), or takes it all back.

One call per placed pod, many at a time; the scheduler has counted the pod and its devices already and goes on deciding
meanwhile. Failing is a BindingError (:mod:`drachma.scheduler.bindings`) with the words for the pod's condition; what
was written for the pod by then is undone by :meth:`Binder.undo`, so that no reservation stays behind.

Where the server makes several changes at once, claims, binding and the event that tells of it are one commit, and
failing leaves nothing behind.
That is only so where nobody has to see the states in between: not with peers, and not where devices must get ready.
Where there are peers, a pod is taken in hand before anything is written for it (:mod:`drachma.scheduler.peers`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import pod, resourceclaim
from drachma.claims import identity, reservation
from drachma.client import patches, protocol, transactions
from drachma.runtime import clock, events
from drachma.scheduler import bindings, devicewait, messages, metrics, peers, settings
from drachma.scheduler.framework import profile, verdict
from drachma.scheduler.peering import collision
from drachma.scheduler.plugins.dynamicresources import (
    claimchanges,
    claimwriter,
    extendedclaim,
    verdicts,
)
from drachma.scheduler.snapshot import assignment
from drachma.scheduler.snapshot import devices as snapshotdevices

_log = logging.getLogger(__name__)

_ALLOCATABLE: Final = "nodeAllocatableResourceClaimStatuses"


class Binder:
    """Binds pods through a client."""

    def __init__(
        self,
        client: protocol.Client,
        devices: snapshotdevices.Devices,
        *,
        plugins: profile.Profile,
        chosen: settings.Settings,
        time: clock.Clock,
        writer: claimwriter.ClaimWriter,
        recorder: events.Recorder,
        measured: metrics.Metrics,
        others: peers.Peers | None = None,
    ) -> None:
        """``others`` is there where other schedulers write at the same time."""
        self._client: Final = client
        self._devices: Final = devices
        self._profile: Final = plugins
        self._clock: Final = time
        self._writer: Final = writer
        self._metrics: Final = measured
        self._recorder: Final = recorder
        self._device_wait: Final = devicewait.DeviceWait(
            devices, chosen=chosen, time=time, recorder=recorder, measured=measured
        )
        self._peers: Final = others
        self._transactions: Final = transactions.offered(client) if others is None else None
        self._slots: Final = asyncio.Semaphore(chosen.binders)

    async def room(self) -> None:
        """Returns once another pod can be written without waiting for pods before it.

        No pod should be decided sooner: its writes would come between those of pods before it, so that all are bound
        late and at once, and it would be decided on older news than need be.
        """
        async with self._slots:
            pass

    async def bind(self, binding: bindings.Binding) -> None:
        """Writes everything, the binding last; bindings.BindingError if something stands in the way."""
        async with self._slots:
            if self._peers is not None:
                await self._take(binding, self._peers)
            await self._pre_bind_plugins(binding)
            if self._transactions is not None and await self._bind_at_once(binding, self._transactions):
                return
            began = self._clock.monotonic()
            with _pre_bind_errors():
                await self._pre_bind(binding)
            self._metrics.point("PreBind", self._clock.monotonic() - began)
            unready = self._device_wait.unready(binding.all_claims())
            if not unready:
                await self._bind(binding)
                return
            self._let_go(binding)
        with _pre_bind_errors():
            await self._device_wait.until_ready(unready, binding.pod, node=binding.placed.node)
        async with self._slots:
            if self._peers is not None:
                await self._take(binding, self._peers)
                with _pre_bind_errors():
                    await self._check_claims(binding, binding.all_claims())
            await self._bind(binding)

    async def _pre_bind_plugins(self, binding: bindings.Binding) -> None:
        try:
            await self._profile.pre_bind(binding.placed.cycle, binding.placed.assignment)
        except verdict.AbortError as error:
            raise bindings.BindingError(str(error)) from error

    async def _pre_bind(self, binding: bindings.Binding) -> None:
        await self._write_claims(binding)
        self._describe_claims(binding)
        if binding.status:
            await self._write_statuses(binding)
        if self._peers is not None:
            await self._check_devices(binding, self._peers)

    async def _bind(self, binding: bindings.Binding) -> None:
        if self._peers is not None and binding.hold is not None:
            with _pre_bind_errors():
                self._peers.check_hold(binding.hold)
        began = self._clock.monotonic()
        try:
            await self._client.bind(binding.pod, node=binding.placed.node)
        except errors.DrachmaError as error:
            if not await self._is_bound(binding, error):
                raise bindings.BindingError(f'running Bind plugin "DefaultBinder": {error}') from error
        if self._peers is not None and binding.hold is not None:
            self._peers.done(binding.hold)
        self._metrics.point("Bind", self._clock.monotonic() - began)

    async def _bind_at_once(self, binding: bindings.Binding, server: transactions.Transactions) -> bool:
        """Writes everything in one commit; False where that is not to be done, or is refused because of claims."""
        began = self._clock.monotonic()
        changes = claimchanges.of(binding.pod, binding.claims, writer=self._writer)
        if changes is None:
            return False
        prepared = self._clock.monotonic()
        together = [*changes, transactions.Bind(binding.pod, binding.placed.node)]
        try:
            written = await self._commit(together, binding, server)
        except errors.CommitRefusedError as error:
            if error.position == len(changes):
                raise bindings.BindingError(f'running Bind plugin "DefaultBinder": {error}') from error
            # One of the claims has changed. One by one it is tried again, and told what is wrong with which.
            return False
        except errors.DrachmaError as error:
            raise bindings.BindingError(f'running Bind plugin "DefaultBinder": {error}') from error
        self._metrics.point("PreBind", prepared - began)
        self._metrics.point("Bind", self._clock.monotonic() - prepared)
        for claim in written[: len(changes)]:
            binding.reserved.append(claim)
            self._devices.claims.observe(claim)
            self._devices.claims.settle(claim.metadata.uid)
        return True

    async def _commit(
        self, together: Sequence[transactions.Change], binding: bindings.Binding, server: transactions.Transactions
    ) -> Sequence[Any]:
        """Writes changes, and that the pod was scheduled; an event that is refused keeps nobody from being bound."""
        told = transactions.Create(
            self._recorder.event(
                binding.pod,
                type=events.NORMAL,
                reason=messages.SCHEDULED,
                message=messages.assigned(binding.pod, node=binding.placed.node),
            )
        )
        try:
            written = await server.commit([*together, told])
        except errors.CommitRefusedError as error:
            if error.position < len(together):
                raise
            return await server.commit(together)
        binding.is_told = True
        return written

    async def _is_bound(self, binding: bindings.Binding, error: errors.DrachmaError) -> bool:
        """Whether a binding was written although nobody said so; taking its reservations away would hurt the pod."""
        if isinstance(error, errors.RefusedError) and not isinstance(error, errors.ServerFaultError):
            return False
        metadata = binding.pod.metadata
        try:
            found = await self._client.get(pod.Pod, metadata.name, namespace=metadata.namespace)
        except errors.DrachmaError:
            return False
        return found.metadata.uid == metadata.uid and found.spec.node_name == binding.placed.node

    # Claims

    async def _write_claims(self, binding: bindings.Binding) -> None:
        placed = binding.claims
        if placed.plan is None:
            return
        results = {entry.claim.metadata.uid: entry.result for entry in placed.allocations}
        # A pod may refer to a claim under several names.
        for uid, claim in {entry.claim.metadata.uid: entry.claim for entry in placed.plan.claims}.items():
            if not reservation.is_reserved_for(claim, binding.pod):
                await self._reserve(binding, claim, allocation=results.get(uid))
        if placed.mappings:
            await self._write_special(binding, placed.allocations[-1])

    async def _reserve(
        self,
        binding: bindings.Binding,
        claim: resourceclaim.ResourceClaim,
        *,
        allocation: resourceclaim.AllocationResult | None,
    ) -> resourceclaim.ResourceClaim:
        written = await self._writer.reserve(claim, binding.pod, allocation=allocation)
        binding.reserved.append(written)
        self._devices.claims.observe(written)
        if self._peers is None:
            # Written and seen: nothing is in flight any more.
            self._devices.claims.settle(claim.metadata.uid)
        return written

    async def _write_special(self, binding: bindings.Binding, entry: assignment.Allocation) -> None:
        """Make the claim for extended resources, and tell the pod's containers about it."""
        metadata = msgspec.structs.replace(entry.claim.metadata, name="", uid="")
        try:
            made = await self._writer.create(msgspec.structs.replace(entry.claim, metadata=metadata))
        except claimwriter.ClaimError:
            self._metrics.claim_created("failure")
            raise
        self._metrics.claim_created("success")
        binding.created = made
        tracker = self._devices.claims
        # What was in flight under a name of its own now is under the real one.
        tracker.settle(entry.claim.metadata.uid)
        tracker.reserve(made.metadata, entry.result)
        tracker.observe(made)
        written = await self._reserve(binding, made, allocation=entry.result)
        status = pod.PodExtendedResourceClaimStatus(
            request_mappings=binding.claims.mappings, resource_claim_name=written.metadata.name
        )
        binding.status["extendedResourceClaimStatus"] = status

    def _describe_claims(self, binding: bindings.Binding) -> None:
        """Have the pod's status say what its claims add to its requests (KEP-5517)."""
        if not binding.claims.statuses:
            return
        binding.status[_ALLOCATABLE] = [
            msgspec.structs.replace(status, resource_claim_name=binding.created.metadata.name)
            if binding.created is not None and status.resource_claim_name == extendedclaim.IN_MEMORY_NAME
            else status
            for status in binding.claims.statuses
        ]

    async def _write_statuses(self, binding: bindings.Binding) -> None:
        try:
            await self._patch_pod(binding.pod, binding.status)
        except errors.DrachmaError as error:
            if _ALLOCATABLE not in binding.status:
                raise
            metadata = binding.pod.metadata
            label = f"{metadata.namespace}/{metadata.name}"
            problem = f"updating pod {label} NodeAllocatableResourceClaimStatuses: {error}"
            raise claimwriter.ClaimError(problem) from error
        binding.wrote_statuses = True

    # Other schedulers

    async def _take(self, binding: bindings.Binding, others: peers.Peers) -> None:
        """Take the pod in hand; CollidedError where another scheduler was faster."""
        plan = binding.claims.plan
        try:
            binding.hold = await others.take(
                binding.placed.assignment, delegated=frozenset(plan.extended) if plan is not None else frozenset()
            )
        except collision.CollisionError as error:
            raise bindings.CollidedError(error) from error
        except errors.DrachmaError as error:
            raise bindings.BindingError(f"taking the pod in hand: {error}") from error

    def _let_go(self, binding: bindings.Binding) -> None:
        if self._peers is not None and binding.hold is not None:
            self._peers.let_go(binding.hold)
            binding.hold = None

    async def _check_devices(self, binding: bindings.Binding, others: peers.Peers) -> None:
        """Make sure that the claims are what they were decided to be, and that nobody was faster with the devices."""
        claims = binding.all_claims()
        written = {claim.metadata.uid for claim in binding.reserved}
        await self._check_claims(binding, [claim for claim in claims if claim.metadata.uid not in written])
        try:
            await others.check_claims(claims)
        except collision.CollisionError:
            binding.is_void = True
            raise
        for claim in claims:
            self._devices.claims.settle(claim.metadata.uid)

    async def _check_claims(self, binding: bindings.Binding, claims: Iterable[resourceclaim.ResourceClaim]) -> None:
        """Make sure that nobody took claims away before the pod was in hand; afterwards nobody may."""
        for claim in claims:
            metadata = claim.metadata
            current = await self._client.get(resourceclaim.ResourceClaim, metadata.name, namespace=metadata.namespace)
            is_same = current.metadata.uid == metadata.uid and current.status.allocation == claim.status.allocation
            if not is_same or not reservation.is_reserved_for(current, binding.pod):
                raise claimwriter.ClaimError(f"claim {identity.label(metadata)} got taken away in the meantime")

    async def _is_in_hand(self, binding: bindings.Binding, others: peers.Peers) -> bool:
        """Whether the pod is in hand, or can be taken in hand once more, for something to be taken back."""
        try:
            if binding.hold is None:
                binding.hold = await others.hold_back(binding.pod)
            others.check_hold(binding.hold)
        except (collision.CollisionError, errors.DrachmaError):
            return False
        return True

    # Taking back

    async def undo(self, binding: bindings.Binding) -> None:
        """Takes back what was written for a pod that is not bound; what cannot be is logged and tried again later.

        Where another scheduler has the pod in hand, it relies on what its claims say: then all of it stays.
        """
        try:
            await self._undo(binding)
            await self._profile.unreserve(binding.placed.cycle, binding.placed.assignment)
        finally:
            self._let_go(binding)

    async def _undo(self, binding: bindings.Binding) -> None:
        tracker = self._devices.claims
        created = binding.created
        is_clean = not binding.reserved and created is None and not binding.wrote_statuses and not binding.is_void
        if is_clean or (self._peers is not None and not await self._is_in_hand(binding, self._peers)):
            for entry in binding.claims.allocations:
                tracker.settle(entry.claim.metadata.uid)
            if created is not None:
                tracker.settle(created.metadata.uid)
            return
        claims = {claim.metadata.uid: claim for claim in binding.reserved}
        if binding.is_void and binding.claims.plan is not None:
            # What another scheduler wrote for the pod and left is void as well.
            claims |= {entry.claim.metadata.uid: entry.claim for entry in binding.claims.plan.claims}
        for claim in claims.values():
            if created is None or claim.metadata.uid != created.metadata.uid:
                undo = self._writer.withdraw if binding.is_void else self._writer.release
                await self._tried(undo(claim, binding.pod), f"unreserve {identity.label(claim.metadata)}")
        for entry in binding.claims.allocations:
            tracker.settle(entry.claim.metadata.uid)
        if created is not None:
            tracker.settle(created.metadata.uid)
            newest = tracker.get(created.metadata.namespace, created.metadata.name) or created
            await self._tried(self._writer.delete(newest), f"delete {identity.label(created.metadata)}")
        if binding.wrote_statuses and _ALLOCATABLE in binding.status:
            clearing = self._patch_pod(binding.pod, {_ALLOCATABLE: []})
            await self._tried(clearing, "clear node allocatable resources")

    async def _tried(self, write: Any, what: str) -> None:
        try:
            await write
        except errors.DrachmaError as error:
            _log.warning("%s failed: %s", what, error)

    async def _patch_pod(self, about: pod.Pod, status: dict[str, Any]) -> None:
        await self._client.patch(
            pod.Pod,
            about.metadata.name,
            namespace=about.metadata.namespace,
            subresource="status",
            patch=patches.merge({"status": status}, patches.same(about)),
        )


@contextlib.contextmanager
def _pre_bind_errors() -> Iterator[None]:
    try:
        yield
    except (claimwriter.ClaimError, collision.CollisionError, errors.DrachmaError) as error:
        raise bindings.BindingError(f'running PreBind plugin "{verdicts.NAME}": {error}') from error
