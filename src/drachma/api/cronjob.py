"""CronJob: jobs on a schedule. A partial view; the template stays a document."""

from collections.abc import Mapping
from typing import Any

from drachma.api import event, meta
from drachma.api.struct import ABSENT_MAP, ABSENT_TEXT, ABSENT_TUPLE, Int32, Int64, Struct


class CronJobSpec(Struct, frozen=True, kw_only=True):
    """Schedule, job template, and policies for running and finished jobs."""

    schedule: str = ABSENT_TEXT
    time_zone: str | None = None
    starting_deadline_seconds: Int64 | None = None
    concurrency_policy: str = ABSENT_TEXT
    suspend: bool | None = None
    job_template: Mapping[str, Any] = ABSENT_MAP
    successful_jobs_history_limit: Int32 | None = None
    failed_jobs_history_limit: Int32 | None = None


class CronJobStatus(Struct, frozen=True, kw_only=True):
    """Running jobs, and the times of the last schedule and the last success."""

    active: tuple[event.ObjectReference, ...] = ABSENT_TUPLE
    last_schedule_time: meta.Time | None = None
    last_successful_time: meta.Time | None = None


class CronJob(meta.Object, frozen=True, kw_only=True):
    """``batch`` CronJob, namespaced; a partial view."""

    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()
