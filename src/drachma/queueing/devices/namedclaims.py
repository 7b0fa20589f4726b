"""Claims that pods use by their name: what each is charged with, once for all pods and pod sets of a workload.

What a claim may be at most is charged, and stays: it may be allocated anew while workloads use it. Who of several
workloads pays is said by :mod:`workloads.claimsharing`.
"""

from __future__ import annotations

import msgspec

from drachma.accounting import footprint
from drachma.api import pod
from drachma.claims import podclaims
from drachma.queueing import resourcelists
from drachma.queueing.devices import devicebounds, devicecounting
from drachma.queueing.devices.devicemeasure import Measure, beyond_pod
from drachma.queueing.devices.deviceobjects import DeviceObjects
from drachma.queueing.devices.deviceselectors import Problem
from drachma.queueing.kinds import workload
from drachma.validation import fielderror


class NamedCharge(msgspec.Struct, frozen=True):
    """What a claim is charged with, to the first pod set that names it."""

    uid: str
    pod_set: str
    charge: pod.ResourceList


def charges(
    of: workload.Workload, claims: podclaims.Claims, objects: DeviceObjects, *, measure: Measure
) -> dict[str, NamedCharge]:
    """What the claims that a workload names are charged with; a Problem where that cannot be said."""
    named: dict[str, NamedCharge] = {}
    for index, pod_set in enumerate(of.spec.pod_sets):
        spec = pod_set.template.spec
        for position, reference in enumerate(spec.resource_claims):
            name = reference.resource_claim_name
            if name is None or name in named:
                continue
            at = devicecounting.claim_path(index, position)
            claim = claims.get(of.metadata.namespace, name)
            if claim is None:
                detail = f'failed to get ResourceClaim {name}: resourceclaims.resource.k8s.io "{name}" not found'
                raise Problem([fielderror.internal(at.child("resourceClaimName"), detail)])
            devicecounting.counts(claim.spec, f"ResourceClaim {name}", policy=measure.policy, at=at)
            asker = devicebounds.Asker(at, at.child("resourceClaimName"), pod_set.name)
            bound = devicebounds.of_claim(
                claim.spec,
                asker,
                objects=objects,
                measure=measure,
                containers=len(footprint.users(pod.Pod(spec=spec), reference.name)),
                includes=devicebounds.Includes.ALL,
            )
            charge = resourcelists.merge(bound.quota, beyond_pod(spec, bound.node), resourcelists.total)
            named[name] = NamedCharge(claim.metadata.uid, pod_set.name, charge)
    return named
