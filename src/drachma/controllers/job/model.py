"""A job as its controller reads it: the view that all components have, and the fields that only this one needs."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import hooks, job, meta
from drachma.api.struct import ABSENT_TEXT, ABSENT_TUPLE, Int32, Struct
from drachma.claims import conditions

COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
FAILURE_TARGET: Final = "FailureTarget"
"""The job has failed, but not all of its pods have ended."""

SUCCESS_CRITERIA_MET: Final = "SuccessCriteriaMet"
"""The job has succeeded, but not all of its pods have ended."""

SUSPENDED: Final = "Suspended"

_OWN_NAME: Final = "kubernetes.io/job-controller"


class Uncounted(Struct, frozen=True, kw_only=True):
    """Pods that have ended and hold their finalizer, so that none is lost or counted twice."""

    succeeded: tuple[str, ...] = ABSENT_TUPLE
    failed: tuple[str, ...] = ABSENT_TUPLE


class OnExitCodes(Struct, frozen=True, kw_only=True):
    """Containers that ended with some codes, or with others."""

    container_name: str | None = None
    operator: str = ABSENT_TEXT
    values: tuple[Int32, ...] = ABSENT_TUPLE


class OnPodCondition(Struct, frozen=True, kw_only=True):
    """Pods that have a condition."""

    type: str = ABSENT_TEXT
    status: str = ABSENT_TEXT


class PodFailurePolicyRule(Struct, frozen=True, kw_only=True):
    """Which failures of pods it is about, and what they mean."""

    action: str = ABSENT_TEXT
    on_exit_codes: OnExitCodes | None = None
    on_pod_conditions: tuple[OnPodCondition, ...] = ABSENT_TUPLE


class PodFailurePolicy(Struct, frozen=True, kw_only=True):
    """What failures of pods mean; the first rule that matches decides."""

    rules: tuple[PodFailurePolicyRule, ...] = ABSENT_TUPLE


class SuccessPolicyRule(Struct, frozen=True, kw_only=True):
    """Which indexes, or how many of them, are enough."""

    succeeded_indexes: str | None = None
    succeeded_count: Int32 | None = None


class SuccessPolicy(Struct, frozen=True, kw_only=True):
    """When a job has succeeded before all of its indexes have; one rule is enough."""

    rules: tuple[SuccessPolicyRule, ...] = ABSENT_TUPLE


class Spec(job.JobSpec, frozen=True, kw_only=True):
    """What is wanted."""

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
        """Whether pods that are on their way out are waited for."""
        return self.pod_replacement_policy == "Failed"


class Status(job.JobStatus, frozen=True, kw_only=True):
    """How far it is."""

    terminating: Int32 | None = None
    completed_indexes: str = ABSENT_TEXT
    failed_indexes: str | None = None
    uncounted_terminated_pods: Uncounted | None = None


class Job(meta.Object, frozen=True, kw_only=True):
    """One job."""

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
        """As metrics name it."""
        return "Indexed" if self.spec.is_indexed else "NonIndexed"


def read(document: Mapping[str, Any]) -> Job:
    """The job in a document; DecodeError if it makes no sense."""
    try:
        return msgspec.convert(document, Job, dec_hook=hooks.decode)
    except msgspec.ValidationError as error:
        name = (document.get("metadata") or {}).get("name", "")
        raise errors.DecodeError(f"job {name}: {error}") from None


def condition(of: job.JobStatus, kind: str) -> job.JobCondition | None:
    """The condition of a type, if it is true."""
    known = conditions.find(of.conditions, kind)
    return known if known is not None and known.status == "True" else None


def is_finished(of: job.JobStatus) -> bool:
    """Whether a job has come to its end."""
    return condition(of, COMPLETE) is not None or condition(of, FAILED) is not None
