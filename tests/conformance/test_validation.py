"""What a real API server answers to creates and updates: code, causes, messages and the stored object."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from drachma import validation
from drachma.api import codec, defaults, gates, scheme
from drachma.api import resourceslice as slices
from drachma.validation import (
    admission,
    deviceclass,
    devicetaintrule,
    resourceclaim,
    resourceclaimtemplate,
    resourceslice,
    status,
)
from drachma.validation.fielderror import FieldError
from tests.conformance import vectors

NOW = datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC)
CREATES = vectors.lines("apiserver-create.jsonl")
UPDATES = vectors.lines("validation-update.jsonl")
SERVER_SET = ("creationTimestamp", "managedFields", "resourceVersion", "uid")
LEAST_EQUAL_MESSAGES = 0.95

# The recording was made with a deletion time that is the zero time, which JSON leaves out.
RECORDED_WITHOUT_DELETION_TIME = frozenset({"TestValidateClaimStatusUpdate/invalid-reserved-deleted"})


RULES: dict[tuple[str, str], Callable[[Any, Any, validation.Context], Iterator[FieldError]]] = {
    ("DeviceClass", "update"): deviceclass.check_update,
    ("DeviceTaintRule", "update"): lambda new, old, _: devicetaintrule.check_update(new, old),
    ("DeviceTaintRule", "statusUpdate"): lambda new, old, _: devicetaintrule.check_status(new, old),
    ("ResourceClaim", "update"): lambda new, old, _: resourceclaim.check_update(new, old),
    ("ResourceClaim", "statusUpdate"): resourceclaim.check_status,
    ("ResourceClaimTemplate", "update"): lambda new, old, _: resourceclaimtemplate.check_update(new, old),
    ("ResourceSlice", "update"): resourceslice.check_update,
}


def parametrized(cases: list[dict[str, Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in cases])


def answer(case: dict[str, Any]) -> dict[str, Any]:
    """What our rules say to a POST: a code with the stored object, or with the Status."""
    document = case["object"]
    if "/namespaces/" in case["path"]:
        namespace = case["path"].partition("/namespaces/")[2].partition("/")[0]
        document = {**document, "metadata": {"namespace": namespace, **document["metadata"]}}
    given = defaults.apply(codec.decode(document), now=NOW)
    context = validation.Context(now=NOW, namespace_labels={}, body=json.dumps(document).encode())
    verdict = validation.create(given, context)
    kind = scheme.of(type(given))
    name = given.metadata.name
    if verdict.errors:
        refused = status.invalid(verdict.errors, group=kind.group, kind=kind.name, name=name)
        return {"code": 422, "status": refused}
    if isinstance(verdict.object, slices.ResourceSlice):
        refusal = admission.slice_refusal(verdict.object, {}, gates=gates.ALL)
        if refusal is not None:
            return {"code": 403, "status": status.forbidden(refusal, group=kind.group, plural=kind.plural, name=name)}
    return {"code": 201, "stored": codec.encode(defaults.canonical(verdict.object))}


def causes(document: dict[str, Any]) -> set[tuple[str, str]]:
    return {(cause["field"], cause["reason"]) for cause in document["details"].get("causes", ())}


def comparable(stored: Any, given: Any) -> Any:
    """The object without what only a server sets, and with one clock for times that the client left out."""
    if isinstance(stored, list):
        others = given if isinstance(given, list) else [None] * len(stored)
        return [comparable(item, other) for item, other in zip(stored, others, strict=True)]
    if not isinstance(stored, dict):
        return stored
    earlier = given if isinstance(given, dict) else {}
    return {
        key: "<now>" if key == "timeAdded" and key not in earlier else comparable(value, earlier.get(key))
        for key, value in stored.items()
        if key not in SERVER_SET
    }


@parametrized(CREATES)
def test_create(case: dict[str, Any]) -> None:
    ours = answer(case)
    assert ours["code"] == case["code"], ours.get("status", {}).get("message")
    if case["code"] == 201:
        assert comparable(ours["stored"], case["object"]) == comparable(case["stored"], case["object"])
        return
    assert causes(ours["status"]) == causes(case["status"])
    assert ours["status"]["reason"] == case["status"]["reason"]


def test_create_messages() -> None:
    refused = [case for case in CREATES if case["code"] != 201]
    different = [case["name"] for case in refused if answer(case)["status"]["message"] != case["status"]["message"]]
    assert len(different) <= len(refused) * (1 - LEAST_EQUAL_MESSAGES), different


@parametrized(UPDATES)
def test_update(case: dict[str, Any]) -> None:
    found = list(update_errors(case))
    wanted = case.get("errors", [])
    assert sorted((error.field, error.type) for error in found) == sorted(
        (want["field"], want["type"]) for want in wanted
    )
    assert sorted(map(str, found)) == sorted(want["message"] for want in wanted)


def update_errors(case: dict[str, Any]) -> Iterator[FieldError]:
    """The errors of the kind's own rules; the recording has neither declared rules nor preparation."""
    documents = [case["object"], case["old"]]
    if case["name"] in RECORDED_WITHOUT_DELETION_TIME:
        added = {"deletionTimestamp": "2001-02-03T04:05:06Z"}
        documents = [{**document, "metadata": {**document["metadata"], **added}} for document in documents]
    context = validation.Context(
        now=NOW, gates=gates.ALL.switched(case["gates"]), body=json.dumps(case["object"]).encode()
    )
    new, old = map(codec.decode, documents)
    yield from RULES[case["kind"], case["op"]](new, old, context)
