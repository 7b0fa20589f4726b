"""Values of literal tokens: numbers within their range, strings and bytes with their escapes; called by the parser.

Refuses with ``InvalidValueError`` whose text is upstream's message: numbers out of range, escapes that do not name a
character (surrogates, past U+10FFFF), and character escapes in bytes.
"""

from __future__ import annotations

import math
import re

from drachma import errors
from drachma.cel import ast

INT_MIN = -(2**63)
INT_MAX = 2**63 - 1
UINT_MAX = 2**64 - 1

# No number within the range is written with more digits; longer texts are not worth converting.
_MAX_DIGITS = 4000

_SIMPLE = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "`": "`",
    "?": "?",
}
_ESCAPE = re.compile(
    r"\\(?:(?P<simple>[abfnrtv\"'\\?`])|(?P<octal>[0-3][0-7]{2})|[xX](?P<byte>[0-9a-fA-F]{2})"
    r"|(?P<unicode>u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}))"
)


def int_value(text: str, *, negative: bool) -> int:
    """Return the value of an int token, with the sign written before it."""
    value = _integer(text)
    if value is not None:
        value = -value if negative else value
        if INT_MIN <= value <= INT_MAX:
            return value
    raise errors.InvalidValueError("invalid int literal")


def uint_value(text: str) -> ast.UInt:
    """Return the value of a uint token; its last character is the suffix."""
    value = _integer(text[:-1])
    if value is None or value > UINT_MAX:
        raise errors.InvalidValueError("invalid uint literal")
    return ast.UInt(value)


def _integer(text: str) -> int | None:
    if len(text) > _MAX_DIGITS:
        text = text.lstrip("0") if not text.startswith("0x") else "0x" + text[2:].lstrip("0")
        if len(text) > _MAX_DIGITS:
            return None
    if text.startswith("0x"):
        return int(text[2:] or "0", 16)
    return int(text or "0")


def double_value(text: str, *, negative: bool) -> float:
    """Return the value of a float token with its sign. A number too large is refused, not infinite."""
    value = float(text)
    if math.isinf(value):
        raise errors.InvalidValueError("invalid double literal")
    return -value if negative else value


def string_value(token: str) -> str:
    """Return the text of a string token: quotes and prefix removed, line ends made line feeds, escapes replaced."""
    body, raw = _body(token)
    if raw or "\\" not in body:
        return body
    return _ESCAPE.sub(_character, body)


def bytes_value(token: str) -> bytes:
    """Return the bytes of a bytes token; characters are UTF-8, octal and hex escapes are single bytes."""
    body, raw = _body(token[1:])
    if raw or "\\" not in body:
        return body.encode()
    parts: list[bytes] = []
    end = 0
    for match in _ESCAPE.finditer(body):
        parts.append(body[end : match.start()].encode())
        end = match.end()
        if match["unicode"]:
            raise errors.InvalidValueError("unable to unescape string")
        if match["simple"]:
            parts.append(_SIMPLE[match["simple"]].encode())
        else:
            parts.append(bytes([_code(match)]))
    parts.append(body[end:].encode())
    return b"".join(parts)


def _body(token: str) -> tuple[str, bool]:
    raw = token[0] in "rR"
    if raw:
        token = token[1:]
    if "\r" in token:
        token = token.replace("\r\n", "\n").replace("\r", "\n")
    quotes = 3 if len(token) >= 6 and token[:3] in ('"""', "'''") else 1
    return token[quotes:-quotes], raw


def _code(match: re.Match[str]) -> int:
    if match["octal"]:
        return int(match["octal"], 8)
    return int(match["byte"] or match["unicode"][1:], 16)


def _character(match: re.Match[str]) -> str:
    if match["simple"]:
        return _SIMPLE[match["simple"]]
    code = _code(match)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise errors.InvalidValueError("invalid unicode code point")
    return chr(code)
