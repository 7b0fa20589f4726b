"""Rules for PriorityClass, for PodGroup, and for Workload, which has templates of pod groups.

Most rules of the latter two are declared on upstream's types.
"""

from collections.abc import Iterator
from typing import Final

from drachma.validation import constraints, fielderror, kindrules, rendering, rulenotation, typerules
from drachma.validation.fielderror import Errors
from drachma.validation.path import METADATA, Document, Path
from drachma.values import names

SYSTEM_CLASSES: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
"""Values of the priority classes that every cluster has."""

_SYSTEM_PREFIX: Final = "system-"
_HIGHEST_USER_PRIORITY: Final = 1_000_000_000
_TEMPLATE_LISTS: Final = ("podGroupTemplates", "compositePodGroupTemplates")

_one_sort: Final = typerules.one_member(*_TEMPLATE_LISTS)
_one_policy: Final = typerules.one_member("basic", "gang")
_one_disruption_mode: Final = typerules.one_member("single", "all")
_one_claim_source: Final = typerules.one_member("resourceClaimName", "resourceClaimTemplateName")
_label_name: Final = constraints.text(names.qualified_name)
_short_name: Final = constraints.text(lambda name: names.dns1123_label(name, unit="bytes"))
_long_name: Final = constraints.text(lambda name: names.dns1123_subdomain(name, unit="bytes"))


# Priority classes


def _check_value(content: Document, at: Path, metadata: Document) -> Errors:
    value, name = content.get("value", 0), metadata.get("name", "")
    if not name.startswith(_SYSTEM_PREFIX):
        if value > _HIGHEST_USER_PRIORITY:
            detail = f"maximum allowed value of a user defined priority is {_HIGHEST_USER_PRIORITY}"
            yield fielderror.forbidden(at.child("value"), detail)
    elif SYSTEM_CLASSES.get(name) != value:
        problem = f"{name} is not a known system priority class"
        if name in SYSTEM_CLASSES:
            problem = f"value of {name} PriorityClass must be {SYSTEM_CLASSES[name]}"
        prefix = f"priority class names with '{_SYSTEM_PREFIX}' prefix are reserved for system use only"
        yield fielderror.forbidden(METADATA.child("name"), f"{prefix}. error: {problem}")


# Groups


def _check_policy_update(group: Document, at: Path, old: Document) -> Errors:
    """Check that a policy stays of its sort; the number of pods of a gang may change."""
    policy, before = group.get("schedulingPolicy") or {}, old.get("schedulingPolicy") or {}
    place = at.child("schedulingPolicy")
    if policy == before:
        return
    yield from _one_policy(policy, place)
    if policy.get("basic") != before.get("basic"):
        yield fielderror.invalid(place.child("basic"), rendering.NULL, typerules.IMMUTABLE)
    if (policy.get("gang") is None) != (before.get("gang") is None):
        act = "set once created" if before.get("gang") is None else "cleared once set"
        yield fielderror.invalid(place.child("gang"), rendering.NULL, f"field cannot be {act}")
    elif policy.get("gang") is not None:
        yield from _TYPES["GangSchedulingPolicy"](policy["gang"], place.child("gang"))


def _claim_of_group(name: str, at: Path, group: Document) -> Errors:
    """Check that a status is about a claim of the group, whose spec an update of the status does not change."""
    if all(claim.get("name") != name for claim in (group.get("spec") or {}).get("resourceClaims") or ()):
        yield fielderror.invalid(at, name, "must match the name of an entry in `spec.resourceClaims`")


# Workloads


def _check_priorities(spec: Document, at: Path) -> Errors:
    templates = spec.get("podGroupTemplates") or ()
    if len({(each.get("priorityClassName", ""), each.get("priority")) for each in templates}) > 1:
        yield fielderror.invalid(at, rendering.NULL, "detected multiple priority configurations")


def _check_has_templates(spec: Document, at: Path) -> Errors:
    """Check that names of templates are unique in the whole tree, and that a workload has templates of one sort."""
    lists: dict[str, str] = {}
    for field, place, name in _template_names(spec, at):
        if lists.setdefault(name, str(field)) != str(field):
            yield fielderror.duplicate(place.child("name"), name)
    members = {name: spec.get(name) or None for name in _TEMPLATE_LISTS}
    yield from _one_sort(members, at)


def _template_names(spec: Document, at: Path) -> Iterator[tuple[Path, Path, str]]:
    """Yield the list, the place and the name of each template of a tree."""
    for field in _TEMPLATE_LISTS:
        for position, template in enumerate(spec.get(field) or ()):
            place = at.child(field).item(position)
            yield at.child(field), place, template.get("name", "")
            yield from _template_names(template, place)


def _check_kept_templates(spec: Document, at: Path, old: Document) -> Errors:
    templates = {template.get("name"): template for template in spec.get("podGroupTemplates") or ()}
    before = {template.get("name"): template for template in old.get("podGroupTemplates") or ()}
    place = at.child("podGroupTemplates")
    for position, name in enumerate(templates):
        if name not in before:
            yield fielderror.forbidden(place.item(position), "item may not be added")
    if before.keys() - templates.keys():
        yield fielderror.forbidden(place, "item may not be removed")
    for position, (name, template) in enumerate(templates.items()):
        if name in before:
            yield from _TYPES["Group.update"](template, place.item(position), before[name])


_TYPES: Final = rulenotation.load("scheduling", globals())
KINDS: Final = kindrules.read(_TYPES)
