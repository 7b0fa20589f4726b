"""Field paths in definitions, such as ``.spec.min`` or ``.spec['a key']``, and the schemas that they refer to.

Rules name the field of an error by them, and definitions name selectable fields.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from drachma.validation.path import Path
from drachma.validation.structural.schema import Schema

_ESCAPES: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\",
}  # fmt: skip
_INVALID: Final = "does not refer to a valid field"
_END: Final = "unexpected end of JSON path"


class Place(NamedTuple):
    """Target of a path: the field, its schema, and the first field of the path."""

    path: Path
    schema: Schema | None
    root: str


class _PathError(Exception):
    """Problem of a path; not raised outside of this module."""


def find(text: str, schema: Schema, *, allows_brackets: bool = True) -> Place | str:
    """Return the target of a path in a schema, or the problem of the path."""
    try:
        return _find(text, schema, allows_brackets=allows_brackets)
    except _PathError as error:
        return str(error)


def _find(text: str, schema: Schema, *, allows_brackets: bool) -> Place:
    path: Path | None = None
    here: Schema | None = schema
    root = ""
    tokens = _tokens(text)
    for token in tokens:
        if token == "[":
            if not allows_brackets:
                raise _PathError("array notation is not allowed")
            name = _unquoted(_next(tokens))
        elif token == ".":
            name = _next(tokens)
        else:
            raise _PathError(f"expected [ or . but got: {token}")
        if here is None or not (here.properties or here.allows_any_name):
            raise _PathError(_INVALID)
        if here.properties:
            if name not in here.properties:
                raise _PathError(_INVALID)
            path = path.child(name) if path is not None else Path(name)
            here = here.properties[name]
        else:
            path = (path or Path()).key(name)
            here = here.value
        root = root or name
        if token == "[" and (closing := _next(tokens)) != "]":
            raise _PathError(f"expected ] but got {closing}")
    return Place(path or Path(), here, root)


def _tokens(text: str) -> Iterator[str]:
    """Yield dots, brackets, quoted texts, and the texts between them."""
    at = 0
    while at < len(text):
        if text[at] in ".[]":
            yield text[at]
            at += 1
            continue
        end = at + 1
        if text[at] == "'":
            while end < len(text) and not (text[end] == "'" and text[end - 1] != "\\"):
                end += 1
            end += 1
        else:
            while end < len(text) and text[end] not in ".[]":
                end += 1
        yield text[at:end]
        at = end


def _next(tokens: Iterator[str]) -> str:
    token = next(tokens, None)
    if token is None:
        raise _PathError(_END)
    return token


def _unquoted(token: str) -> str:
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise _PathError(f"expected single quoted string but got {token}")

    def replace(match: re.Match[str]) -> str:
        character = match[0][1]
        if character not in _ESCAPES:
            raise _PathError(f"invalid string literal: invalid escape char {match[0]}")
        return _ESCAPES[character]

    return re.sub(r"\\.", replace, token[1:-1])
