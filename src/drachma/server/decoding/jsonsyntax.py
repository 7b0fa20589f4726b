"""Reading JSON texts of clients; what is wrong with one, in the words of Go's scanner; and which keys it has twice.

:func:`read` is the way in for every JSON text that is read as a whole. The rest is only asked once a text has been
refused, or may have a key twice: the quick decoder says neither as clients know it.
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
"""How deep values may be nested. Go reads 10,000 levels; what walks through documents here recurses."""

_SPACE: Final = frozenset(b" \t\r\n")
_DIGITS: Final = frozenset(b"0123456789")
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")
_ESCAPES: Final = frozenset(b'bfnrt\\/"')
_LITERALS: Final = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_END: Final = "unexpected end of JSON input"
_KEY: Final = re.compile(rb'"\s*:')
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_OPENING: Final = b"{["
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"{}[]"))

_decode = msgspec.json.Decoder().decode


class _Syntax(Exception):  # noqa: N818 - never leaves this module
    """The first character that does not belong."""


def read(text: bytes) -> Any:
    """The value in a text; a DecodeError in the words of Go's scanner if it is not JSON, or nested too deep."""
    try:
        value = _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise errors.DecodeError(explain(text) or str(error)) from None
    if is_too_deep(text):
        raise errors.DecodeError(explain(text))
    return value


def is_too_deep(text: bytes) -> bool:
    """Whether the values of a JSON text are nested deeper than :data:`MAX_DEPTH`.

    Takes the innermost pairs of brackets away again and again: each round is quick, and most texts need few.
    """
    if text.count(b"{") + text.count(b"[") <= MAX_DEPTH:
        return False
    brackets = text.translate(None, _NO_BRACKETS)
    for _ in range(MAX_DEPTH // 2):
        brackets = brackets.replace(b"{}", b"").replace(b"[]", b"")
        if not brackets:
            return False
    # Brackets in strings, or truly deep.
    depth = 0
    for bracket in _STRING.sub(b"", text).translate(None, _NO_BRACKETS):
        depth += 1 if bracket in _OPENING else -1
        if depth > MAX_DEPTH:
            return True
    return False


def explain(text: bytes) -> str:
    """The first syntax error of a text; empty if Go's scanner finds none."""
    try:
        _Scanner(text).scan()
    except _Syntax as error:
        return str(error)
    return ""


def may_repeat_keys(text: bytes, document: Any) -> bool:
    """Whether some object may have a key twice: there are more keys in the text than in what was read from it."""
    return len(_KEY.findall(text)) != _count_keys(document)


def repeated_keys(text: bytes) -> tuple[str, ...]:
    """The paths of all keys that an object has twice, in the order of the text."""
    try:
        content = json.loads(text, object_pairs_hook=_Pairs)
        return tuple(dict.fromkeys(_repeated(content, "")))
    except (ValueError, RecursionError):
        return ()


class _Pairs(list[tuple[str, Any]]):
    """An object whose keys are not merged yet."""


def _repeated(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen = set()
        for key, item in value:
            below = f"{path}.{key}" if path else key
            if key in seen:
                yield below
            seen.add(key)
            yield from _repeated(item, below)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _repeated(item, f"{path}[{index}]")


def _count_keys(document: Any) -> int:
    count, pending = 0, [document]
    while pending:
        value = pending.pop()
        if type(value) is dict:
            count += len(value)
            pending.extend(value.values())
        elif type(value) is list:
            pending.extend(value)
    return count


class _Scanner:
    def __init__(self, text: bytes) -> None:
        self._text = text
        self._position = 0
        self._open: list[int] = []

    def scan(self) -> None:
        # A loop and not a recursion, for texts are nested deeper than Python's stack.
        expects_value = True
        while expects_value:
            if self._value():
                continue
            expects_value = False
            while self._open and not expects_value:
                expects_value = self._continue()
        found = self._skip_space()
        if found is not None:
            self._refuse("after top-level value")

    def _value(self) -> bool:
        """One scalar, or the beginning of an object or array; whether its first value comes next."""
        found = self._skip_space()
        if found is None:
            raise _Syntax(_END)
        if found in b"{[":
            self._open.append(found)
            if len(self._open) > MAX_DEPTH:
                self._refuse("exceeded max depth")
            self._position += 1
            closing = self._skip_space()
            if closing == (found + 2):
                self._position += 1
                self._open.pop()
                return False
            if found == ord("{"):
                self._key()
            return True
        if found == ord('"'):
            self._string()
        elif found == ord("-") or found in _DIGITS:
            self._number()
        elif found in _LITERALS:
            self._literal(_LITERALS[found])
        else:
            self._refuse("looking for beginning of value")
        return False

    def _continue(self) -> bool:
        """What follows a value inside an object or array; whether that is another value."""
        found = self._skip_space()
        if found is None:
            raise _Syntax(_END)
        inside = self._open[-1]
        if found == inside + 2:
            self._position += 1
            self._open.pop()
            return False
        if found != ord(","):
            self._refuse("after object key:value pair" if inside == ord("{") else "after array element")
        self._position += 1
        if inside == ord("{"):
            self._key()
        return True

    def _key(self) -> None:
        found = self._skip_space()
        if found is None:
            raise _Syntax(_END)
        if found != ord('"'):
            self._refuse("looking for beginning of object key string")
        self._string()
        found = self._skip_space()
        if found is None:
            raise _Syntax(_END)
        if found != ord(":"):
            self._refuse("after object key")
        self._position += 1

    def _string(self) -> None:
        self._position += 1
        while (found := self._peek()) != ord('"'):
            if found < 0x20:
                self._refuse("in string literal")
            self._position += 1
            if found != ord("\\"):
                continue
            found = self._peek()
            if found == ord("u"):
                for _ in range(4):
                    self._position += 1
                    if self._peek() not in _HEX:
                        self._refuse("in \\u hexadecimal character escape")
            elif found not in _ESCAPES:
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
            found = self._text[self._position]
            if found not in _SPACE:
                return found
            self._position += 1
        return None

    def _refuse(self, context: str) -> None:
        character = chr(self._text[self._position])
        shown = {"'": "\\'", '"': '"'}.get(character) or quotation.quote(character)[1:-1]
        raise _Syntax(f"invalid character '{shown}' {context}")
