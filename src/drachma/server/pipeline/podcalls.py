"""Functions that subresources of pods share: reading bodies and setting conditions."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from drachma import errors
from drachma.api import meta
from drachma.claims import conditions
from drachma.server import documents, mediatypes, status
from drachma.server.calls import options
from drachma.server.calls.call import Call
from drachma.server.decoding import bodies
from drachma.server.surface.strategy import Write

_StructT = TypeVar("_StructT", bound=msgspec.Struct)


def read(
    call: Call, model: type[_StructT], write_options: options.WriteOptions, *, media_type: str, also: Sequence[str] = ()
) -> _StructT:
    """Read the body of a call to a subresource of its own kind; ``also`` are other versions that are accepted."""
    if isinstance(call.body.content, dict):
        return bodies.convert(call.body.content, model)
    target = call.target
    below = target.subresource
    assert below is not None, "called on a subresource"
    kind = bodies.target_below(call.surface, target.resource, below)
    validation = write_options.field_validation
    body = bodies.read(call.body.data, media_type, body_target=kind, validation=validation, also=also)
    call.warnings.extend(bodies.enforce(body, body_target=kind, validation=validation))
    document = body.document
    if media_type != mediatypes.JSON or b"null" in call.body.data:
        document = documents.without_nulls(document)
    try:
        return bodies.convert(document, model)
    except errors.DecodeError as error:
        raise status.bad_request(f"{document['kind']}: {error}") from None


def set_condition(
    existing: Sequence[Mapping[str, Any]], condition: Mapping[str, Any], *, write: Write
) -> list[Mapping[str, Any]]:
    """Return the conditions of a pod with one set."""
    moment = meta.time_text(write.now)
    return conditions.put_document(existing, {"lastProbeTime": None, "lastTransitionTime": moment, **condition})
