"""Formats of texts, as upstream's registry takes them."""

import pytest

from drachma.validation.structural import formats


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        pytest.param("date-time", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00", id="date-time"),
        pytest.param("date-time", "2026-01-01t00:00:00.5+01:00", "2026-13-01T00:00:00Z", id="date-time-with-zone"),
        pytest.param("date", "2024-02-29", "2023-02-29", id="date"),
        pytest.param("duration", "1h30m", "soon", id="duration"),
        pytest.param("duration", "3 days", "3 parsecs", id="duration-in-words"),
        pytest.param("byte", "aGVsbG8=", "aGVsbG8", id="byte"),
        pytest.param("ipv4", "10.0.0.1", "10.0.0", id="ipv4"),
        pytest.param("ipv6", "fe80::1", "10.0.0.1", id="ipv6"),
        pytest.param("cidr", "10.0.0.0/8", "10.0.0.0/33", id="cidr"),
        pytest.param("mac", "00:11:22:33:44:55", "00:11:22:33:44", id="mac"),
        pytest.param("uuid", "A987FBC9-4BED-3078-CF07-9141BA07C9F3", "A987FBC9", id="uuid"),
        pytest.param(
            "uuid4", "625e63f3-58f5-40b7-83a1-a72ad31acffb", "a987fbc9-4bed-3078-cf07-9141ba07c9f3", id="uuid4"
        ),
        pytest.param("uri", "https://example.com/x", "nothing like it", id="uri"),
        pytest.param("email", "Gopher <gopher@example.com>", "gopher", id="email"),
        pytest.param("hostname", "www.example.com", "-example-", id="hostname"),
        pytest.param("k8s-short-name", "a-b", "a.b", id="short-name"),
        pytest.param("k8s-long-name", "a.b", "A.b", id="long-name"),
        pytest.param("isbn", "978-0321751041", "978-0321751042", id="isbn"),
        pytest.param("creditcard", "4111-1111-1111-1111", "4111-1111-1111-1112", id="credit-card"),
        pytest.param("hexcolor", "#FFF", "#FF", id="color"),
        pytest.param("rgbcolor", "rgb(255,255,255)", "rgb(256,0,0)", id="rgb-color"),
        pytest.param("bsonobjectid", "507f1f77bcf86cd799439011", "507f", id="object-id"),
    ],
)
def test_format(name: str, good: str, bad: str) -> None:
    check = formats.CHECKS[formats.normalized(name)]
    assert check(good)
    assert not check(bad)


def test_durations_add_up() -> None:
    parsed = formats.parse_duration("1 day 2 hours")
    assert parsed is not None
    assert parsed.nanos == 26 * 3600 * 10**9
