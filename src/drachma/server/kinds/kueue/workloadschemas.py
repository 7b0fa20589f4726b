"""The schemas of workloads, in the notation of :mod:`schemanotation`; limits, rules and what they say are Kueue's."""

from typing import Final

_RESERVED: Final = "{0}.status.conditions.exists(c, c.type == '{1}' && c.status == 'True')"


def _reserves(name: str, condition: str = "QuotaReserved") -> str:
    """That an object has a condition, as an expression."""
    return f"has({name}.status) && has({name}.status.conditions) && {_RESERVED.format(name, condition)}"


_HAD: Final = _reserves("oldSelf")
_HAS: Final = _reserves("self")
_CLASSES: Final = "has(oldSelf.spec.priorityClassRef) && has(self.spec.priorityClassRef)"
_SAME_QUEUE: Final = (
    "((has(oldSelf.spec.queueName) == has(self.spec.queueName)) "
    "&& (!has(oldSelf.spec.queueName) || oldSelf.spec.queueName == self.spec.queueName))"
)
_SECONDS: Final = "(has({0}.spec.maximumExecutionTimeSeconds)?{0}.spec.maximumExecutionTimeSeconds:0)"
_SHARED_RULES: Final = f"""\
  ! podSetAssignments must have the same number of podSets as the spec
    {_HAS} && has(self.status.admission) ? size(self.spec.podSets) == size(self.status.admission.podSetAssignments) \
      : true
  ! queueName is immutable while workload quota reserved
    (({_HAD}) && ({_HAS})) ? {_SAME_QUEUE} : true
  ! maximumExecutionTimeSeconds is immutable while workload quota reserved
    (({_reserves("oldSelf", "Admitted")}) && ({_reserves("self", "Admitted")})) ? {_SECONDS.format("oldSelf")} == \
      {_SECONDS.format("self")} : true
"""

V1BETA2: Final = f"""\
Workload
  spec WorkloadSpec
  status WorkloadStatus
{_SHARED_RULES}\
  ! priorityClassRef is immutable while workload quota reserved
    ({_HAD}) ? (!has(oldSelf.spec.priorityClassRef) && !has(self.spec.priorityClassRef)) || ({_CLASSES}) : true
  ! priorityClassRef.group is immutable while workload quota reserved
    ({_HAD} && {_CLASSES}) ? oldSelf.spec.priorityClassRef.group == self.spec.priorityClassRef.group : true
  ! priorityClassRef.kind is immutable while workload quota reserved
    ({_HAD} && {_CLASSES}) ? oldSelf.spec.priorityClassRef.kind == self.spec.priorityClassRef.kind : true
  ! priorityClassRef.name is immutable for scheduling.k8s.io/priorityclass while workload quota reserved
    ({_HAD} && {_CLASSES} && self.spec.priorityClassRef.group == 'scheduling.k8s.io' && \
      self.spec.priorityClassRef.kind == 'PriorityClass') ? oldSelf.spec.priorityClassRef.name == \
      self.spec.priorityClassRef.name : true
WorkloadSpec
  active bool default=true
  maximumExecutionTimeSeconds int32 minimum=1
  podSets [PodSet] minItems=1 maxItems=18 by=name
  preemptionGates [PreemptionGate] maxItems=8 by=name
  priority int32
  priorityClassRef PriorityClassRef
  queueName str maxLength=253 pattern=subdomain
  ! priority should not be nil when priorityClassRef is set
    !has(self.priorityClassRef) || has(self.priority)
PodSet
  count int32 minimum=0 default=1
  minCount int32 minimum=1
  name str maxLength=63 pattern=label default="main"
  template* PodTemplate
  topologyRequest TopologyRequest
  ! minCount should be positive and less or equal to count
    has(self.minCount) ? self.minCount <= self.count : true
TopologyRequest
  podIndexLabel str maxLength=317
  podSetGroupName str maxLength=256
  podSetSliceRequiredTopology str maxLength=63
  podSetSliceSize int32 minimum=1
  podsetSliceRequiredTopologyConstraints [SliceConstraint] maxItems=3 atomic
  preferred str maxLength=63
  required str maxLength=63
  subGroupCount int32 minimum=0
  subGroupIndexLabel str maxLength=317
  unconstrained bool
SliceConstraint
  size* int32 minimum=1
  topology* str minLength=1 maxLength=63
PreemptionGate
  name* str minLength=1 maxLength=63
PriorityClassRef
  group* str enum=kueue.x-k8s.io|scheduling.k8s.io
  kind* str enum=WorkloadPriorityClass|PriorityClass
  name* str minLength=1 maxLength=253 pattern=subdomain
  ! only the PriorityClass kind is allowed for the scheduling.k8s.io group
    (self.group == 'scheduling.k8s.io') ? self.kind == 'PriorityClass' : true
  ! only the WorkloadPriorityClass kind is allowed for the kueue.x-k8s.io group
    (self.group == 'kueue.x-k8s.io') ? self.kind == 'WorkloadPriorityClass' : true
WorkloadStatus
  accumulatedPastExecutionTimeSeconds int32
  admission Admission
  admissionChecks [AdmissionCheckState] maxItems=8 by=name
  clusterName str maxLength=256
  conditions [Condition] maxItems=16 by=type
  nominatedClusterNames [str(maxLength=256)] maxItems=20 atomic
  preemptionGates [PreemptionGateState] maxItems=8 by=name
  reclaimablePods [ReclaimablePod] maxItems=18 by=name
  requeueState RequeueState
  resourceRequests [PodSetRequest] maxItems=18 by=name
  schedulingStats SchedulingStats
  unhealthyNodes [UnhealthyNode] maxItems=8 by=name
  ! clusterName is immutable once set
    !has(oldSelf.clusterName) || !has(self.clusterName) || oldSelf.clusterName == self.clusterName
  ! clusterName and nominatedClusterNames are mutually exclusive
    !has(self.clusterName) || (!has(self.nominatedClusterNames) || (has(self.nominatedClusterNames) && \
      size(self.nominatedClusterNames) == 0))
Admission
  clusterQueue str maxLength=253 pattern=subdomain
  podSetAssignments [PodSetAssignment] maxItems=18 by=name
PodSetAssignment
  count int32 minimum=0
  delayedTopologyRequest str maxLength=7 enum=Pending|Ready
  flavors <str(maxLength=253 pattern=subdomain)>
  name str maxLength=63 pattern=label default="main"
  resourceUsage <Quantity>
  topologyAssignment TopologyAssignment
TopologyAssignment
  levels* [str(maxLength=317)] minItems=1 maxItems=16 atomic
  slices* [TopologySlice] maxItems=1000 atomic
  ! valuesPerLevel must have the same length as the number of levels in this TopologyAssignment
    self.slices.all(x, size(x.valuesPerLevel) == size(self.levels))
TopologySlice
  domainCount* int32 minimum=1
  podCounts* PodCounts
  valuesPerLevel* [LevelValues] minItems=1 maxItems=16 atomic
  ! podCounts.individual must have length equal to domainCount
    !has(self.podCounts.individual) || size(self.podCounts.individual) == self.domainCount
  ! valuesPerLevel.individual, if set, must have roots of length equal to domainCount of this TopologyAssignmentSlice
    self.valuesPerLevel.all(x, !has(x.individual) || size(x.individual.roots) == self.domainCount)
PodCounts
  individual [int32(minimum=1)] minItems=1 maxItems=100000 atomic
  universal int32 minimum=1
  ! exactly one of the fields in [universal individual] must be set
    [has(self.universal),has(self.individual)].filter(x,x==true).size() == 1
LevelValues
  individual IndividualValues
  universal str maxLength=63
  ! exactly one of the fields in [universal individual] must be set
    has(self.universal) != has(self.individual)
IndividualValues
  prefix str maxLength=63
  roots* [str(maxLength=63)] minItems=1 maxItems=100000 atomic
  suffix str maxLength=63
AdmissionCheckState
  lastTransitionTime* Time
  message* str maxLength=32768
  name* str minLength=1 maxLength=316
  podSetUpdates [PodSetUpdate] maxItems=18 atomic
  requeueAfterSeconds int32 minimum=0
  retryCount int32 minimum=0
  state* str enum=Pending|Ready|Retry|Rejected
PodSetUpdate
  annotations <str>
  labels <str>
  name* str maxLength=63 pattern=label
  nodeSelector <str>
  tolerations Tolerations
PreemptionGateState
  lastTransitionTime* Time
  name* str minLength=1 maxLength=63
  position* str enum=Closed|Open
ReclaimablePod
  count* int32 minimum=0
  name* str maxLength=63 pattern=label
RequeueState
  count int32 minimum=0
  requeueAt Time
PodSetRequest
  name* str maxLength=63 pattern=label
  resources <Quantity>
SchedulingStats
  evictions [Eviction] maxItems=256 by=reason,underlyingCause
Eviction
  count* int32 minimum=0
  reason* str maxLength=316
  underlyingCause* str maxLength=316
UnhealthyNode
  name* str maxLength=63
"""

V1BETA1: Final = f"""\
+Workload
{_SHARED_RULES}\
  ! priorityClassSource is immutable while workload quota reserved
    ({_HAD} && has(oldSelf.spec.priorityClassSource) && has(self.spec.priorityClassSource)) ? \
      (oldSelf.spec.priorityClassSource == self.spec.priorityClassSource) : true
  ! priorityClassName is immutable while workload quota reserved and priorityClassSource is not equal to \
    kueue.x-k8s.io/workloadpriorityclass
    ({_HAD} && has(oldSelf.spec.priorityClassSource) && has(self.spec.priorityClassSource) && \
      (self.spec.priorityClassSource != 'kueue.x-k8s.io/workloadpriorityclass') && \
      has(oldSelf.spec.priorityClassName) && has(self.spec.priorityClassName)) ? (oldSelf.spec.priorityClassName == \
      self.spec.priorityClassName) : true
+WorkloadSpec
  podSets* [PodSet] minItems=1 maxItems=18 by=name
  -preemptionGates
  priorityClassName str maxLength=253 pattern=subdomain
  -priorityClassRef
  priorityClassSource str enum=kueue.x-k8s.io/workloadpriorityclass|scheduling.k8s.io/priorityclass| default=""
  ! priority should not be nil when priorityClassName is set
    has(self.priorityClassName) ? has(self.priority) : true
+PodSet
  count* int32 minimum=0 default=1
+TopologyRequest
  podIndexLabel str
  podSetGroupName str
  podSetSliceRequiredTopology str
  -podsetSliceRequiredTopologyConstraints
  preferred str
  required str
  subGroupCount int32
  subGroupIndexLabel str
+WorkloadStatus
  -accumulatedPastExecutionTimeSeconds
  accumulatedPastExexcutionTimeSeconds int32
  clusterName str
  conditions [Condition] by=type
  nominatedClusterNames [str] maxItems=20 atomic
  -preemptionGates
  unhealthyNodes [UnhealthyNode]
+Admission
  clusterQueue* str maxLength=253 pattern=subdomain
  podSetAssignments* [PodSetAssignment] maxItems=18 by=name
+PodSetAssignment
  delayedTopologyRequest str
  name* str maxLength=63 pattern=label default="main"
TopologyAssignment
  domains* [TopologyDomain]
  levels* [str] minItems=1 maxItems=16 atomic
TopologyDomain
  count* int32 minimum=1
  values* [str] minItems=1 maxItems=16 atomic
+AdmissionCheckState
  name* str maxLength=316
+SchedulingStats
  evictions [Eviction] by=reason,underlyingCause
+UnhealthyNode
  name* str
"""
