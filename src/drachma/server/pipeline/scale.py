"""Scale: the number of replicas of a deployment or replica set, apart from everything else.

A Scale is not stored. It is made from the workload, and a change of it is an update of the workload's spec.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from drachma import errors
from drachma.server import documents, mediatypes, status
from drachma.server.calls import options
from drachma.server.calls.call import Call
from drachma.server.decoding import bodies
from drachma.server.patch import patching
from drachma.server.pipeline.answer import Answer, Verbatim
from drachma.server.pipeline.intent import Outcome
from drachma.server.pipeline.plan import Plan
from drachma.server.pipeline.services import Services, check_name
from drachma.server.pipeline.update import Update
from drachma.server.presentation import negotiation
from drachma.server.surface import resources, selectable
from drachma.server.surface.strategy import Subject
from drachma.validation import fielderror, metadata
from drachma.validation.path import SPEC
from drachma.values import labels

_KIND: Final = "Scale"
_API_VERSION: Final = "autoscaling/v1"
_WORKLOAD: Final = resources.ScalePaths(replicas=("spec", "replicas"), status_replicas=("status", "replicas"))
"""Where kinds that say nothing about it have their scale; their selectors are structured."""

_CARRIED: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


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
        raise status.unsupported_media_type(mediatypes.PATCH_TYPES[:3])

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


def _resize(
    services: Services, call: Call, size: Callable[[Mapping[str, Any]], _Size], *, wanted: options.WriteOptions
) -> Plan:
    # The number of replicas is part of the spec, so this is a write to the workload itself.
    write = msgspec.structs.replace(services.write(call), subresource="")

    def resized(stored: Mapping[str, Any] | None) -> Subject:
        assert stored is not None, "no workload is made by its scale"
        asked = size(stored)
        subject = write.served.strategy.load(stored)
        subject.content = _with(subject.content, _paths(call).replicas, asked.replicas)
        if asked.resource_version:
            subject.metadata["resourceVersion"] = asked.resource_version
        return subject

    def answer(outcome: Outcome) -> Answer:
        workload = outcome.stored.value if outcome.stored is not None else outcome.document
        return Answer(200, Verbatim(_scale(workload, call)))

    return Plan(Update(services, resized, write, wanted=wanted), answer)


def _paths(call: Call) -> resources.ScalePaths:
    return call.target.resource.scales.get(call.target.version, _WORKLOAD)


def _with(content: Any, path: Sequence[str], value: int) -> Any:
    """Content with another value under a path; its own type stays."""
    changed = copy.copy(content)
    inner = changed
    for name in path[:-1]:
        inner[name] = dict(inner.get(name) or {})
        inner = inner[name]
    inner[path[-1]] = value
    return changed


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
    if replicas < 0 and _paths(call) is _WORKLOAD:
        causes = [fielderror.invalid(SPEC.child("replicas"), replicas, metadata.MUST_NOT_BE_NEGATIVE)]
        raise status.invalid(_KIND, call.target.name, group="autoscaling", causes=causes)
    return _Size(replicas, (scale.get("metadata") or {}).get("resourceVersion", ""))


def _scale(stored: Mapping[str, Any], call: Call) -> dict[str, Any]:
    workload = call.surface.strategy(call.target.resource).serve(stored, call.target.version)
    paths = _paths(call)
    own, replicas = workload["metadata"], selectable.dig(workload, paths.replicas)
    selector = (
        _selector(workload, call.target.resource) if paths is _WORKLOAD else selectable.dig(workload, paths.selector)
    )
    current: dict[str, Any] = {"replicas": selectable.dig(workload, paths.status_replicas) or 0}
    if selector or paths is _WORKLOAD:
        current["selector"] = selector
    return {
        "kind": _KIND,
        "apiVersion": _API_VERSION,
        "metadata": {field: own[field] for field in _CARRIED if field in own},
        "spec": {"replicas": replicas} if replicas else {},
        "status": current,
    }


def _selector(workload: Mapping[str, Any], resource: resources.Resource) -> str:
    chosen = (workload.get("spec") or {}).get("selector") or {}
    if not resource.group:
        # Replication controllers are the only ones of the core group; theirs are plain labels.
        return str(labels.Selector.from_parts(chosen, []))
    expressions = [
        (each.get("key", ""), each.get("operator", ""), each.get("values") or [])
        for each in chosen.get("matchExpressions") or ()
    ]
    return str(labels.Selector.from_parts(chosen.get("matchLabels") or {}, expressions))
