"""The text form of label selectors: ``a=b,c!=d,e in (x,y),!f,g>1``.

Used for selectors of URLs and command lines. The grammar, its leniencies (an empty value, a
lone comma inside parentheses, keys named ``in``) and all messages are upstream's.
"""

import enum
import re
from typing import Final

from drachma import errors
from drachma.values import fieldtext, labels, names


class _Kind(enum.Enum):
    END = enum.auto()
    IDENTIFIER = enum.auto()
    SYMBOL = enum.auto()


# A zero byte ends the text where a token could begin, and is skipped right after one.
_TOKEN: Final = re.compile(r"[ \t\r\n]*+(?:(?P<symbol>==|!=|[=!(),<>])|(?P<word>[^\0 \t\r\n=!(),<>]++))\0?+").match
_OPERATORS: Final = {
    "in": labels.Operator.IN,
    "notin": labels.Operator.NOT_IN,
    "=": labels.Operator.EQUALS,
    "==": labels.Operator.DOUBLE_EQUALS,
    "!=": labels.Operator.NOT_EQUALS,
    ">": labels.Operator.GREATER_THAN,
    "<": labels.Operator.LESS_THAN,
}
_OPERATOR_NAMES: Final = ", ".join(
    operator.value for operator in labels.Operator if operator.value not in ("exists", "!")
)


def parse(text: str) -> labels.Selector:
    """The selector ``text`` spells; the empty text selects everything. Raises InvalidValueError."""
    return _Parser(text).selector()


class _Parser:
    """Reads tokens left to right, with one token of lookahead."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._position = 0

    def selector(self) -> labels.Selector:
        requirements: list[labels.Requirement] = []
        while True:
            kind, literal = self._peek()
            if kind is _Kind.END:
                return labels.Selector(requirements)
            if not self._is_at_requirement():
                raise errors.InvalidValueError(f"found '{literal}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self._requirement())
            except errors.InvalidValueError as error:
                raise errors.InvalidValueError(f"unable to parse requirement: {error}") from None
            kind, literal = self._take()
            if kind is _Kind.END:
                return labels.Selector(requirements)
            if literal != ",":
                raise errors.InvalidValueError(f"found '{literal}', expected: ',' or 'end of string'")
            if not self._is_at_requirement():
                raise errors.InvalidValueError(f"found '{self._peek()[1]}', expected: identifier after ','")

    def _is_at_requirement(self) -> bool:
        kind, literal = self._peek()
        return kind is _Kind.IDENTIFIER or literal == "!"

    def _requirement(self) -> labels.Requirement:
        kind, key = self._take()
        negated = key == "!"
        if negated:
            kind, key = self._take()
        if kind is not _Kind.IDENTIFIER:
            raise errors.InvalidValueError(f"found '{key}', expected: identifier")
        if problems := names.label_key(key):
            raise errors.InvalidValueError(fieldtext.invalid("<nil>", key, "; ".join(problems)))
        if negated:
            return labels.Requirement.of(key, labels.Operator.DOES_NOT_EXIST)
        if self._is_at_end_of_requirement():
            return labels.Requirement.of(key, labels.Operator.EXISTS)
        _, literal = self._take()
        operator = _OPERATORS.get(literal)
        if operator is None:
            raise errors.InvalidValueError(f"found '{literal}', expected: {_OPERATOR_NAMES}")
        takes_set = operator in (labels.Operator.IN, labels.Operator.NOT_IN)
        values = sorted(self._values()) if takes_set else [self._value()]
        return labels.Requirement.of(key, operator, values=values)

    def _is_at_end_of_requirement(self) -> bool:
        kind, literal = self._peek()
        return kind is _Kind.END or literal == ","

    def _value(self) -> str:
        if self._is_at_end_of_requirement():
            return ""
        kind, literal = self._take()
        if kind is not _Kind.IDENTIFIER:
            raise errors.InvalidValueError(f"found '{literal}', expected: identifier")
        return literal

    def _values(self) -> set[str]:
        _, literal = self._take()
        if literal != "(":
            raise errors.InvalidValueError(f"found '{literal}' expected: '('")
        kind, literal = self._peek()
        if literal == ")":
            self._take()
            return {""}
        if kind is not _Kind.IDENTIFIER and literal != ",":
            raise errors.InvalidValueError(f"found '{literal}', expected: ',', ')' or identifier")
        values: set[str] = set()
        while True:
            kind, literal = self._take()
            following = self._peek()[1] if kind is not _Kind.END else ""
            if kind is _Kind.IDENTIFIER:
                values.add(literal)
                if following not in (",", ")"):
                    raise errors.InvalidValueError(f"found '{following}', expected: ',' or ')'")
            elif literal == ",":
                # Nothing before, between or after commas is the empty value.
                if not values or following in (",", ")"):
                    values.add("")
            else:
                raise errors.InvalidValueError(f"found '{literal}', expected: ',', or identifier")
            if following == ")":
                self._take()
                return values

    def _peek(self) -> tuple[_Kind, str]:
        return self._tokens[self._position]

    def _take(self) -> tuple[_Kind, str]:
        token = self._tokens[self._position]
        self._position += 1
        return token


def _tokens(text: str) -> list[tuple[_Kind, str]]:
    tokens: list[tuple[_Kind, str]] = []
    position = 0
    while match := _TOKEN(text, position):
        position = match.end()
        symbol = match["symbol"]
        tokens.append((_Kind.SYMBOL, symbol) if symbol else (_Kind.IDENTIFIER, match["word"]))
    tokens.append((_Kind.END, ""))
    return tokens
