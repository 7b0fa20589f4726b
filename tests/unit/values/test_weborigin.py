"""Whether a web page comes from the server that it speaks to."""

import pytest

from drachma.values import weborigin


@pytest.mark.parametrize(
    ("origin", "host", "want"),
    [
        pytest.param("https://api.example.com:6443", "api.example.com:6443", True, id="same"),
        pytest.param("https://api.example.com", "api.example.com", True, id="usual-port"),
        pytest.param("https://api.example.com", "api.example.com:443", True, id="usual-port-written"),
        pytest.param("https://API.example.com", "api.Example.com", True, id="case"),
        pytest.param("https://[::1]:6443", "[::1]:6443", True, id="v6"),
        pytest.param("https://api.example.com:6444", "api.example.com:6443", False, id="another-port"),
        pytest.param("https://api.example.com", "api.example.com:6443", False, id="no-port"),
        pytest.param("https://evil.example.com:6443", "api.example.com:6443", False, id="another-host"),
        pytest.param("https://api.example.com.evil.example:6443", "api.example.com:6443", False, id="longer-host"),
        pytest.param("https://user@api.example.com", "evil.example.com", False, id="user"),
        pytest.param("null", "api.example.com", False, id="null"),
        pytest.param("", "", False, id="nothing"),
        pytest.param("file://", "api.example.com", False, id="file"),
        pytest.param("https://api.example.com:x", "api.example.com", False, id="no-number"),
        pytest.param("https://[::1", "[::1", False, id="half-a-bracket"),
    ],
)
def test_is_same(origin: str, host: str, want: bool) -> None:
    assert weborigin.is_same(origin, host) is want
