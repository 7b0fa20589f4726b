"""Names that Kubernetes gives a meaning to and that several components must spell alike."""

from typing import Final

CLAIM_FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""Keeps a claim while it is, or might be, allocated."""

VOLUME_CLAIM_FINALIZER: Final = "kubernetes.io/pvc-protection"
"""Keeps a claim for a volume while pods use it."""

VOLUME_FINALIZER: Final = "kubernetes.io/pv-protection"
"""Keeps a volume while a claim has it."""

POD_CLAIM_ANNOTATION: Final = "resource.kubernetes.io/pod-claim-name"
"""On a generated claim: the entry in the pod's spec that it was made for."""

EXTENDED_RESOURCE_ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
"""``true`` on the claim that a scheduler makes for a pod's extended resources."""

FOREGROUND_FINALIZER: Final = "foregroundDeletion"
"""On an object that goes only after its dependents."""

ORPHAN_FINALIZER: Final = "orphan"
"""On an object whose dependents are to stay."""

NAMESPACE_FINALIZER: Final = "kubernetes"
"""In the spec of a namespace until all that was in it is gone."""

POD_SCHEDULED: Final = "PodScheduled"
"""The condition that says whether a pod has a node, and if not, why."""

DISRUPTION_TARGET: Final = "DisruptionTarget"
"""The condition of a pod that is taken away on purpose; who reads it, Jobs first of all, tells it from a failure."""

PREEMPTION_BY_SCHEDULER: Final = "PreemptionByScheduler"
"""The reason of that condition where a pod makes room for another one."""
