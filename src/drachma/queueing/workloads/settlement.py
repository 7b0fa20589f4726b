"""Settlement: the charge of a workload becomes the charge of its allocated devices, as soon as they are known.

A pod whose claims are all allocated counts for its devices; other pods count for their upper bound. A claim that the
pods of a group share counts once, for its devices or its upper bound. Usage only goes down, because quota that was
given back may belong to another workload by now. If a replacement pod gets more than is still reserved, the workload is
overdrawn and has to queue again.

Everything follows from objects: a workload with its account, its pods, their claims, and the devices that exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec
from msgspec import structs

from drachma.accounting import accountant, footprint
from drachma.api import pod
from drachma.claims import podclaims, podstate
from drachma.claims.identity import DeviceID, device_of
from drachma.queueing import amounts, resourcelists
from drachma.queueing.configuration.gates import Gates
from drachma.queueing.devices import account as deviceaccount
from drachma.queueing.devices.account import DeviceAccount
from drachma.queueing.devices.measure import Measure, beyond_pod
from drachma.queueing.devices.objects import Located
from drachma.queueing.devices.selectors import Problem
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import requests
from drachma.queueing.workloads.podsetinfo import POD_SET_LABEL
from drachma.validation.path import Path
from drachma.values import quantity

Devices = Mapping[DeviceID, Located]
"""Devices that exist."""

_AT: Final = Path("status").child("allocation")
_NO_ACCOUNT: Final = DeviceAccount()


class PodUse(msgspec.Struct, frozen=True):
    """Charges for the devices of one pod; None while they are not known."""

    pod_set: str
    charges: amounts.Requests | None
    """Charges for the claims of the pod itself."""
    group_claims: Mapping[str, amounts.Requests] = {}
    """Charges for the claims that the pod shares with its group, by entry, as far as they are known."""


class Overdrawn(msgspec.Struct, frozen=True):
    """Pods of a set have more than is reserved for their devices."""

    pod_set: str
    resource: str
    allocated: int
    reserved: int

    @property
    def message(self) -> str:
        allocated = amounts.to_quantity(self.resource, self.allocated)
        reserved = amounts.to_quantity(self.resource, self.reserved)
        return (
            f"Devices of pod set {self.pod_set} were allocated that count for {allocated} of {self.resource}, "
            f"and {reserved} is reserved for them"
        )


def use(
    subject: pod.Pod,
    claims: podclaims.Claims,
    devices: Devices,
    *,
    measure: Measure,
    account: DeviceAccount = _NO_ACCOUNT,
) -> PodUse | None:
    """Return the use of a pod of a queued workload, or None for a pod that is terminated or deleted.

    ``account`` is the workload's, which tells the claims of groups from the pod's own.
    """
    if podstate.has_ended(subject) or subject.metadata.deletion_timestamp is not None:
        return None
    pod_set = subject.metadata.labels.get(POD_SET_LABEL, "")
    group_entries = {each.entry for each in account.group_shares(pod_set).values()}
    own = [each for each in subject.spec.resource_claims if each.name not in group_entries]
    allocated = _Allocated(subject, claims, devices, measure)
    group_claims = {
        each.name: charges
        for each in subject.spec.resource_claims
        if each.name in group_entries and (charges := allocated.charges([each])) is not None
    }
    return PodUse(pod_set, allocated.charges(own), group_claims)


class _Allocated(NamedTuple):
    """A pod and the devices of its claims."""

    user: pod.Pod
    claims: podclaims.Claims
    devices: Devices
    measure: Measure

    def charges(self, entries: Iterable[pod.PodResourceClaim]) -> amounts.Requests | None:
        """Return the charges for the generated claims among some entries, or None if one is not known."""
        quota: dict[str, quantity.Quantity] = {}
        node: dict[str, quantity.Quantity] = {}
        for entry in entries:
            reference = podclaims.refer(self.user, entry)
            if isinstance(reference, podclaims.NotNeeded):
                continue
            if not isinstance(reference, podclaims.Named):
                return None
            if not reference.is_generated:
                continue
            claim = self.claims.get(self.user.metadata.namespace, reference.name)
            if claim is None or claim.status.allocation is None:
                return None
            containers = len(footprint.users(self.user, entry.name))
            for result in claim.status.allocation.devices.results:
                if result.admin_access:
                    continue
                device = self.devices.get(device_of(result))
                name = accountant.class_name(claim, result.request)
                if device is None or name not in self.measure.mappings.resources:
                    return None
                try:
                    charge = self.measure.quota(name, device, result.consumed_capacity, at=_AT)
                except Problem:
                    return None
                quota = resourcelists.merge(quota, charge, resourcelists.total)
                needs = self.measure.node(device, result.consumed_capacity, containers=containers)
                node = resourcelists.merge(node, needs, resourcelists.total)
        beyond = beyond_pod(self.user.spec, node)
        return amounts.request_amounts(resourcelists.merge(quota, beyond, resourcelists.total))


def settle(wl: workload.Workload, uses: Iterable[PodUse], *, gates: Gates) -> workload.Workload | Overdrawn:
    """Return a quota holder with the charges of its pods' devices; the same object if nothing changes."""
    account = deviceaccount.read(wl)
    admission = wl.status.admission
    if account is None or admission is None:
        return wl
    uses = tuple(uses)
    counts = requests.counts_after_reclaim(wl, gates)
    settled: list[workload.PodSetAssignment] = []
    for assignment in admission.pod_set_assignments:
        agreed = account.pod_sets.get(assignment.name)
        if agreed is not None:
            pods_left = min(assignment.count or 0, counts.get(assignment.name, 0))
            own = [each.charges for each in uses if each.pod_set == assignment.name and each.charges is not None]
            grouped = _group_charges(assignment.name, account, uses)
            after = _settle(assignment, agreed, own, grouped=grouped, pods_left=pods_left)
            if isinstance(after, Overdrawn):
                return after
            assignment = after
        settled.append(assignment)
    if tuple(settled) == tuple(admission.pod_set_assignments):
        return wl
    admission = structs.replace(admission, pod_set_assignments=tuple(settled))
    return structs.replace(wl, status=structs.replace(wl.status, admission=admission))


def message(before: workload.Workload, after: workload.Workload) -> str:
    """Return the message about the changes of a settlement."""
    assert before.status.admission is not None, "it has quota"
    assert after.status.admission is not None, "it keeps quota"
    changes = [
        f"{new.name}: {name} {new.resource_usage[name]} of {amount}"
        for old, new in zip(
            before.status.admission.pod_set_assignments, after.status.admission.pod_set_assignments, strict=True
        )
        for name, amount in old.resource_usage.items()
        if new.resource_usage[name] != amount
    ]
    return f"Settled to the allocated devices: {', '.join(changes)}"


class _GroupCharges(NamedTuple):
    """Charges for the claims of groups that a pod set pays for."""

    bound: amounts.Requests
    """Part of the agreed upper bound."""
    allocated: amounts.Requests
    """Charges for the devices of allocated claims."""
    most: amounts.Requests
    """Charges for the devices of allocated claims, and upper bounds of the others."""


def _group_charges(pod_set: str, account: DeviceAccount, uses: Iterable[PodUse]) -> _GroupCharges:
    charges_by_use: dict[tuple[str, str], amounts.Requests] = {}
    for each in uses:
        charges_by_use |= {(each.pod_set, entry): charges for entry, charges in each.group_claims.items()}
    bound: amounts.Requests = {}
    allocated: amounts.Requests = {}
    most: amounts.Requests = {}
    for share in account.group_shares(pod_set).values():
        if not share.is_paid or share.pod_sets[0] != pod_set:
            continue
        agreed = amounts.request_amounts(share.charge)
        use_charges = (charges_by_use.get((name, share.entry)) for name in share.pod_sets)
        charges = next((each for each in use_charges if each is not None), None)
        bound = _sum(bound, agreed)
        allocated = _sum(allocated, charges or {})
        most = _sum(most, agreed if charges is None else charges)
    return _GroupCharges(bound, allocated, most)


def _sum(one: amounts.Requests, other: amounts.Requests) -> amounts.Requests:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def _settle(
    assignment: workload.PodSetAssignment,
    agreed: deviceaccount.PodSetAccount,
    own: list[amounts.Requests],
    *,
    grouped: _GroupCharges,
    pods_left: int,
) -> workload.PodSetAssignment | Overdrawn:
    """``own`` has the charges of each pod whose devices are known; ``pods_left`` pods still need quota."""
    if len(own) > pods_left:
        return assignment  # for a moment there are more pods than there should be
    usage = dict(assignment.resource_usage)
    resources = agreed.resources()
    for name in {name: None for charges in (*own, grouped.allocated) for name in charges} | dict.fromkeys(resources):
        resource = resources.get(name, deviceaccount.Agreement(0, 0, 0))
        fixed = resource.own * (assignment.count or 0) + resource.once - grouped.bound.get(name, 0)
        stored_amount = usage.get(name)
        reserved = (amounts.requested(name, stored_amount) if stored_amount is not None else 0) - fixed
        pod_charges = sum(charges.get(name, 0) for charges in own)
        allocated = pod_charges + grouped.allocated.get(name, 0)
        if allocated > reserved:
            return Overdrawn(assignment.name, name, allocated, reserved)
        most = pod_charges + grouped.most.get(name, 0) + resource.devices * (pods_left - len(own))
        if most < reserved and stored_amount is not None:
            usage[name] = _convert_to_stored_format(stored_amount, fixed + most, name)
    return structs.replace(assignment, resource_usage=usage)


def _convert_to_stored_format(before: quantity.Quantity, amount: int, name: str) -> quantity.Quantity:
    """Return an amount in the format of the stored amount."""
    is_binary = before.format is quantity.Format.BINARY_SI
    return amounts.to_quantity(name, amount, binary=(name,) if is_binary else ())
