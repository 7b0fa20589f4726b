"""Requests for certificates, read from PEM."""

import base64

import pytest

from drachma.values import certificaterequests
from tests import certificaterequests as builders


def test_what_a_request_says() -> None:
    request = certificaterequests.read(
        builders.pem("system:node:n", "system:nodes", hosts=["n.example"], addresses=["10.0.0.1"])
    )
    assert (request.common_name, request.organizations) == ("system:node:n", ("system:nodes",))
    assert (request.dns_names, request.addresses, request.emails, request.uris) == (
        ("n.example",),
        ("10.0.0.1",),
        (),
        (),
    )
    assert request.signature_problem() is None


def test_another_signature_is_noticed() -> None:
    lines = builders.pem().decode().splitlines()
    content = bytearray(base64.b64decode("".join(lines[1:-1])))
    content[-1] ^= 1
    changed = "\n".join([lines[0], base64.b64encode(content).decode(), lines[-1]])
    assert certificaterequests.read(changed.encode()).signature_problem() == "x509: ECDSA verification failure"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(b"", certificaterequests.WRONG_BLOCK, id="nothing"),
        pytest.param(
            b"-----BEGIN CERTIFICATE-----\neA==\n-----END CERTIFICATE-----",
            certificaterequests.WRONG_BLOCK,
            id="another-block",
        ),
        pytest.param(
            b"-----BEGIN CERTIFICATE REQUEST-----\neA==\n-----END CERTIFICATE REQUEST-----",
            "asn1: structure error",
            id="no-request-in-it",
        ),
    ],
)
def test_what_is_refused(text: bytes, want: str) -> None:
    with pytest.raises(certificaterequests.UnreadableRequestError, match=want):
        certificaterequests.read(text)
