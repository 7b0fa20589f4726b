"""ClusterQueue and Cohort: quotas by flavor, and how they are shared."""

from drachma.api import meta
from drachma.api.struct import ABSENT_INT, ABSENT_TEXT, ABSENT_TUPLE, Int32, Int64, Struct
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
    """Quota of one resource: nominal quota, borrowing limit, lending limit."""

    name: str = ABSENT_TEXT
    nominal_quota: quantity.Quantity = _ZERO
    borrowing_limit: quantity.Quantity | None = None
    lending_limit: quantity.Quantity | None = None


class FlavorQuotas(Struct, frozen=True, kw_only=True):
    """Quotas of a flavor."""

    name: str = ABSENT_TEXT
    resources: tuple[ResourceQuota, ...] = ABSENT_TUPLE


class ResourceGroup(Struct, frozen=True, kw_only=True):
    """Resources that come from the same flavor, and the flavors in order of preference."""

    covered_resources: tuple[str, ...] = ABSENT_TUPLE
    flavors: tuple[FlavorQuotas, ...] = ABSENT_TUPLE


class FlavorFungibility(Struct, frozen=True, kw_only=True):
    """Policy for trying the next flavor before borrowing or preempting in one."""

    when_can_borrow: str = ABSENT_TEXT
    when_can_preempt: str = ABSENT_TEXT
    preference: str | None = None


class BorrowWithinCohort(Struct, frozen=True, kw_only=True):
    """Policy for preempting workloads of other queues in order to borrow."""

    policy: str = ABSENT_TEXT
    max_priority_threshold: Int32 | None = None


class Preemption(Struct, frozen=True, kw_only=True):
    """Policy for the workloads that a workload of the queue may preempt."""

    reclaim_within_cohort: str = ABSENT_TEXT
    borrow_within_cohort: BorrowWithinCohort | None = None
    within_cluster_queue: str = ABSENT_TEXT


class AdmissionCheckRule(Struct, frozen=True, kw_only=True):
    """A check that admissions with some flavors must pass; without flavors, all admissions."""

    name: str = ABSENT_TEXT
    on_flavors: tuple[str, ...] = ABSENT_TUPLE


class AdmissionChecksStrategy(Struct, frozen=True, kw_only=True):
    """Checks that admissions must pass."""

    admission_checks: tuple[AdmissionCheckRule, ...] = ABSENT_TUPLE


class FairSharing(Struct, frozen=True, kw_only=True):
    """Weight of a queue or cohort among its siblings."""

    weight: quantity.Quantity | None = None


class AdmissionScope(Struct, frozen=True, kw_only=True):
    """Order of admissions by past usage of local queues."""

    admission_mode: str = ABSENT_TEXT


class MigrationConstraints(Struct, frozen=True, kw_only=True):
    """The last flavor that is still good enough."""

    last_acceptable_flavor_name: str | None = None


class Migration(Struct, frozen=True, kw_only=True):
    """Migration of admitted workloads to better flavors."""

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
    """Usage of a resource, and the borrowed part of it."""

    name: str = ABSENT_TEXT
    total: quantity.Quantity = _ZERO
    borrowed: quantity.Quantity = _ZERO


class FlavorUsage(Struct, frozen=True, kw_only=True):
    """Usage of a flavor."""

    name: str = ABSENT_TEXT
    resources: tuple[ResourceUsage, ...] = ABSENT_TUPLE


class FairSharingStatus(Struct, frozen=True, kw_only=True):
    """Share of a queue or cohort under fair sharing."""

    weighted_share: Int64 = ABSENT_INT
    """Borrowed part of the lendable quota in thousandths, divided by the weight."""


class ClusterQueueStatus(Struct, frozen=True, kw_only=True):
    """Status of a cluster queue."""

    conditions: tuple[meta.Condition, ...] = ABSENT_TUPLE
    flavors_reservation: tuple[FlavorUsage, ...] = ABSENT_TUPLE
    pending_workloads: Int32 = ABSENT_INT
    reserving_workloads: Int32 = ABSENT_INT
    admitted_workloads: Int32 = ABSENT_INT
    fair_sharing: FairSharingStatus | None = None


class ClusterQueue(meta.Object, frozen=True, kw_only=True):
    """``kueue.x-k8s.io`` ClusterQueue; a partial view."""

    spec: ClusterQueueSpec = ClusterQueueSpec()
    status: ClusterQueueStatus = ClusterQueueStatus()


class CohortSpec(Struct, frozen=True, kw_only=True):
    """Quota that a group of queues and cohorts shares, and the parent of the group."""

    parent_name: str = ABSENT_TEXT
    resource_groups: tuple[ResourceGroup, ...] = ABSENT_TUPLE
    fair_sharing: FairSharing | None = None


class CohortStatus(Struct, frozen=True, kw_only=True):
    """Status of a cohort."""

    fair_sharing: FairSharingStatus | None = None


class Cohort(meta.Object, frozen=True, kw_only=True):
    """``kueue.x-k8s.io`` Cohort; a partial view."""

    spec: CohortSpec = CohortSpec()
    status: CohortStatus = CohortStatus()
