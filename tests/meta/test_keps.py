"""docs/keps.md: the modules and tests that it names exist, and every row names both."""

import ast
import functools
import importlib.util
import pathlib
import re

import pytest

_ROOT = pathlib.Path(__file__).parents[2]
_ROW = re.compile(r"^\| (?P<text>[^|]+) \| `(?P<module>[\w.]+)` \| `(?P<test>[\w/]+\.py)(?:::(?P<name>\w+))?` \|$")
_HEADINGS = ("| requirement |", "|---|")
LINES = [
    line
    for line in (_ROOT / "docs" / "keps.md").read_text().splitlines()
    if line.startswith("|") and not line.startswith(_HEADINGS)
]


@functools.cache
def _functions(path: pathlib.Path) -> frozenset[str]:
    tree = ast.parse(path.read_text())
    return frozenset(each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("line", LINES)
def test_a_row_names_a_module_and_a_test_that_exist(line: str) -> None:
    row = _ROW.match(line)
    assert row is not None, "expected: | requirement | `module` | `file.py::test` |"
    assert importlib.util.find_spec(f"drachma.{row['module']}") is not None, f"no module drachma.{row['module']}"
    path = _ROOT / "tests" / row["test"]
    assert path.is_file(), f"no file tests/{row['test']}"
    functions = _functions(path)
    if row["name"] is None:
        assert any(name.startswith("test_") for name in functions)
    else:
        assert row["name"] in functions, f"no test {row['name']} in tests/{row['test']}"


def test_no_requirement_is_listed_twice() -> None:
    texts = [line.split("|")[1].strip() for line in LINES]
    assert len(texts) == len(set(texts))


def test_every_proposal_has_a_part() -> None:
    text = (_ROOT / "docs" / "keps.md").read_text()
    for name in ("KEP-4381: ", "KEP-4381, first alpha", "KEP-4816: ", "KEP-5517: ", "KEP-2941: "):
        assert f"\n## {name}" in text or f"\n## Kueue's {name}" in text
