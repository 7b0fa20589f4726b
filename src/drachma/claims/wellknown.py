"""Names with a meaning in Kubernetes that several components must spell alike."""

from typing import Final

CLAIM_FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""Finalizer of a claim while it is, or might be, allocated."""

VOLUME_CLAIM_FINALIZER: Final = "kubernetes.io/pvc-protection"
"""Finalizer of a volume claim while pods use it."""

VOLUME_FINALIZER: Final = "kubernetes.io/pv-protection"
"""Finalizer of a volume while it is bound to a claim."""

POD_GROUP_FINALIZER: Final = "scheduling.k8s.io/podgroup-protection"
"""Finalizer of a PodGroup while it has pods that have not finished."""

POD_CLAIM_ANNOTATION: Final = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a generated claim: its entry in the pod's spec."""

POD_GROUP_CLAIM_ANNOTATION: Final = "resource.kubernetes.io/podgroup-claim-name"
"""Annotation of a claim that was generated for a PodGroup: its entry in the group's spec."""

EXTENDED_RESOURCE_ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
"""Annotation of the claim for a pod's extended resources, with the value ``true``."""

FOREGROUND_FINALIZER: Final = "foregroundDeletion"
"""Finalizer of an object that is deleted after its dependents."""

ORPHAN_FINALIZER: Final = "orphan"
"""Finalizer of an object whose dependents stay."""

NAMESPACE_FINALIZER: Final = "kubernetes"
"""Finalizer in the spec of a namespace until it is empty."""

POD_SCHEDULED: Final = "PodScheduled"
"""Condition that says whether a pod has a node, and if not, why."""

DISRUPTION_TARGET: Final = "DisruptionTarget"
"""Condition of a pod that is disrupted on purpose. Readers such as Jobs do not count it as a failure."""

PREEMPTION_BY_SCHEDULER: Final = "PreemptionByScheduler"
"""Reason of that condition for a preempted pod."""
