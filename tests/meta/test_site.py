"""The site of the documents: links lead somewhere, and the reference describes the public API."""

import importlib
import importlib.util
import inspect
import pathlib
import pkgutil
import re
from types import ModuleType

import pytest

import drachma

PROJECT = pathlib.Path(__file__).resolve().parents[2]
DOCS = PROJECT / "docs"
PUBLIC = [name for name in drachma.__all__ if not name.startswith("_")]
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
_ANCHOR = re.compile(r"\]\(((?:[^)#\s:]+\.md)?)#([^)]+)\)")
PAGES = [*sorted(PROJECT.glob("*.md")), *sorted(DOCS.rglob("*.md")), *sorted(PROJECT.glob("examples/*/README.md"))]
_ENTRY = re.compile(r"^::: (\S+)$", re.MULTILINE)


@pytest.mark.parametrize("page", sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")))
def test_links_lead_somewhere(page: str) -> None:
    links = _LINK.findall((DOCS / page).read_text())
    assert [link for link in links if "://" not in link and not ((DOCS / page).parent / link).exists()] == []


def test_every_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r"[\w./-]+\.md", (PROJECT / "mkdocs.yml").read_text()))
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    assert listed <= pages
    assert {page for page in pages - listed if not page.startswith("adr/")} == set()


def test_every_page_says_who_needs_it() -> None:
    """The first paragraph of a page has a sentence with its reader or purpose, before any list, table or code."""
    for path in (*DOCS.glob("*.md"), *DOCS.glob("tutorials/*.md")):
        blocks = [block for block in path.read_text().split("\n\n") if block.strip() and not block.startswith("#")]
        assert re.match(r"[A-Z]?[\w`*\[]", blocks[0]), path.name
        assert not blocks[0].startswith(("|", "- ", "```", "![")), path.name


def test_the_reference_is_that_of_the_code() -> None:
    spec = importlib.util.spec_from_file_location("reference", PROJECT / "scripts" / "generate_reference.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    command = "python scripts/generate_reference.py writes it again"
    assert (DOCS / "reference" / "commands.md").read_text() == script.commands(), command
    assert (DOCS / "reference" / "kinds.md").read_text() == script.kinds(), command


def _anchors(page: pathlib.Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and mkdocs form them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [str(path.relative_to(PROJECT)) for path in PAGES])
def test_links_lead_to_headings(page: str) -> None:
    links = _ANCHOR.findall((PROJECT / page).read_text())
    targets = [((PROJECT / page).parent / link if link else PROJECT / page, anchor) for link, anchor in links]
    assert [f"{path.name}#{anchor}" for path, anchor in targets if anchor not in _anchors(path)] == []


def _named_tests(row: str) -> list[tuple[str, str]]:
    """Return path and names of each test in the last cell of a row; ``::name`` is in the file named before it."""
    named, path = [], ""
    for reference in re.findall(r"`([\w/]*(?:::\w+)*)(?:\[[^`]*\])?`", row.rsplit("|", 2)[1]):
        path = reference.partition("::")[0] or path
        named.append((path, reference.partition("::")[2]))
    return [(path, names) for path, names in named if path.rpartition("/")[2].startswith("test_")]


def test_security_names_tests_that_exist() -> None:
    files = {str(path.with_suffix("")): path.read_text() for path in (PROJECT / "tests").rglob("test_*.py")}
    rows = [row for row in (DOCS / "security.md").read_text().splitlines() if row.startswith("|")]
    missing = []
    for path, names in (named for row in rows for named in _named_tests(row)):
        texts = [text for file, text in files.items() if file.endswith(f"/{path}")]
        defined = [
            all(re.search(rf"(def|class) {name}\b", text) for name in names.split("::") if name) for text in texts
        ]
        if not any(defined):
            missing.append(f"{path}::{names}")
    assert missing == []


def test_decisions_are_numbered_once() -> None:
    files = sorted((DOCS / "adr").glob("0*.md"))
    titles = [path.read_text().splitlines()[0] for path in files]
    assert [title.partition(".")[0] for title in titles] == [f"# {int(path.name[:4])}" for path in files]
    assert [int(path.name[:4]) for path in files] == list(range(1, len(files) + 1))


def _reference(name: str) -> set[str]:
    return set(_ENTRY.findall((DOCS / "reference" / f"{name}.md").read_text()))


@pytest.mark.parametrize("package", PUBLIC)
def test_the_names_that_a_package_exports_are_in_the_reference(package: str) -> None:
    entries = _reference(package)
    public = importlib.import_module(f"drachma.{package}")
    homes = {name: _home(getattr(public, name)) for name in public.__all__}
    missing = {name: home for name, home in homes.items() if not {home, f"{home}.{name}"} & entries}
    text = (DOCS / "reference" / f"{package}.md").read_text()
    # An alias has no home of its own: the page names it, or describes the type that it stands for.
    aliases = {name for name, home in missing.items() if not home.startswith("drachma.") and f"`{name}`" in text}
    assert [name for name in missing if name not in aliases and not missing[name].startswith("drachma.nodewire.")] == []


def test_stability_lists_the_public_packages() -> None:
    listed = re.findall(r"^\| `drachma\.(\w+)` \|", (DOCS / "stability.md").read_text(), re.MULTILINE)
    assert sorted(listed) == PUBLIC


def _home(public: object) -> str:
    return str(getattr(public, "__module__", ""))


def test_all_modules_for_tests_are_in_the_reference() -> None:
    package = importlib.import_module("drachma.testing")
    modules = {f"drachma.testing.{each.name}" for each in pkgutil.iter_modules(package.__path__)}
    assert modules <= _reference("testing")


@pytest.mark.parametrize("entry", sorted(entry for package in PUBLIC for entry in _reference(package)))
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
