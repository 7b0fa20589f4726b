"""The binder: writes what was decided (claims, what a pod's status says of them, the binding), or takes it all back.

One call per placed pod, many at a time; the scheduler has counted the pod and its devices already and goes on deciding
meanwhile. Failing is a :class:`BindingError` with the words for the pod's condition; whatever was written for the pod
by then is undone by :meth:`Binder.undo`, so that no reservation stays behind.

Where the server makes several changes at once, claims and binding are one commit, and failing leaves nothing behind.
That is only so where nobody has to see the states in between: not with peers, and not where devices must get ready.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import pod, resourceclaim
from drachma.claims import identity, reservation
from drachma.client import patches, protocol, transactions
from drachma.runtime import clock, events
from drachma.scheduler import custody, decision, metrics, peers, settings
from drachma.scheduler.plugins.dynamicresources import (
    bindingconditions,
    claimassignment,
    claimchanges,
    claimwriter,
    extendedclaim,
    verdicts,
)
from drachma.scheduler.snapshot import assignment
from drachma.scheduler.snapshot import devices as snapshotdevices

_log = logging.getLogger(__name__)

_POLL_SECONDS: Final = 5.0
_ALLOCATABLE: Final = "nodeAllocatableResourceClaimStatuses"


class BindingError(Exception):
    """A pod could not be bound; the text is what people see."""


class Binding:
    """A placed pod on its way, and what has been written for it."""

    __slots__ = (
        "claims", "created", "is_nominated", "is_void", "kept", "placed", "pod", "reserved", "status", "wrote_statuses",
    )  # fmt: skip

    def __init__(self, placed: decision.Placed, *, kept: str = "") -> None:
        """``kept`` is the node that was kept for the pod before it was decided."""
        self.placed = placed
        self.kept = kept
        self.pod = placed.info.pod
        self.claims = claimassignment.of(placed.cycle)
        self.reserved: list[resourceclaim.ResourceClaim] = []
        """Claims that have the pod among their consumers because of this attempt, as they were written."""
        self.created: resourceclaim.ResourceClaim | None = None
        """The claim that was made for extended resources."""
        self.status: dict[str, Any] = {}
        """What the pod's status says about its claims."""
        self.wrote_statuses = False
        self.is_nominated = False
        """Whether the pod's status says where it goes, for other schedulers to see."""
        self.is_void = False
        """Whether its allocations collide with those of another scheduler, and must not stay."""


class Binder:
    """Binds pods through a client."""

    def __init__(
        self,
        client: protocol.Client,
        devices: snapshotdevices.Devices,
        *,
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
        self._settings: Final = chosen
        self._clock: Final = time
        self._writer: Final = writer
        self._recorder: Final = recorder
        self._metrics: Final = measured
        self._peers: Final = others
        self._custody: Final = None if others is None else custody.Custody(client, others, time=time)
        self._transactions: Final = transactions.offered(client) if others is None else None
        self._slots: Final = asyncio.Semaphore(chosen.binders)

    async def room(self) -> None:
        """Returns once another pod can be written without waiting for pods before it.

        No pod should be decided sooner: its writes would come between those of pods before it, so that all are bound
        late and at once, and it would be decided on older news than need be.
        """
        async with self._slots:
            pass

    async def bind(self, binding: Binding) -> None:
        """Writes everything, the binding last; BindingError if something stands in the way."""
        if self._transactions is not None and await self._bind_at_once(binding, self._transactions):
            return
        async with self._slots:
            began = self._clock.monotonic()
            with _pre_bind_errors():
                await self._pre_bind(binding)
            self._metrics.point("PreBind", self._clock.monotonic() - began)
            awaited = self._awaited(binding)
            if not awaited:
                # In the same slot: the binding must not queue up behind pods that were decided meanwhile.
                await self._bind(binding)
                return
        with _pre_bind_errors():
            await self._wait_for_devices(binding, awaited)
        async with self._slots:
            await self._bind(binding)

    async def _pre_bind(self, binding: Binding) -> None:
        await self._write_claims(binding)
        self._describe_claims(binding)
        if self._peers is not None:
            await self._check_devices(binding, self._peers)
        elif binding.status:
            await self._write_statuses(binding)

    async def _bind(self, binding: Binding) -> None:
        if self._peers is not None and self._custody is not None:
            with _pre_bind_errors():
                await self._check_node(binding, self._peers, self._custody)
        began = self._clock.monotonic()
        try:
            await self._client.bind(binding.pod, node=binding.placed.node)
        except errors.DrachmaError as error:
            if not await self._is_bound(binding, error):
                raise BindingError(f'running Bind plugin "DefaultBinder": {error}') from error
        self._metrics.point("Bind", self._clock.monotonic() - began)

    async def _bind_at_once(self, binding: Binding, server: transactions.Transactions) -> bool:
        """Writes everything in one commit; False where that is not to be done, or is refused because of claims."""
        began = self._clock.monotonic()
        changes = claimchanges.of(binding.pod, binding.claims, writer=self._writer)
        if not changes:
            return False
        async with self._slots:
            prepared = self._clock.monotonic()
            try:
                written = await server.commit([*changes, transactions.Bind(binding.pod, binding.placed.node)])
            except errors.CommitRefusedError as error:
                if error.position == len(changes):
                    raise BindingError(f'running Bind plugin "DefaultBinder": {error}') from error
                # One of the claims has changed. One by one it is tried again, and told what is wrong with which.
                return False
            except errors.DrachmaError as error:
                raise BindingError(f'running Bind plugin "DefaultBinder": {error}') from error
        self._metrics.point("PreBind", prepared - began)
        self._metrics.point("Bind", self._clock.monotonic() - prepared)
        for change, claim in zip(changes, written, strict=False):
            if isinstance(change, transactions.Update):
                binding.reserved.append(claim)
                self._devices.claims.observe(claim)
                self._devices.claims.settle(claim.metadata.uid)
        return True

    async def _is_bound(self, binding: Binding, error: errors.DrachmaError) -> bool:
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

    async def _write_claims(self, binding: Binding) -> None:
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
        binding: Binding,
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

    async def _write_special(self, binding: Binding, entry: assignment.Allocation) -> None:
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

    def _describe_claims(self, binding: Binding) -> None:
        """Have the pod's status say what its claims add to its requests (KEP-5517)."""
        if not binding.claims.statuses:
            return
        binding.status[_ALLOCATABLE] = [
            msgspec.structs.replace(status, resource_claim_name=binding.created.metadata.name)
            if binding.created is not None and status.resource_claim_name == extendedclaim.IN_MEMORY_NAME
            else status
            for status in binding.claims.statuses
        ]

    async def _write_statuses(self, binding: Binding) -> None:
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

    async def _check_devices(self, binding: Binding, others: peers.Peers) -> None:
        """Make sure that nobody was faster with the devices."""
        plan = binding.claims.plan
        claims = {entry.claim.metadata.uid: entry.claim for entry in plan.claims} if plan else {}
        claims |= {claim.metadata.uid: claim for claim in binding.reserved}
        try:
            await others.check_claims(list(claims.values()))
        except peers.CollisionError:
            binding.is_void = True
            raise
        for uid in claims:
            self._devices.claims.settle(uid)

    async def _check_node(self, binding: Binding, others: peers.Peers, holding: custody.Custody) -> None:
        """Make sure that nobody was faster with the node, or has the pod in hand."""
        placed = binding.placed
        # In one write with what is said of claims: that is for who has the pod in hand to say.
        written = await holding.take(binding.pod, placed.node, kept=binding.kept, content=binding.status)
        binding.is_nominated = True
        await self._check_claims_again(binding)
        await others.check_node(written, placed.node, demand=placed.assignment.demand)

    async def _check_claims_again(self, binding: Binding) -> None:
        """Make sure that nobody took claims away before it was said that the pod is in hand; afterwards nobody may."""
        plan = binding.claims.plan
        claims = {entry.claim.metadata.uid: entry.claim for entry in plan.claims} if plan else {}
        claims |= {claim.metadata.uid: claim for claim in binding.reserved}
        for uid, claim in claims.items():
            metadata = claim.metadata
            found = await self._client.get(resourceclaim.ResourceClaim, metadata.name, namespace=metadata.namespace)
            is_same = found.metadata.uid == uid and found.status.allocation == claim.status.allocation
            if not is_same or not reservation.is_reserved_for(found, binding.pod):
                raise peers.CollisionError(f"claim {identity.label(claim.metadata)} got taken away in the meantime")

    # Devices that have to become ready

    def _awaited(self, binding: Binding) -> list[resourceclaim.ResourceClaim]:
        """The claims with devices that have to become ready first."""
        plan = binding.claims.plan
        if plan is None or not self._settings.gates.binding_conditions:
            return []
        claims = {claim.metadata.uid: claim for claim in (entry.claim for entry in plan.claims)}
        claims |= {claim.metadata.uid: claim for claim in binding.reserved}
        return [claim for claim in claims.values() if bindingconditions.awaited(claim.status.allocation)]

    async def _wait_for_devices(self, binding: Binding, awaited: list[resourceclaim.ResourceClaim]) -> None:
        self._recorder.record(
            binding.pod,
            type=events.NORMAL,
            reason="BindingConditionsPending",
            message=f"waiting for binding conditions for device on node {binding.placed.node}",
        )
        began = self._clock.monotonic()
        outcome = "error"
        try:
            await self._until_ready(awaited, until=began + self._settings.binding_seconds)
            outcome = "success"
        except claimwriter.ClaimError as error:
            outcome = "timeout" if str(error).startswith("device binding timeout") else "failed"
            raise
        finally:
            drivers = {
                result.driver
                for claim in awaited
                if claim.status.allocation is not None
                for result in claim.status.allocation.devices.results
                if result.binding_conditions
            }
            self._metrics.binding_conditions(sorted(drivers), self._clock.monotonic() - began, status=outcome)

    async def _until_ready(self, claims: list[resourceclaim.ResourceClaim], *, until: float) -> None:
        changed = asyncio.Event()
        with _hearing(self._devices, claims, changed.set):
            while not self._are_ready(claims):
                left = until - self._clock.monotonic()
                if left <= 0:
                    raise claimwriter.ClaimError("device binding timeout: context deadline exceeded")
                changed.clear()
                await self._either(changed, seconds=min(left, _POLL_SECONDS))

    def _are_ready(self, claims: list[resourceclaim.ResourceClaim]) -> bool:
        for known in claims:
            metadata = known.metadata
            claim = self._devices.claims.get(metadata.namespace, metadata.name)
            if claim is None or claim.metadata.uid != metadata.uid:
                raise claimwriter.ClaimError(f'could not find ResourceClaim "{metadata.namespace}/{metadata.name}"')
            readiness, failure = bindingconditions.judge(claim)
            if failure is not None:
                raise claimwriter.ClaimError(
                    f"device binding failed: claim={metadata.name}, reason={failure.reason}, "
                    f'message="{failure.message}"'
                )
            if readiness is bindingconditions.Readiness.WAITING:
                timeout = self._settings.binding_seconds
                if bindingconditions.is_late(claim, now=self._clock.utc(), timeout=timeout):
                    raise claimwriter.ClaimError(f"device binding timeout: claim={metadata.name}")
                return False
        return True

    async def _either(self, changed: asyncio.Event, *, seconds: float) -> None:
        """Returns when something changed, or after a while."""
        waiting = {asyncio.ensure_future(changed.wait()), asyncio.ensure_future(self._clock.sleep(seconds))}
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()

    # Taking back

    async def undo(self, binding: Binding) -> None:
        """Takes back what was written for a pod that is not bound; what cannot be is logged and tried again later.

        Where another scheduler has the pod in hand, it relies on what its claims say: then all of it stays.
        """
        tracker = self._devices.claims
        created = binding.created
        if self._custody is not None and not binding.is_nominated:
            binding.is_nominated = await self._custody.is_taken(binding.pod, binding.placed.node, kept=binding.kept)
        if self._custody is not None and not binding.is_nominated:
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
        cleared: dict[str, Any] = {}
        if _ALLOCATABLE in binding.status:
            cleared[_ALLOCATABLE] = []
        if self._custody is not None:
            letting_go = self._custody.let_go(binding.pod, binding.placed.node, content=cleared)
            await self._tried(letting_go, "clear the nominated node")
        elif binding.wrote_statuses and cleared:
            await self._tried(self._patch_pod(binding.pod, cleared), "clear node allocatable resources")

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
def _hearing(
    devices: snapshotdevices.Devices, claims: list[resourceclaim.ResourceClaim], heard: Callable[[], None]
) -> Iterator[None]:
    stops = [devices.claims.watch(claim.metadata.uid, heard) for claim in claims]
    try:
        yield
    finally:
        for stop in stops:
            stop()


@contextlib.contextmanager
def _pre_bind_errors() -> Iterator[None]:
    try:
        yield
    except (claimwriter.ClaimError, peers.CollisionError, errors.DrachmaError) as error:
        raise BindingError(f'running PreBind plugin "{verdicts.NAME}": {error}') from error
