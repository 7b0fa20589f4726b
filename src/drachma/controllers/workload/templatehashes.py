"""Short names of templates, in letters that make no words: parts of names of sets and revisions. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_LENGTH: Final = 10
_FNV_OFFSET: Final = 2166136261
_FNV_PRIME: Final = 16777619

_encode = msgspec.json.Encoder(order="sorted").encode


def template_hash(template: Mapping[str, Any], collisions: int) -> str:
    """The name of a template after so many collisions.

    Differs from upstream: its hash is over how Go prints the template. Sets are found by their template, not by it.
    """
    number = int.from_bytes(hashlib.sha256(_encode([template, collisions])).digest(), "big")
    letters = []
    for _ in range(_LENGTH):
        number, position = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[position])
    return "".join(letters)


def content_hash(content: Mapping[str, Any], collisions: int) -> str:
    """The name of a revision's content after so many collisions, the same as upstream's."""
    number = _FNV_OFFSET
    for byte in (*go_json(content), *str(collisions).encode()):
        number = (number * _FNV_PRIME & 0xFFFFFFFF) ^ byte
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(number))


def go_json(content: Mapping[str, Any]) -> bytes:
    """JSON as Go writes it: keys in order, and what would mean something in HTML escaped."""
    encoded = _encode(content)
    for plain, escaped in ((b"&", rb"\u0026"), (b"<", rb"\u003c"), (b">", rb"\u003e")):
        encoded = encoded.replace(plain, escaped)
    return encoded.replace("\u2028".encode(), rb"\u2028").replace("\u2029".encode(), rb"\u2029")
