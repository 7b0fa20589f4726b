"""Regular expressions: ``matches``, ``find`` and ``findAll``, in the syntax of RE2.

Called through ``library``, and by plans, which compile constant patterns once. Schemas of custom resources compile
their patterns here as well. RE2 matches in linear time whatever the pattern. Patterns that Go refuses are refused with
Go's message, and so are patterns whose program would be large. Differs from upstream: Go counts a Unicode class as one
instruction and takes programs of three million; here the limit is :data:`MOST_INSTRUCTIONS` of RE2's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import re2  # type: ignore[import-untyped]

from drachma.bounds import effort, memory
from drachma.cel.runtime import faults, patternsize

MOST_INSTRUCTIONS: Final = 100_000
"""Instructions of a compiled pattern, as estimated before it is compiled."""

MOST_CHARACTERS: Final = 16 * 1024
"""Length of a pattern; an expression that has one in it may have 10,240 characters."""

MOST_DEPTH: Final = 1000
"""Height of an expression's tree, as in Go."""

MOST_REPETITIONS: Final = 1000
"""Repetitions of an innermost element, as in Go."""

_SMALL_PROGRAM: Final = 1000
_BASE_BYTES: Final = 512 * 1024
_INSTRUCTION_BYTES: Final = 40
"""Memory of a compiled pattern: enough for its program and for what a search remembers."""

_CHARACTER_EFFORT: Final = 3
"""Effort of estimating the size of a pattern, for each character."""

_INSTRUCTION_EFFORT: Final = 2
"""Effort of compiling a pattern, for each instruction of its program."""

_STEPS_PER_UNIT: Final = 100
"""Instructions that a search takes in about a microsecond."""

_REST_COST: Final = 2
"""Thousandths of a unit for every character after a match, which the next search may look at."""

_SHOWN: Final = 1000
"""Characters of a pattern that a message about its size repeats."""

_REASONS: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
    "invalid named capture group": "invalid named capture",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
}
_GO_LACKS: Final = re.compile(r"(?:[^\\]|\\[^C])*+\\C", re.DOTALL).match

_CLASS: Final = re.compile(r"\\\\|\\(?P<sign>[pP])(?:\{(?P<braced>[^}]*)\}|(?P<letter>.))", re.DOTALL)
_CATEGORIES: Final = {
    "other": "C", "control": "Cc", "cntrl": "Cc", "format": "Cf", "privateuse": "Co", "surrogate": "Cs",
    "letter": "L", "lowercaseletter": "Ll", "modifierletter": "Lm", "otherletter": "Lo", "titlecaseletter": "Lt",
    "uppercaseletter": "Lu", "mark": "M", "combiningmark": "M", "spacingmark": "Mc", "enclosingmark": "Me",
    "nonspacingmark": "Mn", "number": "N", "decimalnumber": "Nd", "digit": "Nd", "letternumber": "Nl",
    "othernumber": "No", "punctuation": "P", "punct": "P", "connectorpunctuation": "Pc", "dashpunctuation": "Pd",
    "closepunctuation": "Pe", "finalpunctuation": "Pf", "initialpunctuation": "Pi", "otherpunctuation": "Po",
    "openpunctuation": "Ps", "symbol": "S", "currencysymbol": "Sc", "modifiersymbol": "Sk", "mathsymbol": "Sm",
    "othersymbol": "So", "separator": "Z", "lineseparator": "Zl", "paragraphseparator": "Zp", "spaceseparator": "Zs",
    "any": "Any",
}  # fmt: skip

_outcomes: Final = memory.Cache[str, Any]("patterns")


class PatternError(ValueError):
    """A text is not a regular expression; the message is Go's."""


class _Refusal(NamedTuple):
    """Message of a refusal. An error would keep the frames that raised it, with all that a request holds."""

    message: str


def compile_pattern(pattern: str) -> Any:
    """Return the compiled pattern. Raises PatternError, also where it did so before."""
    outcome = _outcomes.get(pattern)
    if outcome is None:
        size = 0
        try:
            size = _admit(pattern)
            effort.spend(_INSTRUCTION_EFFORT * size)
            outcome = _compile(pattern, _options(size))
        except PatternError as error:
            outcome = _Refusal(str(error))
        # Twice: a matcher may have a second program.
        memory = len(pattern) + len(outcome.message) if isinstance(outcome, _Refusal) else 2 * _memory(size)
        _outcomes.put(pattern, outcome, size=memory)
    if isinstance(outcome, _Refusal):
        raise PatternError(outcome.message)
    return outcome


def _admit(pattern: str) -> int:
    """Return how many instructions a pattern is about. Raises PatternError where it is more than there may be."""
    if len(pattern) > MOST_CHARACTERS:
        raise _too_large(pattern)
    effort.spend(_CHARACTER_EFFORT * len(pattern))
    figures = patternsize.estimate(pattern, most=MOST_INSTRUCTIONS)
    if figures.depth > MOST_DEPTH:
        raise PatternError(f"error parsing regexp: expression nests too deeply: `{pattern[:_SHOWN]}`")
    if figures.instructions > MOST_INSTRUCTIONS:
        if figures.repetitions > MOST_REPETITIONS:
            raise PatternError(f"error parsing regexp: invalid repeat count: `{pattern[:_SHOWN]}`")
        raise _too_large(pattern)
    return figures.instructions


def _too_large(pattern: str) -> PatternError:
    return PatternError(f"error parsing regexp: expression too large: `{pattern[:_SHOWN]}`")


def _memory(instructions: int) -> int:
    """Return how many bytes RE2 may use for one program."""
    return _BASE_BYTES + _INSTRUCTION_BYTES * instructions


def _options(instructions: int) -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _memory(instructions)
    return options


def _compile(pattern: str, options: re2.Options) -> Any:
    if _GO_LACKS(pattern):
        raise PatternError(r"error parsing regexp: invalid escape sequence: `\C`")
    try:
        return _build(pattern, options)
    except re2.error as error:
        message = _go_message(error, pattern)
    respelled = _CLASS.sub(_respell_class, pattern)
    if respelled != pattern:
        try:
            return _build(respelled, options)
        except re2.error as error:
            go_error = _go_message(error, respelled)
        if "invalid character class range" not in go_error:
            # The classes were not what is wrong; the message shows the pattern as it was written.
            message = go_error
            for match in _CLASS.finditer(pattern):
                message = message.replace(_respell_class(match), match[0])
    raise PatternError(message)


def _build(pattern: str, options: re2.Options) -> Any:
    try:
        return re2.compile(pattern, options)
    finally:
        # The library's own cache is bounded by count only.
        re2.purge()


def _respell_class(match: re.Match[str]) -> str:
    """Go takes names of Unicode classes in any case, and categories by their long names; RE2 takes one spelling."""
    class_name = match["braced"] or match["letter"]
    if not class_name:
        return match[0]
    name = class_name.removeprefix("^")
    plain = re.sub(r"[ _-]", "", name).lower()
    category = _CATEGORIES.get(plain)
    if category is None:
        category = plain.capitalize() if len(plain) <= 2 else "_".join(map(str.capitalize, re.split(r"[ _-]", name)))
    negated = "^" if class_name.startswith("^") else ""
    return f"\\{match['sign']}{{{negated}{category}}}"


def _go_message(error: re2.error, pattern: str) -> str:
    detail = error.args[0] if error.args else ""
    text = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
    reason, _, argument = text.partition(": ")
    if reason.startswith("pattern too large"):
        reason, argument = "expression too large", pattern
    return f"error parsing regexp: {_REASONS.get(reason, reason)}: `{argument}`"


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that tells whether some part of a text matches. Raises PatternError."""
    compiled = compile_pattern(pattern)
    size = compiled.programsize
    if size > _SMALL_PROGRAM:

        def search_large(text: str) -> bool:
            _spend_on(text, size)
            return compiled.search(text) is not None

        return search_large
    # A set of one pattern answers without looking for the position, at a fraction of the price. It has no second
    # method for when its memory runs out, so it is for programs that cannot fill it.
    patterns = re2.Set.SearchSet(_options(size))
    patterns.Add(compiled.pattern)
    patterns.Compile()
    search = patterns.Match
    return lambda text: search(text) is not None


def _spend_on(text: str, size: int) -> None:
    # In the worst case, every instruction of a large program is looked at for every character.
    effort.spend(len(text) * size // _STEPS_PER_UNIT)


def matches(text: str, pattern: str) -> bool:
    """Return True if some part of the text matches."""
    try:
        compiled = compile_pattern(pattern)
    except PatternError as error:
        raise faults.Fault(str(error)) from None
    _spend_on(text, compiled.programsize)
    return compiled.search(text) is not None


def _compile_for_find(pattern: str) -> Any:
    try:
        return compile_pattern(pattern)
    except PatternError as error:
        raise faults.Fault(f"Illegal regex: {error}") from None


def find(text: str, pattern: str) -> str:
    """Return the first match, or the empty string."""
    return find_compiled(text, _compile_for_find(pattern))


def find_compiled(text: str, compiled: Any) -> str:
    """Like find(), with a compiled pattern."""
    _spend_on(text, compiled.programsize)
    match = compiled.search(text)
    return str(match.group()) if match is not None else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Return the matches that do not overlap, at most ``limit`` of them unless it is negative."""
    return find_all_compiled(text, _compile_for_find(pattern), limit)


def find_all_compiled(text: str, compiled: Any, limit: int = -1) -> list[str]:
    """Like find_all(), with a compiled pattern."""
    matches: list[str] = []
    last_end = -1
    if limit == 0:
        return matches
    _spend_on(text, compiled.programsize)
    for match in compiled.finditer(text):
        start, end = match.span()
        effort.spend(1 + (len(text) - end) * _REST_COST // 1000)
        # An empty match directly after another match does not count.
        if end > start or start != last_end:
            matches.append(str(match.group()))
            if len(matches) == limit:
                break
        last_end = end
    return matches


IMPLEMENTATIONS: Final[dict[str, Any]] = {
    "string_find_string": find,
    "string_find_all_string": find_all,
    "string_find_all_string_int": find_all,
}
