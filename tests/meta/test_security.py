"""docs/security.md: every threat names tests that exist, and every finding of the audit has a named test."""

import ast
import functools
import pathlib
import re

import pytest

_ROOT = pathlib.Path(__file__).parents[2]
_TESTS = _ROOT / "tests"
_PAGE = (_ROOT / "docs" / "security.md").read_text(encoding="utf-8")
_REFERENCE = re.compile(r"`((?:[\w/]*test_\w+)?(?:::[\w:]+(?:\[[\w-]+\])?)?)`")
_FINDINGS = 20
_SMALL_FINDINGS = {
    "an expired client certificate": "test_beside::test_a_client_certificate_expires_on_an_open_connection",
    "two Authorization headers": "test_beside::test_two_authorization_headers_are_refused",
    "mount options in a path": "test_podmanoptions::test_paths_that_podman_would_take_apart",
    "time zones that are paths": "test_timezones::test_names_that_the_database_does_not_have",
    "pages of other servers": "test_nodelocation::test_streams_are_not_for_pages_of_other_servers",
    "a kubectl without a digest": "test_fetched_programs::test_another_kubectl_is_not_used",
}
"""Finding 6 has six parts, each with a test of its own."""


def _rows() -> list[list[str]]:
    """Return the cells of all rows of tables whose last column is named ``test``."""
    rows: list[list[str]] = []
    is_test_table = False
    previous = ""
    for line in _PAGE.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if re.fullmatch(r"[|: -]+", line) and "|" in line:
            is_test_table = previous.rstrip("| ").endswith("| test")
        elif not line.startswith("|"):
            is_test_table = False
        elif is_test_table:
            rows.append(cells)
        previous = line
    return rows


def _references(cell: str) -> list[str]:
    """Return the tests of a cell; ``::name`` is in the file that was named before."""
    references = []
    file = ""
    for reference in _REFERENCE.findall(cell):
        named, _, rest = reference.partition("::")
        file = named or file
        references.append(f"{file}::{rest}" if rest else file)
    return references


@functools.cache
def _files() -> tuple[pathlib.Path, ...]:
    return tuple(_TESTS.rglob("test_*.py"))


@functools.cache
def _names(path: pathlib.Path) -> frozenset[str]:
    """Return the names of functions, classes and methods of a file; methods also after ``Class::``."""
    names: set[str] = set()
    for each in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(each.name)
        elif isinstance(each, ast.ClassDef):
            names.add(each.name)
            methods = {inner.name for inner in each.body if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)}
            names |= methods | {f"{each.name}::{method}" for method in methods}
    return frozenset(names)


def _tests(reference: str) -> list[pathlib.Path]:
    """Return the files that have the test of a reference."""
    file, _, name = reference.partition("::")
    name = name.partition("[")[0]
    paths = [path for path in _files() if f"/{path.relative_to(_TESTS)}".endswith(f"/{file}.py")]
    if not name:
        return [path for path in paths if any(each.startswith(("test_", "Test")) for each in _names(path))]
    return [path for path in paths if name in _names(path)]


ROWS = _rows()


def test_the_page_has_threats() -> None:
    assert len(ROWS) > 100


@pytest.mark.parametrize("row", ROWS, ids=[row[0][:40] for row in ROWS])
def test_every_threat_names_tests_that_exist(row: list[str]) -> None:
    references = _references(row[-1])
    assert references, f"no test is named for {row[0]!r}"
    for reference in references:
        assert len(_tests(reference)) == 1, f"{reference}: is in {_tests(reference)}, expected one file"


@pytest.mark.parametrize("number", range(1, _FINDINGS + 1))
def test_every_finding_has_a_named_function(number: int) -> None:
    """A file alone does not say which of its tests fails if the finding returns, unless all of it is about that."""
    (row,) = [row for row in ROWS if row[0] == str(number)]
    assert any("::" in reference for reference in _references(row[-1])), row[-1]


@pytest.mark.parametrize(("part", "test"), _SMALL_FINDINGS.items())
def test_each_part_of_finding_6_has_a_test(part: str, test: str) -> None:
    (row,) = [row for row in ROWS if row[0] == "6"]
    assert part in row[1]
    assert any(reference.endswith(test) for reference in _references(row[-1]))
