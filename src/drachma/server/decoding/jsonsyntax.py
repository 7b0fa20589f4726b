"""Reading JSON from clients, with the errors of Go's scanner, and repeated keys.

:func:`read` reads every JSON text. The rest is used only after a text has been refused, or may have a repeated key,
because the fast decoder reports neither in upstream's words.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import yamldialect
from drachma.values import quotation

MAX_DEPTH: Final = yamldialect.MAX_DEPTH
"""Depth of nested values. Go reads 10,000 levels; functions here recurse."""

_SPACE: Final = frozenset(b" \t\r\n")
_DIGITS: Final = frozenset(b"0123456789")
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")
_ESCAPES: Final = frozenset(b'bfnrt\\/"')
_LITERALS: Final = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_END: Final = "unexpected end of JSON input"
_encode: Final = msgspec.json.Encoder().encode
_KEY: Final = re.compile(rb'"\s*:')
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_OPENING: Final = b"{["
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"{}[]"))

_decode = msgspec.json.Decoder().decode


class _Syntax(Exception):  # noqa: N818 - never leaves this module
    """The first unexpected character."""


def read(text: bytes) -> Any:
    """Return the value in a text.

    Raises:
        errors.DecodeError: the text is not JSON, or nested too deeply; the message is that of Go's scanner.
    """
    try:
        value = _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise errors.DecodeError(explain(text) or str(error)) from None
    if is_too_deep(text):
        raise errors.DecodeError(explain(text))
    return value


def is_too_deep(text: bytes) -> bool:
    """Return True if a JSON text is nested deeper than :data:`MAX_DEPTH`.

    It removes the innermost pairs of brackets repeatedly: each round is fast, and most texts need few.
    """
    if text.count(b"{") + text.count(b"[") <= MAX_DEPTH:
        return False
    brackets = text.translate(None, _NO_BRACKETS)
    for _ in range(MAX_DEPTH // 2):
        brackets = brackets.replace(b"{}", b"").replace(b"[]", b"")
        if not brackets:
            return False
    # There are brackets in strings, or the text is really too deep.
    depth = 0
    for bracket in _STRING.sub(b"", text).translate(None, _NO_BRACKETS):
        depth += 1 if bracket in _OPENING else -1
        if depth > MAX_DEPTH:
            return True
    return False


def explain(text: bytes) -> str:
    """Return the first syntax error of a text; empty if Go's scanner finds none."""
    try:
        _Scanner(text).scan()
    except _Syntax as error:
        return str(error)
    return ""


def may_repeat_keys(text: bytes, document: Any) -> bool:
    """Return True if the text has more keys than the document that was read from it."""
    return not _is_written_so(text, document) and len(_KEY.findall(text)) != _count_keys(document)


def _is_written_so(text: bytes, document: Any) -> bool:
    """Return True if our own encoder would write the document so: compactly, and each key once."""
    try:
        return _encode(document) == text
    except (ValueError, OverflowError, RecursionError):
        # Half a surrogate pair, a number of more than 64 bits, or a deep document.
        return False


def repeated_keys(text: bytes) -> tuple[str, ...]:
    """Return the paths of all repeated keys, in the order of the text."""
    try:
        content = json.loads(text, object_pairs_hook=_Pairs)
        return tuple(dict.fromkeys(_find_repeated(content, "")))
    except (ValueError, RecursionError):
        return ()


class _Pairs(list[tuple[str, Any]]):
    """Object whose keys are not merged yet."""


def _find_repeated(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        keys = set()
        for key, item in value:
            below = f"{path}.{key}" if path else key
            if key in keys:
                yield below
            keys.add(key)
            yield from _find_repeated(item, below)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _find_repeated(item, f"{path}[{index}]")


def _count_keys(document: Any) -> int:
    count, values = 0, [document]
    while values:
        value = values.pop()
        if type(value) is dict:
            count += len(value)
            values.extend(value.values())
        elif type(value) is list:
            values.extend(value)
    return count


class _Scanner:
    def __init__(self, text: bytes) -> None:
        self._text = text
        self._position = 0
        self._open: list[int] = []

    def scan(self) -> None:
        # A loop instead of recursion, because texts can be nested deeper than Python's stack.
        expects_value = True
        while expects_value:
            if self._value():
                continue
            expects_value = False
            while self._open and not expects_value:
                expects_value = self._continue()
        character = self._skip_space()
        if character is not None:
            self._refuse("after top-level value")

    def _value(self) -> bool:
        """Scan a scalar, or the start of an object or array; return True if its first value comes next."""
        character = self._skip_space()
        if character is None:
            raise _Syntax(_END)
        if character in b"{[":
            self._open.append(character)
            if len(self._open) > MAX_DEPTH:
                self._refuse("exceeded max depth")
            self._position += 1
            closing = self._skip_space()
            if closing == (character + 2):
                self._position += 1
                self._open.pop()
                return False
            if character == ord("{"):
                self._key()
            return True
        if character == ord('"'):
            self._string()
        elif character == ord("-") or character in _DIGITS:
            self._number()
        elif character in _LITERALS:
            self._literal(_LITERALS[character])
        else:
            self._refuse("looking for beginning of value")
        return False

    def _continue(self) -> bool:
        """Scan what follows a value inside an object or array; return True if another value comes next."""
        character = self._skip_space()
        if character is None:
            raise _Syntax(_END)
        inside = self._open[-1]
        if character == inside + 2:
            self._position += 1
            self._open.pop()
            return False
        if character != ord(","):
            self._refuse("after object key:value pair" if inside == ord("{") else "after array element")
        self._position += 1
        if inside == ord("{"):
            self._key()
        return True

    def _key(self) -> None:
        character = self._skip_space()
        if character is None:
            raise _Syntax(_END)
        if character != ord('"'):
            self._refuse("looking for beginning of object key string")
        self._string()
        character = self._skip_space()
        if character is None:
            raise _Syntax(_END)
        if character != ord(":"):
            self._refuse("after object key")
        self._position += 1

    def _string(self) -> None:
        self._position += 1
        while (character := self._peek()) != ord('"'):
            if character < 0x20:
                self._refuse("in string literal")
            self._position += 1
            if character != ord("\\"):
                continue
            character = self._peek()
            if character == ord("u"):
                for _ in range(4):
                    self._position += 1
                    if self._peek() not in _HEX:
                        self._refuse("in \\u hexadecimal character escape")
            elif character not in _ESCAPES:
                self._refuse("in string escape code")
            self._position += 1
        self._position += 1

    def _number(self) -> None:
        if self._peek() == ord("-"):
            self._position += 1
            if self._peek() not in _DIGITS:
                self._refuse("in numeric literal")
        if self._peek() == ord("0"):
            self._position += 1
        else:
            self._digits()
        if self._at(b"."):
            self._position += 1
            if self._peek() not in _DIGITS:
                self._refuse("after decimal point in numeric literal")
            self._digits()
        if self._at(b"eE"):
            self._position += 1
            if self._at(b"+-"):
                self._position += 1
            if self._peek() not in _DIGITS:
                self._refuse("in exponent of numeric literal")
            self._digits()

    def _literal(self, word: bytes) -> None:
        for character in word:
            if self._peek() != character:
                self._refuse(f"in literal {word.decode()} (expecting '{chr(character)}')")
            self._position += 1

    def _digits(self) -> None:
        while self._position < len(self._text) and self._text[self._position] in _DIGITS:
            self._position += 1

    def _at(self, characters: bytes) -> bool:
        return self._position < len(self._text) and self._text[self._position] in characters

    def _peek(self) -> int:
        if self._position >= len(self._text):
            raise _Syntax(_END)
        return self._text[self._position]

    def _skip_space(self) -> int | None:
        while self._position < len(self._text):
            character = self._text[self._position]
            if character not in _SPACE:
                return character
            self._position += 1
        return None

    def _refuse(self, context: str) -> None:
        character = chr(self._text[self._position])
        escaped = {"'": "\\'", '"': '"'}.get(character) or quotation.quote(character)[1:-1]
        raise _Syntax(f"invalid character '{escaped}' {context}")
