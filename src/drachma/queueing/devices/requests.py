"""Device requests of a workload: from templates to charges per pod.

Called before a workload enters its queue. The stages and their order are Kueue's: claims, extended resources, counters,
capacity. The first stage that fails is the result, and nothing is charged. Additions of a policy come last.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from drachma.accounting import footprint
from drachma.api import pod
from drachma.claims import podclaims
from drachma.queueing import resourcelists
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.configuration.queueingpolicy import AS_KUEUE, QueueingPolicy, Templates
from drachma.queueing.devices import bounds, charges, counting, extendedresources
from drachma.queueing.devices.mappings import DeviceMappings
from drachma.queueing.devices.measure import Measure, beyond_pod
from drachma.queueing.devices.objects import DeviceObjects
from drachma.queueing.devices.selectors import Problem
from drachma.queueing.kinds import workload
from drachma.validation import fielderror
from drachma.validation.fielderror import FieldError, Reason
from drachma.values import fieldtext


class NamedCharge(msgspec.Struct, frozen=True):
    """Charge of a claim, for the first pod set that names it."""

    uid: str
    pod_set: str
    charge: pod.ResourceList


class DeviceRequests(msgspec.Struct, frozen=True):
    """Charges of one pod of each pod set for devices, and the requests that they replace."""

    charges: resourcelists.PerPodSet = {}
    replaced: Mapping[str, frozenset[str]] = {}
    settled: resourcelists.PerPodSet = {}
    """Charges for claims from templates, for pod sets whose charges will be settled."""
    templates: Mapping[str, str] = {}
    """Uids by name of the templates that were counted, if claims must be created from these."""
    named: Mapping[str, NamedCharge] = {}
    """Claims that pods use by name, with the charge of each."""

    @property
    def is_empty(self) -> bool:
        return not self.charges and not self.replaced


class Refusal(msgspec.Struct, frozen=True):
    """Reason why devices cannot be counted, and the stage that failed."""

    stage: str
    problems: tuple[FieldError, ...]

    @property
    def message(self) -> str:
        """Text that conditions show."""
        return fieldtext.together(map(str, self.problems))

    @property
    def is_retried(self) -> bool:
        """True if the problem may pass with time; otherwise an object must change first."""
        return any(problem.type is Reason.INTERNAL for problem in self.problems)


def count(
    wl: workload.Workload,
    objects: DeviceObjects,
    mappings: DeviceMappings,
    *,
    gates: Gates,
    policy: QueueingPolicy = AS_KUEUE,
    claims: podclaims.Claims | None = None,
) -> DeviceRequests | Refusal:
    """Return the charges of a workload for devices, or the reason why they cannot be counted.

    ``claims`` are the claims that pods may use by name; without them, such claims are not charged.
    """
    stage = "claims"
    try:
        of_claims = counting.per_pod(wl, objects, mappings, gates=gates, policy=policy)
        extended = extendedresources.Replacement({}, {})
        if gates.on(Gate.DRA_EXTENDED_RESOURCE):
            stage = "extendedResources"
            extended = extendedresources.replace(wl, objects, mappings, gates=gates, policy=policy)
        if gates.on(Gate.DRA_PARTITIONABLE_DEVICES):
            stage = "counters"
            of_claims = resourcelists.merge_pod_sets(of_claims, charges.counter_charges(wl, objects, mappings))
        if gates.on(Gate.DRA_CONSUMABLE_CAPACITY):
            stage = "capacity"
            of_claims = resourcelists.merge_pod_sets(of_claims, charges.capacity_charges(wl, objects, mappings))
        stage = "bounds"
        measure = Measure(mappings, gates, policy)
        bounded = bounds.per_pod(wl, objects, measure) if policy.bounds_requests else {}
        named_charges = _claim_charges(wl, claims, objects, measure=measure) if claims is not None else {}
    except Problem as problem:
        return Refusal(stage, problem.problems)
    of_claims = resourcelists.merge_pod_sets(of_claims, bounded)
    is_pinned = policy.templates is Templates.PINNED
    return DeviceRequests(
        resourcelists.merge_pod_sets(of_claims, extended.charges),
        extended.replaced,
        of_claims if is_pinned else {name: of_claims[name] for name in bounded},
        _templates(wl, objects) if is_pinned else {},
        named_charges,
    )


def _claim_charges(
    wl: workload.Workload, claims: podclaims.Claims, objects: DeviceObjects, *, measure: Measure
) -> dict[str, NamedCharge]:
    """Return the charges of the claims that a workload names. Raises Problem if they cannot be determined."""
    charges_by_name: dict[str, NamedCharge] = {}
    for index, pod_set in enumerate(wl.spec.pod_sets):
        spec = pod_set.template.spec
        for position, reference in enumerate(spec.resource_claims):
            name = reference.resource_claim_name
            if name is None or name in charges_by_name:
                continue
            at = counting.claim_path(index, position)
            claim = claims.get(wl.metadata.namespace, name)
            if claim is None:
                detail = f'failed to get ResourceClaim {name}: resourceclaims.resource.k8s.io "{name}" not found'
                raise Problem([fielderror.internal(at.child("resourceClaimName"), detail)])
            counting.counts(claim.spec, f"ResourceClaim {name}", policy=measure.policy, at=at)
            origin = bounds.ClaimOrigin(at, at.child("resourceClaimName"), pod_set.name)
            bound = bounds.claim_bound(
                claim.spec,
                origin,
                objects=objects,
                measure=measure,
                containers=len(footprint.users(pod.Pod(spec=spec), reference.name)),
                includes=bounds.Includes.ALL,
            )
            charge = resourcelists.merge(bound.quota, beyond_pod(spec, bound.node), resourcelists.total)
            charges_by_name[name] = NamedCharge(claim.metadata.uid, pod_set.name, charge)
    return charges_by_name


def _templates(wl: workload.Workload, objects: DeviceObjects) -> dict[str, str]:
    """Return the uids of the templates that a workload names."""
    names = {
        claim.resource_claim_template_name
        for pod_set in wl.spec.pod_sets
        for claim in pod_set.template.spec.resource_claims
        if claim.resource_claim_template_name is not None
    }
    namespace = wl.metadata.namespace
    return {name: objects.templates[namespace, name].metadata.uid for name in sorted(names)}


def names_claims(wl: workload.Workload) -> bool:
    """Return True if a pod set uses a claim by name."""
    return any(
        claim.resource_claim_name is not None
        for pod_set in wl.spec.pod_sets
        for claim in pod_set.template.spec.resource_claims
    )


def has_claims(wl: workload.Workload) -> bool:
    """Return True if a pod set has claims."""
    return any(
        claim.resource_claim_name is not None or claim.resource_claim_template_name is not None
        for pod_set in wl.spec.pod_sets
        for claim in pod_set.template.spec.resource_claims
    )


def are_needed(wl: workload.Workload, objects: DeviceObjects, *, gates: Gates) -> bool:
    """Return True if a workload's devices must be counted, or refused, before it enters its queue."""
    if not gates.on(Gate.DRA):
        return gates.on(Gate.DRA_REJECT_WHEN_DISABLED) and has_claims(wl)
    if has_claims(wl):
        return True
    if not gates.on(Gate.DRA_EXTENDED_RESOURCE):
        return False
    backed = {each.spec.extended_resource_name for each in objects.classes.values()} - {"", None}
    return any(
        amount.sign and extendedresources.is_extended(name) and name in backed
        for pod_set in wl.spec.pod_sets
        for container in (*pod_set.template.spec.init_containers, *pod_set.template.spec.containers)
        for name, amount in container.resources.requests.items()
    )
