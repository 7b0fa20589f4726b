"""What the calls below a pod share: how their bodies are read, and the conditions that they set."""

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from drachma import errors
from drachma.api import meta
from drachma.server import documents, mediatypes, status
from drachma.server.calls import options
from drachma.server.calls.call import Call
from drachma.server.decoding import bodies
from drachma.server.surface.strategy import Write

_StructT = TypeVar("_StructT", bound=msgspec.Struct)


def read(
    call: Call, model: type[_StructT], wanted: options.WriteOptions, *, media_type: str, also: Sequence[str] = ()
) -> _StructT:
    """The body of a call to a subresource of its own kind; ``also`` are other versions of it that are read."""
    if isinstance(call.body.content, dict):
        return bodies.convert(call.body.content, model)
    target = call.target
    below = target.subresource
    assert below is not None, "called on a subresource"
    kind = bodies.target_below(call.surface, target.resource, below)
    validation = wanted.field_validation
    body = bodies.read(call.body.data, media_type, wanted=kind, validation=validation, also=also)
    call.warnings.extend(bodies.enforce(body, wanted=kind, validation=validation))
    document = body.document
    if media_type != mediatypes.JSON or b"null" in call.body.data:
        document = documents.without_nulls(document)
    try:
        return bodies.convert(document, model)
    except errors.DecodeError as error:
        raise status.bad_request(f"{document['kind']}: {error}") from None


def with_condition(
    conditions: list[dict[str, Any]], condition: dict[str, Any], *, write: Write
) -> list[dict[str, Any]]:
    """Conditions with one set; the time of its last change stays where its status does."""
    before = next((each for each in conditions if each.get("type") == condition["type"]), None)
    is_same = before is not None and before.get("status") == condition["status"]
    moment = meta.time_text(write.now)
    since = before.get("lastTransitionTime", moment) if before is not None and is_same else moment
    fresh = {"lastProbeTime": None, "lastTransitionTime": since, **condition}
    if before is None:
        return [*conditions, fresh]
    return [fresh if each is before else each for each in conditions]
