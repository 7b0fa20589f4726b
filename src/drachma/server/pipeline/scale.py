"""Scale: the number of replicas of a deployment or replica set, apart from everything else.

A Scale is not stored. It is made from the workload, and a change of it is an update of the workload's spec: a write to
the workload itself.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from drachma import errors
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
from drachma.server.schema import model
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import fielderror, metadata
from drachma.validation.path import SPEC


class _Size(NamedTuple):
    """What a Scale asks for: so many replicas, of the workload in a certain version or in any."""

    replicas: int
    resource_version: str


async def get(services: Services, call: Call) -> Answer:
    """The scale of a workload."""
    check_name(call.target)
    return Answer(200, Verbatim(_scale(services.get(call.target).value, call)))


def plan_update(services: Services, call: Call) -> Plan:
    """Gives a workload the scale in the body."""
    check_name(call.target)
    media_type = negotiation.body_type(call.body.media_type)
    wanted = options.for_write(call.query, "UpdateOptions")
    kind, validation = _target(call), wanted.field_validation
    body = bodies.read(call.body.data, media_type, wanted=kind, validation=validation)
    call.warnings.extend(bodies.enforce(body, wanted=kind, validation=validation))
    size = _size(body.document, call)
    return _resize(services, call, lambda _workload: size, wanted=wanted)


def plan_patch(services: Services, call: Call) -> Plan:
    """Gives a workload its scale with a patch applied to it."""
    check_name(call.target)
    patch_type = negotiation.patch_type(call.body.media_type)
    wanted = options.for_write(call.query, "PatchOptions", patch_type=patch_type)
    if patch_type == mediatypes.APPLY_PATCH:
        return _plan_apply(services, call, wanted=wanted)

    def size(workload: Mapping[str, Any]) -> _Size:
        current = _scale(workload, call)
        del current["metadata"]["resourceVersion"]
        patched = patching.apply(
            current,
            content_type=patch_type,
            body=call.body.data,
            schema=_target(call).schema,
            field_validation=wanted.field_validation,
        )
        if not isinstance(patched.document, dict):
            raise status.invalid_patch(msgspec.json.encode(patched.document).decode(), detail="not a Scale")
        return _size(patched.document, call)

    return _resize(services, call, size, wanted=wanted)


def _plan_apply(services: Services, call: Call, *, wanted: options.WriteOptions) -> Plan:
    """Applies the scale in the body. Owners of the number of replicas are those of the workload."""
    write = services.write(call)
    configured = patches.configuration(call.body.data)
    resource, api_version = call.target.resource, call.target.api_version
    kind = _applied_kind(_target(call).schema)
    places = scaleform.places(resource)

    def applied(stored: Mapping[str, Any] | None) -> Subject:
        assert stored is not None, "no workload is made by its scale"
        owners = stored["metadata"].get("managedFields") or ()
        live = _scale(stored, call)
        live["metadata"]["managedFields"] = scaleowners.of_scale(owners, places, api_version=kind.api_version)
        scale = apply.apply(
            live, configured, manager=wanted.field_manager, kind=kind, now=write.now, is_forced=wanted.force
        )
        objectmeta.check_name(scale["metadata"], write.name)
        scaled = scale["metadata"].pop("managedFields", ())
        subject = _resized(stored, write, _size(scale, call))
        subject.metadata["managedFields"] = scaleowners.of_workload(owners, scaled, places, api_version=api_version)
        subject.is_owned = True
        return subject

    return _plan(call, Update(services, applied, write, wanted=wanted, operation=Operation.UPDATE))


def _applied_kind(types: model.Object) -> managers.Kind:
    def convert(_document: dict[str, Any], api_version: str) -> dict[str, Any]:
        raise LookupError(api_version)

    return managers.Kind(
        scaleform.API_VERSION, scaleform.KIND, {scaleform.API_VERSION: types}, convert, scaleform.SUBRESOURCE
    )


def _resize(
    services: Services, call: Call, size: Callable[[Mapping[str, Any]], _Size], *, wanted: options.WriteOptions
) -> Plan:
    write = services.write(call)

    def resized(stored: Mapping[str, Any] | None) -> Subject:
        assert stored is not None, "no workload is made by its scale"
        return _resized(stored, write, size(stored))

    return _plan(call, Update(services, resized, write, wanted=wanted, operation=Operation.UPDATE))


def _resized(stored: Mapping[str, Any], write: Write, size: _Size) -> Subject:
    """A stored workload in another size."""
    subject = write.served.strategy.load(stored)
    path = scaleform.paths(write.resource, write.version).replicas
    subject.content = scaleform.resized(subject.content, path, size.replicas)
    if size.resource_version:
        subject.metadata["resourceVersion"] = size.resource_version
    return subject


def _plan(call: Call, intended: Update) -> Plan:
    """A change of a workload, which is answered with its scale."""

    def answer(outcome: Outcome) -> Answer:
        workload = outcome.stored.value if outcome.stored is not None else outcome.document
        return Answer(200, Verbatim(_scale(workload, call)))

    return Plan(intended, answer)


def _target(call: Call) -> bodies.Target:
    below = call.target.subresource
    assert below is not None, "called on a subresource"
    return bodies.target_below(call.surface, call.target.resource, below)


def _size(scale: dict[str, Any], call: Call) -> _Size:
    target = _target(call)
    try:
        scale = bodies.checked(documents.without_nulls(scale), target.schema)
    except errors.DecodeError as error:
        raise bodies.unfit(target, str(error)) from None
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if replicas < 0 and scaleform.paths(call.target.resource, call.target.version) is scaleform.WORKLOAD:
        causes = [fielderror.invalid(SPEC.child("replicas"), replicas, metadata.MUST_NOT_BE_NEGATIVE)]
        raise status.invalid(scaleform.KIND, call.target.name, group="autoscaling", causes=causes)
    return _Size(replicas, (scale.get("metadata") or {}).get("resourceVersion", ""))


def _scale(stored: Mapping[str, Any], call: Call) -> dict[str, Any]:
    resource, version = call.target.resource, call.target.version
    return scaleform.made(call.surface.strategy(resource).serve(stored, version), resource, version=version)
