"""Suggestions for mistyped words."""

import difflib
from collections.abc import Iterable
from typing import Final

_LEAST_LIKENESS: Final = 0.6
_MOST: Final = 3


def suggest(word: str, words: Iterable[str]) -> str:
    """Return the end of a message: the words that a mistyped one may stand for, or all words if none is near."""
    vocabulary = sorted(words)
    near = difflib.get_close_matches(word, vocabulary, n=_MOST, cutoff=_LEAST_LIKENESS)
    if near:
        return f"; did you mean {' or '.join(near)}?"
    return f": expected {', '.join(vocabulary)}" if vocabulary else ""


def is_near(word: str, words: Iterable[str]) -> bool:
    """Return True if a word is a mistyped one of these."""
    return bool(difflib.get_close_matches(word, list(words), n=1, cutoff=_LEAST_LIKENESS))
