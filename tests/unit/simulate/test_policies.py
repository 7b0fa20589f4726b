"""Policies: which nodes and devices pods get, where several would do."""

import pathlib

from tests.unit.simulate import placements

DOCUMENT = pathlib.Path(__file__).resolve().parents[3] / "docs" / "policies.md"


def test_what_policies_come_to_is_what_the_document_says() -> None:
    document = "".join(line.removeprefix("    ") for line in DOCUMENT.read_text("utf-8").splitlines(keepends=True))
    assert placements.table() in document
