"""A job as its controller reads it: the common view, and fields that only this controller needs."""

from typing import Final

from drachma.api import job, meta
from drachma.api.struct import ABSENT_TEXT, ABSENT_TUPLE, Int32, Struct
from drachma.claims import conditions
from drachma.client import target

COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
FAILURE_TARGET: Final = "FailureTarget"
"""The job has failed, but not all of its pods have finished."""

SUCCESS_CRITERIA_MET: Final = "SuccessCriteriaMet"
"""The job has succeeded, but not all of its pods have finished."""

SUSPENDED: Final = "Suspended"

_OWN_NAME: Final = "kubernetes.io/job-controller"


class Uncounted(Struct, frozen=True, kw_only=True):
    """Finished pods that still have their finalizer, so that none is lost or counted twice."""

    succeeded: tuple[str, ...] = ABSENT_TUPLE
    failed: tuple[str, ...] = ABSENT_TUPLE


class OnExitCodes(Struct, frozen=True, kw_only=True):
    """Requirement on the exit code of a container."""

    container_name: str | None = None
    operator: str = ABSENT_TEXT
    values: tuple[Int32, ...] = ABSENT_TUPLE


class OnPodCondition(Struct, frozen=True, kw_only=True):
    """Requirement on a condition of a pod."""

    type: str = ABSENT_TEXT
    status: str = ABSENT_TEXT


class PodFailurePolicyRule(Struct, frozen=True, kw_only=True):
    """Pattern of failures, and the action for them."""

    action: str = ABSENT_TEXT
    on_exit_codes: OnExitCodes | None = None
    on_pod_conditions: tuple[OnPodCondition, ...] = ABSENT_TUPLE


class PodFailurePolicy(Struct, frozen=True, kw_only=True):
    """Actions for failures of pods; the first rule that matches decides."""

    rules: tuple[PodFailurePolicyRule, ...] = ABSENT_TUPLE


class SuccessPolicyRule(Struct, frozen=True, kw_only=True):
    """Indexes, or a number of them, that are enough."""

    succeeded_indexes: str | None = None
    succeeded_count: Int32 | None = None


class SuccessPolicy(Struct, frozen=True, kw_only=True):
    """Success of a job before all of its indexes have succeeded; one rule is enough."""

    rules: tuple[SuccessPolicyRule, ...] = ABSENT_TUPLE


class Spec(job.JobSpec, frozen=True, kw_only=True):
    """Desired state of a job."""

    pod_failure_policy: PodFailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    backoff_limit_per_index: Int32 | None = None
    max_failed_indexes: Int32 | None = None
    pod_replacement_policy: str | None = None
    managed_by: str | None = None

    @property
    def is_indexed(self) -> bool:
        return self.completion_mode == "Indexed"

    @property
    def replaces_only_failed(self) -> bool:
        """True if terminating pods are replaced only once they have failed."""
        return self.pod_replacement_policy == "Failed"


class Status(job.JobStatus, frozen=True, kw_only=True):
    """Observed state of a job."""

    terminating: Int32 | None = None
    completed_indexes: str = ABSENT_TEXT
    failed_indexes: str | None = None
    uncounted_terminated_pods: Uncounted | None = None


class Job(meta.Object, frozen=True, kw_only=True):
    """A job."""

    spec: Spec = Spec()
    status: Status = Status()

    @property
    def is_suspended(self) -> bool:
        return bool(self.spec.suspend)

    @property
    def is_managed_elsewhere(self) -> bool:
        return self.spec.managed_by not in (None, _OWN_NAME)

    @property
    def mode(self) -> str:
        """Completion mode in metrics."""
        return "Indexed" if self.spec.is_indexed else "NonIndexed"


JOBS: Final = target.view_of(target.of(job.Job), Job)
"""Target of jobs in this view."""


def condition(status: job.JobStatus, kind: str) -> job.JobCondition | None:
    """Return the condition of a type if its status is True, else None."""
    found_condition = conditions.find(status.conditions, kind)
    return found_condition if found_condition is not None and found_condition.status == "True" else None


def is_finished(status: job.JobStatus) -> bool:
    """Return True if a job is complete or failed."""
    return condition(status, COMPLETE) is not None or condition(status, FAILED) is not None
