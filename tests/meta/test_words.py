"""Words that drachma does not use: in names of modules, in docstrings and in documents."""

import ast
import pathlib
import re
from collections.abc import Iterator

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = sorted((PROJECT / "src" / "drachma").rglob("*.py"))
DOCUMENTS = [*PROJECT.glob("*.md"), *(PROJECT / "docs").glob("*.md"), *(PROJECT / "docs" / "reference").glob("*.md")]
HISTORY = PROJECT / "CHANGELOG.md"

MODULE_NAMES = frozenset({"common", "helper", "helpers", "manager", "misc", "util", "utils"})
"""Names of modules that say nothing about their contents."""

PROSE = {
    "anew": "again",
    "anybody": "a client, a user",
    "everybody": "all users, all components",
    "for want of": "without",
    "hitherto": "so far",
    "in the stead": "instead of",
    "in thought": "simulate",
    "somebody": "a client, a user",
    "thereof": "of it",
    "whoever": "the caller, the client",
    "whomever": "the caller, the client",
}
"""Words that hide the actor or are out of use, and what to write instead."""

_PROSE = re.compile(rf"\b({'|'.join(PROSE)})\b", re.IGNORECASE)


def docstrings(path: pathlib.Path) -> Iterator[str]:
    """Yield the docstrings of a module, or none of a module that has no such word anywhere."""
    text = path.read_text("utf-8")
    for node in ast.walk(ast.parse(text)) if _PROSE.search(text) else ():
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node, clean=False) or ""


def unused_words(text: str) -> list[str]:
    """Return the words of a text that drachma does not use, each with its replacement."""
    return [f"{word}: write {PROSE[word.lower()]}" for word in _PROSE.findall(text)]


def test_modules_are_named_by_their_contents() -> None:
    assert [str(path) for path in SOURCES if path.stem in MODULE_NAMES] == []


def test_docstrings_name_the_actor() -> None:
    words = {str(path.relative_to(PROJECT)): unused_words("\n".join(docstrings(path))) for path in SOURCES}
    assert {path: found for path, found in words.items() if found} == {}


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if path != HISTORY], ids=lambda path: path.name)
def test_documents_name_the_actor(path: pathlib.Path) -> None:
    assert unused_words(path.read_text("utf-8")) == []


def test_words_are_found_with_their_replacement() -> None:
    assert unused_words("Whoever asks is told anew.") == ["Whoever: write the caller, the client", "anew: write again"]
