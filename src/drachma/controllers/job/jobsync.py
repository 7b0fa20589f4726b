"""One reconcile of a job: its pods, the resulting actions, and the new status.

Pods are counted in steps, as upstream: their uids are written to the status, then they lose their finalizer, then the
counters go up. So a finished pod is counted exactly once, whatever fails in between.
"""

import datetime as dt
from typing import Final, NamedTuple

import prometheus_client
from msgspec import structs

from drachma import errors
from drachma.api import job, pod
from drachma.controllers import objectwrites
from drachma.controllers.job import (
    failurepolicy,
    indexes,
    indexfailures,
    model,
    outcome,
    podcontrol,
    progress,
    retries,
    tally,
)
from drachma.controllers.workload import podcontrol as workload_pods
from drachma.runtime import cache, events


class JobMetrics:
    """Metrics of reconciles, finished jobs and finished pods."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._syncs: Final = prometheus_client.Counter(
            "job_controller_job_syncs_total", "Reconciles of jobs.", ("completion_mode", "result"), registry=registry
        )
        self._ends: Final = prometheus_client.Counter(
            "job_controller_jobs_finished_total",
            "Finished jobs.",
            ("completion_mode", "result", "reason"),
            registry=registry,
        )
        self._pods: Final = prometheus_client.Counter(
            "job_controller_job_pods_finished_total",
            "Finished pods of jobs that were counted.",
            ("completion_mode", "result"),
            registry=registry,
        )

    def count_sync(self, mode: str, *, result: str) -> None:
        self._syncs.labels(mode, result).inc()

    def count_end(self, mode: str, *, result: str, reason: str) -> None:
        self._ends.labels(mode, result, reason).inc()

    def count_pods(self, mode: str, *, succeeded: int, failed: int) -> None:
        # A smaller indexed job has fewer successes than before, and counters only grow.
        self._pods.labels(mode, "succeeded").inc(max(succeeded, 0))
        self._pods.labels(mode, "failed").inc(max(failed, 0))


_MOST_UNCOUNTED: Final = 500


class _Change(NamedTuple):
    """Number of pods created and deleted."""

    made: int = 0
    deleted: int = 0


class JobSync:
    """State of one reconcile. ``wait`` has the seconds until the next one, if any."""

    def __init__(
        self,
        entry: cache.Entry[job.Job],
        *,
        pods: tuple[pod.Pod, ...],
        control: podcontrol.PodControl,
        writer: objectwrites.Writer[job.Job],
        recorder: events.Recorder,
        metrics: JobMetrics,
        now: dt.datetime,
    ) -> None:
        self.wait: float | None = None
        self._entry: Final = entry
        self._stored = entry.object
        """The job as last read or written here."""
        self._writer: Final = writer
        self._control: Final = control
        self._recorder: Final = recorder
        self._metrics: Final = metrics
        self._now: Final = now.replace(microsecond=0)
        self._job = entry.view(model.JOBS)
        self._written = progress.Progress.of(self._job.status)
        self._progress: Final = progress.Progress.of(self._job.status)
        self._tally: Final = tally.of(self._job, pods)
        self._succeeded: Final = tally.succeeded_indexes(self._job, pods) if self._job.spec.is_indexed else frozenset()
        self._failed: Final = indexfailures.failed_indexes(self._job, pods)
        self._last_failures: Final = indexfailures.last_failures(
            self._job, self._tally, finished=self._succeeded | (self._failed or frozenset())
        )
        if self._job.status.start_time is None and not self._job.is_suspended:
            self._start(self._now)

    async def run(self, before: retries.Failures) -> retries.Failures:
        """Reconcile the job. Takes and returns the failures of the job's pods since the last success."""
        failures = before.followed_by(self._tally.new_succeeded, self._tally.new_failed)
        end = outcome.decided(self._job)
        end = end or outcome.failure(self._job, self._tally, now=self._now)
        if end is None and self._job.spec.is_indexed:
            end = outcome.index_result(self._job, succeeded=self._succeeded, failed=self._failed)
        problem: errors.DrachmaError | None = None
        change = _Change()
        try:
            change = await self._finish() if end is not None else await self._manage(failures)
        except errors.DrachmaError as error:
            # Finished pods are counted all the same, but the job is not finished.
            problem, end = error, None
        count = len(self._tally.active) + change.made - change.deleted
        if end is None and problem is None:
            end = outcome.success(self._job, self._tally, active=count)
            if end is None and self._job.metadata.deletion_timestamp is None:
                self._update_suspension()
        self._progress.active = count
        self._progress.ready = min(self._tally.ready, count)
        self._progress.terminating = self._tally.terminating + change.deleted
        await self._track(end)
        if problem is not None:
            raise problem
        seconds_left = outcome.time_left(self._job, now=self._now)
        if end is None and seconds_left is not None:
            self._reconcile_after(seconds_left)
        return failures

    # Pods

    async def _finish(self) -> "_Change":
        """Delete the active pods of a finished job; they are counted."""
        active = self._tally.active
        await self._control.delete(self._stored, active, is_counted=True)
        return _Change(deleted=len(active))

    async def _manage(self, failures: retries.Failures) -> "_Change":
        """Create or delete pods to reach the desired number."""
        if self._job.metadata.deletion_timestamp is not None:
            return _Change()
        active, desired = len(self._tally.active), self._wanted_active()
        surplus = self._surplus(max(active - desired, 0))
        if surplus:
            await self._control.delete(self._stored, surplus, is_counted=False)
            return _Change(deleted=len(surplus))
        shortage = desired - active
        if self._job.spec.replaces_only_failed:
            shortage -= self._tally.terminating
        if shortage <= 0:
            return _Change()
        places, pause = self._new_places(min(shortage, workload_pods.MOST_AT_ONCE), failures)
        if pause > 0:
            self._reconcile_after(pause)
        return _Change(made=await self._control.create(self._entry, places))

    def _wanted_active(self) -> int:
        if self._job.is_suspended:
            return 0
        parallelism = self._job.spec.parallelism if self._job.spec.parallelism is not None else 1
        if self._job.spec.completions is None:
            # After the first success no pods are added.
            return len(self._tally.active) if self._tally.succeeded else parallelism
        return max(min(self._job.spec.completions - self._tally.succeeded, parallelism), 0)

    def _surplus(self, count: int) -> list[pod.Pod]:
        """Return the pods to delete: duplicate and invalid indexes first, then those beyond the desired number."""
        ordered = sorted(self._tally.active, key=tally.removal_order)
        wrong: list[pod.Pod] = []
        if self._job.spec.is_indexed:
            used_indexes: set[int] = set()
            for each in reversed(ordered):
                index = indexes.pod_index(each)
                if index is None or index >= (self._job.spec.completions or 0) or index in used_indexes:
                    wrong.append(each)
                else:
                    used_indexes.add(index)
        others_in_order = [each for each in ordered if each not in wrong]
        return [*wrong, *others_in_order[: max(count - len(wrong), 0)]][: workload_pods.MOST_AT_ONCE]

    def _new_places(self, count: int, failures: retries.Failures) -> tuple[list[podcontrol.Place], float]:
        """Return the places of new pods, or the seconds to wait because of earlier failures."""
        is_counted_by_index = self._job.spec.backoff_limit_per_index is not None
        pause = 0.0 if is_counted_by_index else failures.remaining(self._now)
        if pause > 0:
            return [], pause
        if not self._job.spec.is_indexed:
            return [podcontrol.Place()] * count, 0.0
        holders = self._tally.active
        if self._job.spec.replaces_only_failed:
            holders = (*holders, *filter(tally.is_terminating, self._tally.pods))
        active_indexes = {index for each in holders if (index := indexes.pod_index(each)) is not None}
        used_indexes = self._succeeded | active_indexes | (self._failed or frozenset())
        free = indexes.first_free(count, completions=self._job.spec.completions or 0, used=used_indexes)
        if is_counted_by_index:
            free, pause = indexfailures.due(free, self._last_failures, now=self._now)
        marks = {index: indexfailures.marks(self._job, self._last_failures.get(index)) for index in free}
        return [podcontrol.Place(index, marks[index]) for index in free], pause

    # Counting

    async def _track(self, end: outcome.JobResult | None) -> None:
        """Count finished pods, release them, and finish the job if it is done."""
        tracked_uids = {each.metadata.uid for each in self._tally.tracked}
        self._progress.count(tracked_uids)
        released = self._list_ended(end)
        if end is not None and not end.is_recorded:
            self._progress.conditions.append(
                progress.condition(end.interim, "True", reason=end.reason, message=end.message, now=self._now)
            )
        await self._flush()
        await self._control.release(self._job.metadata.uid, released)
        self._progress.count(tracked_uids - {each.metadata.uid for each in released})
        is_over = end is not None and not self._progress.uncounted and not self._progress.terminating
        if end is not None and is_over:
            now = self._now
            self._progress.set_condition(end.final, "True", reason=end.reason, message=end.message, now=now)
            if end.has_succeeded:
                self._progress.completion_time = now
        await self._flush()
        if end is not None and is_over:
            self._record_end(end)

    def _list_ended(self, end: outcome.JobResult | None) -> list[pod.Pod]:
        """Add finished pods to the lists of the status. Return those that may be released afterwards."""
        released: list[pod.Pod] = []
        spec, lists = self._job.spec, self._progress
        new_indexes = set(indexes.parse(lists.completed_indexes))
        for each in sorted(self._tally.tracked, key=lambda each: indexes.pod_index(each) or 0):
            if len(lists.uncounted_succeeded) + len(lists.uncounted_failed) >= _MOST_UNCOUNTED:
                break
            uid, has_failed = each.metadata.uid, tally.is_failed(each, spec)
            is_done = each.status.phase == "Succeeded" or has_failed
            is_over = end is not None or self._job.metadata.deletion_timestamp is not None
            if not is_done and not is_over:
                continue
            if each in self._last_failures.values() and not is_over:
                # It passes on the failures of its index, and is counted once its replacement exists.
                continue
            released.append(each)
            if each.status.phase == "Succeeded" and uid not in lists.uncounted_failed:
                if spec.is_indexed:
                    # An index is done once, however often it was.
                    new_indexes |= {index for index in (indexes.pod_index(each),) if index is not None}
                elif uid not in lists.uncounted_succeeded:
                    lists.uncounted_succeeded.append(uid)
            elif has_failed or (end is not None and not end.has_succeeded):
                is_valid = not spec.is_indexed or indexes.pod_index(each) in range(spec.completions or 0)
                is_counted = failurepolicy.judge(spec.pod_failure_policy, each).is_counted
                if is_valid and is_counted and uid not in lists.uncounted_failed:
                    lists.uncounted_failed.append(uid)
        if spec.is_indexed:
            done = [index for index in new_indexes if index < (spec.completions or 0)]
            lists.completed_indexes, lists.succeeded = indexes.format_indexes(done), len(done)
            lists.failed_indexes = None if self._failed is None else indexes.format_indexes(self._failed)
        return released

    # Status

    def _start(self, now: dt.datetime | None) -> None:
        self._progress.start_time = now
        self._job = structs.replace(self._job, status=structs.replace(self._job.status, start_time=now))

    def _update_suspension(self) -> None:
        now = self._now
        if self._job.is_suspended:
            if self._progress.set_condition(
                model.SUSPENDED, "True", reason="JobSuspended", message="Job suspended", now=now
            ):
                self._record(events.NORMAL, "Suspended", "Job suspended")
                self._start(None)
        elif self._progress.set_condition(
            model.SUSPENDED, "False", reason="JobResumed", message="Job resumed", now=now
        ):
            self._record(events.NORMAL, "Resumed", "Job resumed")
            # Time on hold is no time active.
            self._start(now)

    async def _flush(self) -> None:
        """Write the status if it has changed. Raises ObjectConflictError if another writer changed the job."""
        content = self._progress.content()
        if content == self._written.content():
            return
        self._stored = await self._writer.update_status(self._stored, content, only_if_unchanged=True)
        self._metrics.count_pods(
            self._job.mode,
            succeeded=self._progress.succeeded - self._written.succeeded,
            failed=self._progress.failed - self._written.failed,
        )
        self._written = structs.replace(
            self._progress,
            uncounted_succeeded=list(self._progress.uncounted_succeeded),
            uncounted_failed=list(self._progress.uncounted_failed),
            conditions=list(self._progress.conditions),
        )

    def _record_end(self, end: outcome.JobResult) -> None:
        self._metrics.count_end(
            self._job.mode, result="succeeded" if end.has_succeeded else "failed", reason=end.reason
        )
        if not end.has_succeeded:
            self._record(events.WARNING, end.reason, end.message)
            return
        if self._job.spec.completions is not None and self._progress.succeeded > self._job.spec.completions:
            message = "Too many succeeded pods running after completion count reached"
            self._record(events.WARNING, "TooManySucceededPods", message)
        self._record(events.NORMAL, "Completed", "Job completed")

    def _record(self, kind: events.Type, reason: str, message: str) -> None:
        self._recorder.record(self._entry.object, type=kind, reason=reason, message=message)

    def _reconcile_after(self, seconds: float) -> None:
        self.wait = seconds if self.wait is None else min(self.wait, seconds)
