"""JSONPath as Kubernetes' clients and printer columns write it: ``.status.conditions[?(@.type=="Ready")].status``.

Read are fields (also ``['quoted']`` and with escaped dots), positions, slices, unions, ``*``, ``..`` and filters that
compare one path with a literal, or look whether it is there. A path that leads nowhere gives nothing; text that is no
path is refused.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from drachma import errors

Step: TypeAlias = Callable[[Any], Iterator[Any]]

_FIELD: Final = re.compile(r"(?:\\.|[^.\[\]\\'\"\s])+")
_POSITION: Final = re.compile(r"-?\d{1,9}")
_SLICE: Final = re.compile(r"(-?\d{0,9}):(-?\d{0,9})(?::(-?\d{0,9}))?")
_FILTER: Final = re.compile(r"\?\((.*)\)", re.DOTALL)
_COMPARISON: Final = re.compile(r"@(?P<path>[^=!<>]*)(?:(?P<operator>==|!=|<=|>=|<|>)(?P<value>.+))?", re.DOTALL)
_MAX_BYTES: Final = 4096
_MAX_RESULTS: Final = 10_000


class Path:
    """A path that can be followed again and again."""

    def __init__(self, text: str, steps: Sequence[Step]) -> None:
        self.text: Final = text
        self._steps: Final = tuple(steps)

    def find(self, document: Any) -> list[Any]:
        """Everything that the path leads to in a document, in order."""
        values = [document]
        for step in self._steps:
            values = [each for value in values for each in step(value)][:_MAX_RESULTS]
        return values

    def first(self, document: Any) -> Any:
        """The first of it, or None."""
        return next(iter(self.find(document)), None)


def parse(text: str) -> Path:
    """The path that a text stands for.

    Raises:
        errors.InvalidValueError: it stands for none.
    """
    if len(text) > _MAX_BYTES:
        raise errors.InvalidValueError(f"JSONPath of {len(text)} characters: may not be more than {_MAX_BYTES}")
    return Path(text, list(_steps(text.strip())))


def _steps(text: str) -> Iterator[Step]:
    at = 0
    while at < len(text):
        if text.startswith("..", at):
            yield _descend
            at += 2 if text.startswith("..[", at) else 1
        if text[at] == "[":
            end = _closing(text, at)
            yield _bracket(text[at + 1 : end].strip(), text)
            at = end + 1
            continue
        if text[at] == "." and (at + 1 == len(text) or text[at + 1] == "["):
            at += 1
            continue
        match = _FIELD.match(text, at + 1) if text[at] == "." else None
        if match is None:
            raise errors.InvalidValueError(f"JSONPath {text!r}: unexpected {text[at:]!r}")
        name = re.sub(r"\\(.)", r"\1", match[0])
        yield _everything if match[0] == "*" else _field(name)
        at = match.end()


def _closing(text: str, at: int) -> int:
    """Return the position of the closing bracket; brackets in quotes do not count."""
    depth, quote = 0, ""
    for position in range(at, len(text)):
        character = text[position]
        if quote:
            quote = "" if character == quote and text[position - 1] != "\\" else quote
        elif character in "'\"":
            quote = character
        elif character == "[":
            depth += 1
        elif character == "]":
            depth -= 1
            if not depth:
                return position
    raise errors.InvalidValueError(f"JSONPath {text!r}: unterminated array")


def _bracket(inside: str, text: str) -> Step:
    condition = _FILTER.fullmatch(inside)
    if condition is not None:
        return _filter(condition[1], text)
    if inside == "*":
        return _everything
    if len(inside) > 1 and inside[0] == inside[-1] and inside[0] in "'\"" and inside[0] not in inside[1:-1]:
        return _field(inside[1:-1])
    if _POSITION.fullmatch(inside):
        return _position(int(inside))
    match = _SLICE.fullmatch(inside)
    if match is not None:
        first, last, step = (int(part) if part else None for part in match.groups())
        return _slice(slice(first, last, step or None))
    if "," in inside:
        return _union([_bracket(part.strip(), text) for part in inside.split(",")])
    raise errors.InvalidValueError(f"JSONPath {text!r}: invalid array index [{inside}]")


def _field(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _position(index: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _slice(positions: slice) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from value[positions]

    return step


def _union(several: Sequence[Step]) -> Step:
    def step(value: Any) -> Iterator[Any]:
        for each in several:
            yield from each(value)

    return step


def _everything(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _descend(value: Any) -> Iterator[Any]:
    """A value and all that is in it."""
    todo = [value]
    while todo:
        each = todo.pop(0)
        yield each
        if isinstance(each, dict | list):
            todo[:0] = list(each.values()) if isinstance(each, dict) else each


def _filter(condition: str, text: str) -> Step:
    match = _COMPARISON.fullmatch(condition.strip())
    if match is None:
        raise errors.InvalidValueError(f"JSONPath {text!r}: cannot read the filter {condition!r}")
    path = parse(match["path"].strip())
    operator = match["operator"]
    literal = _literal(match["value"].strip(), text) if operator else None

    def step(value: Any) -> Iterator[Any]:
        for item in value if isinstance(value, list) else ():
            results = path.find(item)
            if results and (operator is None or _holds(results[0], operator, literal)):
                yield item

    return step


def _literal(literal_text: str, text: str) -> Any:
    if len(literal_text) > 1 and literal_text[0] == literal_text[-1] and literal_text[0] in "'\"":
        return literal_text[1:-1]
    words: dict[str, Any] = {"true": True, "false": False, "null": None}
    if literal_text in words:
        return words[literal_text]
    try:
        return float(literal_text)
    except ValueError:
        raise errors.InvalidValueError(f"JSONPath {text!r}: cannot read {literal_text!r}") from None


def _holds(value: Any, operator: str, literal: Any) -> bool:
    if operator in ("==", "!="):
        is_equal = isinstance(value, bool) == isinstance(literal, bool) and value == literal
        return is_equal is (operator == "==")
    numbers = (int, float)
    both_numbers = isinstance(value, numbers) and isinstance(literal, numbers)
    if not both_numbers and not (isinstance(value, str) and isinstance(literal, str)):
        return False
    match operator:
        case "<":
            return bool(value < literal)
        case "<=":
            return bool(value <= literal)
        case ">":
            return bool(value > literal)
        case _:
            return bool(value >= literal)
