"""Schedules of cron: what they mean, and upstream's messages for those that mean nothing."""

import datetime as dt
import zoneinfo

import pytest

from drachma import errors
from drachma.validation import cronschedule

NEW_YORK = zoneinfo.ZoneInfo("America/New_York")


def utc(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("text", "after", "want"),
    [
        pytest.param("* * * * *", "2026-01-01T00:00:00", "2026-01-01T00:01:00", id="every-minute"),
        pytest.param("*/15 * * * *", "2026-01-01T00:16:30", "2026-01-01T00:30:00", id="step"),
        pytest.param("5/20 * * * *", "2026-01-01T00:26:00", "2026-01-01T00:45:00", id="step-from-a-number"),
        pytest.param("0 12 29 2 *", "2026-01-01T00:00:00", "2028-02-29T12:00:00", id="leap-day"),
        pytest.param("0 0 13 * 5", "2026-01-03T00:00:00", "2026-01-09T00:00:00", id="day-or-weekday"),
        pytest.param("0 0 */2 * 5", "2026-01-03T00:00:00", "2026-01-05T00:00:00", id="a-step-is-no-star"),
        pytest.param("0 0 * * mon-wed", "2026-01-01T00:00:00", "2026-01-05T00:00:00", id="names"),
        pytest.param("30 4 1,15 JAN,jul ?", "2026-01-16T00:00:00", "2026-07-01T04:30:00", id="lists"),
        pytest.param("@hourly", "2026-01-01T00:00:00", "2026-01-01T01:00:00", id="hourly"),
        pytest.param("@daily", "2026-01-01T00:00:00", "2026-01-02T00:00:00", id="daily"),
        pytest.param("@weekly", "2026-01-01T00:00:00", "2026-01-04T00:00:00", id="weekly"),
        pytest.param("@monthly", "2026-01-01T00:00:00", "2026-02-01T00:00:00", id="monthly"),
        pytest.param("@yearly", "2026-01-01T00:00:00", "2027-01-01T00:00:00", id="yearly"),
        pytest.param("@every 1h30m", "2026-01-01T00:00:01", "2026-01-01T01:30:01", id="interval"),
        pytest.param("0 0 30 2 *", "2026-01-01T00:00:00", None, id="never"),
    ],
)
def test_the_next_time(text: str, after: str, want: str | None) -> None:
    assert cronschedule.parse(text).following(utc(after), dt.UTC) == (utc(want) if want else None)


@pytest.mark.parametrize(
    ("text", "after", "want"),
    [
        # On 8 March 2026 clocks go from 2:00 to 3:00, on 1 November from 2:00 back to 1:00.
        pytest.param("30 2 * * *", "2026-03-08T06:00:00", "2026-03-09T06:30:00", id="a-time-that-is-left-out"),
        pytest.param("30 3 * * *", "2026-03-08T06:00:00", "2026-03-08T07:30:00", id="after-it"),
        pytest.param("30 1 * * *", "2026-11-01T05:00:00", "2026-11-01T05:30:00", id="a-time-that-comes-twice"),
        pytest.param("30 1 * * *", "2026-11-01T05:30:00", "2026-11-01T06:30:00", id="the-second-time"),
        pytest.param("0 0 * * *", "2026-06-01T12:00:00", "2026-06-02T04:00:00", id="midnight-there"),
    ],
)
def test_zones(text: str, after: str, want: str) -> None:
    assert cronschedule.parse(text).following(utc(after), NEW_YORK) == utc(want)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("", "empty spec string", id="empty"),
        pytest.param("* * * *", "expected exactly 5 fields, found 4: [* * * *]", id="too-few"),
        pytest.param("60 * * * *", "end of range (60) above maximum (59): 60", id="too-high"),
        pytest.param("* * 0 * *", "beginning of range (0) below minimum (1): 0", id="too-low"),
        pytest.param("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1", id="backwards"),
        pytest.param("1-2-3 * * * *", "too many hyphens: 1-2-3", id="hyphens"),
        pytest.param("*/2/3 * * * *", "too many slashes: */2/3", id="slashes"),
        pytest.param("*/0 * * * *", "step of range should be a positive number: */0", id="no-step"),
        pytest.param(
            "x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax', id="no-number"
        ),
        pytest.param("@often", "unrecognized descriptor: @often", id="descriptor"),
        pytest.param("@every x", 'failed to parse duration @every x: time: invalid duration "x"', id="duration"),
    ],
)
def test_messages(text: str, want: str) -> None:
    with pytest.raises(errors.InvalidValueError) as caught:
        cronschedule.parse(text)
    assert str(caught.value) == want
