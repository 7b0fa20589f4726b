"""Durations and timestamps: reading, writing, arithmetic and the calendar getters.

Called by conversions, arithmetic and ``library``. Ranges are upstream's: durations within 64 bits of nanoseconds,
timestamps from year 1 to year 9999.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Any, Final

from drachma.cel.runtime import faults, values
from drachma.values import quotation, timezones

Duration = values.Duration
Timestamp = values.Timestamp

SECOND: Final = 1_000_000_000
_MINUTE: Final = 60 * SECOND
_HOUR: Final = 60 * _MINUTE
_MIN_SECONDS: Final = -62135596800
_MAX_SECONDS: Final = 253402300799
_EPOCH_ORDINAL: Final = 719163
_DAY: Final = 86400
_DAYS_IN_400_YEARS: Final = 146097

_UNITS: Final = {
    "ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000, "s": SECOND, "m": _MINUTE, "h": _HOUR,
}  # fmt: skip
_TERM: Final = re.compile(r"(?:([0-9]++)(?:\.([0-9]*+))?+|\.([0-9]++))([^0-9.]++)")
_MOMENT: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]++))?+(Z|([+-])([0-9]{2}):([0-9]{2}))"
).fullmatch


def parse_duration(text: str) -> Duration | None:
    """Return the duration spelled by ``text``, such as ``1h30m`` or ``-1.5s``; None where it is not one."""
    remainder = text
    negative = remainder.startswith("-")
    if remainder[:1] in ("-", "+"):
        remainder = remainder[1:]
    if remainder == "0":
        return Duration(0)
    if not remainder:
        return None
    total = position = 0
    while position < len(remainder):
        match = _TERM.match(remainder, position)
        if match is None:
            return None
        integer, fraction, bare, name = match.groups("")
        unit = _UNITS.get(name)
        integer = integer.lstrip("0")
        # 2**63 exactly is accepted below zero only, as the last step decides.
        if unit is None or len(integer) > 19 or int(integer or 0) * unit > 2**63:
            return None
        total += int(integer or 0) * unit + _fraction(fraction or bare, unit)
        if total > 2**63:
            return None
        position = match.end()
    if negative:
        return Duration(-total)
    return Duration(total) if total <= values.INT_MAX else None


def _fraction(digits: str, unit: int) -> int:
    """Return the part after the point, in floating point as upstream computes it."""
    number, scale = 0, 1.0
    for digit in digits:
        if number > (2**63 - 1) // 10:
            break
        following = number * 10 + int(digit)
        if following > 2**63:
            break
        number = following
        scale *= 10
    return int(float(number) * (float(unit) / scale))


def parse_timestamp(text: str) -> Timestamp | None:
    """Return the moment spelled by ``text`` in RFC 3339; None where it is not one, or outside years 1 to 9999."""
    moment = read_timestamp(text)
    return moment if moment is not None and is_in_range(moment) else None


def is_in_range(moment: Timestamp) -> bool:
    """Return True if a moment lies in years 1 to 9999."""
    return _MIN_SECONDS <= moment.nanos // SECOND <= _MAX_SECONDS


def read_timestamp(text: str) -> Timestamp | None:
    """Like parse_timestamp(), without checking the range."""
    match = _MOMENT(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    fraction, zone, sign, zone_hour, zone_minute = match.groups()[6:]
    if not (1 <= month <= 12 and hour < 24 and minute < 60 and second < 60):
        return None
    if not 1 <= day <= _days_in_month(year, month):
        return None
    offset = 0
    if zone != "Z":
        if int(zone_hour) > 24 or int(zone_minute) > 60:
            return None
        offset = (int(zone_hour) * 60 + int(zone_minute)) * 60
        offset = -offset if sign == "-" else offset
    days = _days_since_epoch(year, month, day)
    seconds = days * _DAY + hour * 3600 + minute * 60 + second - offset
    nanos = int((fraction or "0")[:9].ljust(9, "0"))
    return Timestamp(seconds * SECOND + nanos, offset)


def _days_in_month(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _days_since_epoch(year: int, month: int, day: int) -> int:
    # Python's calendar has years 1 to 9999; zones may show a day before or after, and calendars repeat.
    if year == 0:
        return dt.date(400, month, day).toordinal() - _EPOCH_ORDINAL - _DAYS_IN_400_YEARS
    if year > dt.MAXYEAR:
        return dt.date(year - 400, month, day).toordinal() - _EPOCH_ORDINAL + _DAYS_IN_400_YEARS
    return dt.date(year, month, day).toordinal() - _EPOCH_ORDINAL


def from_unix(seconds: int) -> Timestamp:
    """Return the moment so many seconds after 1970."""
    if not _MIN_SECONDS <= seconds <= _MAX_SECONDS:
        raise faults.Fault("timestamp overflow")
    return Timestamp(seconds * SECOND)


def make_duration(nanos: int) -> Duration:
    """Return a computed duration; beyond 64 bits it is an overflow."""
    if not values.INT_MIN <= nanos <= values.INT_MAX:
        raise faults.Fault("integer overflow")
    return Duration(nanos)


def shift(moment: Timestamp, nanos: int) -> Timestamp:
    """Return the moment so many nanoseconds later."""
    total = moment.nanos + nanos
    if not _MIN_SECONDS <= total // SECOND <= _MAX_SECONDS:
        raise faults.Fault("timestamp overflow")
    return Timestamp(total, moment.offset)


def between(later: Timestamp, earlier: Timestamp) -> Duration:
    """Return the time from one moment to another."""
    seconds = later.nanos // SECOND - earlier.nanos // SECOND
    # Upstream scales the seconds first, and that step may overflow on its own.
    make_duration(seconds * SECOND)
    return make_duration(later.nanos - earlier.nanos)


def convert_to_units(duration: Duration, unit: int) -> float:
    """Return the duration in seconds, minutes or hours: whole units plus the rest, added in floating point."""
    units, remainder = divmod(abs(duration.nanos), unit)
    result = float(units) + float(remainder) / float(unit)
    return -result if duration.nanos < 0 else result


def write_timestamp(moment: Timestamp) -> str:
    """RFC 3339 with the offset it was read with, and as many fractional digits as it needs."""
    year, month, day, clock, nanos = _split(moment.nanos + moment.offset * SECOND)
    text = f"{year:04d}-{month:02d}-{day:02d}T{clock // 3600:02d}:{clock // 60 % 60:02d}:{clock % 60:02d}"
    if nanos:
        text += f".{nanos:09d}".rstrip("0")
    return text + _write_offset(moment.offset)


def _write_offset(offset: int) -> str:
    if offset == 0:
        return "Z"
    minutes = abs(offset) // 60
    return f"{'-' if offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


def _split(nanos: int) -> tuple[int, int, int, int, int]:
    """Year, month, day, second of the day and nanosecond of a count of nanoseconds since 1970."""
    seconds, remainder = divmod(nanos, SECOND)
    days, clock = divmod(seconds, _DAY)
    ordinal = days + _EPOCH_ORDINAL
    if ordinal < 1:
        date = dt.date.fromordinal(ordinal + _DAYS_IN_400_YEARS)
        return date.year - 400, date.month, date.day, clock, remainder
    if ordinal > dt.date.max.toordinal():
        date = dt.date.fromordinal(ordinal - _DAYS_IN_400_YEARS)
        return date.year + 400, date.month, date.day, clock, remainder
    date = dt.date.fromordinal(ordinal)
    return date.year, date.month, date.day, clock, remainder


def show_duration(duration: Duration) -> str:
    """Go's ``%v`` of a duration: ``1h30m0s``, ``1.5ms``."""
    nanos = abs(duration.nanos)
    sign = "-" if duration.nanos < 0 else ""
    if nanos == 0:
        return "0s"
    if nanos < SECOND:
        for unit, name in ((1, "ns"), (1_000, "µs"), (1_000_000, "ms")):
            if nanos < unit * 1000:
                return f"{sign}{_decimal(nanos, unit)}{name}"
    minutes, remainder = divmod(nanos, _MINUTE)
    text = f"{_decimal(remainder, SECOND)}s"
    if minutes:
        text = f"{minutes % 60}m{text}"
        if minutes >= 60:
            text = f"{minutes // 60}h{text}"
    return sign + text


def _decimal(amount: int, unit: int) -> str:
    integer, remainder = divmod(amount, unit)
    digits = str(unit + remainder)[1:].rstrip("0")
    return f"{integer}.{digits}" if digits else str(integer)


def show_timestamp(moment: Timestamp) -> str:
    """Go's ``%v`` of a time."""
    year, month, day, clock, nanos = _split(moment.nanos + moment.offset * SECOND)
    text = f"{year:04d}-{month:02d}-{day:02d} {clock // 3600:02d}:{clock // 60 % 60:02d}:{clock % 60:02d}"
    if nanos:
        text += f".{nanos:09d}".rstrip("0")
    if moment.offset == 0:
        return text + " +0000 UTC"
    zone = _write_offset(moment.offset).replace(":", "")
    return f"{text} {zone} {zone}"


def _offset_at(zone: str, moment: Timestamp) -> int:
    """Seconds east of UTC in a zone given by name or as ``[+-]HH:MM``."""
    hours, colon, minutes = zone.partition(":")
    if not colon:
        return _zone_offset(zone, moment)
    offset = _atoi(hours) * 60
    offset = offset - _atoi(minutes) if zone.startswith("-") else offset + _atoi(minutes)
    return offset * 60


def _atoi(text: str) -> int:
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not digits or not (digits.isascii() and digits.isdigit()):
        raise faults.Fault(f"strconv.Atoi: parsing {quotation.quote(text)}: invalid syntax")
    if len(digits) > 19 or not values.INT_MIN <= int(text) <= values.INT_MAX:
        raise faults.Fault(f"strconv.Atoi: parsing {quotation.quote(text)}: value out of range")
    return int(text)


def _zone_offset(zone: str, moment: Timestamp) -> int:
    if zone in ("", "UTC", "Local"):
        return 0
    if ".." in zone or zone[0] in "/\\" or "\\" in zone:
        raise faults.Fault("time: invalid location name")
    info = timezones.find(zone)
    if info is None:
        raise faults.Fault(f"unknown time zone {zone}")
    seconds = moment.nanos // SECOND
    utc = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    try:
        local = (utc + dt.timedelta(seconds=seconds)).astimezone(info)
    except OverflowError:
        # Within a day of the ends of Python's calendar no zone changes its offset.
        edge = dt.timedelta(seconds=max(min(seconds, _MAX_SECONDS - 2 * _DAY), _MIN_SECONDS + 2 * _DAY))
        local = (utc + edge).astimezone(info)
    offset = local.utcoffset()
    return int(offset.total_seconds()) if offset is not None else 0


def _getter(getter: Callable[[int, int, int, int, int], int]) -> Callable[..., int]:
    def get(moment: Timestamp, zone: str = "UTC") -> int:
        return getter(*_split(moment.nanos + _offset_at(zone, moment) * SECOND))

    return get


def _day_of_year(year: int, month: int, day: int, clock: int, nanos: int) -> int:
    return _days_since_epoch(year, month, day) - _days_since_epoch(year, 1, 1)


def _day_of_week(year: int, month: int, day: int, clock: int, nanos: int) -> int:
    return (_days_since_epoch(year, month, day) + 4) % 7


_YEAR: Final = _getter(lambda year, month, day, clock, nanos: year)
_MONTH: Final = _getter(lambda year, month, day, clock, nanos: month - 1)
_DAY_OF_YEAR: Final = _getter(_day_of_year)
_DAY_OF_MONTH: Final = _getter(lambda year, month, day, clock, nanos: day - 1)
_DATE: Final = _getter(lambda year, month, day, clock, nanos: day)
_DAY_OF_WEEK: Final = _getter(_day_of_week)
_HOURS: Final = _getter(lambda year, month, day, clock, nanos: clock // 3600)
_MINUTES: Final = _getter(lambda year, month, day, clock, nanos: clock // 60 % 60)
_SECONDS: Final = _getter(lambda year, month, day, clock, nanos: clock % 60)
_MILLISECONDS: Final = _getter(lambda year, month, day, clock, nanos: nanos // 1_000_000)


def _truncated(unit: int) -> Callable[[Duration], int]:
    return lambda duration: int(convert_to_units(duration, unit))


def _milliseconds(duration: Duration) -> int:
    milliseconds = abs(duration.nanos) // 1_000_000
    return -milliseconds if duration.nanos < 0 else milliseconds


IMPLEMENTATIONS: Final[dict[str, Any]] = {
    "timestamp_to_year": _YEAR,
    "timestamp_to_year_with_tz": _YEAR,
    "timestamp_to_month": _MONTH,
    "timestamp_to_month_with_tz": _MONTH,
    "timestamp_to_day_of_year": _DAY_OF_YEAR,
    "timestamp_to_day_of_year_with_tz": _DAY_OF_YEAR,
    "timestamp_to_day_of_month": _DAY_OF_MONTH,
    "timestamp_to_day_of_month_with_tz": _DAY_OF_MONTH,
    "timestamp_to_day_of_month_1_based": _DATE,
    "timestamp_to_day_of_month_1_based_with_tz": _DATE,
    "timestamp_to_day_of_week": _DAY_OF_WEEK,
    "timestamp_to_day_of_week_with_tz": _DAY_OF_WEEK,
    "timestamp_to_hours": _HOURS,
    "timestamp_to_hours_with_tz": _HOURS,
    "timestamp_to_minutes": _MINUTES,
    "timestamp_to_minutes_with_tz": _MINUTES,
    "timestamp_to_seconds": _SECONDS,
    "timestamp_to_seconds_tz": _SECONDS,
    "timestamp_to_milliseconds": _MILLISECONDS,
    "timestamp_to_milliseconds_with_tz": _MILLISECONDS,
    "duration_to_hours": _truncated(_HOUR),
    "duration_to_minutes": _truncated(_MINUTE),
    "duration_to_seconds": _truncated(SECOND),
    "duration_to_milliseconds": _milliseconds,
}
