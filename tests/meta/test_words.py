"""Names of modules are made of words that a stranger knows, or that the glossary explains.

A name is read as a sequence of words: those of ``vocabulary.txt`` beside this file (plain English, Python's and
Kubernetes' nouns) and those that the tables of ``docs/glossary.md`` begin with. Everything else is a coined word.
"""

import functools
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
VOCABULARY = pathlib.Path(__file__).with_name("vocabulary.txt")

_VERSION = re.compile(r"v\d+((alpha|beta)\d+)?")


def entries(text: str) -> list[str]:
    """What the rows of tables begin with, but for their headers."""
    return [entry for entry in re.findall(r"^\| ([a-zA-Z][^|]*?) \|", text, re.MULTILINE) if entry != "word"]


def glossary_words() -> frozenset[str]:
    """The words that the glossary explains; an entry may hold several."""
    rows = entries(GLOSSARY.read_text("utf-8"))
    return frozenset(word for row in rows for word in re.findall(r"[a-z]+", row.lower()))


def vocabulary() -> list[str]:
    lines = VOCABULARY.read_text("utf-8").splitlines()
    return [word for line in lines if not line.startswith("#") for word in line.split()]


def singulars(word: str) -> set[str]:
    """A word, and what it may be the plural of."""
    forms = {word, word.removesuffix("s"), word.removesuffix("es")}
    return forms | ({word[:-3] + "y"} if word.endswith("ies") else set())


def is_readable(name: str, words: frozenset[str]) -> bool:
    """Whether a name is a sequence of words."""

    @functools.cache
    def from_here(begin: int) -> bool:
        return begin == len(name) or any(
            not words.isdisjoint(singulars(name[begin:end])) and from_here(end)
            for end in range(begin + 2, len(name) + 1)
        )

    return from_here(0)


def module_names() -> list[str]:
    """All modules and packages by their dotted names."""
    source = ROOT / "src"
    paths = sorted((source / "drachma").rglob("*.py"))
    dotted = [".".join(path.relative_to(source).with_suffix("").parts) for path in paths]
    return [name.removesuffix(".__init__") for name in dotted]


def test_module_names_are_plain_or_explained() -> None:
    words = glossary_words() | frozenset(vocabulary()) | {"drachma"}
    coined = [
        module
        for module in module_names()
        for part in module.rpartition(".")[2].split("_")
        if part and not _VERSION.fullmatch(part) and not is_readable(part, words)
    ]
    assert not coined, (
        f"{', '.join(coined)}: a word is neither in tests/meta/{VOCABULARY.name} nor in docs/{GLOSSARY.name}: "
        "use Kubernetes' word or a plain one; if none fits, explain the word in the glossary, among drachma's own; "
        "if everybody knows it in this meaning, add it to the vocabulary"
    )


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("podstatus", True, id="two-words"),
        pytest.param("policies", True, id="a-plural"),
        pytest.param("classes", True, id="a-plural-with-e"),
        pytest.param("frobnication", False, id="coined"),
        pytest.param("podfrobnication", False, id="partly-coined"),
    ],
)
def test_reading_names(name: str, want: bool) -> None:
    assert is_readable(name, frozenset({"pod", "status", "policy", "class"})) is want


def test_no_word_is_both_plain_and_drachmas_own() -> None:
    """The glossary says what a word means here; one in the vocabulary means what it means everywhere."""
    own = GLOSSARY.read_text("utf-8").partition("## drachma's own words")[2]
    assert entries(own), "the glossary has a section for drachma's own words"
    assert {entry for entry in entries(own) if entry.isalpha()} & set(vocabulary()) == set()
