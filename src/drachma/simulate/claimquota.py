"""Resource quotas that keep the claims of a pending pod from being created, for explanations.

The claim controller creates the claims of a pod, or of its PodGroup, from templates. If a quota of the namespace
refuses one, the pod waits for it, and no node is the reason. Quotas decide by the API server's own evaluators.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from drachma.accounting.quota import charging, evaluator, evaluators
from drachma.api import pod, podgroup, resourceclaim, resourcequota
from drachma.claims import identity, podclaims
from drachma.simulate.simulation import Simulation


def refusal(cluster: Simulation, waiting_pod: pod.Pod, quotas: Iterable[resourcequota.ResourceQuota]) -> str:
    """Return why a claim of a pod or its group cannot be created; empty if no quota refuses one."""
    own_quotas = [each for each in quotas if each.metadata.namespace == waiting_pod.metadata.namespace]
    judge = evaluators.of("resource.k8s.io", "resourceclaims", cluster.gates)
    if not own_quotas or judge is None:
        return ""
    facts = _Facts(cluster)
    for entry, draft in cluster.missing_claims(waiting_pod):
        outcome = charging.charges(judge, evaluator.Change(draft), own_quotas, facts=facts)
        if isinstance(outcome, charging.Refusal):
            owner = podclaims.consumer(waiting_pod, entry, cluster.snapshot.claim_group(waiting_pod))
            kind = "pod group" if isinstance(owner, podgroup.PodGroup) else "pod"
            return f"claim {entry.name} of {kind} {identity.label(owner.metadata)} is not created: {outcome.message}"
    return ""


class _Facts:
    """Objects of a simulation that charges depend on."""

    def __init__(self, cluster: Simulation) -> None:
        self.now: Final = datetime.now(UTC)
        self.extended: Final = cluster.snapshot.devices.names
        self._cluster: Final = cluster

    def pod(self, namespace: str, name: str) -> pod.Pod | None:
        return self._cluster.find(namespace, name)

    def claims(self, namespace: str) -> Iterable[resourceclaim.ResourceClaim]:
        return (each for each in self._cluster.snapshot.claims if each.metadata.namespace == namespace)
