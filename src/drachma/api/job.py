"""Job: pods that run to completion. A partial view."""

from drachma.api import meta, pod
from drachma.api.struct import ABSENT_INT, ABSENT_TEXT, ABSENT_TUPLE, Int32, Int64, Struct


class PodTemplateSpec(Struct, frozen=True, kw_only=True):
    """Template of the job's pods."""

    metadata: meta.ObjectMeta = meta.ABSENT_META
    spec: pod.PodSpec = pod.PodSpec()


class JobSpec(Struct, frozen=True, kw_only=True):
    """Completions, parallelism, retries and suspension."""

    parallelism: Int32 | None = None
    completions: Int32 | None = None
    active_deadline_seconds: Int64 | None = None
    backoff_limit: Int32 | None = None
    selector: meta.LabelSelector | None = None
    manual_selector: bool | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    ttl_seconds_after_finished: Int32 | None = None
    completion_mode: str | None = None
    suspend: bool | None = None


class JobCondition(Struct, frozen=True, kw_only=True):
    """One observed aspect of the job's state."""

    type: str = ABSENT_TEXT
    status: str = ABSENT_TEXT
    last_probe_time: meta.Time | None = None
    last_transition_time: meta.Time | None = None
    reason: str = ABSENT_TEXT
    message: str = ABSENT_TEXT


class JobStatus(Struct, frozen=True, kw_only=True):
    """Progress of the job."""

    conditions: tuple[JobCondition, ...] = ABSENT_TUPLE
    start_time: meta.Time | None = None
    completion_time: meta.Time | None = None
    active: Int32 = ABSENT_INT
    succeeded: Int32 = ABSENT_INT
    failed: Int32 = ABSENT_INT
    ready: Int32 | None = None


class Job(meta.Object, frozen=True, kw_only=True):
    """``batch`` Job, namespaced; a partial view."""

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()
