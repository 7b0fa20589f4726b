"""Ages in kubectl's words."""

from datetime import UTC, datetime

import pytest

from drachma.server.surface import age


@pytest.mark.parametrize(
    ("seconds", "want"),
    [
        pytest.param(-5, "<invalid>", id="in-the-future"),
        pytest.param(-1, "0s", id="clocks-differ-a-little"),
        pytest.param(119, "119s", id="seconds"),
        pytest.param(120, "2m", id="whole-minutes"),
        pytest.param(599, "9m59s", id="minutes-and-seconds"),
        pytest.param(10799, "179m", id="many-minutes"),
        pytest.param(3 * 3600 + 60, "3h1m", id="hours-and-minutes"),
        pytest.param(47 * 3600 + 3599, "47h", id="many-hours"),
        pytest.param(49 * 3600, "2d1h", id="days-and-hours"),
        pytest.param(100 * 86400, "100d", id="many-days"),
        pytest.param(2 * 365 * 86400 + 86400, "2y1d", id="years-and-days"),
        pytest.param(9 * 365 * 86400, "9y", id="many-years"),
    ],
)
def test_words(seconds: int, want: str) -> None:
    assert age.words(seconds) == want


def test_since_reads_both_forms_of_time() -> None:
    now = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
    assert age.since("2026-01-01T00:00:00Z", now=now) == "60s"
    assert age.since("2026-01-01T00:00:30.500000Z", now=now) == "29s"
    assert age.since(None, now=now) == "<unknown>"
