"""Scale: the number of replicas of a workload, as a subresource.

A Scale is not stored. It is made from the workload, and a change of it is an update of the workload's spec.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from drachma import errors
from drachma.api.types import model
from drachma.server import documents, mediatypes, objectmeta, status
from drachma.server.calls import options
from drachma.server.calls.call import Call
from drachma.server.decoding import bodies
from drachma.server.kinds.autoscaling import scaleform
from drachma.server.ownership import apply, managers, scaleowners
from drachma.server.patch import patching
from drachma.server.pipeline import patches
from drachma.server.pipeline.answer import Answer, Verbatim
from drachma.server.pipeline.intent import Outcome
from drachma.server.pipeline.phases import Operation
from drachma.server.pipeline.plan import Plan
from drachma.server.pipeline.services import Services, check_name
from drachma.server.pipeline.update import Update
from drachma.server.presentation import negotiation
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import constraints, fielderror
from drachma.validation.path import SPEC


class _Size(NamedTuple):
    """Request of a Scale: replicas, and optionally the version of the workload."""

    replicas: int
    resource_version: str


async def get(services: Services, call: Call) -> Answer:
    """Return the scale of a workload."""
    check_name(call.target)
    return Answer(200, Verbatim(_make_scale(services.get(call.target).value, call)))


def plan_update(services: Services, call: Call) -> Plan:
    """Plan to give a workload the scale in the body."""
    check_name(call.target)
    media_type = negotiation.body_type(call.body.media_type)
    write_options = options.read_write_options(call.query, "UpdateOptions")
    kind, validation = _target(call), write_options.field_validation
    body = bodies.read(call.body.data, media_type, body_target=kind, validation=validation)
    call.warnings.extend(bodies.enforce(body, body_target=kind, validation=validation))
    size = _read_size(body.document, call)
    return _resize(services, call, lambda _workload: size, write_options=write_options)


def plan_patch(services: Services, call: Call) -> Plan:
    """Plan to patch the scale of a workload."""
    check_name(call.target)
    patch_type = negotiation.patch_type(call.body.media_type)
    write_options = options.read_write_options(call.query, "PatchOptions", patch_type=patch_type)
    if patch_type == mediatypes.APPLY_PATCH:
        return _plan_apply(services, call, write_options=write_options)

    def size(workload: Mapping[str, Any]) -> _Size:
        current = _make_scale(workload, call)
        del current["metadata"]["resourceVersion"]
        patched = patching.apply(
            current,
            content_type=patch_type,
            body=call.body.data,
            schema=_target(call).schema,
            field_validation=write_options.field_validation,
        )
        if not isinstance(patched.document, dict):
            raise status.invalid_patch(msgspec.json.encode(patched.document).decode(), detail="not a Scale")
        return _read_size(patched.document, call)

    return _resize(services, call, size, write_options=write_options)


def _plan_apply(services: Services, call: Call, *, write_options: options.WriteOptions) -> Plan:
    """Plan to apply the scale in the body. Owners of the number of replicas are those of the workload."""
    write = services.write(call)
    configured = patches.configuration(call.body.data)
    resource, api_version = call.target.resource, call.target.api_version
    kind = _make_apply_kind(_target(call).schema)
    places = scaleform.replica_paths(resource)

    def applied(existing: Mapping[str, Any] | None) -> Subject:
        assert existing is not None, "a scale never creates its workload"
        owners = existing["metadata"].get("managedFields") or ()
        live = _make_scale(existing, call)
        live["metadata"]["managedFields"] = scaleowners.to_scale(owners, places, api_version=kind.api_version)
        scale = apply.apply(
            live,
            configured,
            manager=write_options.field_manager,
            kind=kind,
            now=write.now,
            is_forced=write_options.force,
        )
        objectmeta.check_name(scale["metadata"], write.name)
        scaled = scale["metadata"].pop("managedFields", ())
        subject = _resize_workload(existing, write, _read_size(scale, call))
        subject.metadata["managedFields"] = scaleowners.to_workload(owners, scaled, places, api_version=api_version)
        subject.is_owned = True
        return subject

    return _plan(call, Update(services, applied, write, write_options=write_options, operation=Operation.UPDATE))


def _make_apply_kind(types: model.Object) -> managers.Kind:
    def convert(_document: dict[str, Any], api_version: str) -> dict[str, Any]:
        raise LookupError(api_version)

    return managers.Kind(scaleform.API_VERSION, scaleform.KIND, {scaleform.API_VERSION: types}, convert, scaleform.NAME)


def _resize(
    services: Services, call: Call, size: Callable[[Mapping[str, Any]], _Size], *, write_options: options.WriteOptions
) -> Plan:
    write = services.write(call)

    def resized(existing: Mapping[str, Any] | None) -> Subject:
        assert existing is not None, "a scale never creates its workload"
        return _resize_workload(existing, write, size(existing))

    return _plan(call, Update(services, resized, write, write_options=write_options, operation=Operation.UPDATE))


def _resize_workload(existing: Mapping[str, Any], write: Write, size: _Size) -> Subject:
    """Return the stored workload with another number of replicas."""
    subject = write.served.strategy.load(existing)
    path = scaleform.paths(write.resource, write.version).replicas
    subject.content = scaleform.with_replicas(subject.content, path, size.replicas)
    if size.resource_version:
        subject.metadata["resourceVersion"] = size.resource_version
    return subject


def _plan(call: Call, intent: Update) -> Plan:
    """Return the plan of a change that is answered with the scale."""

    def answer(outcome: Outcome) -> Answer:
        workload = outcome.stored.value if outcome.stored is not None else outcome.document
        return Answer(200, Verbatim(_make_scale(workload, call)))

    return Plan(intent, answer)


def _target(call: Call) -> bodies.Target:
    below = call.target.subresource
    assert below is not None, "called on a subresource"
    return bodies.target_below(call.surface, call.target.resource, below)


def _read_size(scale: dict[str, Any], call: Call) -> _Size:
    target = _target(call)
    try:
        scale = bodies.checked(documents.without_nulls(scale), target.schema)
    except errors.DecodeError as error:
        raise bodies.unfit(target, str(error)) from None
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if replicas < 0 and scaleform.paths(call.target.resource, call.target.version) is scaleform.WORKLOAD:
        causes = [fielderror.invalid(SPEC.child("replicas"), replicas, constraints.NOT_NEGATIVE)]
        raise status.invalid(scaleform.KIND, call.target.name, group="autoscaling", causes=causes)
    return _Size(replicas, (scale.get("metadata") or {}).get("resourceVersion", ""))


def _make_scale(existing: Mapping[str, Any], call: Call) -> dict[str, Any]:
    resource, version = call.target.resource, call.target.version
    return scaleform.from_workload(call.surface.strategy(resource).serve(existing, version), resource, version=version)
