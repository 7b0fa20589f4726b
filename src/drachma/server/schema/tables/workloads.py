"""Kinds of other groups: deployments, replica sets, jobs, leases, priority classes, scale, eviction.

For the notation see :mod:`drachma.server.schema.notation`.
"""

from typing import Final

TYPES: Final = """\
@io.k8s.api.apps.v1
Deployment: apiVersion=str kind=str metadata=ObjectMeta! spec=DeploymentSpec!* status=DeploymentStatus!
DeploymentCondition: lastTransitionTime=Time! lastUpdateTime=Time! message=str reason=str status=str!/ type=str!/
DeploymentSpec: minReadySeconds=int32 paused=bool progressDeadlineSeconds=int32? replicas=int32?
    revisionHistoryLimit=int32? selector=LabelSelector* strategy=DeploymentStrategy!~+ template=PodTemplateSpec!*
DeploymentStatus: availableReplicas=int32 collisionCount=int32? conditions={DeploymentCondition:type}~
    observedGeneration=int64 readyReplicas=int32 replicas=int32 terminatingReplicas=int32? unavailableReplicas=int32
    updatedReplicas=int32
DeploymentStrategy: rollingUpdate=RollingUpdateDeployment type=str
ReplicaSet: apiVersion=str kind=str metadata=ObjectMeta! spec=ReplicaSetSpec!* status=ReplicaSetStatus!
ReplicaSetCondition: lastTransitionTime=Time! message=str reason=str status=str!/ type=str!/
ReplicaSetSpec: minReadySeconds=int32 replicas=int32? selector=LabelSelector* template=PodTemplateSpec!
ReplicaSetStatus: availableReplicas=int32 conditions={ReplicaSetCondition:type}~ fullyLabeledReplicas=int32
    observedGeneration=int64 readyReplicas=int32 replicas=int32* terminatingReplicas=int32?
RollingUpdateDeployment: maxSurge=IntOrString maxUnavailable=IntOrString

@io.k8s.api.autoscaling.v1
Scale: apiVersion=str kind=str metadata=ObjectMeta! spec=ScaleSpec! status=ScaleStatus!
ScaleSpec: replicas=int32/0
ScaleStatus: replicas=int32* selector=str

@io.k8s.api.batch.v1
Job: apiVersion=str kind=str metadata=ObjectMeta! spec=JobSpec! status=JobStatus!
JobCondition: lastProbeTime=Time! lastTransitionTime=Time! message=str reason=str status=str* type=str*
JobSchedulingConfiguration: disruptionMode=WorkloadPodGroupDisruptionMode
    resourceClaims={WorkloadPodGroupResourceClaim:name}~ schedulingConstraints=WorkloadPodGroupSchedulingConstraints
    schedulingPolicy=WorkloadPodGroupSchedulingPolicy
JobSpec: activeDeadlineSeconds=int64? backoffLimit=int32? backoffLimitPerIndex=int32? completionMode=str?
    completions=int32? managedBy=str? manualSelector=bool? maxFailedIndexes=int32? parallelism=int32?
    podFailurePolicy=PodFailurePolicy podReplacementPolicy=str? scheduling=JobSchedulingConfiguration
    selector=LabelSelector successPolicy=SuccessPolicy suspend=bool? template=PodTemplateSpec!*
    ttlSecondsAfterFinished=int32?
JobStatus: active=int32 completedIndexes=str completionTime=Time conditions=[JobCondition]~type failed=int32
    failedIndexes=str? ready=int32? startTime=Time succeeded=int32 terminating=int32?
    uncountedTerminatedPods=UncountedTerminatedPods
PodFailurePolicy: rules=[PodFailurePolicyRule]!*
PodFailurePolicyOnExitCodesRequirement: containerName=str? operator=str* values={int32}!*
PodFailurePolicyOnPodConditionsPattern: status=str!/ type=str*
PodFailurePolicyRule: action=str* onExitCodes=PodFailurePolicyOnExitCodesRequirement
    onPodConditions=[PodFailurePolicyOnPodConditionsPattern]
SuccessPolicy: rules=[SuccessPolicyRule]!*
SuccessPolicyRule: succeededCount=int32? succeededIndexes=str?
UncountedTerminatedPods: failed={str} succeeded={str}

@io.k8s.api.coordination.v1
Lease: apiVersion=str kind=str metadata=ObjectMeta! spec=LeaseSpec!
LeaseSpec: acquireTime=MicroTime holderIdentity=str? leaseDurationSeconds=int32? leaseTransitions=int32?
    preferredHolder=str? renewTime=MicroTime strategy=str?

@io.k8s.api.policy.v1
Eviction: apiVersion=str deleteOptions=DeleteOptions kind=str metadata=ObjectMeta!

@io.k8s.api.scheduling.v1
PriorityClass: apiVersion=str description=str globalDefault=bool kind=str metadata=ObjectMeta! preemptionPolicy=str?
    value=int32!/0

@io.k8s.api.scheduling.v1alpha3
TopologyConstraint: key=str*
WorkloadPodGroupAllDisruptionMode:
WorkloadPodGroupBasicSchedulingPolicy:
WorkloadPodGroupDisruptionMode: all=WorkloadPodGroupAllDisruptionMode single=WorkloadPodGroupSingleDisruptionMode
WorkloadPodGroupGangSchedulingPolicy: minCount=int32?
WorkloadPodGroupResourceClaim: name=str* resourceClaimName=str? resourceClaimTemplateName=str?
WorkloadPodGroupSchedulingConstraints: topology=[TopologyConstraint]
WorkloadPodGroupSchedulingPolicy: basic=WorkloadPodGroupBasicSchedulingPolicy gang=WorkloadPodGroupGangSchedulingPolicy
WorkloadPodGroupSingleDisruptionMode:
"""
