"""The scale subresource of deployments and replica sets: how many replicas, apart from everything else."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.server import documents, schema, status
from drachma.server.calls import options
from drachma.server.decoding import bodies
from drachma.server.kinds.strategy import Subject
from drachma.server.patch import patching
from drachma.server.pipeline.handling import Handler
from drachma.server.presentation import negotiation
from drachma.server.surface import verbs
from drachma.server.wire import responses
from drachma.validation import fielderror, metadata
from drachma.validation.path import SPEC
from drachma.values import labels

_API_VERSION: Final = "autoscaling/v1"
_CARRIED: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


async def serve(handler: Handler) -> responses.Response:
    """Gets, replaces or patches the scale of a workload."""
    handler.check_name()
    route = handler.route
    if route.verb == verbs.GET:
        found = handler.services.registry.get(handler.resource, route.namespace or "", name=route.name)
        return responses.document(200, _scale(found.value), handler.output)
    if route.verb == verbs.UPDATE:
        return await _change(handler, *await _given(handler))
    return await _change(handler, *await _patched(handler))


async def _given(handler: Handler) -> tuple[dict[str, Any], options.WriteOptions]:
    media_type = negotiation.body_type(handler.request.header(b"content-type"))
    body = await handler.request.body()
    wanted = options.for_write(handler.request.query, "UpdateOptions")
    target = bodies.Target(handler.resource, handler.route.version, "Scale", _API_VERSION)
    given = bodies.read(body, media_type, wanted=target, validation=wanted.field_validation)
    handler.request.warnings.extend(bodies.enforce(given, wanted=target, validation=wanted.field_validation))
    return given.document, wanted


async def _patched(handler: Handler) -> tuple[dict[str, Any], options.WriteOptions]:
    patch_type = negotiation.patch_type(handler.request.header(b"content-type"))
    body = await handler.request.body()
    wanted = options.for_write(handler.request.query, "PatchOptions", patch_type=patch_type)
    if patch_type == negotiation.APPLY_PATCH:
        raise status.unsupported_media_type(negotiation.PATCH_TYPES[:3])
    found = handler.services.registry.get(handler.resource, handler.route.namespace or "", name=handler.route.name)
    current = _scale(found.value)
    del current["metadata"]["resourceVersion"]
    patched = patching.apply(
        current,
        content_type=patch_type,
        body=body,
        schema=schema.of(_API_VERSION, "Scale"),
        field_validation=wanted.field_validation,
    )
    if not isinstance(patched.document, dict):
        raise status.invalid_patch(msgspec.json.encode(patched.document).decode(), detail="not a Scale")
    return patched.document, wanted


async def _change(handler: Handler, scale: dict[str, Any], wanted: options.WriteOptions) -> responses.Response:
    try:
        given = bodies.checked(documents.without_nulls(scale), schema.of(_API_VERSION, "Scale"))
    except errors.DecodeError as error:
        target = bodies.Target(handler.resource, handler.route.version, "Scale", _API_VERSION)
        raise bodies.unfit(target, str(error)) from None
    replicas = (given.get("spec") or {}).get("replicas", 0)
    name = handler.route.name
    if replicas < 0:
        causes = [fielderror.invalid(SPEC.child("replicas"), replicas, metadata.MUST_NOT_BE_NEGATIVE)]
        raise status.invalid("Scale", name, group="autoscaling", causes=causes)
    version = (given.get("metadata") or {}).get("resourceVersion", "")

    def change(stored: Mapping[str, Any] | None) -> Subject:
        assert stored is not None, "there is no scale of nothing"
        subject = handler.strategy.load(stored)
        subject.content = {**subject.content, "spec": {**subject.content["spec"], "replicas": replicas}}
        subject.metadata["resourceVersion"] = version
        return subject

    # The number of replicas is part of the spec, so this is a write to the workload itself.
    write = msgspec.structs.replace(handler.write(), subresource="")
    outcome = await handler.services.registry.update(change, write, wanted=wanted)
    shown = outcome.stored.value if outcome.stored is not None else outcome.document
    return responses.document(200, _scale(shown), handler.output)


def _scale(workload: Mapping[str, Any]) -> dict[str, Any]:
    spec, current = workload.get("spec") or {}, workload.get("status") or {}
    own = workload["metadata"]
    chosen = spec.get("selector") or {}
    expressions = [
        (each.get("key", ""), each.get("operator", ""), each.get("values") or [])
        for each in chosen.get("matchExpressions") or ()
    ]
    selector = labels.Selector.from_parts(chosen.get("matchLabels") or {}, expressions)
    return {
        "kind": "Scale",
        "apiVersion": _API_VERSION,
        "metadata": {field: own[field] for field in _CARRIED if field in own},
        "spec": {"replicas": spec.get("replicas", 0)},
        "status": {"replicas": current.get("replicas", 0), "selector": str(selector)},
    }
