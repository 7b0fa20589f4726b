"""Continue tokens: what is in them, and Go's words for broken ones."""

import base64

import pytest

from drachma import errors
from drachma.server.reads import listing
from drachma.server.reads.listing import Token


def _encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            _encoded('{"v":"meta.k8s.io/v1","rv":7,"start":"a"}'), Token("meta.k8s.io/v1", 7, "a"), id="whole"
        ),
        pytest.param(_encoded("{}"), Token(), id="empty"),
        pytest.param(_encoded("null"), Token(), id="null"),
        pytest.param("e3\n0", Token(), id="line-break"),
    ],
)
def test_read(text: str, want: Token) -> None:
    assert listing.read_token(text) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("bogus", "illegal base64 data at input byte 4", id="one-letter-too-many"),
        pytest.param("x", "illegal base64 data at input byte 0", id="one-letter"),
        pytest.param("!!!!", "illegal base64 data at input byte 0", id="other-letters"),
        pytest.param("YQ==", "illegal base64 data at input byte 2", id="padding"),
        pytest.param("a b", "illegal base64 data at input byte 1", id="space"),
        pytest.param("YQ", "invalid character 'a' looking for beginning of value", id="no-json"),
        pytest.param(
            _encoded("[]"), "json: cannot unmarshal array into Go value of type storage.continueToken", id="list"
        ),
        pytest.param(
            _encoded('{"rv":"1"}'),
            "json: cannot unmarshal string into Go struct field continueToken.rv of type int64",
            id="text-for-version",
        ),
        pytest.param(
            _encoded('{"start":5}'),
            "json: cannot unmarshal number into Go struct field continueToken.start of type string",
            id="number-for-start",
        ),
    ],
)
def test_refused(text: str, want: str) -> None:
    with pytest.raises(errors.InvalidValueError) as caught:
        listing.read_token(text)
    assert str(caught.value) == want
