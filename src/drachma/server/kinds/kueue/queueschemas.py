"""The schemas of flavors, queues, cohorts, checks and priorities, in the notation of :mod:`schemanotation`.

Limits, defaults, rules and what is said where a rule does not hold are Kueue's: its definitions have the same.
"""

from typing import Final

SHARED: Final = """\
Condition
  lastTransitionTime* Time
  message* str maxLength=32768
  observedGeneration int64 minimum=0
  reason* str minLength=1 maxLength=1024 pattern=reason
  status* str enum=True|False|Unknown
  type* str maxLength=316 pattern=condition
Toleration
  effect str
  key str
  operator str
  tolerationSeconds int64
  value str
Tolerations = [Toleration] maxItems=8 atomic
  ! operator must be Exists when 'key' is empty, which means 'match all values and all keys'
    self.all(x, !has(x.key) ? x.operator == 'Exists' : true)
  ! effect must be 'NoExecute' when 'tolerationSeconds' is set
    self.all(x, has(x.tolerationSeconds) ? x.effect == 'NoExecute' : true)
  ! supported toleration values: 'Equal'(default), 'Exists'
    self.all(x, !has(x.operator) || x.operator in ['Equal', 'Exists'])
  ! a value must be empty when 'operator' is 'Exists'
    self.all(x, has(x.operator) && x.operator == 'Exists' ? !has(x.value) : true)
  ! supported taint effect values: 'NoSchedule', 'PreferNoSchedule', 'NoExecute'
    self.all(x, !has(x.effect) || x.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])
"""

V1BETA2: Final = """\
Taint
  effect* str
  key* str
  timeAdded Time
  value str
ResourceFlavor
  spec ResourceFlavorSpec
ResourceFlavorSpec
  nodeLabels <str> maxProperties=8 atomic
  nodeTaints [Taint] maxItems=8 atomic
    ! supported taint effect values: 'NoSchedule', 'PreferNoSchedule', 'NoExecute'
      self.all(x, x.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])
  tolerations Tolerations
  topologyName str maxLength=253 pattern=subdomain
  ! at least one nodeLabel is required when topology is set
    !has(self.topologyName) || self.nodeLabels.size() >= 1
  ! topologyName is immutable when topologyName is set
    !has(oldSelf.topologyName) || (has(self.topologyName) && self.topologyName == oldSelf.topologyName)
WorkloadPriorityClass
  description str maxLength=2048
  value* int32
AdmissionCheck
  spec AdmissionCheckSpec
  status AdmissionCheckStatus
AdmissionCheckSpec
  controllerName* str minLength=1 maxLength=253
    ! field is immutable
      self == oldSelf
  parameters AdmissionCheckParameters
AdmissionCheckParameters
  apiGroup* str minLength=1 maxLength=253 pattern=subdomain
  kind* str minLength=1 maxLength=63 pattern=kind
  name* str minLength=1 maxLength=63 pattern=label
AdmissionCheckStatus
  conditions [Condition] maxItems=16 by=type
FairSharing
  weight Quantity default=1
FairSharingStatus
  weightedShare* int64
ResourceQuota
  borrowingLimit Quantity
  lendingLimit Quantity
  name* str
  nominalQuota* Quantity
FlavorQuotas
  name* str maxLength=253 pattern=subdomain
  resources* [ResourceQuota] minItems=1 maxItems=64 by=name
ResourceGroup
  coveredResources* [str] minItems=1 maxItems=64 atomic
  flavors* [FlavorQuotas] minItems=1 maxItems=64 by=name
  ! flavors must have the same number of resources as the coveredResources
    self.flavors.all(x, size(x.resources) == size(self.coveredResources))
Cohort
  spec CohortSpec
  status CohortStatus
CohortSpec
  fairSharing FairSharing
  parentName str maxLength=253 pattern=subdomain
  resourceGroups [ResourceGroup] maxItems=16 atomic
CohortStatus
  fairSharing FairSharingStatus
ClusterQueue
  spec ClusterQueueSpec
  status ClusterQueueStatus
ClusterQueueSpec
  admissionChecksStrategy AdmissionChecksStrategy
  admissionScope AdmissionScope
  cohortName str maxLength=253 pattern=subdomain
  concurrentAdmissionPolicy ConcurrentAdmissionPolicy
  fairSharing FairSharing
  flavorFungibility FlavorFungibility default={}
  namespaceSelector LabelSelector
  preemption Preemption default={}
  queueingStrategy str enum=StrictFIFO|BestEffortFIFO default="BestEffortFIFO"
  resourceGroups [ResourceGroup] maxItems=16 atomic
  stopPolicy str enum=None|Hold|HoldAndDrain default="None"
  ! borrowingLimit must be nil when cohort is empty
    !has(self.cohortName) && has(self.resourceGroups) ? self.resourceGroups.all(rg, rg.flavors.all(f, \
      f.resources.all(r, !has(r.borrowingLimit)))) : true
AdmissionChecksStrategy
  admissionChecks* [AdmissionCheckRule] minItems=1 maxItems=64 by=name
AdmissionCheckRule
  name* str minLength=1 maxLength=316
  onFlavors [str(maxLength=253 pattern=subdomain)] maxItems=64 set
AdmissionScope
  admissionMode* str enum=UsageBasedAdmissionFairSharing|NoAdmissionFairSharing
ConcurrentAdmissionPolicy
  migration* Migration
Migration
  constraints MigrationConstraints
  mode* str maxLength=253 enum=TryPreferredFlavors|RetainFirstAdmission
MigrationConstraints
  lastAcceptableFlavorName str maxLength=253 pattern=subdomain
FlavorFungibility
  preference str enum=BorrowingOverPreemption|PreemptionOverBorrowing
  whenCanBorrow str enum=MayStopSearch|TryNextFlavor default="MayStopSearch"
  whenCanPreempt str enum=MayStopSearch|TryNextFlavor default="TryNextFlavor"
  ! preference can only be set when both whenCanBorrow and whenCanPreempt are TryNextFlavor
    !has(self.preference) || (self.whenCanBorrow == 'TryNextFlavor' && self.whenCanPreempt == 'TryNextFlavor')
Preemption
  borrowWithinCohort BorrowWithinCohort default={}
  reclaimWithinCohort str enum=Never|LowerPriority|Any default="Never"
  withinClusterQueue str enum=Never|LowerPriority|LowerOrNewerEqualPriority default="Never"
  ! reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never
    !(self.reclaimWithinCohort == 'Never' && has(self.borrowWithinCohort) &&  self.borrowWithinCohort.policy != \
      'Never')
BorrowWithinCohort
  maxPriorityThreshold int32
  policy str enum=Never|LowerPriority default="Never"
ClusterQueueStatus
  admittedWorkloads int32
  conditions [Condition] maxItems=16 by=type
  fairSharing FairSharingStatus
  flavorsReservation [FlavorUsage] maxItems=64 by=name
  flavorsUsage [FlavorUsage] maxItems=64 by=name
  pendingWorkloads int32
  reservingWorkloads int32
FlavorUsage
  name* str maxLength=253 pattern=subdomain
  resources* [ResourceUsage] maxItems=64 by=name
ResourceUsage
  borrowed Quantity
  name* str
  total Quantity
LocalQueue
  spec LocalQueueSpec
  status LocalQueueStatus
LocalQueueSpec
  clusterQueue str maxLength=253 pattern=subdomain
    ! field is immutable
      self == oldSelf
  fairSharing FairSharing
  stopPolicy str enum=None|Hold|HoldAndDrain default="None"
LocalQueueStatus
  admittedWorkloads int32
  conditions [Condition] maxItems=16 by=type
  fairSharing LocalQueueFairSharingStatus
  flavorsReservation [LocalQueueFlavorUsage] maxItems=64 by=name
  flavorsUsage [LocalQueueFlavorUsage] maxItems=64 by=name
  pendingWorkloads int32
  reservingWorkloads int32
LocalQueueFairSharingStatus
  admissionFairSharingStatus AdmissionFairSharingStatus
  weightedShare* int64
AdmissionFairSharingStatus
  consumedResources* <Quantity>
  lastUpdate* Time
LocalQueueFlavorUsage
  name* str maxLength=253 pattern=subdomain
  resources* [LocalQueueResourceUsage] maxItems=64 by=name
LocalQueueResourceUsage
  name* str
  total Quantity
"""

V1BETA1: Final = """\
+WorkloadPriorityClass
  description str
+AdmissionCheckSpec
  controllerName* str
    ! field is immutable
      self == oldSelf
  retryDelayMinutes int64 default=15
+AdmissionCheckParameters
  apiGroup* str maxLength=253 pattern=subdomain
  kind* str maxLength=63 pattern=kind
  name* str maxLength=63 pattern=label
+AdmissionCheckStatus
  conditions [Condition] by=type
+ResourceGroup
  coveredResources* [str] minItems=1 maxItems=64
+FairSharingStatus
  admissionFairSharingStatus AdmissionFairSharingStatus
+ClusterQueueSpec
  admissionChecks [str(maxLength=316)]
  cohort str maxLength=253 pattern=subdomain
  -cohortName
  -concurrentAdmissionPolicy
  ! borrowingLimit must be nil when cohort is empty
    !has(self.cohort) && has(self.resourceGroups) ? self.resourceGroups.all(rg, rg.flavors.all(f, f.resources.all(r, \
      !has(r.borrowingLimit)))) : true
+AdmissionChecksStrategy
  admissionChecks [AdmissionCheckRule]
+AdmissionCheckRule
  name* str maxLength=316
  onFlavors [str(maxLength=253 pattern=subdomain)]
+AdmissionScope
  admissionMode* str
+FlavorFungibility
  whenCanBorrow str enum=MayStopSearch|TryNextFlavor|Borrow default="MayStopSearch"
  whenCanPreempt str enum=MayStopSearch|TryNextFlavor|Preempt default="TryNextFlavor"
+ClusterQueueStatus
  conditions [Condition] by=type
  pendingWorkloadsStatus PendingWorkloadsStatus
PendingWorkloadsStatus
  clusterQueuePendingWorkload [PendingWorkload] atomic
  lastChangeTime* Time
PendingWorkload
  name* str
  namespace* str
+LocalQueueStatus
  conditions [Condition] by=type
  flavorUsage [LocalQueueFlavorUsage] maxItems=64 by=name
  flavors [LocalQueueFlavor] maxItems=64 by=name
  -flavorsUsage
LocalQueueFlavor
  name* str maxLength=253 pattern=subdomain
  nodeLabels <str> maxProperties=8 atomic
  nodeTaints [Taint] maxItems=8 atomic
  resources [str] maxItems=64 set
  topology LocalQueueTopology
LocalQueueTopology
  levels* [str] minItems=1 maxItems=16 atomic
  name* str maxLength=253 pattern=subdomain
"""
