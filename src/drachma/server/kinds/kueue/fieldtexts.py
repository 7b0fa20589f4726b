"""What the fields of Kueue's kinds mean, for ``kubectl explain``: a block for a type, a line for a field.

A text stands for a field in every version that has it. The line after a type's name that is not about a field, after
``:``, is about the type itself.
"""

from collections.abc import Mapping
from typing import Final

_TEXTS: Final = """\
Condition
  lastTransitionTime Since when the status is what it is.
  message What people read about it.
  observedGeneration The generation of the object that it is about.
  reason What programs read about it.
  status True, False or Unknown.
  type What it is about.
Toleration
  effect Which effect of taints is tolerated; none means all.
  key Which taint is tolerated; none means all.
  operator Exists, or Equal to the value.
  tolerationSeconds How long a NoExecute taint is tolerated.
  value The value of the taint, with Equal.
Taint
  effect What becomes of pods that do not tolerate it.
  key The name of the taint.
  timeAdded When it was added.
  value The value of the taint.
ResourceFlavor
  : A sort of nodes that quota is given out for.
  spec Which nodes are of the flavor.
ResourceFlavorSpec
  nodeLabels Labels of its nodes; pods that get the flavor get them as node selector.
  nodeTaints Taints of its nodes; only workloads that tolerate them get the flavor.
  tolerations What pods that get the flavor tolerate beside their own.
  topologyName The topology of its nodes; topology aware scheduling is not carried out here.
WorkloadPriorityClass
  : A priority for workloads, apart from that of their pods.
  description When to use the class.
  value The priority; higher ones are admitted first, and may preempt.
AdmissionCheck
  : Something that others look at before a workload with quota is admitted.
  spec Who looks.
  status Whether somebody looks.
AdmissionCheckSpec
  controllerName Which controller looks at workloads for this check.
  parameters An object with settings for that controller.
  retryDelayMinutes Not used any more.
AdmissionCheckParameters
  apiGroup The group of the object.
  kind The kind of the object.
  name The name of the object.
AdmissionCheckStatus
  conditions Active: whether the controller is there.
FairSharing
  weight How much of what is unused should be had, beside others; 0 has nothing of it.
FairSharingStatus
  weightedShare How much more than its own is used, by weight: the largest ratio of all resources, in thousandths.
  admissionFairSharingStatus What was used in the past.
ResourceQuota
  borrowingLimit How much more than the nominal quota may be used, of what others in the cohort leave; unset means all.
  lendingLimit How much of the nominal quota others in the cohort may use while it is unused; unset means all.
  name The resource.
  nominalQuota How much there is.
FlavorQuotas
  name The flavor; those that come first are tried first.
  resources Quota for each of the covered resources, in their order.
ResourceGroup
  coveredResources Resources that a pod set gets of one flavor.
  flavors The flavors that have them, with their quota.
Cohort
  : Queues and cohorts that lend each other what they do not use.
  spec Its place in the tree, and what it has by itself.
  status How much of it is used.
CohortSpec
  fairSharing How it shares with its siblings.
  parentName The cohort above; one that nobody made has no quota of its own.
  resourceGroups Quota that belongs to all below.
CohortStatus
  fairSharing How much more than its own it uses.
ClusterQueue
  : Quota for workloads, and the rules by which they get it.
  spec The quota and the rules.
  status What is used, and who waits.
ClusterQueueSpec
  admissionChecks Checks for workloads of all flavors.
  admissionChecksStrategy Checks that workloads have to pass, by flavor.
  admissionScope Whether past usage orders workloads; not carried out here.
  cohort The cohort with which it shares quota.
  cohortName The cohort with which it shares quota.
  concurrentAdmissionPolicy Whether variants of a workload are tried at once; not carried out here.
  fairSharing How it shares with its siblings.
  flavorFungibility Whether to try the next flavor before borrowing or preempting.
  namespaceSelector Namespaces whose workloads may be admitted; unset means none, {} means all.
  preemption Who may be preempted.
  queueingStrategy StrictFIFO: a workload that does not fit holds up those behind it. BestEffortFIFO: it does not.
  resourceGroups Quota by resource and flavor; each resource is in one group.
  stopPolicy Hold: nobody is admitted. HoldAndDrain: and who runs is evicted.
AdmissionChecksStrategy
  admissionChecks The checks.
AdmissionCheckRule
  name The check.
  onFlavors Flavors for which it counts; none means all.
AdmissionScope
  admissionMode How past usage counts.
ConcurrentAdmissionPolicy
  migration When a workload moves to a better flavor.
Migration
  constraints Where it moves.
  mode Whether it moves.
MigrationConstraints
  lastAcceptableFlavorName The last flavor that is worth a move.
FlavorFungibility
  preference What is worse where both are possible: borrowing, or preempting.
  whenCanBorrow MayStopSearch: borrow in this flavor. TryNextFlavor: look at the others first.
  whenCanPreempt MayStopSearch: preempt in this flavor. TryNextFlavor: look at the others first.
Preemption
  borrowWithinCohort Whether a workload that borrows may preempt others in the cohort.
  reclaimWithinCohort Whether a workload within the nominal quota may preempt those in the cohort that borrow.
  withinClusterQueue Whether a workload that does not fit may preempt others of the queue.
BorrowWithinCohort
  maxPriorityThreshold Only workloads of this priority and below are preempted.
  policy Never, or LowerPriority.
ClusterQueueStatus
  admittedWorkloads How many are admitted and not over.
  conditions Active: whether workloads can be admitted, and why not.
  fairSharing How much more than its own it uses.
  flavorsReservation What workloads with quota hold.
  flavorsUsage What admitted workloads hold.
  pendingWorkloads How many wait.
  pendingWorkloadsStatus Not written any more.
  reservingWorkloads How many have quota and are not over.
FlavorUsage
  name The flavor.
  resources What is held of it.
ResourceUsage
  borrowed How much of it is beyond the nominal quota.
  name The resource.
  total How much is held.
LocalQueue
  : The door of a namespace to a cluster queue.
  spec Which cluster queue it leads to.
  status Who came through it.
LocalQueueSpec
  clusterQueue The cluster queue.
  fairSharing How it shares with other local queues.
  stopPolicy Hold: nobody is admitted. HoldAndDrain: and who runs is evicted.
LocalQueueStatus
  admittedWorkloads How many are admitted and not over.
  conditions Active: whether workloads can be admitted, and why not.
  fairSharing What was used in the past.
  flavorUsage What admitted workloads hold.
  flavors The flavors of the cluster queue.
  flavorsReservation What workloads with quota hold.
  flavorsUsage What admitted workloads hold.
  pendingWorkloads How many wait.
  reservingWorkloads How many have quota and are not over.
LocalQueueFlavorUsage
  name The flavor.
  resources What is held of it.
LocalQueueResourceUsage
  name The resource.
  total How much is held.
Workload
  : Pods that are admitted together, and what was decided about them.
  spec What is to be admitted.
  status What became of it.
WorkloadSpec
  active Whether it may be admitted; false evicts it.
  maximumExecutionTimeSeconds How long it may run until it is deactivated.
  podSets Groups of equal pods.
  preemptionGates Gates that keep it from preempting others while they are closed.
  priority Higher ones are admitted first, and may preempt.
  priorityClassName Where the priority comes from.
  priorityClassRef Where the priority comes from.
  priorityClassSource Of which kind the priority class is.
  queueName The local queue; it stays while the workload has quota.
PodSet
  count How many pods there are.
  minCount With how few of them the workload may be admitted.
  name What assignments call it.
  template What the pods are.
  topologyRequest How close to each other the pods are to be; not carried out here.
PreemptionGate
  name The gate.
PriorityClassRef
  group The group of the class.
  kind The kind of the class.
  name The class.
WorkloadStatus
  accumulatedPastExecutionTimeSeconds How long it ran before its last eviction.
  accumulatedPastExexcutionTimeSeconds How long it ran before its last eviction.
  admission The quota that it has; none while it waits.
  admissionChecks What the checks say.
  clusterName The cluster that runs it.
  conditions How far it is, and why no further: QuotaReserved, Admitted, PodsReady, Evicted, Requeued, Finished.
  nominatedClusterNames Clusters that may run it.
  preemptionGates Which gates are open.
  reclaimablePods Pods that need their quota no more.
  requeueState When it may be tried again.
  resourceRequests What was last asked for, while it waits.
  schedulingStats What happened to it so far.
  unhealthyNodes Nodes that have to be replaced.
Admission
  clusterQueue Whose quota it is.
  podSetAssignments What each pod set was given.
PodSetAssignment
  count How many pods were admitted; fewer than there are in partial admission.
  delayedTopologyRequest Whether a place in the topology comes later.
  flavors The flavor of each resource.
  name The pod set.
  resourceUsage How much all its pods are charged with.
  topologyAssignment Where in the topology its pods go.
AdmissionCheckState
  lastTransitionTime When the state changed last.
  message What people read about it.
  name The check.
  podSetUpdates What pods get when the check is ready.
  requeueAfterSeconds How long to wait before the next attempt, in state Retry.
  retryCount How often it was tried again.
  state Pending, Ready, Retry (the workload is evicted and waits) or Rejected (it is deactivated).
PodSetUpdate
  annotations Annotations that pods get.
  labels Labels that pods get.
  name The pod set.
  nodeSelector Labels that nodes of the pods must have.
  tolerations What the pods tolerate.
PreemptionGateState
  lastTransitionTime When it was opened or closed last.
  name The gate.
  position Open or Closed.
ReclaimablePod
  count How many.
  name The pod set.
RequeueState
  count How often it was put back because its pods were not ready in time.
  requeueAt Not before this time.
PodSetRequest
  name The pod set.
  resources How much all its pods ask for.
SchedulingStats
  evictions How often it was evicted, by reason.
Eviction
  count How often.
  reason Why.
  underlyingCause What was behind that, if anything.
UnhealthyNode
  name The node.
AdmissionFairSharingStatus
  consumedResources What was used, the past counting less.
  lastUpdate When that was worked out.
LocalQueueFairSharingStatus
  admissionFairSharingStatus What was used in the past.
  weightedShare How much more than its own is used, by weight.
LocalQueueFlavor
  name The flavor.
  nodeLabels Labels of its nodes.
  nodeTaints Taints of its nodes.
  resources What there is of it.
  topology The topology of its nodes.
LocalQueueTopology
  levels Labels of nodes, from large to small.
  name The topology.
PendingWorkload
  name The workload.
  namespace Its namespace.
PendingWorkloadsStatus
  clusterQueuePendingWorkload Who waits, first ones first.
  lastChangeTime When that changed last.
TopologyRequest
  podIndexLabel The label of pods that counts them.
  podSetGroupName Pod sets of one group go to the same place.
  podSetSliceRequiredTopology The label of nodes that pods of a slice must share.
  podSetSliceSize How many pods a slice has.
  podsetSliceRequiredTopologyConstraints Slices in slices.
  preferred The label of nodes that pods had better share.
  required The label of nodes that pods must share.
  subGroupCount How many groups of pods there are.
  subGroupIndexLabel The label of pods that counts their groups.
  unconstrained Anywhere in the topology.
SliceConstraint
  size How many pods a slice has.
  topology The label of nodes that they must share.
TopologyAssignment
  domains Where how many pods go.
  levels Labels of nodes, from large to small.
  slices Where how many pods go, written shortly.
TopologyDomain
  count How many pods.
  values The values of the labels.
TopologySlice
  domainCount How many places.
  podCounts How many pods in each.
  valuesPerLevel The values of the labels, level by level.
PodCounts
  individual Of each place.
  universal The same for all.
LevelValues
  individual Of each place.
  universal The same for all.
IndividualValues
  prefix What all of them begin with.
  roots What is in between.
  suffix What all of them end with.
"""


def texts() -> Mapping[tuple[str, str], str]:
    """Texts by type and field; those of types themselves have no field."""
    found: dict[tuple[str, str], str] = {}
    owner = ""
    for line in _TEXTS.splitlines():
        if not line.startswith(" "):
            owner = line
            continue
        field, _, text = line.strip().partition(" ")
        found[owner, field.removesuffix(":")] = text
    return found
