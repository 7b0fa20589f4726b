"""Structures of Kueue's custom resources, and the comparison of their answers with recorded ones."""

import functools
from typing import Any

import yaml

from drachma.validation.fielderror import FieldError
from drachma.validation.structural import customresource, schema
from tests.conformance import vectors

_METADATA = "metadata"


@functools.cache
def structures() -> dict[tuple[str, str], tuple[customresource.Structure, bool]]:
    """Return the structure of each version of each kind, and whether its status is a subresource."""
    made = {}
    for path in sorted((vectors.folder().parent / "kueue" / "crds").glob("*.yaml")):
        definition = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)["spec"]
        for version in definition["versions"]:
            structure = customresource.Structure(schema.parse(version["schema"]["openAPIV3Schema"]))
            has_status = "status" in version.get("subresources", {})
            made[definition["names"]["kind"], version["name"]] = structure, has_status
    return made


def compare(answer: Any, document: Any, found: list[FieldError]) -> None:
    """Compare a document with its defaults, or its errors, with a recorded answer."""
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
