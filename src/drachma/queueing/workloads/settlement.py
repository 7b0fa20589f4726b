"""Settlement: what a workload was charged with becomes what it was allocated, as soon as that is known.

A pod whose claims are all allocated counts for its devices, others for the most that theirs may come to. Usage only
goes down: what was given back may be somebody else's by now. So where a pod that takes the place of another gets more
than is still reserved, the workload is overdrawn, and has to queue again.

Everything here follows from objects: a workload with its account, its pods, their claims, and the devices that exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec import structs

from drachma.accounting import accountant, footprint
from drachma.api import pod
from drachma.claims import podclaims, podstate
from drachma.claims.identity import DeviceID, device_of
from drachma.queueing import amounts, resourcelists
from drachma.queueing.configuration.gates import Gates
from drachma.queueing.devices import deviceaccount
from drachma.queueing.devices.devicemeasure import Measure, beyond_pod
from drachma.queueing.devices.deviceobjects import Located
from drachma.queueing.devices.deviceselectors import Problem
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import requests
from drachma.queueing.workloads.podsetinfo import POD_SET_LABEL
from drachma.validation.path import Path
from drachma.values import quantity

Devices = Mapping[DeviceID, Located]
"""The devices that exist."""

_AT: Final = Path("status").child("allocation")


class PodUse(msgspec.Struct, frozen=True):
    """What the devices of one pod count for; None while that is not known."""

    pod_set: str
    charges: amounts.Requests | None


class Overdrawn(msgspec.Struct, frozen=True):
    """Pods of a set have more than is reserved for their devices."""

    pod_set: str
    resource: str
    allocated: int
    reserved: int

    @property
    def message(self) -> str:
        allocated = amounts.as_quantity(self.resource, self.allocated)
        reserved = amounts.as_quantity(self.resource, self.reserved)
        return (
            f"Devices of pod set {self.pod_set} were allocated that count for {allocated} of {self.resource}, "
            f"and {reserved} is reserved for them"
        )


def use(of: pod.Pod, claims: podclaims.Claims, devices: Devices, *, measure: Measure) -> PodUse | None:
    """What a pod of a queued workload uses; None for one that is over, or goes: its place is another's."""
    if podstate.has_ended(of) or of.metadata.deletion_timestamp is not None:
        return None
    return PodUse(of.metadata.labels.get(POD_SET_LABEL, ""), _charges(of, claims, devices, measure))


def _charges(of: pod.Pod, claims: podclaims.Claims, devices: Devices, measure: Measure) -> amounts.Requests | None:
    quota: dict[str, quantity.Quantity] = {}
    node: dict[str, quantity.Quantity] = {}
    for entry in of.spec.resource_claims:
        reference = podclaims.refer(of, entry)
        if isinstance(reference, podclaims.NotNeeded):
            continue
        if not isinstance(reference, podclaims.Named):
            return None
        if not reference.is_generated:
            continue
        claim = claims.get(of.metadata.namespace, reference.name)
        if claim is None or claim.status.allocation is None:
            return None
        containers = len(footprint.users(of, entry.name))
        for result in claim.status.allocation.devices.results:
            if result.admin_access:
                continue
            device = devices.get(device_of(result))
            name = accountant.class_name(claim, result.request)
            if device is None or name not in measure.mappings.resources:
                return None
            try:
                charge = measure.quota(name, device, result.consumed_capacity, at=_AT)
            except Problem:
                return None
            quota = resourcelists.merge(quota, charge, resourcelists.total)
            needs = measure.node(device, result.consumed_capacity, containers=containers)
            node = resourcelists.merge(node, needs, resourcelists.total)
    return amounts.of_list(resourcelists.merge(quota, beyond_pod(of.spec, node), resourcelists.total))


def settle(of: workload.Workload, uses: Iterable[PodUse], *, gates: Gates) -> workload.Workload | Overdrawn:
    """A workload with quota, using what its pods' devices count for; the very same if that changes nothing."""
    account = deviceaccount.of(of)
    admission = of.status.admission
    if account is None or admission is None:
        return of
    uses = tuple(uses)
    counts = requests.counts_after_reclaim(of, gates)
    settled: list[workload.PodSetAssignment] = []
    for assignment in admission.pod_set_assignments:
        agreed = account.pod_sets.get(assignment.name)
        if agreed is not None:
            left = min(assignment.count or 0, counts.get(assignment.name, 0))
            own = [each.charges for each in uses if each.pod_set == assignment.name and each.charges is not None]
            after = _settle(assignment, agreed, own, left=left)
            if isinstance(after, Overdrawn):
                return after
            assignment = after
        settled.append(assignment)
    if tuple(settled) == tuple(admission.pod_set_assignments):
        return of
    admission = structs.replace(admission, pod_set_assignments=tuple(settled))
    return structs.replace(of, status=structs.replace(of.status, admission=admission))


def message(before: workload.Workload, after: workload.Workload) -> str:
    """What settling changed."""
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
    return f"Settled to what was allocated: {', '.join(changes)}"


def _settle(
    assignment: workload.PodSetAssignment,
    agreed: deviceaccount.PodSetAccount,
    own: list[amounts.Requests],
    *,
    left: int,
) -> workload.PodSetAssignment | Overdrawn:
    """``own`` is what each pod that has its devices uses; ``left`` pods still need quota."""
    if len(own) > left:
        return assignment  # there are more pods than should be for a moment
    usage = dict(assignment.resource_usage)
    resources = agreed.resources()
    for name in {name: None for charges in own for name in charges} | dict.fromkeys(resources):
        resource = resources.get(name, deviceaccount.Agreed(0, 0, 0))
        fixed = resource.beside * (assignment.count or 0) + resource.once
        written = usage.get(name)
        reserved = (amounts.requested(name, written) if written is not None else 0) - fixed
        allocated = sum(charges.get(name, 0) for charges in own)
        if allocated > reserved:
            return Overdrawn(assignment.name, name, allocated, reserved)
        most = allocated + resource.devices * (left - len(own))
        if most < reserved and written is not None:
            usage[name] = _like(written, fixed + most, name)
    return structs.replace(assignment, resource_usage=usage)


def _like(before: quantity.Quantity, amount: int, name: str) -> quantity.Quantity:
    """An amount in the format that it was written in before."""
    is_binary = before.format is quantity.Format.BINARY_SI
    return amounts.as_quantity(name, amount, binary=(name,) if is_binary else ())
