"""docs/differences.md: every entry has a test that fails when the entry is no longer true.

``differences.txt`` has a line for each entry: the beginning of the entry, and its test.
"""

import ast
import functools
import pathlib

import pytest

_ROOT = pathlib.Path(__file__).parents[2]
_PAGE = (_ROOT / "docs" / "differences.md").read_text()
_END = "\n## Recorded cases that are left out"
_SEPARATOR = " =>"

LINES = (pathlib.Path(__file__).parent / "differences.txt").read_text().splitlines()
TESTS = {beginning: test.strip() for beginning, _, test in (line.partition(_SEPARATOR) for line in LINES)}


def _entries() -> list[str]:
    """Return the entries of the page, each as one line."""
    entries: list[str] = []
    for line in _PAGE.partition(_END)[0].splitlines():
        if line.startswith("- "):
            entries.append(line.removeprefix("- "))
        elif line.startswith("  ") and entries:
            entries[-1] += f" {line.strip()}"
    return entries


@functools.cache
def _functions(path: pathlib.Path) -> frozenset[str]:
    tree = ast.parse(path.read_text())
    return frozenset(each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))


def test_every_line_is_about_one_entry() -> None:
    entries = _entries()
    assert len(TESTS) == len(LINES), "a beginning is there twice"
    for beginning in TESTS:
        count = sum(entry.startswith(beginning) for entry in entries)
        assert count == 1, f"{count} entries of docs/differences.md begin with {beginning!r}"


@pytest.mark.parametrize(("beginning", "test"), [(key, value) for key, value in TESTS.items() if value])
def test_the_test_of_an_entry_exists(beginning: str, test: str) -> None:
    file, _, name = test.partition("::")
    path = _ROOT / "tests" / file
    assert path.is_file(), f"{beginning}: no file tests/{file}"
    functions = _functions(path)
    assert name in functions if name else any(each.startswith("test_") for each in functions), f"{beginning}: {test}"


def test_every_entry_has_a_test() -> None:
    beginnings = tuple(beginning for beginning, test in TESTS.items() if test)
    untested = [entry[:60] for entry in _entries() if not entry.startswith(beginnings)]
    assert not untested, f"add a line to differences.txt for: {'; '.join(untested)}"
