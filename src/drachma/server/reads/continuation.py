"""Continue tokens as texts: base64 of a small JSON object, and Go's words for what is wrong with one.

:mod:`drachma.server.reads.listing` says what a token means.
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
    """What a token holds, in the form of upstream's."""

    v: str = ""
    rv: int = 0
    start: str = ""


def read(text: str) -> Token:
    """The content of a token; an InvalidValueError says what is wrong with it."""
    data = _decoded(text)
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        raise errors.InvalidValueError(jsonsyntax.explain(data) or "invalid JSON") from None
    if content is None:
        return Token()
    if not isinstance(content, dict):
        found = decodeerrors.describe(content)
        raise errors.InvalidValueError(f"json: cannot unmarshal {found} into Go value of type storage.continueToken")
    return Token(**{name: _checked(name, content[name]) for name in _TYPES if content.get(name) is not None})


def _decoded(text: str) -> bytes:
    """Base64 without padding, as Go reads it: line breaks are skipped, stray bits at the end do not matter."""
    letters = text.replace("\r", "").replace("\n", "")
    good = _ALPHABET.match(letters)
    assert good is not None, "the empty text matches"
    if good.end() < len(letters):
        raise errors.InvalidValueError(f"illegal base64 data at input byte {_offset(text, good.end())}")
    if len(letters) % 4 == 1:
        raise errors.InvalidValueError(f"illegal base64 data at input byte {_offset(text, len(letters) - 1)}")
    return base64.urlsafe_b64decode(letters + "=" * (-len(letters) % 4))


def _offset(text: str, position: int) -> int:
    """Where a letter is in the whole text, in bytes."""
    kept = [place for place, letter in enumerate(text) if letter not in "\r\n"]
    return len(text[: kept[position]].encode())


def _checked(name: str, value: Any) -> Any:
    wanted = _TYPES[name]
    if wanted == "string":
        is_fit = isinstance(value, str)
    else:
        is_fit = isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    if is_fit:
        return value
    found = decodeerrors.describe(value)
    shown = f"{found} {json.dumps(value)}" if found == "number" and wanted == "int64" else found
    raise errors.InvalidValueError(
        f"json: cannot unmarshal {shown} into Go struct field continueToken.{name} of type {wanted}"
    )
