r"""Size of the program that a regular expression compiles to, estimated before it is compiled.

RE2 matches in linear time but builds whatever a pattern asks for: ``\PL{400}`` has eight characters and half a million
instructions. :func:`estimate` reads a pattern once and adds up instructions, so that :mod:`drachma.cel.runtime.regex`
can refuse a large one for the price of reading it. The estimate need not be exact: RE2 has a memory limit of its own.

:class:`Estimate` also has the two figures that Go limits: how deep the expression nests and how often an innermost
element is repeated.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import re2  # type: ignore[import-untyped]

_TOKEN: Final = re.compile(
    r"""
      \\Q(?P<quoted>.*?)(?:\\E|\Z)
    | \\(?P<sign>[pP])(?:\{(?P<name>[^}]*)\}|(?P<letter>.))
    | \\(?P<escape>x\{[0-9A-Fa-f]*\}|.)
    | (?P<group>\((?:\?(?:P?<[^>]*>|[a-zA-Z]*-?[a-zA-Z]*[:)]))?)
    | (?P<bracket>\[\^?\]?)
    | (?P<end>\))
    | (?P<bar>\|)
    | (?P<star>[*+?]\??)
    | \{(?P<least>\d+)(?P<comma>,)?(?P<most>\d*)\}\??
    | (?P<any>\.)
    | (?P<run>[A-Za-z0-9\ _/:,;@=-]{2,}(?![*+?{]))
    | (?P<plain>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_MEMBER: Final = re.compile(
    r"""
      \\(?P<sign>[pP])(?:\{(?P<name>[^}]*)\}|(?P<letter>.))
    | \\(?P<escape>x\{[0-9A-Fa-f]*\}|.)
    | (?P<posix>\[:\^?\w*:\])
    | (?P<end>\])
    | (?P<plain>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_IGNORES_CASE: Final = re.compile(r"\(\?[a-zA-Z]*i")
_NEGATED: Final = "DSW"
_OTHER_CHARACTERS: Final = 12
"""Instructions for all characters beyond ASCII."""
_RANGE: Final = 4
"""Instructions for a character or a range beyond ASCII."""
_FOLDED_BEYOND_ASCII: Final = "kKsS"
"""Letters that are equal to one beyond ASCII where case does not matter."""
_FOLDED: Final = 4
"""Instructions for a letter whose case does not matter."""
_WIDEST_COUNT: Final = 9
"""Digits of a repeat count that are worth reading; Go refuses all above 1000."""

_LARGEST_CLASS: Final = 1200
_LONGEST_NAME: Final = 40
"""Instructions of the largest Unicode class, and characters of the longest name of one."""

_QUIET: Final = re2.Options()
_QUIET.log_errors = False

_class_sizes: Final[dict[str, int]] = {}
"""Instructions of Unicode classes as RE2 knows them. RE2 has some two hundred, and no others are kept."""


class Estimate(NamedTuple):
    """Figures of a pattern."""

    instructions: int
    depth: int
    """Height of the expression's tree."""
    repetitions: int
    """Product of the repeat counts around an innermost element."""


class _Term(NamedTuple):
    """Part of a pattern, such as a character, a class or a group."""

    size: int
    depth: int = 1
    repetitions: int = 1


class _Level:
    """Group that is being read: finished terms, and the last one, which an operator may still repeat."""

    __slots__ = ("branches", "captures", "depth", "last", "repetitions", "size", "terms")

    def __init__(self, *, captures: bool) -> None:
        self.captures: Final = captures
        self.size = 0
        self.depth = 0
        self.repetitions = 1
        self.terms = 0
        self.branches = 0
        self.last: _Term | None = None

    def add(self, term: _Term) -> None:
        self.settle()
        self.last = term
        self.terms += 1

    def settle(self) -> None:
        if self.last is not None:
            self.size += self.last.size
            self.depth = max(self.depth, self.last.depth)
            self.repetitions = max(self.repetitions, self.last.repetitions)
            self.last = None

    def repeat(self, count: int, *, adds_depth: bool) -> None:
        last = self.last
        if last is not None:
            depth = last.depth + 1 if adds_depth else last.depth
            self.last = _Term(last.size * count + count, depth, last.repetitions * count)

    def close(self) -> _Term:
        self.settle()
        depth = self.depth + (self.terms > 1) + (self.branches > 0) + self.captures
        return _Term(self.size + self.branches + 2 * self.captures, max(depth, 1), self.repetitions)


def estimate(pattern: str, *, most: int) -> Estimate:
    """Return the figures of a pattern, which need not be well-formed. Takes time in proportion to its length.

    A pattern of more than ``most`` instructions is not read to its end.
    """
    folds = _IGNORES_CASE.search(pattern) is not None
    levels = [_Level(captures=False)]
    position, end = 0, len(pattern)
    while position < end:
        token = _TOKEN.match(pattern, position)
        assert token is not None, "every character is a token"
        position = token.end()
        level = levels[-1]
        if level.size > most:
            break
        match token.lastgroup:
            case "quoted":
                level.add(_Term(sum(_character(each, folds=folds) for each in token["quoted"])))
            case "sign" | "name" | "letter":
                level.add(_Term(_unicode_class(token, folds=folds)))
            case "escape":
                level.add(_Term(_escape(token["escape"])))
            case "group" if not token["group"].endswith(")"):
                levels.append(_Level(captures=token["group"] == "(" or "<" in token["group"]))
            case "bracket":
                size, position = _bracket(pattern, position, folds=folds)
                level.add(_Term(size + _OTHER_CHARACTERS * ("^" in token["bracket"])))
            case "end" if len(levels) > 1:
                term = levels.pop().close()
                levels[-1].add(term)
            case "bar":
                level.settle()
                level.branches += 1
            case "star":
                level.repeat(1, adds_depth=True)
            case "least" | "comma" | "most":
                level.repeat(_count(token), adds_depth=True)
            case "any":
                level.add(_Term(_OTHER_CHARACTERS))
            case "run":
                level.add(_Term((_FOLDED if folds else 1) * len(token["run"])))
            case "plain":
                level.add(_Term(_character(token["plain"], folds=folds)))
    while len(levels) > 1:
        term = levels.pop().close()
        levels[-1].add(term)
    return Estimate(*levels[0].close())


def _count(token: re.Match[str]) -> int:
    """Return how many copies of an element a repetition is made of."""
    least = int(token["least"][-_WIDEST_COUNT:])
    if token["most"]:
        return max(least, int(token["most"][-_WIDEST_COUNT:]), 1)
    return least + 1 if token["comma"] else max(least, 1)


def _character(text: str, *, folds: bool) -> int:
    if text.isascii():
        if folds and text in _FOLDED_BEYOND_ASCII:
            return _OTHER_CHARACTERS
        return _FOLDED if folds and text.isalpha() else 1
    return 2 * _RANGE if folds else _RANGE


def _escape(text: str) -> int:
    if text in _NEGATED:
        return _OTHER_CHARACTERS
    return _RANGE if text.startswith("x") or not text.isascii() else 3


def _bracket(pattern: str, position: int, *, folds: bool) -> tuple[int, int]:
    """Return the size of a class in brackets that begins at a position, and the position after it."""
    size = 1
    while position < len(pattern):
        member = _MEMBER.match(pattern, position)
        assert member is not None, "every character is a member"
        position = member.end()
        match member.lastgroup:
            case "end":
                break
            case "sign" | "name" | "letter":
                size += _unicode_class(member, folds=folds)
            case "escape":
                size += _escape(member["escape"])
            case "posix":
                size += _OTHER_CHARACTERS if "^" in member["posix"] else 3
            case _:
                size += _character(member["plain"], folds=folds)
    return size, position


def _unicode_class(token: re.Match[str], *, folds: bool) -> int:
    size = _class_size(token["sign"], token["name"] or token["letter"] or "")
    return 2 * size if folds else size


def _class_size(sign: str, name: str) -> int:
    spelling = f"\\{sign}{{{name}}}"
    size = _class_sizes.get(spelling)
    if size is None:
        if len(name) > _LONGEST_NAME:
            return _LARGEST_CLASS
        try:
            size = int(re2.compile(spelling, _QUIET).programsize)
        except re2.error:
            # Not a class, or one that only Go spells so.
            return _LARGEST_CLASS
        _class_sizes[spelling] = size
    return size
