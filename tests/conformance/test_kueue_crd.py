"""Objects against the schemas of Kueue's custom resources, as recorded from a real API server."""

from typing import Any

from drachma.validation.structural import customresource
from tests.conformance import crdforms, vectors
from tests.conformance.vectors import Line


@vectors.each("kueue-crd")
def test_kueue_crd(case: Line) -> None:
    given = case["input"]
    structure, has_status = crdforms.structures()[case["kind"], given["object"]["apiVersion"].partition("/")[2]]
    new = _read(structure, given["object"], has_status=has_status)
    if case["test"] == "create":
        found = structure.check(new)
    else:
        old = _read(structure, given["oldObject"], has_status=has_status)
        if has_status and "status" in given:
            old["status"] = new["status"] = given["status"]
        found = structure.check_update(new, old, [])
    crdforms.compare(case["answer"], new, list(found))


def _read(structure: customresource.Structure, document: Any, *, has_status: bool) -> Any:
    read = structure.read(document).document
    if has_status:
        read.pop("status", None)
    return read
