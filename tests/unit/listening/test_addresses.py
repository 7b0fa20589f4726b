"""Addresses of servers."""

import pytest

from drachma import errors
from drachma.listening import addresses


@pytest.mark.parametrize(
    ("text", "want", "url"),
    [
        pytest.param("127.0.0.1:6443", ("127.0.0.1", 6443), "https://127.0.0.1:6443", id="v4"),
        pytest.param("[::1]:8443", ("::1", 8443), "https://[::1]:8443", id="v6"),
        pytest.param(":0", ("0.0.0.0", 0), "https://127.0.0.1:0", id="everywhere"),
        pytest.param("host.example:1", ("host.example", 1), "https://host.example:1", id="name"),
    ],
)
def test_addresses(text: str, want: tuple[str, int], url: str) -> None:
    address = addresses.Address.parse(text)
    assert (address, address.url) == (want, url)
    assert "localhost" in address.hosts


@pytest.mark.parametrize("text", ["", "6443", "host:", "host:x", "host:70000", "host:-1"])
def test_addresses_refused(text: str) -> None:
    with pytest.raises(errors.InvalidValueError, match="expected host:port with a port up to 65535"):
        addresses.Address.parse(text)
