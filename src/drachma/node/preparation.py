"""Preparing the claims of a pod before its containers start, and undoing that after they ended.

All claims of a pod are looked at before anything is done; then the checkpoint has them before any driver is called;
then each driver is called once for all of them. Whatever goes wrong ends the attempt, and the next one begins anew:
drivers are idempotent. Texts are the kubelet's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from drachma import errors
from drachma.api import gates as feature
from drachma.api import pod, resourceclaim
from drachma.claims import ownership, podclaims, reservation
from drachma.node import claimlocks, nodemetrics
from drachma.node.preparedclaims import PREPARE, UNPREPARE, Device, Key, PreparedClaim, PreparedClaims, new_record
from drachma.runtime import clock

Get: TypeAlias = Callable[[str, str], Awaitable[resourceclaim.ResourceClaim]]
"""The claim of a namespace and name, from the API server; raises what a client raises."""


class Instance(Protocol):
    """A driver that can be asked; see :class:`drachma.node.drivers.Instance`."""

    def request(self, method: str, **fields: Any) -> Any: ...
    async def call(self, method: str, request: Any) -> Any: ...


class Drivers(Protocol):
    """The drivers of a node; see :class:`drachma.node.drivers.Drivers`."""

    def get(self, driver: str) -> Instance: ...


class File(Protocol):
    """Where prepared claims are remembered; see :class:`drachma.node.checkpoint.Checkpoint`."""

    def load(self) -> tuple[PreparedClaims, str]: ...
    def save(self, claims: PreparedClaims) -> None: ...


class Preparation:
    """The claims of all pods of a node."""

    def __init__(
        self,
        *,
        get: Get,
        registered: Drivers,
        file: File,
        metrics: nodemetrics.NodeMetrics,
        time: clock.Clock,
        gates: feature.Gates,
    ) -> None:
        """Reads the checkpoint; ``damage`` says what was wrong with it."""
        self.claims, self.damage = file.load()
        self._get = get
        self._drivers = registered
        self._file = file
        self._metrics = metrics
        self._clock = time
        self._gates = gates
        self._locks = claimlocks.ClaimLocks()
        metrics.watch_claims(self.claims)

    async def prepare(self, of: pod.Pod) -> None:
        """Has drivers prepare all claims of a pod that are not prepared yet; a NodeError where that is not done."""
        await self._measured("PrepareResources", "prepare dynamic resources", self._prepare(of))

    async def unprepare(self, of: pod.Pod) -> None:
        """Has drivers undo what they prepared for a pod, if no other uses it; a NodeError where that is not done."""
        await self._measured(
            "UnprepareResources", "unprepare dynamic resources", self._unprepare_all(of.metadata.uid, self._keys(of))
        )

    async def unprepare_gone(self, active: Iterable[str]) -> Mapping[str, errors.NodeError]:
        """The same for what pods left that are not among these, by uid; what went wrong, by the uid of the pod."""
        problems: dict[str, errors.NodeError] = {}
        for uid in sorted(self.claims.pods() - set(active)):
            try:
                await self._unprepare_all(uid, [record.key for record in self.claims.of_pod(uid)])
            except errors.NodeError as error:
                problems[uid] = error
        return problems

    def might_need_unprepare(self, uid: str) -> bool:
        """Whether something of a pod is still prepared, or may be, so that it must not be deleted yet."""
        return bool(self.claims.of_pod(uid))

    async def _measured(self, operation: str, subject: str, work: Awaitable[None]) -> None:
        begun = self._clock.monotonic()
        is_error = True
        try:
            await work
            is_error = False
        except errors.NodeError as error:
            raise errors.NodeError(f"{subject}: {error}") from None
        finally:
            self._metrics.observe_operation(operation, is_error=is_error, seconds=self._clock.monotonic() - begun)

    # Preparing

    async def _prepare(self, of: pod.Pod) -> None:
        claims = [await self._usable(of, name, is_generated=is_generated) for name, is_generated in _references(of)]
        records = [self._checked(claim) for claim in claims]
        async with self._locks.held([record.key for record in records]):
            batches = self._enter(of, records)
            for driver, batch in batches.items():
                await self._prepare_by(driver, batch)
            for record in records:
                current = self.claims.get(record.key)
                if current is None:
                    raise _unknown(record.key)
                self.claims.put(msgspec.structs.replace(current, is_prepared=True))
            self._file.save(self.claims)

    async def _usable(self, of: pod.Pod, name: str, *, is_generated: bool) -> resourceclaim.ResourceClaim:
        """A claim that the pod may use."""
        try:
            claim = await self._get(of.metadata.namespace, name)
        except (errors.RefusedError, errors.UnreachableError, errors.DecodeError) as error:
            raise errors.NodeError(f"fetch ResourceClaim {name}: {error}") from None
        if is_generated and (problem := ownership.problem(claim, of)):
            raise errors.NodeError(problem)
        if not reservation.is_reserved_for(claim, of):
            user = f"pod {of.metadata.name} ({of.metadata.uid})"
            raise errors.NodeError(f"{user} is not allowed to use ResourceClaim {name} ({claim.metadata.uid})")
        return claim

    def _checked(self, claim: resourceclaim.ResourceClaim) -> PreparedClaim:
        """What is to be known of a claim, if it is allocated and all drivers that it needs are there."""
        name = claim.metadata.name
        if claim.status.allocation is None:
            raise errors.NodeError(f"ResourceClaim {name}: not allocated")
        has_wishes = any(each.skip_node_operations for each in claim.status.allocation.devices.results)
        gate = feature.Gate.OPTIONAL_NODE_OPERATIONS
        if has_wishes and not self._gates.on(gate):
            raise errors.NodeError(f"ResourceClaim {name}: {gate.value} feature gate is disabled on kubelet")
        record = new_record(claim)
        for driver, state in record.drivers.items():
            if not state.skips_call(PREPARE):
                self._drivers.get(driver)
        return record

    def _enter(self, of: pod.Pod, records: Sequence[PreparedClaim]) -> dict[str, list[PreparedClaim]]:
        """Puts the pod down for all claims, in the checkpoint too; by driver, those that are still to be prepared."""
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
            current = msgspec.structs.replace(current, pods=current.pods | {of.metadata.uid})
            self.claims.put(current)
            if current.is_prepared:
                continue
            for driver, state in current.drivers.items():
                if state.skips_call(PREPARE):
                    self._metrics.count_prepare_skip(driver)
                else:
                    batches.setdefault(driver, []).append(current)
        if records:
            self._file.save(self.claims)
        return batches

    async def _prepare_by(self, driver: str, batch: Sequence[PreparedClaim]) -> None:
        answers = await self._ask(driver, PREPARE, batch)
        for record in batch:
            answer = answers.get(record.uid)
            if answer is None:
                continue
            current = self.claims.get(record.key)
            if current is None:
                raise _unknown(record.key)
            self.claims.put(current.with_devices(driver, map(_device, answer.devices)))
        _refuse_missing(PREPARE, answers, batch)

    # Undoing it

    def _keys(self, of: pod.Pod) -> list[Key]:
        """The claims of a pod that are known here; else those that it names, of which none may be."""
        records = self.claims.of_pod(of.metadata.uid)
        if records:
            return [record.key for record in records]
        namespace = of.metadata.namespace
        return [Key(namespace, name) for name, _ in _references(of, are_needed=False)]

    async def _unprepare_all(self, uid: str, keys: Sequence[Key]) -> None:
        async with self._locks.held(keys):
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
            _refuse_missing(UNPREPARE, await self._ask(driver, UNPREPARE, batch), batch)
        for record in ending:
            self.claims.remove(record.key)
        self._file.save(self.claims)

    async def _ask(self, driver: str, method: str, batch: Sequence[PreparedClaim]) -> Mapping[str, Any]:
        """The driver's answers by the uid of the claim; a NodeError where one of them is none, or an error."""
        instance = self._drivers.get(driver)
        claims = [{"namespace": each.key.namespace, "uid": each.uid, "name": each.key.name} for each in batch]
        answers: Mapping[str, Any] = (await instance.call(method, instance.request(method, claims=claims))).claims
        names = {each.uid: each.key.name for each in batch}
        for uid in sorted(answers):
            if uid not in names:
                raise errors.NodeError(f"{method} returned result for unknown claim UID {uid}")
            if answers[uid].error:
                raise errors.NodeError(f"{method} failed for ResourceClaim {names[uid]}: {answers[uid].error}")
        return answers


def _references(of: pod.Pod, *, are_needed: bool = True) -> Iterable[tuple[str, bool]]:
    """The names of a pod's claims, and whether each was generated for it.

    Those that are still to be made are an error where they are needed.
    """
    for entry in of.spec.resource_claims:
        reference = podclaims.refer(of, entry)
        match reference:
            case podclaims.Named(name, is_generated):
                yield name, is_generated
            case podclaims.Missing() if are_needed:
                raise errors.NodeError(
                    f'pod "{of.metadata.namespace}/{of.metadata.name}": ResourceClaim not created yet'
                )
            case podclaims.Unsupported(problem) if are_needed:
                raise errors.NodeError(problem)
    extended = of.status.extended_resource_claim_status
    if extended is not None:
        yield extended.resource_claim_name, True


def _refuse_missing(method: str, answers: Mapping[str, Any], batch: Sequence[PreparedClaim]) -> None:
    """Refuses an answer that is not about every claim; one that was asked for twice is answered once."""
    missing = len(batch) - len(answers)
    if missing:
        raise errors.NodeError(f"{method} skipped {missing} ResourceClaims")


def _unknown(key: Key) -> errors.NodeError:
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
