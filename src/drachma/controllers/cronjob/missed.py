"""Missed times of a schedule, and the time of the next reconcile. Pure.

Many times since the last job, or since the creation of the cron job, are not counted one by one: a schedule of every
minute that was down for a year would take too long.
"""

from __future__ import annotations

import datetime as dt
from typing import Final, NamedTuple

from drachma import errors
from drachma.api import cronjob
from drachma.validation import cronschedule

CronJob = cronjob.CronJob

_MANY: Final = 100
_SPARE_SECONDS: Final = 0.1
"""Seconds to wait after a scheduled time, because clocks are not exact."""


class Times(NamedTuple):
    """A schedule in a time zone."""

    schedule: cronschedule.Schedule
    zone: dt.tzinfo

    def following(self, moment: dt.datetime) -> dt.datetime | None:
        """Return the next time after a moment; both are in UTC."""
        return self.schedule.following(moment, self.zone)


class Due(NamedTuple):
    """The newest scheduled time that has passed, if any, the start of the search, and the number of times that have
    passed.
    """

    moment: dt.datetime | None
    since: dt.datetime
    passed: int

    @property
    def are_many(self) -> bool:
        """True if so many times have passed that a warning is due."""
        return self.passed > _MANY


def due(cron_job: CronJob, schedule: Times, *, now: dt.datetime, has_deadline: bool) -> Due:
    """Return the time that is due now. With ``has_deadline``, times before the starting deadline do not count.

    Raises:
        errors.InvalidValueError: the schedule has times that are less than a second apart.
    """
    since = _since(cron_job, now=now, has_deadline=has_deadline)
    first = schedule.following(since)
    if first is None or now < first:
        return Due(None, since, 0)
    second = schedule.following(first)
    if second is None or now < second:
        return Due(first, since, 0)
    apart = round((second - first).total_seconds())
    if apart < 1:
        raise errors.InvalidValueError("time difference between two schedules is less than 1 second")
    count = int((now - first).total_seconds()) // apart + 1
    # The interval may vary, so the last time but one is searched for.
    moment = schedule.following(first + dt.timedelta(seconds=(count - 2) * apart))
    newest = None
    while moment is not None and moment <= now:
        newest, moment = moment, schedule.following(moment)
    return Due(newest, since, count)


def seconds_left(cron_job: CronJob, schedule: Times, *, now: dt.datetime) -> float | None:
    """Return the seconds until the next time, or None if there is none."""
    try:
        latest = due(cron_job, schedule, now=now, has_deadline=False)
        start = latest.moment or (now if latest.passed else latest.since)
    except errors.InvalidValueError:
        start = now
    upcoming = schedule.following(start)
    return None if upcoming is None else max((upcoming - now).total_seconds() + _SPARE_SECONDS, 0.0)


def _since(cron_job: CronJob, *, now: dt.datetime, has_deadline: bool) -> dt.datetime:
    since = cron_job.status.last_schedule_time or cron_job.metadata.creation_timestamp
    assert since is not None, "what the server stores has been created some time"
    seconds = cron_job.spec.starting_deadline_seconds
    if has_deadline and seconds is not None:
        since = max(since, now - dt.timedelta(seconds=seconds))
    return since.astimezone(dt.UTC)
