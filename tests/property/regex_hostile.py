"""Hostile regular expressions: short texts that ask for large programs, deep nesting or long searches.

``bench.hostile`` tries very many of them, the tests a few.
"""

import random
from typing import Final

from drachma.cel.runtime import regex

_ATOMS: Final = (
    "a", "x", "é", "水", ".", r"\d", r"\w", r"\W", r"\S", r"\pL", r"\PL", r"\p{Greek}", r"\P{Han}", r"\p{letter}",
    "[a-z]",
    "[^a]", r"[^\pL]", r"[\p{L}\p{N}_-]", r"[\x{100}-\x{10FFFF}]", "[[:^alpha:]]", r"\x{10FFFF}", r"\Qa{9}\E", "^", "$",
    r"\b", "", "(?i)k", "(?s).", "(?i)[^k]", r"\C", r"\8", "[z-a]", "[", ")", "(", "\\",
)  # fmt: skip
_COUNTS: Final = (
    "*", "+", "?", "*?", "{2}", "{30}", "{400}", "{1000}", "{1001}", "{2,}", "{0,60}", "{5,900}", "{,5}", "{", "**",
)  # fmt: skip
_TEXTS: Final = ("x" * 2000, "1" * 2000, "aé水" * 500, "")


def pattern(chance: random.Random, depth: int = 3) -> str:
    """Return a random pattern, well-formed or not."""
    parts = []
    for _ in range(chance.randint(1, 4)):
        part = chance.choice(_ATOMS)
        if depth and chance.random() < 0.5:
            opening = chance.choice(("(", "(?:", "(?P<n>", "(?i:"))
            part = f"{opening}{pattern(chance, depth - 1)})"
        if chance.random() < 0.6:
            part += chance.choice(_COUNTS)
        parts.append(part)
    text = chance.choice(("", "|")).join(parts)
    if depth == 3 and chance.random() < 0.1:
        times = chance.choice((10, 100, 1000, 5000))
        text = chance.choice((text * times, "(" * times + text + ")" * times))
    return text


def attempt(text: str, chance: random.Random) -> str:
    """Compile a pattern and search with it; return how that ended. Raises nothing unless something is wrong."""
    end = attempt_compilation(text)
    if end == "refused":
        return end
    return "found" if regex.matches(chance.choice(_TEXTS), text) else "not found"


def attempt_compilation(text: str) -> str:
    """Compile a pattern; return how that ended."""
    try:
        regex.matcher(text)
    except regex.PatternError:
        return "refused"
    return "compiled"
