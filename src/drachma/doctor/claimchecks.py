"""Checks of claims: reservations, allocations and deletions that contradict the rest of the cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

import msgspec

from drachma.api.pod import Pod
from drachma.api.resourceclaim import ResourceClaim
from drachma.api.resourceclaimtemplate import ResourceClaimTemplate
from drachma.api.resourceslice import Device, ResourceSlice
from drachma.claims import identity, ownership, podclaims, podstate, reservation, standins, wellknown
from drachma.doctor import finding
from drachma.doctor.cluster import Cluster
from drachma.doctor.finding import Finding, Severity

_RUNNING: Final = "Running"
SETTLING_SECONDS: Final = 120.0
"""Time that controllers have to clean up."""


def check(cluster: Cluster) -> Iterator[Finding]:
    """Yield the findings about claims, and about pods that wait for claims."""
    pods = {each.metadata.uid: each for each in cluster.all(Pod)}
    published = {
        identity.DeviceID(each.spec.driver, each.spec.pool.name, device.name): device
        for each in cluster.all(ResourceSlice)
        for device in each.spec.devices
    }
    for claim in cluster.all(ResourceClaim):
        yield from _reservations(claim, pods)
        yield from _deletion(cluster, claim, pods)
        yield from _orphan(cluster, claim, pods)
        yield from _unpublished(claim, published)
    yield from _twice(cluster, published)
    yield from _missing(cluster)


def _gone(claim: ResourceClaim, pods: dict[str, Pod]) -> list[str]:
    """Return the names of pods that a claim is reserved for and that do not exist."""
    return [each.name for each in claim.status.reserved_for if reservation.is_pod(each) and each.uid not in pods]


def _reservations(claim: ResourceClaim, pods: dict[str, Pod]) -> Iterator[Finding]:
    names = _gone(claim, pods)
    if not names:
        return
    users = [
        msgspec.to_builtins(each)
        for each in claim.status.reserved_for
        if not reservation.is_pod(each) or each.uid in pods
    ]
    yield Finding(
        check="reservation-without-pod",
        severity=Severity.ERROR,
        subject=finding.subject_of(claim),
        message=f"is reserved for {len(names)} pods that do not exist, so its devices stay allocated",
        evidence=tuple(f"Pod {claim.metadata.namespace}/{name}" for name in names[:5]),
        repair=finding.patch(claim, {"status": {"reservedFor": users}}, subresource="status"),
    )


def _deletion(cluster: Cluster, claim: ResourceClaim, pods: dict[str, Pod]) -> Iterator[Finding]:
    metadata = claim.metadata
    if metadata.deletion_timestamp is None or cluster.age(metadata.deletion_timestamp) < SETTLING_SECONDS:
        return
    users = [each.name for each in claim.status.reserved_for if each.uid in pods]
    if users or _gone(claim, pods):
        return
    other_finalizers = [each for each in metadata.finalizers if each != wellknown.CLAIM_FINALIZER]
    is_ours = claim.status.allocation is None and wellknown.CLAIM_FINALIZER in metadata.finalizers
    yield Finding(
        check="claim-stuck-deleting",
        severity=Severity.ERROR,
        subject=finding.subject_of(claim),
        message=f"is being deleted for {cluster.age(metadata.deletion_timestamp) / 60:.0f} minutes; no pod uses it",
        evidence=tuple(f"finalizer {each}" for each in metadata.finalizers),
        advice="" if is_ours else "find the component that owns the finalizer, or deallocate the claim first",
        repair=finding.patch(claim, {"metadata": {"finalizers": other_finalizers}}) if is_ours else None,
    )


def _orphan(cluster: Cluster, claim: ResourceClaim, pods: dict[str, Pod]) -> Iterator[Finding]:
    owner = ownership.owning_pod(claim)
    if owner is None or owner.uid in pods or claim.metadata.deletion_timestamp is not None:
        return
    if cluster.age(claim.metadata.creation_timestamp) < SETTLING_SECONDS:
        return
    holding = "and holds devices" if claim.status.allocation is not None else "and holds nothing"
    yield Finding(
        check="claim-orphaned",
        severity=Severity.WARNING,
        subject=finding.subject_of(claim),
        message=f"was made for pod {owner.name}, which does not exist, {holding}",
        repair=finding.delete(claim),
    )


def _unpublished(claim: ResourceClaim, published: dict[identity.DeviceID, Device]) -> Iterator[Finding]:
    if claim.status.allocation is None:
        return
    missing_devices = [
        device
        for device in map(identity.device_of, claim.status.allocation.devices.results)
        if device not in published and not standins.is_stand_in(device.pool)
    ]
    if missing_devices:
        users = ", ".join(each.name for each in claim.status.reserved_for) or "the claim"
        yield Finding(
            check="device-not-published",
            severity=Severity.ERROR,
            subject=finding.subject_of(claim),
            message=f"has device {missing_devices[0]}, which no driver publishes",
            evidence=tuple(map(str, missing_devices[:5])),
            advice=f"check the driver {missing_devices[0].driver}; delete {users} so that other devices are allocated",
        )


def _twice(cluster: Cluster, published: dict[identity.DeviceID, Device]) -> Iterator[Finding]:
    holders: defaultdict[identity.DeviceID, list[ResourceClaim]] = defaultdict(list)
    for claim in cluster.all(ResourceClaim):
        results = claim.status.allocation.devices.results if claim.status.allocation is not None else ()
        for each in results:
            device = identity.device_of(each)
            is_shared = device in published and published[device].allow_multiple_allocations
            if not each.admin_access and each.share_id is None and not is_shared:
                holders[device].append(claim)
    for device, claims in sorted(holders.items()):
        if len(claims) < 2:
            continue
        later = max(claims, key=lambda each: (_since(each), each.metadata.name))
        names = tuple(each.name for each in later.status.reserved_for)
        pods = " ".join(names)
        yield Finding(
            check="device-allocated-twice",
            severity=Severity.CRITICAL,
            subject=f"device {device}",
            message=f"is allocated to {len(claims)} claims that each expect it for themselves",
            evidence=tuple(finding.subject_of(each) for each in claims),
            advice=f"kubectl delete pod {pods} -n {later.metadata.namespace}"
            if names
            else f"deallocate {finding.subject_of(later)}, which was allocated last",
        )


def _since(claim: ResourceClaim) -> str:
    allocation = claim.status.allocation
    moment = allocation.allocation_timestamp if allocation is not None else None
    return "" if moment is None else moment.isoformat()


def _missing(cluster: Cluster) -> Iterator[Finding]:
    claims = {(each.metadata.namespace, each.metadata.name) for each in cluster.all(ResourceClaim)}
    templates = {(each.metadata.namespace, each.metadata.name) for each in cluster.all(ResourceClaimTemplate)}
    for pod in cluster.all(Pod):
        if podstate.has_ended(pod) or cluster.age(pod.metadata.creation_timestamp) < SETTLING_SECONDS:
            continue
        namespace = pod.metadata.namespace
        for entry in pod.spec.resource_claims:
            template = entry.resource_claim_template_name
            reference = podclaims.refer(pod, entry)
            if isinstance(reference, podclaims.Named) and (namespace, reference.name) not in claims:
                problem = f"ResourceClaim {reference.name}"
                if pod.status.phase == _RUNNING:
                    yield Finding(
                        check="pod-claim-missing",
                        severity=Severity.CRITICAL,
                        subject=finding.subject_of(pod),
                        message=f"runs with devices of {problem}, which was removed, so other pods may be given them",
                        advice=f"kubectl delete pod {pod.metadata.name} -n {namespace}",
                    )
                    continue
            elif isinstance(reference, podclaims.Missing) and template and (namespace, template) not in templates:
                problem = f"ResourceClaimTemplate {template}"
            else:
                continue
            yield Finding(
                check="pod-claim-missing",
                severity=Severity.ERROR,
                subject=finding.subject_of(pod),
                message=f"waits for {problem}, which does not exist in namespace {namespace}",
                advice=f"create {problem}, or delete the pod",
            )
