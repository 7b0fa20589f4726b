"""Work on a claim of v1alpha2: its counterpart is made, kept in step and taken away; what becomes of it is told.

Devices are allocated and given back by looking at the counterpart alone. The claim's status follows: nobody decides by
it. A finalizer keeps the claim until its counterpart has gone, so that it never looks free while a pod uses it.
"""

from collections.abc import Mapping
from typing import Final

from drachma import cel, errors
from drachma.api import deviceclass, meta, pod, resourceclaim
from drachma.api.v1alpha2 import resourceclaim as alpha
from drachma.claims import ownership, podstate
from drachma.client import Client, patches
from drachma.controllers.structured import parameterobjects, poolupkeep
from drachma.runtime import Surroundings, events
from drachma.structured import claims, counterpart, resolution

WAITING: Final = "WaitingForParameters"
CONFLICT: Final = "NameConflict"
INVALID: Final = "InvalidParameters"

Claim = alpha.ResourceClaim
Counterpart = resourceclaim.ResourceClaim


class ClaimUpkeep:
    """Brings one claim after another in order."""

    def __init__(self, surroundings: Surroundings, *, recorder: events.Recorder, pools: poolupkeep.PoolUpkeep) -> None:
        informers = surroundings.informers
        self._client: Final[Client] = surroundings.client
        self._claims: Final = informers.of(Claim).cache
        self._counterparts: Final = informers.of(Counterpart).cache
        self._pods: Final = informers.of(pod.Pod).cache
        self._device_classes: Final = informers.of(deviceclass.DeviceClass).cache
        self._objects: Final = parameterobjects.ParameterObjects(informers)
        self._recorder: Final = recorder
        self._pools: Final = pools

    async def sync(self, namespace: str, name: str) -> None:
        """Makes counterpart and status what they should be, one step at a time; every step is news for the next."""
        claim = self._claims.get(name, namespace=namespace)
        if claim is None:
            # Its counterpart goes with it, by the garbage collector.
            return
        other = self._counterparts.get(name, namespace=namespace)
        own = other if other is not None and counterpart.stands_for(other, claim) else None
        if claim.metadata.deletion_timestamp is not None:
            await self._end(claim, own)
        elif self._is_over(claim):
            await self._client.delete(Claim, name, namespace=namespace, preconditions=patches.same(claim))
        elif other is not None and own is None:
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
        wanted = self._wanted(claim)
        if own is None:
            await self._ensure_class()
            await self._client.create(wanted)
        elif own.metadata.deletion_timestamp is None and not counterpart.is_alike(own, wanted):
            # What it asks for cannot be changed: it is made anew once it has gone.
            await self._client.delete(
                Counterpart,
                own.metadata.name,
                namespace=own.metadata.namespace,
                preconditions=patches.unchanged(own),
            )

    def _wanted(self, claim: Claim) -> Counterpart:
        """The counterpart as it should be, of which an event tells where that is one that waits."""
        found = resolution.resolve(claim.spec, claim.metadata.namespace, self._objects)
        if isinstance(found, resolution.Waiting):
            self._recorder.record(claim, type=events.NORMAL, reason=WAITING, message=found.reason)
            return counterpart.waiting(claim, found.reason)
        try:
            return counterpart.of(claim, found)
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
            held = counterpart.held(own, claim)
            if set(held) != set(own.status.reserved_for):
                own = await self._reserve(own, held)
        users = counterpart.users(own)
        if claim.status.allocation is None:
            await self._tell(claim, own)
        elif claim.status.reserved_for != users:
            await self._write_status(claim, {"reservedFor": users or None})

    async def _tell(self, claim: Claim, own: Counterpart) -> None:
        """Writes what was allocated; the finalizer first, so that there is no allocation without."""
        found = resolution.resolve(claim.spec, claim.metadata.namespace, self._objects)
        if isinstance(found, resolution.Waiting):
            self._recorder.record(claim, type=events.WARNING, reason=WAITING, message=found.reason)
            return
        assert own.status.allocation is not None
        if claims.FINALIZER not in claim.metadata.finalizers:
            finalizers = (*claim.metadata.finalizers, claims.FINALIZER)
            claim = await self._write_finalizers(claim, finalizers)
        status = claims.status_of(own.status.allocation, found, resource_name=self._pools.resource_name)
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
        """Says that a claim is not allocated any more, and lets it go if it is to."""
        if claim.status.allocation is not None:
            nothing = dict.fromkeys(("driverName", "allocation", "reservedFor", "deallocationRequested"))
            claim = await self._write_status(claim, nothing)
        return await self._write_finalizers(
            claim, tuple(each for each in claim.metadata.finalizers if each != claims.FINALIZER)
        )

    def _is_over(self, claim: Claim) -> bool:
        """Whether the pod that a claim was made for will not run any more; if it is gone, it is collected."""
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
    """Whether somebody else allocated a claim that nobody uses, and has to be asked to take it back."""
    status = claim.status
    return status.allocation is not None and not status.reserved_for and not status.deallocation_requested
