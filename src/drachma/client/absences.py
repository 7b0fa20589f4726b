"""Consequences of kinds that an API server does not serve, in plain words, for logs, status pages and the doctor."""

from __future__ import annotations

from typing import Final

_CONSEQUENCES: Final = {
    "devicetaintrules.resource.k8s.io": (
        "rules that taint devices have no effect; only taints that drivers publish count "
        "(feature gate DRADeviceTaintRules)"
    ),
    "resourcepoolstatusrequests.resource.k8s.io": (
        "pools do not report their status (feature gate DRAResourcePoolStatus)"
    ),
    "podgroups.scheduling.k8s.io": (
        "pods are scheduled one by one and not as gangs, and groups cannot share claims (feature gate GenericWorkload)"
    ),
    "compositepodgroups.scheduling.k8s.io": (
        "groups of groups are not scheduled together (feature gate CompositePodGroup)"
    ),
    "capacitybuffers.autoscaling.x-k8s.io": "no spare capacity is kept for buffers",
    "provisioningrequests.autoscaling.x-k8s.io": "jobs cannot wait for nodes that are provisioned for them",
    "clusterqueues.kueue.x-k8s.io": "nothing is known about queues",
}


def consequence(resource: str) -> str:
    """Return what does not work if a resource, by its plural name with group, is not served."""
    return _CONSEQUENCES.get(resource, "what needs it has no effect")
