"""Addresses and uids, the two forms that upstream reads leniently before it insists on the normal one."""

import pytest

from drachma.validation import formats
from drachma.validation.path import SPEC

CIDR = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("10.9.8.7/24", None, id="ipv4"),
        pytest.param("2001:db8::1/64", None, id="ipv6"),
        pytest.param("010.009.008.007/024", 'must be in canonical form ("10.9.8.7/24")', id="leading-zeros"),
        pytest.param("2001:0DB8::1/64", 'must be in canonical form ("2001:db8::1/64")', id="capitals"),
        pytest.param("::ffff:1.2.3.4/120", 'must be in canonical form ("1.2.3.4/24")', id="mapped"),
        pytest.param("10.9.8.7", CIDR, id="no-length"),
        pytest.param("10.9.8.7/33", CIDR, id="length-too-large"),
        pytest.param("10.9.8.300/24", CIDR, id="octet-too-large"),
        pytest.param("10.9.8/24", CIDR, id="three-octets"),
        pytest.param("fe80::1%eth0/64", CIDR, id="zone"),
        pytest.param("10.9.8.7/" + "1" * 5000, CIDR, id="absurd-length"),
        pytest.param("", CIDR, id="empty"),
    ],
)
def test_interface_addresses(text: str, problem: str | None) -> None:
    found = [error.detail for error in formats.interface_address(text, SPEC)]
    assert found == ([] if problem is None else [problem])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("11111111-2222-3333-4444-555555555555", None, id="normal"),
        pytest.param("AAAAAAAA-2222-3333-4444-555555555555", "uid must be in RFC 4122 normalized form", id="capitals"),
        pytest.param("11111111222233334444555555555555", "uid must be in RFC 4122 normalized form", id="no-hyphens"),
        pytest.param("x" * 32, "error validating uid: invalid UUID format", id="no-hyphens-no-hex"),
        pytest.param("{11111111-2222-3333-4444-555555555555}", "uid must be in RFC 4122 normalized form", id="braces"),
        pytest.param("(11111111-2222-3333-4444-555555555555)", "invalid bracketed UUID format", id="other-brackets"),
        pytest.param("urn:uuid:11111111-2222-3333-4444-555555555555", "uid must be in RFC 4122", id="urn"),
        pytest.param("urn:duid:11111111-2222-3333-4444-555555555555", "invalid urn prefix", id="other-urn"),
        pytest.param("11111111-2222-3333-4444-55555555555g", "invalid UUID format", id="not-hex"),
        pytest.param("1", "error validating uid: invalid UUID length: 1", id="too-short"),
    ],
)
def test_uids(text: str, problem: str | None) -> None:
    found = [error.detail for error in formats.uid(text, SPEC)]
    assert len(found) == (0 if problem is None else 1)
    assert problem is None or problem in found[0]
