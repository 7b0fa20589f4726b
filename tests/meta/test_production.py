"""docs/production.md names a test for each cell of its table; every one of them exists."""

import pathlib
import re

PROJECT = pathlib.Path(__file__).parents[2]


def test_named_tests_exist() -> None:
    text = (PROJECT / "docs" / "production.md").read_text("utf-8")
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", text)
    assert len(named) >= 20
    absent = [
        f"{file}::{name}"
        for file, name in named
        if f"def {name}(" not in (PROJECT / "tests" / "cluster" / file).read_text("utf-8")
    ]
    assert not absent
