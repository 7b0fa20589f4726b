"""Schedules in the notation of cron, read with the messages of upstream's parser, and the times that they mean. Pure.

The rules for cron jobs use it, and the controller that makes their jobs. A day counts if its number in the month or its
day of the week is named; where one of the two is ``*``, only the other decides. Times are those of a zone, also where
its clocks are changed; what comes in and goes out is in UTC, where moments can be told apart and counted.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Final, NamedTuple, TypeAlias

from drachma import errors
from drachma.cel.runtime import instants
from drachma.validation import rendering

_YEARS: Final = 5
"""A schedule that means no time for so long means none."""

_EVERY: Final = "@every "
_ZONE: Final = re.compile(r"(TZ|CRON_TZ)=\S+ +")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+")
_SECOND: Final = dt.timedelta(seconds=1)
_MINUTE: Final = dt.timedelta(minutes=1)
_HOUR: Final = dt.timedelta(hours=1)


class _Bounds(NamedTuple):
    least: int
    most: int
    names: tuple[str, ...] = ()


_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final = (_Bounds(0, 59), _Bounds(0, 23), _Bounds(1, 31), _Bounds(1, 12, _MONTHS), _Bounds(0, 6, _DAYS))
_MACROS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class Interval(NamedTuple):
    """Times that are so far apart."""

    seconds: int

    def following(self, moment: dt.datetime, zone: dt.tzinfo) -> dt.datetime | None:
        """The next time after a moment."""
        return moment.replace(microsecond=0) + dt.timedelta(seconds=self.seconds)


class Calendar(NamedTuple):
    """Times by minute, hour, day of the month, month and day of the week."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    is_any_day: bool
    """Whether the day of the month or of the week is ``*``, so that both have to fit."""

    def following(self, moment: dt.datetime, zone: dt.tzinfo) -> dt.datetime | None:
        """The next time after a moment by the clocks of a zone; None where there is none for years."""
        start = moment.replace(microsecond=0) + _SECOND
        # To the next whole minute: seconds are always 0.
        instant = start if start.second == 0 else start.replace(second=0) + _MINUTE
        last = start.astimezone(zone).year + _YEARS
        while True:
            local = instant.astimezone(zone)
            if local.year > last:
                return None
            if local.month not in self.months:
                instant = _instant(_next_month(local), zone)
            elif not self._has_day(local):
                instant = self._next_day(local, zone)
            elif local.hour not in self.hours:
                instant += _HOUR - dt.timedelta(minutes=local.minute)
            elif local.minute not in self.minutes:
                instant += _MINUTE
            else:
                return instant

    def _has_day(self, local: dt.datetime) -> bool:
        is_day, is_weekday = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        return is_day and is_weekday if self.is_any_day else is_day or is_weekday

    @staticmethod
    def _next_day(local: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
        midnight = local.replace(tzinfo=None, hour=0, minute=0) + dt.timedelta(days=1)
        instant = _instant(midnight, zone)
        # Where clocks are put forward at midnight, the day begins an hour late.
        hour = instant.astimezone(zone).hour
        return instant + _HOUR * (24 - hour) if hour > 12 else instant - _HOUR * hour if hour else instant


Schedule: TypeAlias = Calendar | Interval


def parse(text: str) -> Schedule:
    """The schedule that a text means.

    Raises:
        errors.InvalidValueError: with upstream's message.
    """
    if not text:
        raise errors.InvalidValueError("empty spec string")
    spec = _ZONE.sub("", text, count=1).strip() if text.startswith(("TZ=", "CRON_TZ=")) else text
    if spec.startswith("@"):
        return _descriptor(spec)
    return _calendar(spec)


def _descriptor(spec: str) -> Schedule:
    if spec in _MACROS:
        return _calendar(_MACROS[spec])
    if not spec.startswith(_EVERY):
        raise errors.InvalidValueError(f"unrecognized descriptor: {spec}")
    duration_text = spec.removeprefix(_EVERY)
    duration = instants.parse_duration(duration_text)
    if duration is None:
        raise errors.InvalidValueError(
            f"failed to parse duration {spec}: time: invalid duration {rendering.named(duration_text)}"
        )
    return Interval(max(duration.nanos // 10**9, 1))


def _calendar(spec: str) -> Calendar:
    fields = spec.split()
    if len(fields) != len(_FIELDS):
        raise errors.InvalidValueError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    values, stars = [], []
    for field, bounds in zip(fields, _FIELDS, strict=True):
        items = [_item(each, bounds) for each in field.split(",") if each]
        values.append(frozenset(number for numbers, _ in items for number in numbers))
        stars.append(any(is_star for _, is_star in items))
    minutes, hours, days, months, weekdays = values
    return Calendar(minutes, hours, days, months, weekdays, is_any_day=stars[2] or stars[4])


def _item(item: str, bounds: _Bounds) -> tuple[range, bool]:
    """The numbers that a part of a field means, and whether it is all of them without a step."""
    span, *steps = item.split("/")
    low, *highs = span.split("-")
    is_star = low in ("*", "?")
    if is_star:
        start, end = bounds.least, bounds.most
    else:
        start = _number(low, bounds)
        if len(highs) > 1:
            raise errors.InvalidValueError(f"too many hyphens: {item}")
        end = _number(highs[0], bounds) if highs else start
    if len(steps) > 1:
        raise errors.InvalidValueError(f"too many slashes: {item}")
    step = _integer(steps[0]) if steps else 1
    if steps and not highs:
        end = bounds.most
    if start < bounds.least:
        raise errors.InvalidValueError(f"beginning of range ({start}) below minimum ({bounds.least}): {item}")
    if end > bounds.most:
        raise errors.InvalidValueError(f"end of range ({end}) above maximum ({bounds.most}): {item}")
    if start > end:
        raise errors.InvalidValueError(f"beginning of range ({start}) beyond end of range ({end}): {item}")
    if step == 0:
        raise errors.InvalidValueError(f"step of range should be a positive number: {item}")
    return range(start, end + 1, step), is_star and step == 1


def _number(text: str, bounds: _Bounds) -> int:
    name = text.lower()
    return bounds.names.index(name) + bounds.least if name in bounds.names else _integer(text)


def _integer(text: str) -> int:
    problem = "" if _NUMBER.fullmatch(text) else "invalid syntax"
    if not problem and not -(2**63) <= int(text[:24]) < 2**63:
        problem = "value out of range"
    if problem:
        raise errors.InvalidValueError(
            f"failed to parse int from {text}: strconv.Atoi: parsing {rendering.named(text)}: {problem}"
        )
    if int(text) < 0:
        raise errors.InvalidValueError(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)


def _next_month(local: dt.datetime) -> dt.datetime:
    return dt.datetime(local.year + local.month // 12, local.month % 12 + 1, 1)  # noqa: DTZ001 - a time by the wall clock


def _instant(wall: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    """When a clock on the wall shows a time; where it never does, as Go has it: with the offset that is due then."""
    utc = wall.replace(tzinfo=dt.UTC)
    first = utc - _offset(utc, zone)
    return utc - _offset(first, zone)


def _offset(instant: dt.datetime, zone: dt.tzinfo) -> dt.timedelta:
    offset = instant.astimezone(zone).utcoffset()
    assert offset is not None, "a zone has an offset at any time"
    return offset
