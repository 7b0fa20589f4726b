"""Whether a job has come to an end, and how: by its conditions, its counts and its deadline. Pure."""

import datetime as dt

import msgspec

from drachma.controllers.job import failurepolicy, indexes, model, tally


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a job, which takes effect when all its pods have ended. ``is_told`` if its status says so already."""

    has_succeeded: bool
    reason: str
    message: str
    is_told: bool = False

    @property
    def interim(self) -> str:
        """The condition until then."""
        return model.SUCCESS_CRITERIA_MET if self.has_succeeded else model.FAILURE_TARGET

    @property
    def final(self) -> str:
        """The condition from then on."""
        return model.COMPLETE if self.has_succeeded else model.FAILED


def decided(current: model.Job) -> Outcome | None:
    """The end that an earlier look has decided upon."""
    for kind in (model.SUCCESS_CRITERIA_MET, model.FAILURE_TARGET):
        known = model.condition(current.status, kind)
        if known is not None:
            return Outcome(
                has_succeeded=kind == model.SUCCESS_CRITERIA_MET,
                reason=known.reason,
                message=known.message,
                is_told=True,
            )
    return None


def failure(current: model.Job, counted: tally.Tally, *, now: dt.datetime) -> Outcome | None:
    """The end by failure: one that its policy does not forgive, too many failed pods or restarts, or too much time."""
    failed = [each for each in counted.pods if tally.is_failed(each, current.spec)]
    message = failurepolicy.job_failure(current, failed)
    if message:
        return Outcome(has_succeeded=False, reason="PodFailurePolicy", message=message)
    restarts = counted.restarts if current.spec.template.spec.restart_policy == "OnFailure" else 0
    limit = current.spec.backoff_limit if current.spec.backoff_limit is not None else 6
    if counted.failed > limit or (restarts > 0 and restarts >= limit):
        return Outcome(
            has_succeeded=False,
            reason="BackoffLimitExceeded",
            message="Job has reached the specified backoff limit",
        )
    left = time_left(current, now=now)
    if left is not None and left <= 0:
        return Outcome(
            has_succeeded=False,
            reason="DeadlineExceeded",
            message="Job was active longer than specified deadline",
        )
    return None


def by_indexes(current: model.Job, *, succeeded: frozenset[int], failed: frozenset[int] | None) -> Outcome | None:
    """The end that an indexed job's indexes bring about: too many have failed, all are over, or enough succeeded."""
    completions, most = current.spec.completions or 0, current.spec.max_failed_indexes
    if failed and most is not None and len(failed) > most:
        return Outcome(
            has_succeeded=False,
            reason="MaxFailedIndexesExceeded",
            message="Job has exceeded the specified maximal number of failed indexes",
        )
    if failed and len(failed) + len(succeeded) >= completions:
        return Outcome(has_succeeded=False, reason="FailedIndexes", message="Job has failed indexes")
    policy = current.spec.success_policy
    for number, rule in enumerate(policy.rules if policy is not None else ()):
        if _is_enough(rule, succeeded, completions):
            return Outcome(has_succeeded=True, reason="SuccessPolicy", message=f"Matched rules at index {number}")
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


def success(current: model.Job, counted: tally.Tally, *, active: int) -> Outcome | None:
    """The end by success: enough pods have, or, where no number is given, one has; and nothing runs any more."""
    wanted = current.spec.completions
    is_enough = counted.succeeded > 0 if wanted is None else counted.succeeded >= wanted
    if active or not is_enough:
        return None
    return Outcome(
        has_succeeded=True,
        reason="CompletionsReached",
        message="Reached expected number of succeeded pods",
    )


def time_left(current: model.Job, *, now: dt.datetime) -> float | None:
    """The seconds that a running job has left; None if they are not limited."""
    deadline, started = current.spec.active_deadline_seconds, current.status.start_time
    if deadline is None or started is None or current.is_suspended:
        return None
    return deadline - (now - started).total_seconds()
