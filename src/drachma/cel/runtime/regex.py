"""Regular expressions: ``matches``, ``find`` and ``findAll``, in the syntax of RE2.

Called through ``library``, and by plans, which compile constant patterns once. RE2 runs in linear time whatever the
pattern; patterns that Go refuses are refused with Go's message.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, Final

import re2  # type: ignore[import-untyped]

from drachma.cel.runtime import faults

_CACHED: Final = 256
_SMALL_PROGRAM: Final = 1000
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

_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False


class PatternError(ValueError):
    """A text is not a regular expression; the message is Go's."""


@functools.lru_cache(maxsize=_CACHED)
def compile_pattern(pattern: str) -> Any:
    """The compiled pattern; raises PatternError."""
    if _GO_LACKS(pattern):
        raise PatternError(r"error parsing regexp: invalid escape sequence: `\C`")
    try:
        return re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        message = _go_message(error, pattern)
    respelled = _CLASS.sub(_respell_class, pattern)
    if respelled != pattern:
        try:
            return re2.compile(respelled, _OPTIONS)
        except re2.error as error:
            other = _go_message(error, respelled)
        if "invalid character class range" not in other:
            # The classes were not what is wrong; the message shows the pattern as it was written.
            message = other
            for match in _CLASS.finditer(pattern):
                message = message.replace(_respell_class(match), match[0])
    raise PatternError(message)


def _respell_class(match: re.Match[str]) -> str:
    """Go takes names of Unicode classes in any case, and categories by their long names; RE2 takes one spelling."""
    written = match["braced"] or match["letter"]
    if not written:
        return match[0]
    name = written.removeprefix("^")
    plain = re.sub(r"[ _-]", "", name).lower()
    known = _CATEGORIES.get(plain)
    if known is None:
        known = plain.capitalize() if len(plain) <= 2 else "_".join(map(str.capitalize, re.split(r"[ _-]", name)))
    negated = "^" if written.startswith("^") else ""
    return f"\\{match['sign']}{{{negated}{known}}}"


def _go_message(error: re2.error, pattern: str) -> str:
    detail = error.args[0] if error.args else ""
    text = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
    reason, _, argument = text.partition(": ")
    if reason.startswith("pattern too large"):
        reason, argument = "expression too large", pattern
    return f"error parsing regexp: {_REASONS.get(reason, reason)}: `{argument}`"


def matcher(pattern: str) -> Callable[[str], bool]:
    """A function that tells whether some part of a text matches; raises PatternError."""
    compiled = compile_pattern(pattern)
    if compiled.programsize > _SMALL_PROGRAM:
        return lambda text: compiled.search(text) is not None
    # A set of one pattern answers without looking for the position, at a fraction of the price. It has no second
    # method for when its memory runs out, so it is for programs that cannot fill it.
    patterns = re2.Set.SearchSet(_OPTIONS)
    patterns.Add(pattern)
    patterns.Compile()
    search = patterns.Match
    return lambda text: search(text) is not None


def matches(text: str, pattern: str) -> bool:
    """Whether some part of the text matches."""
    try:
        compiled = compile_pattern(pattern)
    except PatternError as error:
        raise faults.Fault(str(error)) from None
    return compiled.search(text) is not None


def _compile_for_find(pattern: str) -> Any:
    try:
        return compile_pattern(pattern)
    except PatternError as error:
        raise faults.Fault(f"Illegal regex: {error}") from None


def find(text: str, pattern: str) -> str:
    """The first match, or the empty string."""
    return find_compiled(text, _compile_for_find(pattern))


def find_compiled(text: str, compiled: Any) -> str:
    """The same with a compiled pattern."""
    match = compiled.search(text)
    return str(match.group()) if match is not None else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """The matches that do not overlap, at most ``limit`` of them unless it is negative."""
    return find_all_compiled(text, _compile_for_find(pattern), limit)


def find_all_compiled(text: str, compiled: Any, limit: int = -1) -> list[str]:
    """The same with a compiled pattern."""
    found: list[str] = []
    last_end = -1
    if limit == 0:
        return found
    for match in compiled.finditer(text):
        start, end = match.span()
        # An empty match directly after another match does not count.
        if end > start or start != last_end:
            found.append(str(match.group()))
            if len(found) == limit:
                break
        last_end = end
    return found


IMPLEMENTATIONS: Final[dict[str, Any]] = {
    "string_find_string": find,
    "string_find_all_string": find_all,
    "string_find_all_string_int": find_all,
}
