"""Which time of a schedule is due, and when to look again. Pure: a cron job, its schedule and the time in.

The times since the last job, or since the cron job was made, are not counted one by one where they are many: a
schedule of every minute that was down for a year would take its time.
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
"""How long after its time to look: no clock is to the point."""


class Times(NamedTuple):
    """A schedule by the clocks of a zone."""

    schedule: cronschedule.Schedule
    zone: dt.tzinfo

    def following(self, moment: dt.datetime) -> dt.datetime | None:
        """The next time after a moment; both are in UTC."""
        return self.schedule.following(moment, self.zone)


class Due(NamedTuple):
    """The newest time of a schedule that has passed, if one has; from when on was looked; how many passed."""

    moment: dt.datetime | None
    since: dt.datetime
    passed: int

    @property
    def are_many(self) -> bool:
        """Whether so many times passed that people should know."""
        return self.passed > _MANY


def due(of: CronJob, schedule: Times, *, now: dt.datetime, has_deadline: bool) -> Due:
    """What is due now; ``has_deadline`` says whether times before the deadline for starting count no more.

    Raises:
        errors.InvalidValueError: the schedule means times that are less than a second apart.
    """
    since = _since(of, now=now, has_deadline=has_deadline)
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
    # The distance of the first two may not be that of others, so the last but one is looked for.
    moment = schedule.following(first + dt.timedelta(seconds=(count - 2) * apart))
    newest = None
    while moment is not None and moment <= now:
        newest, moment = moment, schedule.following(moment)
    return Due(newest, since, count)


def seconds_left(of: CronJob, schedule: Times, *, now: dt.datetime) -> float | None:
    """After how many seconds the next time has come; None where none ever does."""
    try:
        known = due(of, schedule, now=now, has_deadline=False)
        start = known.moment or (now if known.passed else known.since)
    except errors.InvalidValueError:
        start = now
    upcoming = schedule.following(start)
    return None if upcoming is None else max((upcoming - now).total_seconds() + _SPARE_SECONDS, 0.0)


def _since(of: CronJob, *, now: dt.datetime, has_deadline: bool) -> dt.datetime:
    since = of.status.last_schedule_time or of.metadata.creation_timestamp
    assert since is not None, "what the server stores has been created some time"
    seconds = of.spec.starting_deadline_seconds
    if has_deadline and seconds is not None:
        since = max(since, now - dt.timedelta(seconds=seconds))
    return since.astimezone(dt.UTC)
