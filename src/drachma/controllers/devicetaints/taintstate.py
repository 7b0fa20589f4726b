"""Tainted devices and their users: pools, rules, claims and pods, from the informers' caches.

Pools keep only devices with a NoExecute taint, which are few; a pool is read again when one of its slices changes.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Final

from drachma.api import devicetaintrule, pod, resourceclaim, resourceslice
from drachma.claims import identity, ownership, podclaims, reservation, taints
from drachma.controllers.devicetaints import eviction
from drachma.runtime import Informers

Claim = resourceclaim.ResourceClaim
Rule = devicetaintrule.DeviceTaintRule

POOL_INDEX: Final = "device taint eviction: pool"


def _pool_of_slice(published: resourceslice.ResourceSlice) -> Iterator[str]:
    yield str(identity.PoolID(published.spec.driver, published.spec.pool.name))


def _pools_of_claim(claim: Claim) -> Sequence[str]:
    devices = results(claim)
    return [str(identity.PoolID(result.driver, result.pool)) for result in devices] if devices else ()


def results(claim: Claim) -> tuple[resourceclaim.DeviceRequestAllocationResult, ...]:
    """Return the devices that a claim has."""
    return claim.status.allocation.devices.results if claim.status.allocation is not None else ()


class TaintState:
    """State of devices, claims and pods in the caches."""

    def __init__(self, informers: Informers, *, with_rules: bool) -> None:
        self._pods: Final = informers.of(pod.Pod).cache
        self._claims: Final = informers.of(Claim).cache
        self._slices: Final = informers.of(resourceslice.ResourceSlice).cache
        self._rules: Final = informers.of(Rule).cache if with_rules else None
        self._tainted: Final[dict[str, dict[str, tuple[eviction.Taint, ...]]]] = {}
        self._claims.add_index(POOL_INDEX, _pools_of_claim)
        self._slices.add_index(POOL_INDEX, _pool_of_slice)

    # Devices

    def reread_pool(self, driver: str, pool: str) -> Set[str]:
        """Read a pool again. Return the names of devices whose taints have changed."""
        key = str(identity.PoolID(driver, pool))
        before = self._tainted.pop(key, {})
        after = {}
        for each in self._newest(key):
            for device in each.spec.devices:
                name = identity.DeviceID(driver, pool, device.name)
                driving = tuple(
                    eviction.Taint(taint, eviction.SliceReason(name, position, each.metadata.name))
                    for position, taint in enumerate(device.taints)
                    if taint.effect == taints.NO_EXECUTE
                )
                if driving:
                    after[device.name] = driving
        if after:
            self._tainted[key] = after
        names = before.keys() | after.keys()
        return {name for name in names if before.get(name) != after.get(name)}

    def published(self, rule: Rule) -> int:
        """Return the number of published devices that a rule selects."""
        count = 0
        for key in self._slices.values(POOL_INDEX):
            for each in self._newest(key):
                driver, pool = each.spec.driver, each.spec.pool.name
                names = (identity.DeviceID(driver, pool, device.name) for device in each.spec.devices)
                count += sum(taints.selects_device(rule, name) for name in names)
        return count

    def allocated(self, rule: Rule) -> int:
        """Return the number of allocated devices that a rule selects."""
        return sum(
            taints.selects_device(rule, identity.device_of(result))
            for claim in self._claims
            for result in results(claim)
        )

    def _newest(self, key: str) -> list[resourceslice.ResourceSlice]:
        """Return the slices of the newest generation of a pool."""
        slices = self._slices.by(POOL_INDEX, key)
        newest = max((each.spec.pool.generation for each in slices), default=0)
        return [each for each in slices if each.spec.pool.generation == newest]

    # Rules

    def rule(self, name: str) -> Rule | None:
        return self._rules.get(name) if self._rules is not None else None

    def evicting_rules(self) -> list[Rule]:
        if not self._rules:
            return []
        return [each for each in self._rules if each.spec.taint.effect == taints.NO_EXECUTE]

    @property
    def has_taints(self) -> bool:
        """True if any taint or rule could evict a pod from a device."""
        if self._tainted:
            return True
        return bool(self._rules) and bool(self.evicting_rules())

    # Claims and pods

    def claims_with(self, driver: str, pool: str, devices: Set[str]) -> Iterator[Claim]:
        """Return the claims that have one of some devices of a pool."""
        for claim in self._claims.by(POOL_INDEX, str(identity.PoolID(driver, pool))):
            if any(
                (result.driver, result.pool) == (driver, pool) and result.device in devices for result in results(claim)
            ):
                yield claim

    def claims_selected(self, rules: Iterable[Rule]) -> Iterator[Claim]:
        """Return the claims that have a device that one of the rules selects."""
        all_rules = tuple(rules)
        for claim in self._claims:
            allocated = [identity.device_of(result) for result in results(claim)]
            if any(taints.selects_device(rule, device) for rule in all_rules for device in allocated):
                yield claim

    def users(self, claim: Claim) -> Iterator[pod.Pod]:
        """Return the pods that a claim is reserved for, directly or as members of a group."""
        namespace = claim.metadata.namespace
        for reference in claim.status.reserved_for:
            if reservation.is_group(reference):
                yield from (
                    each for each in self._pods.list_namespace(namespace) if _shares(each, claim, reference.name)
                )
            if not reservation.is_pod(reference):
                continue
            user = self._pods.get(reference.name, namespace=claim.metadata.namespace)
            if user is not None and user.metadata.uid == reference.uid:
                yield user

    def pods(self) -> Iterator[pod.Pod]:
        """Return all pods that use claims."""
        return (each for each in self._pods if each.spec.resource_claims)

    def due(self, pod: pod.Pod, rules: Iterable[Rule], *, now: dt.datetime) -> eviction.Eviction | None:
        """Return the eviction of a pod under these rules, or None if it may stay."""
        if not pod.spec.node_name:
            return None
        in_force = tuple(rules)
        return eviction.joined(
            found_eviction
            for claim in self._claims_of(pod)
            for result in results(claim)
            if (
                found_eviction := eviction.device_eviction(
                    result, self._taints(identity.device_of(result), in_force), now=now
                )
            )
            is not None
        )

    def _claims_of(self, pod: pod.Pod) -> Iterator[Claim]:
        """Return the claims that a pod may use: those it refers to that are reserved for it."""
        for _, reference in podclaims.named(pod):
            claim = self._claims.get(reference.name, namespace=pod.metadata.namespace)
            if claim is None or (reference.is_generated and ownership.problem(claim, pod)):
                continue
            if reservation.may_be_used_by(claim, pod):
                yield claim

    def _taints(self, device: identity.DeviceID, rules: tuple[Rule, ...]) -> Iterator[eviction.Taint]:
        yield from self._tainted.get(str(device.pool_id), {}).get(device.device, ())
        for rule in rules:
            if taints.selects_device(rule, device):
                yield eviction.Taint(rule.spec.taint, eviction.RuleReason(rule.metadata.name, rule.metadata.uid))


def _shares(user: pod.Pod, claim: Claim, group: str) -> bool:
    """Return True if a pod uses a claim as a member of a group."""
    own = user.spec.scheduling_group
    return own is not None and own.pod_group_name == group and claim.metadata.name in podclaims.names(user)
