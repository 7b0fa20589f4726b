"""The site of the documents: links lead somewhere, and the reference has all that is public, explained."""

import importlib
import inspect
import pathlib
import pkgutil
import re
from types import ModuleType

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
DOCS = PROJECT / "docs"
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
_ENTRY = re.compile(r"^::: (\S+)$", re.MULTILINE)


@pytest.mark.parametrize("page", sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")))
def test_links_lead_somewhere(page: str) -> None:
    links = _LINK.findall((DOCS / page).read_text())
    assert [link for link in links if "://" not in link and not ((DOCS / page).parent / link).exists()] == []


def _reference(name: str) -> set[str]:
    return set(_ENTRY.findall((DOCS / "reference" / f"{name}.md").read_text()))


@pytest.mark.parametrize("package", ["driver", "testing"])
def test_what_a_package_exports_is_in_the_reference(package: str) -> None:
    entries = _reference(package)
    public = importlib.import_module(f"drachma.{package}")
    homes = {name: _home(getattr(public, name)) for name in public.__all__}
    missing = [f"{home}.{name}" for name, home in homes.items() if not {home, f"{home}.{name}"} & entries]
    # An alias of a type that is described elsewhere is told of where it is.
    assert [each for each in missing if not each.startswith("drachma.nodewire.")] == []


def _home(public: object) -> str:
    return str(getattr(public, "__module__", ""))


def test_all_modules_for_tests_are_in_the_reference() -> None:
    package = importlib.import_module("drachma.testing")
    modules = {f"drachma.testing.{each.name}" for each in pkgutil.iter_modules(package.__path__)}
    assert modules <= _reference("testing")


@pytest.mark.parametrize("entry", sorted(_reference("driver") | _reference("testing")))
def test_all_that_the_reference_shows_is_explained(entry: str) -> None:
    subject = _subject(entry)
    assert inspect.getdoc(subject)
    assert [name for name, member in _members(subject) if not inspect.getdoc(member)] == []


def _subject(entry: str) -> object:
    try:
        return importlib.import_module(entry)
    except ModuleNotFoundError:
        module, _, name = entry.rpartition(".")
        return getattr(importlib.import_module(module), name)


def _members(subject: object) -> list[tuple[str, object]]:
    """Public classes, functions, methods and properties that are defined here."""
    own: list[tuple[str, object]] = []
    for name, member in vars(subject).items():
        if name.startswith("_"):
            continue
        if isinstance(subject, ModuleType) and getattr(member, "__module__", None) != subject.__name__:
            continue
        if inspect.isclass(member):
            own.append((name, member))
            own += [(f"{name}.{inner}", each) for inner, each in _members(member)]
        elif inspect.isroutine(member) or isinstance(member, property):
            own.append((name, member))
    return own
