"""Field numbers of workloads, leases, priority classes, evictions and scales.

For the notation see :mod:`drachma.server.decoding.protobuf.notation`.
"""

from typing import Final

TYPES: Final = """\
@io.k8s.api.apps.v1
Deployment: metadata spec status
DeploymentCondition: type status 4:reason message lastUpdateTime lastTransitionTime
DeploymentSpec: replicas? selector template strategy minReadySeconds revisionHistoryLimit? paused
    9:progressDeadlineSeconds?
DeploymentStatus: observedGeneration replicas updatedReplicas availableReplicas unavailableReplicas conditions
    readyReplicas collisionCount? terminatingReplicas?
DeploymentStrategy: type rollingUpdate
ReplicaSet: metadata spec status
ReplicaSetCondition: type status lastTransitionTime reason message
ReplicaSetSpec: replicas? selector template minReadySeconds
ReplicaSetStatus: replicas fullyLabeledReplicas observedGeneration readyReplicas availableReplicas conditions
    terminatingReplicas?
RollingUpdateDeployment: maxUnavailable maxSurge
@io.k8s.api.autoscaling.v1
Scale: metadata spec status
ScaleSpec: replicas
ScaleStatus: replicas selector
@io.k8s.api.batch.v1
Job: metadata spec status
JobCondition: type status lastProbeTime lastTransitionTime reason message
JobSchedulingConfiguration: schedulingPolicy schedulingConstraints disruptionMode resourceClaims
JobSpec: parallelism? completions? activeDeadlineSeconds? selector manualSelector? template backoffLimit?
    ttlSecondsAfterFinished? completionMode suspend? podFailurePolicy backoffLimitPerIndex? maxFailedIndexes?
    podReplacementPolicy managedBy? successPolicy scheduling
JobStatus: conditions startTime completionTime active succeeded failed completedIndexes uncountedTerminatedPods
    ready? failedIndexes? terminating?
PodFailurePolicy: rules
PodFailurePolicyOnExitCodesRequirement: containerName? operator values
PodFailurePolicyOnPodConditionsPattern: type status
PodFailurePolicyRule: action onExitCodes onPodConditions
SuccessPolicy: rules
SuccessPolicyRule: succeededIndexes? succeededCount?
UncountedTerminatedPods: succeeded failed
@io.k8s.api.coordination.v1
Lease: metadata spec
LeaseSpec: holderIdentity? leaseDurationSeconds? acquireTime renewTime leaseTransitions? strategy preferredHolder?
@io.k8s.api.policy.v1
Eviction: metadata deleteOptions
@io.k8s.api.scheduling.v1
PriorityClass: metadata value globalDefault description preemptionPolicy
"""
