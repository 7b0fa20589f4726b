"""ClusterQueue and Cohort: who may use how much of which flavor, and what of it they share."""

from drachma.api import meta
from drachma.api.struct import ABSENT_INT, ABSENT_TEXT, ABSENT_TUPLE, Int32, Struct
from drachma.values import quantity

BEST_EFFORT_FIFO = "BestEffortFIFO"
STRICT_FIFO = "StrictFIFO"

NEVER = "Never"
ANY = "Any"
LOWER_PRIORITY = "LowerPriority"
LOWER_OR_NEWER_EQUAL_PRIORITY = "LowerOrNewerEqualPriority"

TRY_NEXT_FLAVOR = "TryNextFlavor"
MAY_STOP_SEARCH = "MayStopSearch"
PREEMPTION_OVER_BORROWING = "PreemptionOverBorrowing"

HOLD = "Hold"
HOLD_AND_DRAIN = "HoldAndDrain"

USAGE_BASED = "UsageBasedAdmissionFairSharing"

_ZERO = quantity.Quantity.parse("0")


class ResourceQuota(Struct, frozen=True, kw_only=True):
    """Of one resource: what there is, what may be borrowed beyond it, and what of it may be lent."""

    name: str = ABSENT_TEXT
    nominal_quota: quantity.Quantity = _ZERO
    borrowing_limit: quantity.Quantity | None = None
    lending_limit: quantity.Quantity | None = None


class FlavorQuotas(Struct, frozen=True, kw_only=True):
    """The quotas of a flavor."""

    name: str = ABSENT_TEXT
    resources: tuple[ResourceQuota, ...] = ABSENT_TUPLE


class ResourceGroup(Struct, frozen=True, kw_only=True):
    """Resources that are taken from one flavor together, and the flavors in the order of preference."""

    covered_resources: tuple[str, ...] = ABSENT_TUPLE
    flavors: tuple[FlavorQuotas, ...] = ABSENT_TUPLE


class FlavorFungibility(Struct, frozen=True, kw_only=True):
    """Whether the next flavor is tried before borrowing or preempting in one."""

    when_can_borrow: str = ABSENT_TEXT
    when_can_preempt: str = ABSENT_TEXT
    preference: str | None = None


class BorrowWithinCohort(Struct, frozen=True, kw_only=True):
    """Whether workloads of others are preempted in order to borrow."""

    policy: str = ABSENT_TEXT
    max_priority_threshold: Int32 | None = None


class Preemption(Struct, frozen=True, kw_only=True):
    """Whom a workload of the queue may displace."""

    reclaim_within_cohort: str = ABSENT_TEXT
    borrow_within_cohort: BorrowWithinCohort | None = None
    within_cluster_queue: str = ABSENT_TEXT


class AdmissionCheckRule(Struct, frozen=True, kw_only=True):
    """A check that admissions with some flavors must pass; no flavors: all admissions."""

    name: str = ABSENT_TEXT
    on_flavors: tuple[str, ...] = ABSENT_TUPLE


class AdmissionChecksStrategy(Struct, frozen=True, kw_only=True):
    """The checks that admissions must pass."""

    admission_checks: tuple[AdmissionCheckRule, ...] = ABSENT_TUPLE


class FairSharing(Struct, frozen=True, kw_only=True):
    """The weight of a queue or cohort against its siblings."""

    weight: quantity.Quantity | None = None


class AdmissionScope(Struct, frozen=True, kw_only=True):
    """Whether earlier usage of local queues orders admissions."""

    admission_mode: str = ABSENT_TEXT


class MigrationConstraints(Struct, frozen=True, kw_only=True):
    """The last flavor that is still good enough."""

    last_acceptable_flavor_name: str | None = None


class Migration(Struct, frozen=True, kw_only=True):
    """Whether admitted workloads move to better flavors."""

    mode: str = ABSENT_TEXT
    constraints: MigrationConstraints | None = None


class ConcurrentAdmissionPolicy(Struct, frozen=True, kw_only=True):
    """Several attempts at one admission at once."""

    migration: Migration = Migration()


class ClusterQueueSpec(Struct, frozen=True, kw_only=True):
    """Quota, order and rules of a queue."""

    resource_groups: tuple[ResourceGroup, ...] = ABSENT_TUPLE
    cohort_name: str = ABSENT_TEXT
    queueing_strategy: str = ABSENT_TEXT
    namespace_selector: meta.LabelSelector | None = None
    flavor_fungibility: FlavorFungibility | None = None
    preemption: Preemption | None = None
    admission_checks_strategy: AdmissionChecksStrategy | None = None
    stop_policy: str | None = None
    fair_sharing: FairSharing | None = None
    admission_scope: AdmissionScope | None = None
    concurrent_admission_policy: ConcurrentAdmissionPolicy | None = None


class ResourceUsage(Struct, frozen=True, kw_only=True):
    """What is used of a resource, and how much of that is not the queue's own."""

    name: str = ABSENT_TEXT
    total: quantity.Quantity = _ZERO
    borrowed: quantity.Quantity = _ZERO


class FlavorUsage(Struct, frozen=True, kw_only=True):
    """What is used of a flavor."""

    name: str = ABSENT_TEXT
    resources: tuple[ResourceUsage, ...] = ABSENT_TUPLE


class ClusterQueueStatus(Struct, frozen=True, kw_only=True):
    """What is known of the queue."""

    conditions: tuple[meta.Condition, ...] = ABSENT_TUPLE
    flavors_reservation: tuple[FlavorUsage, ...] = ABSENT_TUPLE
    pending_workloads: Int32 = ABSENT_INT
    reserving_workloads: Int32 = ABSENT_INT
    admitted_workloads: Int32 = ABSENT_INT


class ClusterQueue(meta.Object, frozen=True, kw_only=True):
    """``kueue.x-k8s.io`` ClusterQueue; a partial view."""

    spec: ClusterQueueSpec = ClusterQueueSpec()
    status: ClusterQueueStatus = ClusterQueueStatus()


class CohortSpec(Struct, frozen=True, kw_only=True):
    """Quota that a group of queues and cohorts has in common, and the group it belongs to itself."""

    parent_name: str = ABSENT_TEXT
    resource_groups: tuple[ResourceGroup, ...] = ABSENT_TUPLE
    fair_sharing: FairSharing | None = None


class Cohort(meta.Object, frozen=True, kw_only=True):
    """``kueue.x-k8s.io`` Cohort; a partial view."""

    spec: CohortSpec = CohortSpec()
