"""Rules for pod groups and for workloads, which have templates of them. Most are declared on upstream's types."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from drachma.api import meta
from drachma.validation import conditions, fielderror, metadata, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, STATUS, Path
from drachma.values import names

_MOST_TEMPLATES: Final = 8
_MOST_CLAIMS: Final = 4
_HIGHEST_PRIORITY: Final = 1_000_000_000
_TEMPLATES: Final = SPEC.child("podGroupTemplates")
_DECIDED: Final = ("disruptionMode", "priorityClassName", "priority", "resourceClaims")
"""What stays as it was made, of groups and of templates."""


def check(spec: Mapping[str, Any]) -> Errors:
    """The spec of a group."""
    reference = spec.get("workloadRef")
    if reference is not None:
        at = SPEC.child("workloadRef")
        yield from _name(reference, "workloadName", at, rule=_long_name)
        yield from _name(reference, "templateName", at, rule=_short_name)
    yield from _group(spec, SPEC)


def check_update(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """A group stays what it is; how many pods must be there at once may change."""
    yield from _kept(spec, old, SPEC, fields=("workloadRef", *_DECIDED))
    yield from _policy_update(spec, old, SPEC.child("schedulingPolicy"))


def check_status(status: Mapping[str, Any], spec: Mapping[str, Any]) -> Errors:
    """How far a group is."""
    told = msgspec.convert(status.get("conditions") or (), tuple[meta.Condition, ...])
    yield from conditions.check(told, STATUS.child("conditions"))
    claims = {each.get("name") for each in spec.get("resourceClaims") or ()}
    for position, each in enumerate(status.get("resourceClaimStatuses") or ()):
        at, name = STATUS.child("resourceClaimStatuses").item(position), each.get("name", "")
        if name not in claims:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            yield fielderror.invalid(at.child("name"), name, detail)
        claim = each.get("resourceClaimName")
        if claim is not None:
            yield from fielderror.problems(at.child("resourceClaimName"), claim, _long_name(claim))


def check_workload(spec: Mapping[str, Any]) -> Errors:
    """The spec of a workload."""
    templates: Sequence[Mapping[str, Any]] = spec.get("podGroupTemplates") or ()
    yield from _one_priority(templates)
    if not templates:
        detail = "must specify one of: `podGroupTemplates`, `compositePodGroupTemplates`"
        yield fielderror.invalid(SPEC, "", detail)
    reference = spec.get("controllerRef")
    if reference is not None:
        at, group = SPEC.child("controllerRef"), reference.get("apiGroup", "")
        if group:
            yield from fielderror.problems(at.child("apiGroup"), group, _long_name(group))
        for field in ("kind", "name"):
            yield from _name(reference, field, at, rule=names.path_segment_name)
    if len(templates) > _MOST_TEMPLATES:
        yield fielderror.too_many(_TEMPLATES, len(templates), _MOST_TEMPLATES)
        return
    yield from _unique(templates, _TEMPLATES)
    for position, template in enumerate(templates):
        at = _TEMPLATES.item(position)
        yield from _name(template, "name", at, rule=_short_name)
        yield from _group(template, at)


def check_workload_update(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """A workload keeps its templates, and they stay what they are."""
    yield from _one_priority(spec.get("podGroupTemplates") or ())
    yield from _kept(spec, old, SPEC, fields=("controllerRef",))
    now = {each.get("name"): each for each in spec.get("podGroupTemplates") or ()}
    before = {each.get("name"): each for each in old.get("podGroupTemplates") or ()}
    for position, name in enumerate(now):
        if name not in before:
            yield fielderror.forbidden(_TEMPLATES.item(position), "item may not be added")
    if before.keys() - now.keys():
        yield fielderror.forbidden(_TEMPLATES, "item may not be removed")
    for position, (name, template) in enumerate(now.items()):
        if name in before:
            at = _TEMPLATES.item(position)
            yield from _kept(template, before[name], at, fields=_DECIDED)
            yield from _policy_update(template, before[name], at.child("schedulingPolicy"))


def _one_priority(templates: Sequence[Mapping[str, Any]]) -> Errors:
    if len({(each.get("priorityClassName", ""), each.get("priority")) for each in templates}) > 1:
        yield fielderror.invalid(SPEC, rendering.NULL, "detected multiple priority configurations")


def _group(part: Mapping[str, Any], at: Path) -> Errors:
    """What groups and templates have in common."""
    yield from _policy(part.get("schedulingPolicy") or {}, at.child("schedulingPolicy"))
    claims, place = part.get("resourceClaims") or (), at.child("resourceClaims")
    if len(claims) > _MOST_CLAIMS:
        yield fielderror.too_many(place, len(claims), _MOST_CLAIMS)
    else:
        yield from _unique(claims, place)
        for position, claim in enumerate(claims):
            yield from _claim(claim, place.item(position))
    if part.get("disruptionMode") is not None:
        yield from _one_of(part["disruptionMode"], at.child("disruptionMode"), ("single", "all"))
    name, priority = part.get("priorityClassName", ""), part.get("priority")
    if name:
        yield from fielderror.problems(at.child("priorityClassName"), name, _long_name(name))
    if priority is not None and priority > _HIGHEST_PRIORITY:
        detail = f"must be less than or equal to {_HIGHEST_PRIORITY}"
        yield fielderror.invalid(at.child("priority"), priority, detail)


def _policy(policy: Mapping[str, Any], at: Path) -> Errors:
    yield from _one_of(policy, at, ("basic", "gang"))
    if policy.get("gang") is not None:
        yield from _gang(policy["gang"], at.child("gang"))


def _gang(gang: Mapping[str, Any], at: Path) -> Errors:
    count, place = gang.get("minCount", 0), at.child("minCount")
    if not count:
        yield fielderror.required(place)
    elif count < 1:
        yield fielderror.invalid(place, count, "must be greater than or equal to 1")


def _policy_update(part: Mapping[str, Any], old: Mapping[str, Any], at: Path) -> Errors:
    """Which policy it is stays; how many pods it takes may change."""
    now, before = part.get("schedulingPolicy") or {}, old.get("schedulingPolicy") or {}
    if now == before:
        return
    yield from _one_of(now, at, ("basic", "gang"))
    if now.get("basic") != before.get("basic"):
        yield fielderror.invalid(at.child("basic"), rendering.NULL, metadata.IMMUTABLE)
    if (now.get("gang") is None) != (before.get("gang") is None):
        word = "set once created" if before.get("gang") is None else "cleared once set"
        yield fielderror.invalid(at.child("gang"), rendering.NULL, f"field cannot be {word}")
    elif now.get("gang") is not None:
        yield from _gang(now["gang"], at.child("gang"))


def _claim(claim: Mapping[str, Any], at: Path) -> Errors:
    sources = ("resourceClaimName", "resourceClaimTemplateName")
    yield from _one_of(claim, at, sources)
    yield from _name(claim, "name", at, rule=_short_name)
    for field in sources:
        if claim.get(field) is not None:
            yield from fielderror.problems(at.child(field), claim[field], _long_name(claim[field]))


def _one_of(part: Mapping[str, Any], at: Path, members: tuple[str, ...]) -> Errors:
    present = [member for member in members if part.get(member) is not None]
    shown = ", ".join(f"`{member}`" for member in members)
    if not present:
        yield fielderror.invalid(at, "", f"must specify one of: {shown}")
    elif len(present) > 1:
        yield fielderror.invalid(at, f"{{{', '.join(present)}}}", f"must specify exactly one of: {shown}")


def _unique(items: Sequence[Mapping[str, Any]], at: Path) -> Errors:
    seen: set[str] = set()
    for position, item in enumerate(items):
        if item.get("name", "") in seen:
            yield fielderror.duplicate(at.item(position), rendering.wire(dict(item)))
        seen.add(item.get("name", ""))


def _kept(part: Mapping[str, Any], old: Mapping[str, Any], at: Path, *, fields: tuple[str, ...]) -> Errors:
    for field in fields:
        if (part.get(field) or None) != (old.get(field) or None):
            # As upstream, which does not show what was declared to be so.
            yield fielderror.invalid(at.child(field), rendering.NULL, metadata.IMMUTABLE)


def _name(part: Mapping[str, Any], field: str, at: Path, *, rule: Any) -> Errors:
    text = part.get(field, "")
    if not text:
        yield fielderror.required(at.child(field))
    else:
        yield from fielderror.problems(at.child(field), text, rule(text))


def _short_name(text: str) -> names.Problems:
    return names.dns1123_label(text, unit="bytes")


def _long_name(text: str) -> names.Problems:
    return names.dns1123_subdomain(text, unit="bytes")
