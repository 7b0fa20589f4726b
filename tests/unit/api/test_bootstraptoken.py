"""Bootstrap tokens as secrets hold them."""

import base64
import datetime as dt

import pytest

from drachma.api import bootstraptoken

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def data(**values: str) -> dict[str, str]:
    return {key.replace("_", "-"): base64.b64encode(text.encode()).decode() for key, text in values.items()}


@pytest.mark.parametrize(
    ("token", "want"),
    [
        pytest.param("abcdef.0123456789abcdef", ("abcdef", "0123456789abcdef"), id="good"),
        pytest.param("abcdef.0123456789abcde", None, id="short"),
        pytest.param("ABCDEF.0123456789abcdef", None, id="capitals"),
        pytest.param("abcdef.0123456789abcdef\n", None, id="more"),
    ],
)
def test_parts(token: str, want: tuple[str, str] | None) -> None:
    assert bootstraptoken.parse(token) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("", None, id="for-ever"),
        pytest.param("2026-01-01T00:01:00Z", 60.0, id="a-minute"),
        pytest.param("2025-12-31T23:59:00Z", -60.0, id="over"),
        pytest.param("tomorrow", 0.0, id="unreadable"),
        pytest.param("2027-01-01T00:00:00", 0.0, id="nowhere-in-particular"),
    ],
)
def test_how_long_one_is_good(text: str, want: float | None) -> None:
    assert bootstraptoken.seconds_left(data(expiration=text), NOW) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("", ("system:bootstrappers",), id="none"),
        pytest.param(
            "system:bootstrappers:b,system:bootstrappers:a",
            ("system:bootstrappers", "system:bootstrappers:a", "system:bootstrappers:b"),
            id="sorted",
        ),
        pytest.param("system:masters", None, id="not-any-group"),
        pytest.param("system:bootstrappers:", None, id="no-name"),
    ],
)
def test_groups(text: str, want: tuple[str, ...] | None) -> None:
    assert bootstraptoken.groups(data(auth_extra_groups=text)) == want
