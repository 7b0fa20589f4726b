"""Messages of Go's parser of times, as kube-apiserver 1.37 gives them."""

import pytest

from drachma.values import gotimes

AS_TIME = 'as "2006-01-02T15:04:05Z07:00": cannot parse'


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("2026-11-15T18:07:58Z", id="utc"),
        pytest.param("2026-11-15T18:07:58.123456789+02:00", id="fraction-and-offset"),
        pytest.param("2024-02-29T8:00:00Z", id="leap-day-and-short-hour"),
    ],
)
def test_times(text: str) -> None:
    assert gotimes.problem(text, gotimes.TIME) == ""


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("yesterday", f'parsing time "yesterday" {AS_TIME} "yesterday" as "2006"', id="year"),
        pytest.param("2026- && -15", f'parsing time "2026- && -15" {AS_TIME} " && -15" as "01"', id="month"),
        pytest.param("20260-11-15", f'parsing time "20260-11-15" {AS_TIME} "0-11-15" as "-"', id="separator"),
        pytest.param("2026-11-15T && ", f'parsing time "2026-11-15T && " {AS_TIME} " && " as "15"', id="hour"),
        pytest.param(
            "2026-11-15T18:07:58", f'parsing time "2026-11-15T18:07:58" {AS_TIME} "" as "Z07:00"', id="without-a-zone"
        ),
        pytest.param("2026-13-15T18:07:58Z", 'parsing time "2026-13-15T18:07:58Z": month out of range', id="month-13"),
        pytest.param(
            "2026-02-29T18:07:58Z", 'parsing time "2026-02-29T18:07:58Z": day out of range', id="no-leap-year"
        ),
        pytest.param(
            "2026-11-15T18:07:58Zé", r'parsing time "2026-11-15T18:07:58Z\xc3\xa9": extra text: "\xc3\xa9"', id="rest"
        ),
        pytest.param(
            "2026-11-15T18:07:58+25:00",
            'parsing time "2026-11-15T18:07:58+25:00": time zone offset hour out of range',
            id="offset",
        ),
    ],
)
def test_problems(text: str, want: str) -> None:
    assert gotimes.problem(text, gotimes.TIME) == want


def test_a_layout_with_a_fraction_needs_all_its_digits() -> None:
    want = 'parsing time "2026-11-15T18:07:58Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"'
    assert gotimes.problem("2026-11-15T18:07:58Z", gotimes.MICRO_TIME) == want
