"""Objects against the schemas of Kueue's custom resources, as recorded from a real API server."""

from typing import Any

import pytest
import yaml

from drachma.validation.fielderror import FieldError
from drachma.validation.structural import customresource, schema
from tests.conformance import vectors
from tests.conformance.vectors import Line

_METADATA = "metadata"


@pytest.fixture(scope="module")
def structures() -> dict[tuple[str, str], tuple[customresource.Structure, bool]]:
    """What each version of each kind makes of objects, and whether its status is written apart."""
    made = {}
    for path in sorted((vectors.folder().parent / "kueue" / "crds").glob("*.yaml")):
        definition = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)["spec"]
        for version in definition["versions"]:
            structure = customresource.Structure(schema.parse(version["schema"]["openAPIV3Schema"]))
            has_status = "status" in version.get("subresources", {})
            made[definition["names"]["kind"], version["name"]] = structure, has_status
    return made


@vectors.each("kueue-crd")
def test_kueue_crd(case: Line, structures: dict[tuple[str, str], tuple[customresource.Structure, bool]]) -> None:
    given = case["input"]
    structure, has_status = structures[case["kind"], given["object"]["apiVersion"].partition("/")[2]]
    new = _read(structure, given["object"], has_status=has_status)
    if case["test"] == "create":
        found = structure.check(new)
    else:
        old = _read(structure, given["oldObject"], has_status=has_status)
        if has_status and "status" in given:
            old["status"] = new["status"] = given["status"]
        found = structure.check_update(new, old, [])
    _compare(case["answer"], new, list(found))


def _read(structure: customresource.Structure, document: Any, *, has_status: bool) -> Any:
    read = structure.read(document).document
    if has_status:
        read.pop("status", None)
    return read


def _compare(answer: Any, document: Any, found: list[FieldError]) -> None:
    if answer["code"] != 422:
        assert [str(error) for error in found] == []
        assert _content(document) == _content(answer["object"])
        return
    if len(found) == 1:
        assert answer["message"].endswith(f"is invalid: {found[0]}")
    causes = sorted((error.type.value, error.field, error.body) for error in found)
    assert causes == sorted((each["reason"], each["field"], each["message"]) for each in answer["causes"])


def _content(document: Any) -> Any:
    return {name: value for name, value in document.items() if name != _METADATA}
