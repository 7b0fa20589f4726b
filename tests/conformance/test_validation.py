"""What a real API server answers to creates and updates: code, Status or field errors to the letter, stored object."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from drachma import validation
from drachma.api import codec, defaults, gates, scheme
from drachma.api import resourceslice as slices
from drachma.validation import (
    admission,
    deviceclass,
    devicetaintrule,
    refusal,
    resourceclaim,
    resourceclaimtemplate,
    resourceslice,
)
from drachma.validation.fielderror import FieldError
from tests.conformance import vectors
from tests.conformance.vectors import Line

NOW = datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC)
SERVER_SET = ("creationTimestamp", "managedFields", "resourceVersion", "uid")

RULES: dict[tuple[str, str], Callable[[Any, Any, validation.Context], Iterator[FieldError]]] = {
    ("DeviceClass", "update"): deviceclass.check_update,
    ("DeviceTaintRule", "update"): lambda new, old, _: devicetaintrule.check_update(new, old),
    ("DeviceTaintRule", "statusUpdate"): lambda new, old, _: devicetaintrule.check_status(new, old),
    ("ResourceClaim", "update"): lambda new, old, _: resourceclaim.check_update(new, old),
    ("ResourceClaim", "statusUpdate"): resourceclaim.check_status,
    ("ResourceClaimTemplate", "update"): lambda new, old, _: resourceclaimtemplate.check_update(new, old),
    ("ResourceSlice", "update"): resourceslice.check_update,
}


def answer(case: Line) -> Line:
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
        refused = refusal.invalid(verdict.errors, group=kind.group, kind=kind.name, name=name)
        return {"code": 422, "status": refused}
    if isinstance(verdict.object, slices.ResourceSlice):
        detail = admission.slice_refusal(verdict.object, {}, gates=gates.ALL)
        if detail is not None:
            return {"code": 403, "status": refusal.forbidden(detail, group=kind.group, plural=kind.plural, name=name)}
    return {"code": 201, "stored": codec.encode(defaults.canonical(verdict.object))}


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


@vectors.each("apiserver-create")
def test_apiserver_create(case: Line) -> None:
    ours = answer(case)
    assert ours["code"] == case["code"], ours.get("status", {}).get("message")
    if case["code"] == 201:
        assert comparable(ours["stored"], case["object"]) == comparable(case["stored"], case["object"])
    else:
        # A recorded Status has no more than what differs from one refusal to another.
        assert {key: ours["status"].get(key) for key in case["status"]} == case["status"]


@vectors.each("validation-update")
def test_validation_update(case: Line) -> None:
    ours = [
        {"type": str(error.type), "field": error.field, "detail": error.detail, "message": str(error)}
        for error in update_errors(case)
    ]
    assert sorted(ours, key=json.dumps) == sorted(map(_in_order, case.get("errors", [])), key=json.dumps)


def update_errors(case: Line) -> Iterator[FieldError]:
    """The errors of the kind's own rules; the recording has neither declared rules nor preparation."""
    context = validation.Context(
        now=NOW, gates=gates.ALL.switched(case["gates"]), body=json.dumps(case["object"]).encode()
    )
    rules = RULES[case["kind"], case["op"]]
    yield from rules(codec.decode(case["object"]), codec.decode(case["old"]), context)


def _in_order(error: Line) -> Line:
    return {key: error.get(key, "") for key in ("type", "field", "detail", "message")}
