"""What pod groups and workloads have in common: policies, constraints and claims of groups of pods."""

from typing import Final

from drachma.server.schema import metatypes, notation

_TYPES: Final = """\
AllDisruptionMode:
BasicSchedulingPolicy:
DisruptionMode: all=AllDisruptionMode single=SingleDisruptionMode
GangSchedulingPolicy: minCount=int32*
PodGroupResourceClaim: name=str* resourceClaimName=str? resourceClaimTemplateName=str?
PodGroupResourceClaimStatus: name=str* resourceClaimName=str?
PodGroupSchedulingConstraints: topology=[TopologyConstraint]
PodGroupSchedulingPolicy: basic=BasicSchedulingPolicy gang=GangSchedulingPolicy
SingleDisruptionMode:
TopologyConstraint: key=str*
TypedLocalObjectReference: apiGroup=str kind=str* name=str*
WorkloadReference: templateName=str* workloadName=str*
AllCompositeDisruptionMode:
CompositeBasicSchedulingPolicy:
CompositeDisruptionMode: all=AllCompositeDisruptionMode single=SingleCompositeDisruptionMode
CompositeGangSchedulingPolicy: minGroupCount=int32*
CompositePodGroupSchedulingConstraints: topology=[TopologyConstraint]
CompositePodGroupSchedulingPolicy: basic=CompositeBasicSchedulingPolicy gang=CompositeGangSchedulingPolicy
CompositePodGroupTemplate: compositePodGroupTemplates={CompositePodGroupTemplate:name}
    disruptionMode=CompositeDisruptionMode name=str* podGroupTemplates={PodGroupTemplate:name} preemptionPolicy=str?
    priority=int32? priorityClassName=str schedulingConstraints=CompositePodGroupSchedulingConstraints
    schedulingPolicy=CompositePodGroupSchedulingPolicy!
PodGroup: apiVersion=str kind=str metadata=ObjectMeta! spec=PodGroupSpec! status=PodGroupStatus!
PodGroupSpec: disruptionMode=DisruptionMode parentCompositePodGroupName=str? preemptionPolicy=str? priority=int32?
    priorityClassName=str resourceClaims={PodGroupResourceClaim:name}~+
    schedulingConstraints=PodGroupSchedulingConstraints schedulingPolicy=PodGroupSchedulingPolicy!
    workloadRef=WorkloadReference
PodGroupStatus: conditions={Condition:type}~ resourceClaimStatuses={PodGroupResourceClaimStatus:name}~+
PodGroupTemplate: disruptionMode=DisruptionMode name=str* preemptionPolicy=str? priority=int32? priorityClassName=str
    resourceClaims={PodGroupResourceClaim:name}~+ schedulingConstraints=PodGroupSchedulingConstraints!?
    schedulingPolicy=PodGroupSchedulingPolicy!
SingleCompositeDisruptionMode:
Workload: apiVersion=str kind=str metadata=ObjectMeta! spec=WorkloadSpec!
WorkloadSpec: compositePodGroupTemplates={CompositePodGroupTemplate:name} controllerRef=TypedLocalObjectReference
    podGroupTemplates={PodGroupTemplate:name}!
"""
_NUMBERS: Final = """\
CompositeDisruptionMode: single all
CompositeGangSchedulingPolicy: minGroupCount
CompositePodGroupSchedulingConstraints: topology
CompositePodGroupSchedulingPolicy: basic gang
CompositePodGroupTemplate: name schedulingPolicy schedulingConstraints disruptionMode priorityClassName priority?
    preemptionPolicy? podGroupTemplates compositePodGroupTemplates
DisruptionMode: single all
GangSchedulingPolicy: minCount
PodGroup: metadata spec status
PodGroupResourceClaim: name resourceClaimName? resourceClaimTemplateName?
PodGroupResourceClaimStatus: name resourceClaimName?
PodGroupSchedulingConstraints: topology
PodGroupSchedulingPolicy: basic gang
PodGroupSpec: parentCompositePodGroupName? workloadRef schedulingPolicy schedulingConstraints resourceClaims
    disruptionMode priorityClassName priority? preemptionPolicy?
PodGroupStatus: conditions resourceClaimStatuses
PodGroupTemplate: name schedulingPolicy schedulingConstraints resourceClaims disruptionMode priorityClassName priority?
    preemptionPolicy?
TopologyConstraint: key
TypedLocalObjectReference: apiGroup kind name
Workload: metadata spec
WorkloadReference: workloadName templateName
WorkloadSpec: controllerRef podGroupTemplates compositePodGroupTemplates
"""
_TEXTS: Final = """\
PodGroup: Pods that are scheduled by one policy.
PodGroupSpec.schedulingPolicy: Whether all of them are scheduled at once.
PodGroupSpec.resourceClaims: Claims that the pods share.
PodGroupSpec.workloadRef: The template that the group is of.
Workload: Templates of groups of pods.
WorkloadSpec.podGroupTemplates: The templates.
WorkloadSpec.controllerRef: Whose pods they are.
"""

VERSIONS: Final = ("v1beta1", "v1alpha3")
"""Both have one shape."""

PACKAGES: Final = {
    version: notation.Types(
        f"io.k8s.api.scheduling.{version}", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META,)
    )
    for version in VERSIONS
}
