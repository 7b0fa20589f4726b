"""Preparation of the claims of a pod before its containers start, and unpreparation after they have ended.

All claims of a pod are checked first. Then they are stored in the checkpoint, before any driver is called. Then each
driver is called once for all claims. A problem ends the attempt, and the next attempt starts over, because drivers are
idempotent. The messages are the kubelet's.

With the gate ``DrachmaDeviceChecks`` a device that another claim has exclusively is not prepared, whatever its driver
says, and a driver's word that a device is gone ends the pod. A kubelet leaves both to drivers, and tries again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from drachma import errors
from drachma.api import gates as feature
from drachma.api import resourceclaim
from drachma.api.pod import Pod
from drachma.claims import ownership, podclaims, reservation
from drachma.node import agentmetrics
from drachma.node.claims.preparedclaims import (
    PREPARE,
    UNPREPARE,
    Device,
    Key,
    PreparedClaim,
    PreparedClaims,
    new_record,
)
from drachma.nodewire import deviceuse
from drachma.runtime.clock import Clock

GetClaim: TypeAlias = Callable[[str, str], Awaitable[resourceclaim.ResourceClaim]]
"""Reads the claim of a namespace and name from the API server; raises what a client raises."""


class Driver(Protocol):
    """A driver that can be called; see :class:`drachma.node.drivers.instances.DriverInstance`."""

    def request(self, method: str, **fields: Any) -> Any: ...
    async def call(self, method: str, request: Any) -> Any: ...


FindDriver: TypeAlias = Callable[[str], Driver]
"""Returns the driver of a name; raises NodeError if it is not registered."""


class ClaimStore(Protocol):
    """Store of prepared claims that may outlive the process; see :class:`drachma.node.claims.checkpoint.Checkpoint`."""

    def load(self) -> tuple[PreparedClaims, str]: ...
    def save(self, claims: PreparedClaims) -> None: ...


class Preparation:
    """Prepares and unprepares the claims of all pods of a node."""

    def __init__(
        self,
        *,
        get_claim: GetClaim,
        find_driver: FindDriver,
        store: ClaimStore,
        metrics: agentmetrics.NodeMetrics,
        clock: Clock,
        gates: feature.Gates,
    ) -> None:
        """Load the stored claims. ``damage`` describes a damaged store, and is empty otherwise."""
        self.claims, self.damage = store.load()
        self._get_claim = get_claim
        self._find_driver = find_driver
        self._store = store
        self._metrics = metrics
        self._clock = clock
        self._gates = gates
        self._locks = ClaimLocks()
        metrics.watch_claims(
            lambda: [agentmetrics.ClaimCount(record.drivers, record.is_prepared) for record in self.claims]
        )

    async def prepare(self, pod: Pod) -> None:
        """Have drivers prepare the claims of a pod that are not prepared yet. Raises NodeError if that fails."""
        await self._observe("PrepareResources", "prepare dynamic resources", self._prepare(pod))

    async def unprepare(self, pod: Pod) -> None:
        """Have drivers unprepare the claims that only this pod uses. Raises NodeError if one stays prepared."""
        await self._observe(
            "UnprepareResources", "unprepare dynamic resources", self._unprepare_all(pod.metadata.uid, self._keys(pod))
        )

    async def unprepare_leftovers(self, uids: Iterable[str]) -> Mapping[str, errors.NodeError]:
        """Unprepare the claims of pods other than these. Return the problems by the UID of the pod."""
        problems: dict[str, errors.NodeError] = {}
        for uid in sorted(self.claims.pods() - set(uids)):
            try:
                await self._unprepare_all(uid, [record.key for record in self.claims.used_by(uid)])
            except errors.NodeError as error:
                problems[uid] = error
        return problems

    async def _observe(self, operation: str, subject: str, work: Awaitable[None]) -> None:
        start = self._clock.monotonic()
        is_error = True
        try:
            await work
            is_error = False
        except errors.NodeError as error:
            raise type(error)(f"{subject}: {error}") from None
        finally:
            self._metrics.observe_operation(operation, is_error=is_error, seconds=self._clock.monotonic() - start)

    async def _prepare(self, pod: Pod) -> None:
        claims = [
            await self._usable_claim(pod, name, is_generated=is_generated) for name, is_generated in _references(pod)
        ]
        records = [self._new_record(claim) for claim in claims]
        async with self._locks.hold([record.key for record in records]):
            if self._gates.on(feature.Gate.DEVICE_CHECKS):
                await self._check_free(records)
            batches = self._add_pod(pod, records)
            for driver, batch in batches.items():
                await self._prepare_by(driver, batch)
            for record in records:
                current = self.claims.get(record.key)
                if current is None:
                    raise _missing_record(record.key)
                self.claims.put(msgspec.structs.replace(current, is_prepared=True))
            self._store.save(self.claims)

    async def _usable_claim(self, pod: Pod, name: str, *, is_generated: bool) -> resourceclaim.ResourceClaim:
        """Read a claim. Raises NodeError unless the pod may use it."""
        try:
            claim = await self._get_claim(pod.metadata.namespace, name)
        except (errors.RefusedError, errors.UnreachableError, errors.DecodeError) as error:
            raise errors.NodeError(f"fetch ResourceClaim {name}: {error}") from None
        if is_generated and (problem := ownership.problem(claim, pod)):
            raise errors.NodeError(problem)
        if not reservation.may_be_used_by(claim, pod):
            user = f"pod {pod.metadata.name} ({pod.metadata.uid})"
            raise errors.NodeError(f"{user} is not allowed to use ResourceClaim {name} ({claim.metadata.uid})")
        return claim

    def _new_record(self, claim: resourceclaim.ResourceClaim) -> PreparedClaim:
        """Return the record of an allocated claim. Raises NodeError if a driver that it needs is not registered."""
        name = claim.metadata.name
        if claim.status.allocation is None:
            raise errors.NodeError(f"ResourceClaim {name}: not allocated")
        has_skips = any(each.skip_node_operations for each in claim.status.allocation.devices.results)
        gate = feature.Gate.OPTIONAL_NODE_OPERATIONS
        if has_skips and not self._gates.on(gate):
            raise errors.NodeError(f"ResourceClaim {name}: {gate.value} feature gate is disabled on kubelet")
        record = new_record(claim)
        for driver, state in record.drivers.items():
            if not state.skips_call(PREPARE):
                self._find_driver(driver)
        return record

    async def _check_free(self, records: Sequence[PreparedClaim]) -> None:
        """Raise NodeError if another claim has a device of these exclusively."""
        uids = {record.uid for record in records}
        for record in records:
            for other in self.claims:
                if other.uid in uids or not deviceuse.find_conflict(record.uses, [_holder(other)]):
                    continue
                current = other if other.uses else await self._look_up_uses(other)
                if conflict := deviceuse.find_conflict(record.uses, [_holder(current)]):
                    raise errors.NodeError(f"ResourceClaim {record.key.name}: {conflict}")

    async def _look_up_uses(self, record: PreparedClaim) -> PreparedClaim:
        """Return the record of a checkpoint with the devices of its claim, if that still exists."""
        try:
            claim = await self._get_claim(*record.key)
        except errors.ObjectNotFoundError:
            return record
        except (errors.RefusedError, errors.UnreachableError, errors.DecodeError) as error:
            raise errors.NodeError(f"fetch ResourceClaim {record.key.name}: {error}") from None
        if claim.metadata.uid != record.uid:
            return record
        return msgspec.structs.replace(record, uses=deviceuse.claim_uses(claim))

    def _add_pod(self, pod: Pod, records: Sequence[PreparedClaim]) -> dict[str, list[PreparedClaim]]:
        """Add the pod to all records and store them. Return the records that are still to be prepared, by driver."""
        batches: dict[str, list[PreparedClaim]] = {}
        for record in records:
            current = self.claims.get(record.key) or record
            if current.uid != record.uid:
                raise errors.NodeError(
                    f"old ResourceClaim with same name {record.key.name} and different UID {current.uid} still exists "
                    "(previous pod force-deleted?!)"
                )
            if current.is_ending:
                raise errors.NodeError(f"ResourceClaim {record.key.name} is being unprepared")
            current = msgspec.structs.replace(current, pods=current.pods | {pod.metadata.uid})
            self.claims.put(current)
            if current.is_prepared:
                continue
            for driver, state in current.drivers.items():
                if state.skips_call(PREPARE):
                    self._metrics.count_prepare_skip(driver)
                else:
                    batches.setdefault(driver, []).append(current)
        if records:
            self._store.save(self.claims)
        return batches

    async def _prepare_by(self, driver: str, batch: Sequence[PreparedClaim]) -> None:
        answers = await self._call(driver, PREPARE, batch)
        for record in batch:
            answer = answers.get(record.uid)
            if answer is None:
                continue
            current = self.claims.get(record.key)
            if current is None:
                raise _missing_record(record.key)
            self.claims.put(current.set_devices(driver, map(_device, answer.devices)))
        _check_complete(PREPARE, answers, batch)

    def _keys(self, pod: Pod) -> list[Key]:
        """Return the keys of a pod's records; without records, the keys of the claims that the pod names."""
        records = self.claims.used_by(pod.metadata.uid)
        if records:
            return [record.key for record in records]
        namespace = pod.metadata.namespace
        return [Key(namespace, name) for name, _ in _references(pod, are_needed=False)]

    async def _unprepare_all(self, uid: str, keys: Sequence[Key]) -> None:
        async with self._locks.hold(keys):
            await self._unprepare_locked(uid, keys)

    async def _unprepare_locked(self, uid: str, keys: Sequence[Key]) -> None:
        ending: list[PreparedClaim] = []
        batches: dict[str, list[PreparedClaim]] = {}
        for key in keys:
            record = self.claims.get(key)
            if record is None or uid not in record.pods:
                continue
            if len(record.pods) > 1:
                self.claims.put(msgspec.structs.replace(record, pods=record.pods - {uid}))
                continue
            record = msgspec.structs.replace(record, is_ending=True)
            self.claims.put(record)
            ending.append(record)
            for driver, state in record.drivers.items():
                if state.skips_call(UNPREPARE):
                    self._metrics.count_unprepare_skip(driver)
                else:
                    batches.setdefault(driver, []).append(record)
        for driver, batch in batches.items():
            _check_complete(UNPREPARE, await self._call(driver, UNPREPARE, batch), batch)
        for record in ending:
            self.claims.remove(record.key)
        self._store.save(self.claims)

    async def _call(self, driver: str, method: str, batch: Sequence[PreparedClaim]) -> Mapping[str, Any]:
        """Call a driver and return its answers by the UID of the claim. Raises NodeError if an answer is an error."""
        target = self._find_driver(driver)
        claims = [{"namespace": each.key.namespace, "uid": each.uid, "name": each.key.name} for each in batch]
        answers: Mapping[str, Any] = (await target.call(method, target.request(method, claims=claims))).claims
        names = {each.uid: each.key.name for each in batch}
        for uid in sorted(answers):
            if uid not in names:
                raise errors.NodeError(f"{method} returned result for unknown claim UID {uid}")
            if answers[uid].error:
                problem = f"{method} failed for ResourceClaim {names[uid]}: {answers[uid].error}"
                is_lost = self._gates.on(feature.Gate.DEVICE_CHECKS) and deviceuse.is_unavailable(answers[uid].error)
                raise errors.LostDeviceError(problem) if is_lost else errors.NodeError(problem)
        return answers


def _references(pod: Pod, *, are_needed: bool = True) -> Iterable[tuple[str, bool]]:
    """Yield the names of a pod's claims, and True for each claim that was generated for the pod.

    If the claims are needed, a claim that does not exist yet raises NodeError.
    """
    for entry in pod.spec.resource_claims:
        reference = podclaims.refer(pod, entry)
        match reference:
            case podclaims.Named(name, is_generated):
                yield name, is_generated
            case podclaims.Missing() if are_needed:
                raise errors.NodeError(
                    f'pod "{pod.metadata.namespace}/{pod.metadata.name}": ResourceClaim not created yet'
                )
            case podclaims.Unsupported(problem) if are_needed:
                raise errors.NodeError(problem)
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        yield extended.resource_claim_name, True


def _check_complete(method: str, answers: Mapping[str, Any], batch: Sequence[PreparedClaim]) -> None:
    """Raise NodeError if a driver did not answer for every claim. A claim that is named twice is answered once."""
    skips = len(batch) - len(answers)
    if skips:
        raise errors.NodeError(f"{method} skipped {skips} ResourceClaims")


def _holder(record: PreparedClaim) -> deviceuse.Holder:
    return deviceuse.Holder(record.key.namespace, record.key.name, record.uid, record.device_uses)


def _missing_record(key: Key) -> errors.NodeError:
    return errors.NodeError(
        f"internal error: unable to get claim info for ResourceClaim {key.name} in namespace {key.namespace}"
    )


def _device(answer: Any) -> Device:
    has_share = "share_id" in answer.DESCRIPTOR.fields_by_name and answer.HasField("share_id")
    return Device(
        pool_name=answer.pool_name,
        device_name=answer.device_name,
        share_id=answer.share_id if has_share else None,
        request_names=tuple(answer.request_names),
        cdi_device_ids=tuple(answer.cdi_device_ids),
    )


class ClaimLocks:
    """One lock for each claim, so that pods that share it prepare it once, and not while it is being unprepared.

    A lock exists while a task holds it or waits for it.
    """

    def __init__(self) -> None:
        self._locks: Final[dict[Key, asyncio.Lock]] = {}
        self._users: Final[Counter[Key]] = Counter()

    @contextlib.asynccontextmanager
    async def hold(self, keys: Collection[Key]) -> AsyncIterator[None]:
        """Hold the locks of claims. All tasks take locks in the same order, so that no two wait for each other."""
        async with contextlib.AsyncExitStack() as stack:
            for key in sorted(set(keys)):
                self._users[key] += 1
                stack.callback(self._release, key)
                await stack.enter_async_context(self._locks.setdefault(key, asyncio.Lock()))
            yield

    def _release(self, key: Key) -> None:
        self._users[key] -= 1
        if not self._users[key]:
            del self._users[key], self._locks[key]
