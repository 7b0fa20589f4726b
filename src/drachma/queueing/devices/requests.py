"""Device requests of a workload: from templates to charges per pod.

Called before a workload enters its queue. The stages and their order are Kueue's: claims, extended resources, counters,
capacity. The first stage that fails is the result, and nothing is charged. Additions of a policy come last.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import structs

from drachma.accounting import footprint
from drachma.api import pod, resourceclaim
from drachma.claims import podclaims
from drachma.queueing import resourcelists
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.configuration.queueingpolicy import AS_KUEUE, QueueingPolicy, Templates
from drachma.queueing.devices import bounds, charges, counting, extendedresources, groupclaims
from drachma.queueing.devices.mappings import DeviceMappings
from drachma.queueing.devices.measure import Measure, beyond_pod
from drachma.queueing.devices.objects import DeviceObjects
from drachma.queueing.devices.selectors import Problem
from drachma.queueing.kinds import workload
from drachma.validation import fielderror
from drachma.validation.fielderror import FieldError, Reason
from drachma.values import fieldtext


class SharedCharge(msgspec.Struct, frozen=True):
    """Charge of a claim that pods share: by its name, or as the claim of their group."""

    uid: str
    """Uid of the claim, or of the group."""
    charge: pod.ResourceList
    pod_sets: tuple[str, ...]
    """Pod sets that use the claim. The first one pays."""
    entry: str = ""
    """Name of the entry that the pods have for the claim of their group; empty for a claim that they name."""

    @property
    def payer(self) -> str:
        """Pod set that pays."""
        return self.pod_sets[0]


class DeviceRequests(msgspec.Struct, frozen=True):
    """Charges of one pod of each pod set for devices, and the requests that they replace."""

    charges: resourcelists.PerPodSet = {}
    replaced: Mapping[str, frozenset[str]] = {}
    settled: resourcelists.PerPodSet = {}
    """Charges for claims from templates, for pod sets whose charges will be settled."""
    templates: Mapping[str, str] = {}
    """Uids by name of the templates that were counted, if claims must be created from these."""
    shared: Mapping[str, SharedCharge] = {}
    """Claims that pods share, with the charge of each: by name, or by :class:`groupclaims.GroupClaim` key."""

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
        group_claims = groupclaims.find(wl, objects.groups)
        unshared = groupclaims.remove_shared_templates(wl, group_claims)
        claim_charges = counting.per_pod(unshared, objects, mappings, gates=gates, policy=policy)
        extended = extendedresources.Replacement({}, {})
        if gates.on(Gate.DRA_EXTENDED_RESOURCE):
            stage = "extendedResources"
            extended = extendedresources.replace(unshared, objects, mappings, gates=gates, policy=policy)
        if gates.on(Gate.DRA_PARTITIONABLE_DEVICES):
            stage = "counters"
            claim_charges = resourcelists.merge_pod_sets(
                claim_charges, charges.counter_charges(unshared, objects, mappings)
            )
        if gates.on(Gate.DRA_CONSUMABLE_CAPACITY):
            stage = "capacity"
            claim_charges = resourcelists.merge_pod_sets(
                claim_charges, charges.capacity_charges(unshared, objects, mappings)
            )
        stage = "bounds"
        measure = Measure(mappings, gates, policy)
        bounded = bounds.per_pod(unshared, objects, measure) if policy.bounds_requests else {}
        sharing = _Sharing(wl, objects, measure)
        shared_charges = sharing.named_charges(claims) if claims is not None else {}
        shared_charges |= sharing.group_charges(group_claims)
    except Problem as problem:
        return Refusal(stage, problem.problems)
    claim_charges = resourcelists.merge_pod_sets(claim_charges, bounded)
    is_pinned = policy.templates is Templates.PINNED
    # Settlement reads all claims of a pod, so that the bounds of all are needed if any are settled.
    settled = {*bounded, *(name for each in shared_charges.values() for name in each.pod_sets)}
    return DeviceRequests(
        resourcelists.merge_pod_sets(claim_charges, extended.charges),
        extended.replaced,
        {name: charges for name, charges in claim_charges.items() if is_pinned or name in settled},
        _templates(wl, objects) if is_pinned else {},
        shared_charges,
    )


class _Sharing:
    """Charges of the claims that pods of a workload share."""

    def __init__(self, wl: workload.Workload, objects: DeviceObjects, measure: Measure) -> None:
        self._workload = wl
        self._objects = objects
        self._measure = measure

    def named_charges(self, claims: podclaims.Claims) -> dict[str, SharedCharge]:
        """Return the charges of the claims that pods name. Raises Problem if they cannot be determined."""
        charges: dict[str, SharedCharge] = {}
        for index, pod_set in enumerate(self._workload.spec.pod_sets):
            for position, reference in enumerate(pod_set.template.spec.resource_claims):
                name = reference.resource_claim_name
                if name is None or name in charges:
                    continue
                at = counting.claim_path(index, position)
                claim = claims.get(self._workload.metadata.namespace, name)
                if claim is None:
                    detail = f'failed to get ResourceClaim {name}: resourceclaims.resource.k8s.io "{name}" not found'
                    raise Problem([fielderror.internal(at.child("resourceClaimName"), detail)])
                origin = bounds.ClaimOrigin(at, at.child("resourceClaimName"), pod_set.name)
                charge = self._charge(claim.spec, f"ResourceClaim {name}", origin, pod_set, reference)
                charges[name] = SharedCharge(claim.metadata.uid, charge, (pod_set.name,))
        return charges

    def group_charges(
        self, group_claims: Mapping[groupclaims.ClaimUse, groupclaims.GroupClaim]
    ) -> dict[str, SharedCharge]:
        """Return the charges of the claims of groups. Raises Problem if they cannot be determined."""
        charges: dict[str, SharedCharge] = {}
        for index, pod_set in enumerate(self._workload.spec.pod_sets):
            for position, reference in enumerate(pod_set.template.spec.resource_claims):
                claim = group_claims.get(groupclaims.ClaimUse(pod_set.name, reference.name))
                if claim is None:
                    continue
                if claim.key in charges:
                    before = charges[claim.key]
                    charges[claim.key] = structs.replace(before, pod_sets=(*before.pod_sets, pod_set.name))
                    continue
                name = reference.resource_claim_template_name or ""
                at = counting.claim_path(index, position)
                context = f"failed to get claim spec for ResourceClaimTemplate {name} in podset {pod_set.name}"
                namespace = self._workload.metadata.namespace
                spec = counting.template_spec(name, namespace, self._objects, at=at, context=context)
                origin = bounds.ClaimOrigin(at, at.child("resourceClaimTemplateName"), pod_set.name)
                charge = self._charge(spec, f"ResourceClaimTemplate {name}", origin, pod_set, reference)
                charges[claim.key] = SharedCharge(claim.uid, charge, (pod_set.name,), reference.name)
        return charges

    def _charge(
        self,
        claim: resourceclaim.ResourceClaimSpec,
        title: str,
        origin: bounds.ClaimOrigin,
        pod_set: workload.PodSet,
        reference: pod.PodResourceClaim,
    ) -> pod.ResourceList:
        spec = pod_set.template.spec
        counting.counts(claim, title, policy=self._measure.policy, at=origin.at)
        bound = bounds.claim_bound(
            claim,
            origin,
            objects=self._objects,
            measure=self._measure,
            containers=len(footprint.users(pod.Pod(spec=spec), reference.name)),
            includes=bounds.Includes.ALL,
        )
        return resourcelists.merge(bound.quota, beyond_pod(spec, bound.node), resourcelists.total)


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
