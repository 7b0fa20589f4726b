"""Label selectors as text (``labelSelector=app in (a,b),!legacy``): parsed once, then asked for each object.

Lists, watches and collection deletes use them. A text that is no selector is refused with upstream's message.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.values import names, quotation

_KEYWORDS: Final = frozenset({"in", "notin"})
_SYMBOLS: Final = frozenset({"=", "==", "!=", "!", "<", ">", "(", ")", ","})
_TOKEN: Final = re.compile(r"[ \t\r\n]*(?:([=!(),<>]+)|([^=!(),<> \t\r\n]+)|$)")
_BINARY: Final = ("in", "notin", "=", "==", "!=", "gt", "lt")
_OPERATORS: Final = frozenset({"=", "==", "!=", "in", "notin", "<", ">"})
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_END: Final = ""


class Requirement(msgspec.Struct, frozen=True):
    """One condition on one label; ``operator`` is exists, !, in, notin, =, ==, !=, < or >."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, Any]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "=" | "==" | "in":
                return value in self.values
            case "!=" | "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
        number, limit = _integer(value), _integer(next(iter(self.values)))
        if number is None or limit is None:
            return False
        return number > limit if self.operator == ">" else number < limit


class LabelSelector(msgspec.Struct, frozen=True):
    """All requirements must hold; none at all selects everything."""

    requirements: tuple[Requirement, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.requirements)

    def matches(self, labels: Mapping[str, Any]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


EVERYTHING: Final = LabelSelector()


def parse(text: str) -> LabelSelector:
    """The selector that a text stands for; InvalidValueError says what was found in place of what."""
    return LabelSelector(tuple(_Parser(text).requirements())) if text else EVERYTHING


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._position = 0

    def requirements(self) -> Iterator[Requirement]:
        while True:
            found = self._peek()
            if found == _END:
                return
            if not (_is_identifier(found) or found == "!"):
                raise errors.InvalidValueError(f"found '{found}', expected: !, identifier, or 'end of string'")
            try:
                yield self._requirement()
            except errors.InvalidValueError as error:
                raise errors.InvalidValueError(f"unable to parse requirement: {error}") from None
            found = self._next()
            if found == _END:
                return
            if found != ",":
                raise errors.InvalidValueError(f"found '{found}', expected: ',' or 'end of string'")
            found = self._peek()
            if not (_is_identifier(found) or found == "!"):
                raise errors.InvalidValueError(f"found '{found}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        key = self._next()
        is_negated = key == "!"
        if is_negated:
            key = self._next()
        if not _is_identifier(key):
            raise errors.InvalidValueError(f"found '{key}', expected: identifier")
        _check(key, names.label_key(key), path="<nil>")
        if is_negated or self._peek() in (_END, ","):
            return Requirement(key, "!" if is_negated else "exists")
        operator = self._next()
        if operator not in _OPERATORS:
            raise errors.InvalidValueError(f"found '{operator}', expected: {', '.join(_BINARY)}")
        values = self._values() if operator in _KEYWORDS else self._value()
        if operator in "<>" and _integer(next(iter(values))) is None:
            shown = quotation.quote(next(iter(values)))
            detail = "for 'Gt', 'Lt' operators, the value must be an integer"
            raise errors.InvalidValueError(f"values[0]: Invalid value: {shown}: {detail}")
        for index, value in enumerate(sorted(values)):
            _check(value, names.label_value(value), path=f"values[{index}][{key}]")
        return Requirement(key, operator, frozenset(values))

    def _value(self) -> set[str]:
        if self._peek() in (_END, ","):
            return {""}
        value = self._next()
        if not _is_identifier(value):
            raise errors.InvalidValueError(f"found '{value}', expected: identifier")
        return {value}

    def _values(self) -> set[str]:
        found = self._next()
        if found != "(":
            raise errors.InvalidValueError(f"found '{found}' expected: '('")
        if self._peek() == ")":
            self._next()
            return {""}
        values: set[str] = set()
        has_value = False
        while True:
            found = self._next()
            if _is_identifier(found):
                values.add(found)
                has_value = True
                if self._peek() not in (",", ")"):
                    raise errors.InvalidValueError(f"found '{self._peek()}', expected: ',' or ')'")
            elif found == ",":
                # An empty place between, before or after commas stands for the empty value.
                if not has_value or self._peek() in (",", ")"):
                    values.add("")
                has_value = True
            elif found == ")":
                return values
            else:
                raise errors.InvalidValueError(f"found '{found}', expected: ',', ')' or identifier")

    def _peek(self) -> str:
        return self._tokens[self._position]

    def _next(self) -> str:
        token = self._tokens[self._position]
        if token != _END:
            self._position += 1
        return token


def _tokens(text: str) -> Iterator[str]:
    position = 0
    while match := _TOKEN.match(text, position):
        symbols, word = match.groups()
        if word is not None:
            yield word
            position = match.end()
        elif symbols is not None:
            # The longest symbol comes first: "!=" is one, "=(" are two.
            symbol = next(part for size in (2, 1) if (part := symbols[:size]) in _SYMBOLS)
            yield symbol
            position = match.start(1) + len(symbol)
        else:
            break
    yield _END


def _is_identifier(token: str) -> bool:
    return token != _END and token not in _SYMBOLS


def _check(text: str, problems: Any, *, path: str) -> None:
    messages = list(problems)
    if messages:
        raise errors.InvalidValueError(f"{path}: Invalid value: {quotation.quote(text)}: {'; '.join(messages)}")


def _integer(text: Any) -> int | None:
    if not isinstance(text, str) or not _INTEGER.fullmatch(text) or len(text) > 20:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
