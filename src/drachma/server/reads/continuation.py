"""Continue tokens: base64 of a small JSON object, with Go's messages about malformed ones.

:mod:`drachma.server.reads.listing` interprets tokens.
"""

import base64
import json
import re
from typing import Any, Final, NamedTuple

from drachma import errors
from drachma.server.decoding import jsonsyntax
from drachma.server.schema import decodeerrors

_ALPHABET: Final = re.compile(r"[A-Za-z0-9_-]*")
_TYPES: Final = {"v": "string", "rv": "int64", "start": "string"}


class Token(NamedTuple):
    """Content of a token, in upstream's form."""

    v: str = ""
    rv: int = 0
    start: str = ""


def read(text: str) -> Token:
    """Return the content of a token; an InvalidValueError says what is wrong with it."""
    data = _decode_base64(text)
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        raise errors.InvalidValueError(jsonsyntax.explain(data) or "invalid JSON") from None
    if content is None:
        return Token()
    if not isinstance(content, dict):
        json_type = decodeerrors.describe(content)
        raise errors.InvalidValueError(
            f"json: cannot unmarshal {json_type} into Go value of type storage.continueToken"
        )
    return Token(**{name: _check_field(name, content[name]) for name in _TYPES if content.get(name) is not None})


def _decode_base64(text: str) -> bytes:
    """Decode base64 without padding, as Go does: line breaks are skipped, and stray bits at the end are ignored."""
    letters = text.replace("\r", "").replace("\n", "")
    good = _ALPHABET.match(letters)
    assert good is not None, "the pattern matches the empty text"
    if good.end() < len(letters):
        raise errors.InvalidValueError(f"illegal base64 data at input byte {_offset(text, good.end())}")
    if len(letters) % 4 == 1:
        raise errors.InvalidValueError(f"illegal base64 data at input byte {_offset(text, len(letters) - 1)}")
    return base64.urlsafe_b64decode(letters + "=" * (-len(letters) % 4))


def _offset(text: str, position: int) -> int:
    """Return the offset of a letter in the whole text, in bytes."""
    positions = [place for place, letter in enumerate(text) if letter not in "\r\n"]
    return len(text[: positions[position]].encode())


def _check_field(name: str, value: Any) -> Any:
    go_type = _TYPES[name]
    if go_type == "string":
        is_fit = isinstance(value, str)
    else:
        is_fit = isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    if is_fit:
        return value
    json_type = decodeerrors.describe(value)
    description = f"{json_type} {json.dumps(value)}" if json_type == "number" and go_type == "int64" else json_type
    raise errors.InvalidValueError(
        f"json: cannot unmarshal {description} into Go struct field continueToken.{name} of type {go_type}"
    )
