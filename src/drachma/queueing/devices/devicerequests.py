"""What devices mean for a workload's requests: the whole way from templates to charges per pod.

Called before a workload enters its queue. The stages and their order are Kueue's: claims, extended resources, counters,
capacity; the first that fails is the answer, and nothing is charged. What a policy adds comes last.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from drachma.claims import podclaims
from drachma.queueing import resourcelists
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.configuration.queueingpolicy import AS_KUEUE, QueueingPolicy, Templates
from drachma.queueing.devices import devicebounds, devicecharges, devicecounting, extendedresources, namedclaims
from drachma.queueing.devices.devicemappings import DeviceMappings
from drachma.queueing.devices.devicemeasure import Measure
from drachma.queueing.devices.deviceobjects import DeviceObjects
from drachma.queueing.devices.deviceselectors import Problem
from drachma.queueing.devices.namedclaims import NamedCharge
from drachma.queueing.kinds import workload
from drachma.validation.fielderror import FieldError, Reason
from drachma.values import fieldtext


class DeviceRequests(msgspec.Struct, frozen=True):
    """What one pod of each pod set is charged with for devices, and the requests that this stands for."""

    charges: resourcelists.PerPodSet = {}
    replaced: Mapping[str, frozenset[str]] = {}
    settled: resourcelists.PerPodSet = {}
    """Of pod sets whose charges will be settled: the part that is for claims from templates."""
    templates: Mapping[str, str] = {}
    """The uids of the templates that were counted, by name, if claims must be made from these."""
    named: Mapping[str, NamedCharge] = {}
    """Claims that pods use by name, and what each is charged with, once."""

    @property
    def is_empty(self) -> bool:
        return not self.charges and not self.replaced


class Refusal(msgspec.Struct, frozen=True):
    """Why devices cannot be counted, and at which stage that came out."""

    stage: str
    problems: tuple[FieldError, ...]

    @property
    def message(self) -> str:
        """The text that conditions show."""
        return fieldtext.together(map(str, self.problems))

    @property
    def is_retried(self) -> bool:
        """Whether it may pass with time; otherwise something must be changed first."""
        return any(problem.type is Reason.INTERNAL for problem in self.problems)


def count(
    of: workload.Workload,
    objects: DeviceObjects,
    mappings: DeviceMappings,
    *,
    gates: Gates,
    policy: QueueingPolicy = AS_KUEUE,
    claims: podclaims.Claims | None = None,
) -> DeviceRequests | Refusal:
    """What a workload is charged with for devices, or why that cannot be said.

    ``claims`` are those that pods may use by name; without them, such are not charged.
    """
    stage = "claims"
    try:
        of_claims = devicecounting.per_pod(of, objects, mappings, gates=gates, policy=policy)
        extended = extendedresources.Replacement({}, {})
        if gates.on(Gate.DRA_EXTENDED_RESOURCE):
            stage = "extendedResources"
            extended = extendedresources.replace(of, objects, mappings, gates=gates, policy=policy)
        if gates.on(Gate.DRA_PARTITIONABLE_DEVICES):
            stage = "counters"
            of_claims = resourcelists.merge_pod_sets(of_claims, devicecharges.by_counter(of, objects, mappings))
        if gates.on(Gate.DRA_CONSUMABLE_CAPACITY):
            stage = "capacity"
            of_claims = resourcelists.merge_pod_sets(of_claims, devicecharges.by_capacity(of, objects, mappings))
        stage = "bounds"
        measure = Measure(mappings, gates, policy)
        bounds = devicebounds.per_pod(of, objects, measure) if policy.bounds_requests else {}
        named = namedclaims.charges(of, claims, objects, measure=measure) if claims is not None else {}
    except Problem as problem:
        return Refusal(stage, problem.problems)
    of_claims = resourcelists.merge_pod_sets(of_claims, bounds)
    is_pinned = policy.templates is Templates.PINNED
    return DeviceRequests(
        resourcelists.merge_pod_sets(of_claims, extended.charges),
        extended.replaced,
        of_claims if is_pinned else {name: of_claims[name] for name in bounds},
        _templates(of, objects) if is_pinned else {},
        named,
    )


def _templates(of: workload.Workload, objects: DeviceObjects) -> dict[str, str]:
    """The uids of the templates that a workload names."""
    names = {
        claim.resource_claim_template_name
        for pod_set in of.spec.pod_sets
        for claim in pod_set.template.spec.resource_claims
        if claim.resource_claim_template_name is not None
    }
    namespace = of.metadata.namespace
    return {name: objects.templates[namespace, name].metadata.uid for name in sorted(names)}


def names_claims(of: workload.Workload) -> bool:
    """Whether a pod set uses a claim by its name."""
    return any(
        claim.resource_claim_name is not None
        for pod_set in of.spec.pod_sets
        for claim in pod_set.template.spec.resource_claims
    )


def has_claims(of: workload.Workload) -> bool:
    """Whether a pod set has claims at all."""
    return any(
        claim.resource_claim_name is not None or claim.resource_claim_template_name is not None
        for pod_set in of.spec.pod_sets
        for claim in pod_set.template.spec.resource_claims
    )


def are_needed(of: workload.Workload, objects: DeviceObjects, *, gates: Gates) -> bool:
    """Whether devices must be counted, or the workload refused for having some, before it enters its queue."""
    if not gates.on(Gate.DRA):
        return gates.on(Gate.DRA_REJECT_WHEN_DISABLED) and has_claims(of)
    if has_claims(of):
        return True
    if not gates.on(Gate.DRA_EXTENDED_RESOURCE):
        return False
    backed = {each.spec.extended_resource_name for each in objects.classes.values()} - {"", None}
    return any(
        amount.sign and extendedresources.is_extended(name) and name in backed
        for pod_set in of.spec.pod_sets
        for container in (*pod_set.template.spec.init_containers, *pod_set.template.spec.containers)
        for name, amount in container.resources.requests.items()
    )
