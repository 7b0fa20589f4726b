"""What can be done to a pod besides changing it: bind it to a node, and evict it."""

from collections.abc import Mapping
from typing import Any, Final

from drachma import errors
from drachma.api import meta, struct
from drachma.server import documents, objectmeta, status
from drachma.server.calls import options
from drachma.server.decoding import bodies
from drachma.server.kinds.strategy import Write
from drachma.server.pipeline import registry
from drachma.server.pipeline.handling import Handler
from drachma.server.presentation import encoding, negotiation
from drachma.server.wire import responses
from drachma.store import record
from drachma.validation import fielderror, refusal
from drachma.validation.path import Path

_EVICTIONS: Final = ("policy/v1", "policy/v1beta1")
_DONE: Final = responses.document(201, status.success(201), negotiation.PLAIN)


class _Target(struct.Struct, frozen=True, kw_only=True):
    kind: str = ""
    name: str = ""


class _Binding(struct.Struct, frozen=True, kw_only=True):
    metadata: meta.ObjectMeta = meta.ABSENT_META
    target: _Target = _Target()


class _Eviction(struct.Struct, frozen=True, kw_only=True):
    metadata: meta.ObjectMeta = meta.ABSENT_META
    delete_options: dict[str, Any] | None = None


async def bind(handler: Handler) -> responses.Response:
    """Assigns a pod that has no node yet to one; what the binding says about its uid and version must hold."""
    document, wanted = await _read(handler, api_versions=("v1",))
    binding = _convert(document, _Binding)
    name = handler.route.name
    if binding.metadata.name != name:
        raise status.bad_request("name in URL does not match name in Binding object")
    _check_target(binding.target)
    write = handler.write()
    for _ in range(registry.ATTEMPTS):
        stored = handler.services.registry.get(handler.resource, write.namespace, name=name)
        _check_binding(binding, stored, handler)
        bound = _bound(stored.value, binding, write)
        if wanted.is_dry_run:
            break
        try:
            await handler.services.store.update(stored.key, encoding.stamped(bound), revision=stored.revision)
        except (errors.ConflictError, errors.NotFoundError):
            continue
        break
    else:
        raise status.conflict(handler.resource, name, detail=status.MODIFIED)
    return _DONE


async def evict(handler: Handler) -> responses.Response:
    """Deletes a pod, with a condition that says why. There are no disruption budgets here that could forbid it."""
    document, wanted = await _read(handler, api_versions=_EVICTIONS)
    eviction = _convert(document, _Eviction)
    if eviction.metadata.name != handler.route.name:
        raise status.bad_request("name in URL does not match name in Eviction object")
    how = options.for_delete({}, eviction.delete_options or {})
    if wanted.is_dry_run and not how.is_dry_run:
        how = options.for_delete({}, {**(eviction.delete_options or {}), "dryRun": ["All"]})
    write = handler.write()
    stored = handler.services.registry.get(handler.resource, write.namespace, name=write.name)
    if not how.is_dry_run and (how.uid in (None, stored.uid)) and how.resource_version is None:
        await _mark_evicted(handler, write)
    await handler.services.deleter.delete(write, how)
    return _DONE


async def _read(handler: Handler, *, api_versions: tuple[str, ...]) -> tuple[dict[str, Any], options.WriteOptions]:
    media_type = negotiation.body_type(handler.request.header(b"content-type"))
    body = await handler.request.body()
    wanted = handler.request.write_options("CreateOptions")
    subresource = handler.route.subresource
    assert subresource is not None, "routed as a subresource"
    target = bodies.Target(handler.resource, handler.route.version, subresource.kind, api_versions[0])
    given = bodies.read(body, media_type, wanted=target, validation=wanted.field_validation, also=api_versions[1:])
    handler.request.warnings.extend(bodies.enforce(given, wanted=target, validation=wanted.field_validation))
    has_nulls = media_type != negotiation.JSON or b"null" in body
    return documents.without_nulls(given.document) if has_nulls else given.document, wanted


def _convert(document: dict[str, Any], model: Any) -> Any:
    try:
        return bodies.convert(document, model)
    except errors.DecodeError as error:
        raise status.bad_request(f"{document['kind']}: {error}") from None


def _check_target(target: _Target) -> None:
    problems = []
    at = Path("target")
    if target.kind not in ("", "Node"):
        problems.append(fielderror.not_supported(at.child("kind"), target.kind, ("Node", "<empty>")))
    if not target.name:
        problems.append(fielderror.required(at.child("name")))
    if problems:
        raise status.failure(500, "", refusal.aggregate(problems))


def _check_binding(binding: _Binding, stored: record.Record, handler: Handler) -> None:
    name, pod = handler.route.name, stored.value
    if binding.metadata.uid and binding.metadata.uid != stored.uid:
        problem = f"Precondition failed: UID in precondition: {binding.metadata.uid}, UID in object meta: {stored.uid}"
        raise status.conflict(handler.resource, name, detail=registry.storage_refusal(stored.key, problem))
    version, current = binding.metadata.resource_version, pod["metadata"]["resourceVersion"]
    if version and version != current:
        problem = f"Precondition failed: ResourceVersion in precondition: {version}, ResourceVersion in object meta: "
        raise status.conflict(handler.resource, name, detail=registry.storage_refusal(stored.key, problem + current))
    spec = pod.get("spec") or {}
    if "deletionTimestamp" in pod["metadata"]:
        detail = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        detail = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        detail = f"pod {name} has non-empty .spec.schedulingGates"
    else:
        return
    message = f'Operation cannot be fulfilled on pods/binding "{name}": {detail}'
    raise status.failure(409, "Conflict", message, details={"name": name, "kind": "pods/binding"})


def _bound(pod: Mapping[str, Any], binding: _Binding, write: Write) -> dict[str, Any]:
    metadata = dict(pod["metadata"])
    for field, given in (("annotations", binding.metadata.annotations), ("labels", binding.metadata.labels)):
        if given:
            metadata[field] = {**metadata.get(field, {}), **given}
    current = {name: value for name, value in (pod.get("status") or {}).items() if name != "nominatedNodeName"}
    scheduled = {"type": "PodScheduled", "status": "True"}
    current["conditions"] = with_condition(current.get("conditions") or [], scheduled, write=write)
    spec = {**pod["spec"], "nodeName": binding.target.name}
    return {**pod, "metadata": metadata, "spec": spec, "status": current}


async def _mark_evicted(handler: Handler, write: Write) -> None:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    for _ in range(registry.ATTEMPTS):
        stored = handler.services.registry.get(handler.resource, write.namespace, name=write.name)
        current = dict(stored.value.get("status") or {})
        current["conditions"] = with_condition(current.get("conditions") or [], condition, write=write)
        marked = {**stored.value, "status": current}
        try:
            await handler.services.store.update(stored.key, encoding.stamped(marked), revision=stored.revision)
        except (errors.ConflictError, errors.NotFoundError):
            continue
        return


def with_condition(
    conditions: list[dict[str, Any]], condition: dict[str, Any], *, write: Write
) -> list[dict[str, Any]]:
    """Conditions with one set; the time of its last change stays where its status does."""
    before = next((each for each in conditions if each.get("type") == condition["type"]), None)
    is_same = before is not None and before.get("status") == condition["status"]
    moment = objectmeta.time_text(write.now)
    since = before.get("lastTransitionTime", moment) if before is not None and is_same else moment
    fresh = {"lastProbeTime": None, "lastTransitionTime": since, **condition}
    if before is None:
        return [*conditions, fresh]
    return [fresh if each is before else each for each in conditions]
