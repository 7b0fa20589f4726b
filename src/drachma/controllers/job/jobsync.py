"""One look at one job: how its pods are, what follows from that, and what its status says then.

Pods are counted in two steps, as upstream does it: first their uids are written to the status, then they lose their
finalizer, then the counters go up. So a pod that ended is counted once, whatever fails in between.
"""

import datetime as dt
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from msgspec import structs

from drachma import errors
from drachma.api import job, pod
from drachma.client import Client, patches
from drachma.controllers import statuswrites
from drachma.controllers.job import (
    failurepolicy,
    indexes,
    indexfailures,
    jobmetrics,
    model,
    outcome,
    podcontrol,
    podtemplate,
    progress,
    retries,
    tally,
)
from drachma.controllers.workload import podcontrol as workload_pods
from drachma.runtime import events

_MOST_UNCOUNTED: Final = 500


class _Change(NamedTuple):
    """How many pods were made and deleted."""

    made: int = 0
    deleted: int = 0


class JobSync:
    """What is known and done during one look. ``wait`` says after how many seconds to look again, if at all."""

    def __init__(
        self,
        client: Client,
        document: Mapping[str, Any],
        *,
        pods: tuple[pod.Pod, ...],
        control: podcontrol.PodControl,
        recorder: events.Recorder,
        metrics: jobmetrics.JobMetrics,
        now: dt.datetime,
    ) -> None:
        self.wait: float | None = None
        self._client: Final = client
        self._document: Final = document
        self._control: Final = control
        self._recorder: Final = recorder
        self._metrics: Final = metrics
        self._now: Final = now.replace(microsecond=0)
        self._job = model.read(document)
        self._version = self._job.metadata.resource_version
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
        """Does what is due. Takes and returns the failures of the job's pods since one succeeded."""
        failures = before.followed_by(self._tally.new_succeeded, self._tally.new_failed)
        end = outcome.decided(self._job)
        end = end or outcome.failure(self._job, self._tally, now=self._now)
        if end is None and self._job.spec.is_indexed:
            end = outcome.by_indexes(self._job, succeeded=self._succeeded, failed=self._failed)
        problem: errors.DrachmaError | None = None
        change = _Change()
        try:
            change = await self._finish() if end is not None else await self._manage(failures)
        except errors.DrachmaError as error:
            # What has ended is counted all the same, but nothing is decided on pods that are not as they should be.
            problem, end = error, None
        count = len(self._tally.active) + change.made - change.deleted
        if end is None and problem is None:
            end = outcome.success(self._job, self._tally, active=count)
            if end is None and self._job.metadata.deletion_timestamp is None:
                self._tell_suspension()
        self._progress.active = count
        self._progress.ready = min(self._tally.ready, count)
        self._progress.terminating = self._tally.terminating + change.deleted
        await self._track(end)
        if problem is not None:
            raise problem
        left = outcome.time_left(self._job, now=self._now)
        if end is None and left is not None:
            self._look_again(left)
        return failures

    # Pods

    async def _finish(self) -> "_Change":
        """Ends the pods of a job that has come to its end; they are counted."""
        active = self._tally.active
        await self._control.delete(self._document, active, is_counted=True)
        return _Change(deleted=len(active))

    async def _manage(self, failures: retries.Failures) -> "_Change":
        """Makes or deletes pods so that as many run as should."""
        if self._job.metadata.deletion_timestamp is not None:
            return _Change()
        active, wanted = len(self._tally.active), self._wanted_active()
        surplus = self._surplus(max(active - wanted, 0))
        if surplus:
            await self._control.delete(self._document, surplus, is_counted=False)
            return _Change(deleted=len(surplus))
        missing = wanted - active
        if self._job.spec.replaces_only_failed:
            missing -= self._tally.terminating
        if missing <= 0:
            return _Change()
        places, pause = self._new_places(min(missing, workload_pods.MOST_AT_ONCE), failures)
        if pause > 0:
            self._look_again(pause)
        return _Change(made=await self._control.create(self._document, places))

    def _wanted_active(self) -> int:
        if self._job.is_suspended:
            return 0
        parallelism = self._job.spec.parallelism if self._job.spec.parallelism is not None else 1
        if self._job.spec.completions is None:
            # Once one has succeeded, those that run decide themselves when the work is done.
            return len(self._tally.active) if self._tally.succeeded else parallelism
        return max(min(self._job.spec.completions - self._tally.succeeded, parallelism), 0)

    def _surplus(self, count: int) -> list[pod.Pod]:
        """The pods to delete: duplicates of an index and those with a wrong one, then as many as there are too many."""
        ordered = sorted(self._tally.active, key=tally.removal_order)
        wrong: list[pod.Pod] = []
        if self._job.spec.is_indexed:
            seen: set[int] = set()
            for each in reversed(ordered):
                index = indexes.of_pod(each)
                if index is None or index >= (self._job.spec.completions or 0) or index in seen:
                    wrong.append(each)
                else:
                    seen.add(index)
        rest = [each for each in ordered if each not in wrong]
        return [*wrong, *rest[: max(count - len(wrong), 0)]][: workload_pods.MOST_AT_ONCE]

    def _new_places(self, count: int, failures: retries.Failures) -> tuple[list[podtemplate.Place], float]:
        """What new pods are for; where there are none because of failures before, for how many seconds to wait."""
        is_counted_by_index = self._job.spec.backoff_limit_per_index is not None
        pause = 0.0 if is_counted_by_index else failures.remaining(self._now)
        if pause > 0:
            return [], pause
        if not self._job.spec.is_indexed:
            return [podtemplate.Place()] * count, 0.0
        holders = self._tally.active
        if self._job.spec.replaces_only_failed:
            holders = (*holders, *filter(tally.is_terminating, self._tally.pods))
        held = {index for each in holders if (index := indexes.of_pod(each)) is not None}
        taken = self._succeeded | held | (self._failed or frozenset())
        free = indexes.first_free(count, completions=self._job.spec.completions or 0, taken=taken)
        if is_counted_by_index:
            free, pause = indexfailures.due(free, self._last_failures, now=self._now)
        marks = {index: indexfailures.marks(self._job, self._last_failures.get(index)) for index in free}
        return [podtemplate.Place(index, marks[index]) for index in free], pause

    # Counting

    async def _track(self, end: outcome.Outcome | None) -> None:
        """Counts pods that have ended, lets them go, and ends the job if it has come to its end."""
        held = {each.metadata.uid for each in self._tally.tracked}
        self._progress.count(held)
        released = self._list_ended(end)
        if end is not None and not end.is_told:
            self._progress.conditions.append(
                progress.condition(end.interim, "True", reason=end.reason, message=end.message, now=self._now)
            )
        await self._flush()
        await self._control.release(self._job.metadata.uid, released)
        self._progress.count(held - {each.metadata.uid for each in released})
        is_over = end is not None and not self._progress.uncounted and not self._progress.terminating
        if end is not None and is_over:
            now = self._now
            self._progress.set_condition(end.final, "True", reason=end.reason, message=end.message, now=now)
            if end.has_succeeded:
                self._progress.completion_time = now
        await self._flush()
        if end is not None and is_over:
            self._tell_end(end)

    def _list_ended(self, end: outcome.Outcome | None) -> list[pod.Pod]:
        """Puts pods that have ended on the lists of the status; returns those that may go after that."""
        released: list[pod.Pod] = []
        spec, lists = self._job.spec, self._progress
        new_indexes = set(indexes.parse(lists.completed_indexes))
        for each in sorted(self._tally.tracked, key=lambda each: indexes.of_pod(each) or 0):
            if len(lists.uncounted_succeeded) + len(lists.uncounted_failed) >= _MOST_UNCOUNTED:
                break
            uid, has_failed = each.metadata.uid, tally.is_failed(each, spec)
            is_done = each.status.phase == "Succeeded" or has_failed
            is_over = end is not None or self._job.metadata.deletion_timestamp is not None
            if not is_done and not is_over:
                continue
            if each in self._last_failures.values() and not is_over:
                # It hands on how often its index failed, and is counted once there is a pod in its place.
                continue
            released.append(each)
            if each.status.phase == "Succeeded" and uid not in lists.uncounted_failed:
                if spec.is_indexed:
                    # An index is done once, however often it was.
                    new_indexes |= {index for index in (indexes.of_pod(each),) if index is not None}
                elif uid not in lists.uncounted_succeeded:
                    lists.uncounted_succeeded.append(uid)
            elif has_failed or (end is not None and not end.has_succeeded):
                is_valid = not spec.is_indexed or indexes.of_pod(each) in range(spec.completions or 0)
                is_counted = failurepolicy.judge(spec.pod_failure_policy, each).is_counted
                if is_valid and is_counted and uid not in lists.uncounted_failed:
                    lists.uncounted_failed.append(uid)
        if spec.is_indexed:
            done = [index for index in new_indexes if index < (spec.completions or 0)]
            lists.completed_indexes, lists.succeeded = indexes.shown(done), len(done)
            lists.failed_indexes = None if self._failed is None else indexes.shown(self._failed)
        return released

    # Status

    def _start(self, now: dt.datetime | None) -> None:
        self._progress.start_time = now
        self._job = structs.replace(self._job, status=structs.replace(self._job.status, start_time=now))

    def _tell_suspension(self) -> None:
        now = self._now
        if self._job.is_suspended:
            if self._progress.set_condition(
                model.SUSPENDED, "True", reason="JobSuspended", message="Job suspended", now=now
            ):
                self._tell(events.NORMAL, "Suspended", "Job suspended")
                self._start(None)
        elif self._progress.set_condition(
            model.SUSPENDED, "False", reason="JobResumed", message="Job resumed", now=now
        ):
            self._tell(events.NORMAL, "Resumed", "Job resumed")
            # Time on hold is no time active.
            self._start(now)

    async def _flush(self) -> None:
        """Writes the status if it has changed, unless somebody else changed the job."""
        content = self._progress.content()
        if content == self._written.content():
            return
        meant = patches.Preconditions(self._job.metadata.uid, self._version)
        self._version = await statuswrites.update(
            self._client, job.Job, of=self._job.metadata, content=content, meant=meant
        )
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

    def _tell_end(self, end: outcome.Outcome) -> None:
        self._metrics.count_end(
            self._job.mode, result="succeeded" if end.has_succeeded else "failed", reason=end.reason
        )
        if not end.has_succeeded:
            self._tell(events.WARNING, end.reason, end.message)
            return
        if self._job.spec.completions is not None and self._progress.succeeded > self._job.spec.completions:
            message = "Too many succeeded pods running after completion count reached"
            self._tell(events.WARNING, "TooManySucceededPods", message)
        self._tell(events.NORMAL, "Completed", "Job completed")

    def _tell(self, kind: events.Type, reason: str, message: str) -> None:
        self._recorder.record(podcontrol.reference(self._document), type=kind, reason=reason, message=message)

    def _look_again(self, seconds: float) -> None:
        self.wait = seconds if self.wait is None else min(self.wait, seconds)
