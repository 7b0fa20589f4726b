"""Reconcile of a v1alpha2 claim: its v1 counterpart is created, updated and deleted, and its status reported.

Devices are allocated and released on the counterpart alone. The claim's status only follows. A finalizer keeps the
claim until its counterpart is gone, so that it never looks free while a pod uses it.
"""

from collections.abc import Mapping
from typing import Final

from drachma import cel, errors
from drachma.api import deviceclass, meta, pod, resourceclaim
from drachma.api.v1alpha2 import parameters, resourceclass
from drachma.api.v1alpha2 import resourceclaim as alpha
from drachma.claims import ownership, podstate
from drachma.client import Client, patches
from drachma.controllers.structured import poolupkeep
from drachma.runtime import Surroundings, events
from drachma.structured import claims, counterpart, resolution

WAITING: Final = "WaitingForParameters"
CONFLICT: Final = "NameConflict"
INVALID: Final = "InvalidParameters"

Claim = alpha.ResourceClaim
Counterpart = resourceclaim.ResourceClaim


class ClaimUpkeep:
    """Reconciles one claim after another."""

    def __init__(self, surroundings: Surroundings, *, recorder: events.Recorder, pools: poolupkeep.PoolUpkeep) -> None:
        informers = surroundings.informers
        self._client: Final[Client] = surroundings.client
        self._claims: Final = informers.of(Claim).cache
        self._counterparts: Final = informers.of(Counterpart).cache
        self._pods: Final = informers.of(pod.Pod).cache
        self._device_classes: Final = informers.of(deviceclass.DeviceClass).cache
        self._objects: Final = resolution.CachedObjects(
            informers.of(resourceclass.ResourceClass).cache,
            informers.of(parameters.ResourceClaimParameters).cache,
            informers.of(parameters.ResourceClassParameters).cache,
        )
        self._recorder: Final = recorder
        self._pools: Final = pools

    async def sync(self, namespace: str, name: str) -> None:
        """Update counterpart and status one step at a time. Each step triggers the next."""
        claim = self._claims.get(name, namespace=namespace)
        if claim is None:
            # The garbage collector deletes its counterpart.
            return
        counterpart_claim = self._counterparts.get(name, namespace=namespace)
        own = (
            counterpart_claim
            if counterpart_claim is not None and counterpart.stands_for(counterpart_claim, claim)
            else None
        )
        if claim.metadata.deletion_timestamp is not None:
            await self._end(claim, own)
        elif self._is_over(claim):
            await self._client.delete(Claim, name, namespace=namespace, preconditions=patches.same(claim))
        elif counterpart_claim is not None and own is None:
            message = f"a resource.k8s.io/v1 ResourceClaim {namespace}/{name} is in the way"
            self._recorder.record(claim, type=events.WARNING, reason=CONFLICT, message=message)
        elif own is None or own.status.allocation is None:
            await self._prepare(claim, own)
        else:
            await self._follow(claim, own)

    # Before it is allocated

    async def _prepare(self, claim: Claim, own: Counterpart | None) -> None:
        if claim.status.allocation is not None and claims.FINALIZER in claim.metadata.finalizers:
            claim = await self._release(claim)
        desired = self._wanted(claim)
        if own is None:
            await self._ensure_class()
            await self._client.create(desired)
        elif own.metadata.deletion_timestamp is None and not counterpart.is_alike(own, desired):
            # The spec is immutable: the counterpart is created again once it is gone.
            await self._client.delete(
                Counterpart,
                own.metadata.name,
                namespace=own.metadata.namespace,
                preconditions=patches.unchanged(own),
            )

    def _wanted(self, claim: Claim) -> Counterpart:
        """Return the desired counterpart, or None with an event if the claim has to wait."""
        resolved = resolution.resolve(claim.spec, claim.metadata.namespace, self._objects)
        if isinstance(resolved, resolution.Waiting):
            self._recorder.record(claim, type=events.NORMAL, reason=WAITING, message=resolved.reason)
            return counterpart.waiting(claim, resolved.reason)
        try:
            return counterpart.of(claim, resolved)
        except (errors.InvalidValueError, cel.CompilationError) as error:
            self._recorder.record(claim, type=events.WARNING, reason=INVALID, message=str(error))
            return counterpart.waiting(claim, str(error))

    async def _ensure_class(self) -> None:
        if self._device_classes.get(claims.DEVICE_CLASS) is None:
            try:
                metadata = meta.ObjectMeta(name=claims.DEVICE_CLASS)
                await self._client.create(deviceclass.DeviceClass(metadata=metadata))
            except errors.ObjectExistsError:
                return

    # While it is allocated

    async def _follow(self, claim: Claim, own: Counterpart) -> None:
        if claim.spec.allocation_mode == alpha.IMMEDIATE:
            consumers = counterpart.consumers_with_claim(own, claim)
            if set(consumers) != set(own.status.reserved_for):
                own = await self._reserve(own, consumers)
        users = counterpart.users(own)
        if claim.status.allocation is None:
            await self._write_allocation(claim, own)
        elif claim.status.reserved_for != users:
            await self._write_status(claim, {"reservedFor": users or None})

    async def _write_allocation(self, claim: Claim, own: Counterpart) -> None:
        """Write the allocation; the finalizer first, so that there is no allocation without it."""
        resolved = resolution.resolve(claim.spec, claim.metadata.namespace, self._objects)
        if isinstance(resolved, resolution.Waiting):
            self._recorder.record(claim, type=events.WARNING, reason=WAITING, message=resolved.reason)
            return
        assert own.status.allocation is not None
        if claims.FINALIZER not in claim.metadata.finalizers:
            finalizers = (*claim.metadata.finalizers, claims.FINALIZER)
            claim = await self._write_finalizers(claim, finalizers)
        status = claims.status_of(own.status.allocation, resolved, resource_name=self._pools.resource_name)
        content = {
            "driverName": status.driver_name,
            "allocation": status.allocation,
            "reservedFor": counterpart.users(own) or None,
        }
        await self._write_status(claim, content)

    # In the end

    async def _end(self, claim: Claim, own: Counterpart | None) -> None:
        if own is not None:
            users = counterpart.users(own)
            if len(users) < len(own.status.reserved_for):
                own = await self._reserve(own, users)
            if own.metadata.deletion_timestamp is None:
                await self._client.delete(
                    Counterpart,
                    own.metadata.name,
                    namespace=own.metadata.namespace,
                    preconditions=patches.same(own),
                )
        elif claims.FINALIZER in claim.metadata.finalizers:
            await self._release(claim)
        elif _is_to_be_deallocated(claim):
            await self._write_status(claim, {"deallocationRequested": True})

    async def _release(self, claim: Claim) -> Claim:
        """Clear the allocation of a claim, and let it go if it is being deleted."""
        if claim.status.allocation is not None:
            nothing = dict.fromkeys(("driverName", "allocation", "reservedFor", "deallocationRequested"))
            claim = await self._write_status(claim, nothing)
        return await self._write_finalizers(
            claim, tuple(each for each in claim.metadata.finalizers if each != claims.FINALIZER)
        )

    def _is_over(self, claim: Claim) -> bool:
        """Return True if the pod that a claim was created for will not run. If it is gone, the claim is collected."""
        owner = ownership.controller_of(claim)
        if owner is None or owner.kind != "Pod":
            return False
        user = self._pods.get(owner.name, namespace=claim.metadata.namespace)
        return user is not None and (user.metadata.uid != owner.uid or podstate.is_done(user))

    # Writing

    async def _reserve(
        self, own: Counterpart, consumers: tuple[resourceclaim.ResourceClaimConsumerReference, ...]
    ) -> Counterpart:
        return await self._client.patch(
            Counterpart,
            own.metadata.name,
            patch=patches.merge({"status": {"reservedFor": consumers or None}}, patches.unchanged(own)),
            namespace=own.metadata.namespace,
            subresource="status",
        )

    async def _write_status(self, claim: Claim, content: Mapping[str, object]) -> Claim:
        return await self._client.patch(
            Claim,
            claim.metadata.name,
            patch=patches.merge({"status": content}, patches.unchanged(claim)),
            namespace=claim.metadata.namespace,
            subresource="status",
        )

    async def _write_finalizers(self, claim: Claim, finalizers: tuple[str, ...]) -> Claim:
        return await self._client.patch(
            Claim,
            claim.metadata.name,
            patch=patches.merge({"metadata": {"finalizers": finalizers or None}}, patches.unchanged(claim)),
            namespace=claim.metadata.namespace,
        )


def _is_to_be_deallocated(claim: Claim) -> bool:
    """Return True if another controller allocated an unused claim, and must be asked to deallocate it."""
    status = claim.status
    return status.allocation is not None and not status.reserved_for and not status.deallocation_requested
