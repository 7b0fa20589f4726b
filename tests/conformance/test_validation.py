"""What a real API server's rules find wrong with updates: field errors to the letter."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from drachma import validation
from drachma.api import codec, gates, scheme
from drachma.validation import deviceclaim, metadata, resourceclaim, resourceslice, taints
from drachma.validation.fielderror import FieldError
from tests.conformance import vectors
from tests.conformance.vectors import Line

NOW = datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC)

RULES: dict[tuple[str, str], Callable[[Any, Any, validation.Context], Iterator[FieldError]]] = {
    ("DeviceClass", "update"): deviceclaim.check_class_update,
    ("DeviceTaintRule", "update"): taints.check_rule_update,
    ("DeviceTaintRule", "statusUpdate"): taints.check_rule_status,
    ("ResourceClaim", "update"): resourceclaim.check_update,
    ("ResourceClaim", "statusUpdate"): resourceclaim.check_status,
    ("ResourceClaimTemplate", "update"): resourceclaim.check_template_update,
    ("ResourceSlice", "update"): resourceslice.check_update,
}


@vectors.each("validation-update")
def test_validation_update(case: Line) -> None:
    ours = {
        str(error): {"type": str(error.type), "field": error.field, "detail": error.detail, "message": str(error)}
        for error in update_errors(case)
    }
    # Upstream finds much in metadata twice, and says it once.
    assert ours == {error["message"]: _in_order(error) for error in case.get("errors", [])}


def update_errors(case: Line) -> Iterator[FieldError]:
    """The errors of hand-written rules; the recording has neither declared rules nor preparation."""
    new, old = codec.decode(case["object"]), codec.decode(case["old"])
    namespaced = scheme.of(type(new)).namespaced
    yield from metadata.check(new.metadata, namespaced=namespaced, name_rule=metadata.path_segment)
    yield from metadata.check_update(new.metadata, old.metadata)
    context = validation.Context(
        now=NOW, gates=gates.ALL.switched(case["gates"]), body=json.dumps(case["object"]).encode()
    )
    yield from RULES[case["kind"], case["op"]](new, old, context)


def _in_order(error: Line) -> Line:
    return {key: error.get(key, "") for key in ("type", "field", "detail", "message")}
