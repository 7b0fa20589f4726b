"""Result of a job: determined by its conditions, counts and deadline. Pure."""

import datetime as dt

import msgspec

from drachma.controllers.job import failurepolicy, indexes, model, tally


class JobResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a job, final when all its pods have finished. ``is_recorded`` if the status has it already."""

    has_succeeded: bool
    reason: str
    message: str
    is_recorded: bool = False

    @property
    def interim(self) -> str:
        """Condition until all pods have finished."""
        return model.SUCCESS_CRITERIA_MET if self.has_succeeded else model.FAILURE_TARGET

    @property
    def final(self) -> str:
        """Condition once all pods have finished."""
        return model.COMPLETE if self.has_succeeded else model.FAILED


def decided(current: model.Job) -> JobResult | None:
    """Return the result that an earlier reconcile decided."""
    for kind in (model.SUCCESS_CRITERIA_MET, model.FAILURE_TARGET):
        condition = model.condition(current.status, kind)
        if condition is not None:
            return JobResult(
                has_succeeded=kind == model.SUCCESS_CRITERIA_MET,
                reason=condition.reason,
                message=condition.message,
                is_recorded=True,
            )
    return None


def failure(current: model.Job, counts: tally.Tally, *, now: dt.datetime) -> JobResult | None:
    """Return a failure by the pod failure policy, the backoff limit or the deadline, or None."""
    failed = [each for each in counts.pods if tally.is_failed(each, current.spec)]
    message = failurepolicy.job_failure(current, failed)
    if message:
        return JobResult(has_succeeded=False, reason="PodFailurePolicy", message=message)
    restarts = counts.restarts if current.spec.template.spec.restart_policy == "OnFailure" else 0
    limit = current.spec.backoff_limit if current.spec.backoff_limit is not None else 6
    if counts.failed > limit or (restarts > 0 and restarts >= limit):
        return JobResult(
            has_succeeded=False,
            reason="BackoffLimitExceeded",
            message="Job has reached the specified backoff limit",
        )
    seconds_left = time_left(current, now=now)
    if seconds_left is not None and seconds_left <= 0:
        return JobResult(
            has_succeeded=False,
            reason="DeadlineExceeded",
            message="Job was active longer than specified deadline",
        )
    return None


def index_result(current: model.Job, *, succeeded: frozenset[int], failed: frozenset[int] | None) -> JobResult | None:
    """Return the result by the indexes of an indexed job: too many failed, all finished, or enough succeeded."""
    completions, most = current.spec.completions or 0, current.spec.max_failed_indexes
    if failed and most is not None and len(failed) > most:
        return JobResult(
            has_succeeded=False,
            reason="MaxFailedIndexesExceeded",
            message="Job has exceeded the specified maximal number of failed indexes",
        )
    if failed and len(failed) + len(succeeded) >= completions:
        return JobResult(has_succeeded=False, reason="FailedIndexes", message="Job has failed indexes")
    policy = current.spec.success_policy
    for number, rule in enumerate(policy.rules if policy is not None else ()):
        if _is_enough(rule, succeeded, completions):
            return JobResult(has_succeeded=True, reason="SuccessPolicy", message=f"Matched rules at index {number}")
    return None


def _is_enough(rule: model.SuccessPolicyRule, succeeded: frozenset[int], completions: int) -> bool:
    count = rule.succeeded_count
    if rule.succeeded_indexes is None:
        return count is not None and len(succeeded) >= count
    required = frozenset(each for each in indexes.parse(rule.succeeded_indexes) if each < completions)
    if not required:
        return False
    reached = len(required & succeeded)
    return reached == len(required) or (count is not None and reached >= count)


def success(current: model.Job, counts: tally.Tally, *, active: int) -> JobResult | None:
    """Return a success: enough pods succeeded, or one if no number is given, and no pod is active."""
    completions = current.spec.completions
    is_enough = counts.succeeded > 0 if completions is None else counts.succeeded >= completions
    if active or not is_enough:
        return None
    return JobResult(
        has_succeeded=True,
        reason="CompletionsReached",
        message="Reached expected number of succeeded pods",
    )


def time_left(current: model.Job, *, now: dt.datetime) -> float | None:
    """Return the seconds until the deadline of an active job, or None without a deadline."""
    deadline, started = current.spec.active_deadline_seconds, current.status.start_time
    if deadline is None or started is None or current.is_suspended:
        return None
    return deadline - (now - started).total_seconds()
