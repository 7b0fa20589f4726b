"""Rules for roles and their bindings.

What upstream declares on its types (verbs, and names of subjects and roles, must be there) comes behind what it has
written by hand, as in its answers.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation import fielderror, metadata, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.validation.podspec import selectors

GROUP: Final = "rbac.authorization.k8s.io"

_RULES: Final = Path("rules")
_SELECTORS: Final = Path("aggregationRule").child("clusterRoleSelectors")
_SUBJECTS: Final = Path("subjects")
_ROLE: Final = Path("roleRef")
_SUBJECT_KINDS: Final = ("ServiceAccount", "User", "Group")


def check_rules(rules: Sequence[Mapping[str, Any]], *, namespaced: bool) -> Errors:
    """The rules of a role; those of one in a namespace are about resources only."""
    for position, rule in enumerate(rules):
        yield from _rule(rule, _RULES.item(position), namespaced=namespaced)
    for position, rule in enumerate(rules):
        if not rule.get("verbs"):
            yield fielderror.required(_RULES.item(position).child("verbs"))


def _rule(rule: Mapping[str, Any], at: Path, *, namespaced: bool) -> Errors:
    paths = rule.get("nonResourceURLs")
    if paths:
        field, shown = at.child("nonResourceURLs"), rendering.wire(paths)
        if namespaced:
            yield fielderror.invalid(field, shown, "namespaced rules cannot apply to non-resource URLs")
        if any(rule.get(field) for field in ("apiGroups", "resources", "resourceNames")):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            yield fielderror.invalid(field, shown, detail)
        return
    if not rule.get("apiGroups"):
        yield fielderror.required(at.child("apiGroups"), "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield fielderror.required(at.child("resources"), "resource rules must supply at least one resource")


def check_aggregation(aggregation: Mapping[str, Any] | None) -> Errors:
    """Which roles a cluster role is put together from, if it is."""
    if aggregation is None:
        return
    chosen = aggregation.get("clusterRoleSelectors") or ()
    if not chosen:
        detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        yield fielderror.required(_SELECTORS, detail)
    for position, selector in enumerate(chosen):
        at = _SELECTORS.item(position)
        problems = list(selectors.check(selector, at))
        yield from problems
        if problems:
            yield fielderror.invalid(at, rendering.NULL, "invalid label selector.")


def check_binding(binding: Mapping[str, Any], *, namespaced: bool) -> Errors:
    """Whom a binding gives which role; one of the whole cluster only gives roles of the whole cluster."""
    role: Mapping[str, Any] = binding.get("roleRef") or {}
    subjects: Sequence[Mapping[str, Any]] = binding.get("subjects") or ()
    if role.get("apiGroup", "") != GROUP:
        yield fielderror.not_supported(_ROLE.child("apiGroup"), role.get("apiGroup", ""), (GROUP,))
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    if role.get("kind", "") not in kinds:
        yield fielderror.not_supported(_ROLE.child("kind"), role.get("kind", ""), kinds)
    name = role.get("name", "")
    if name:
        yield from fielderror.problems(_ROLE.child("name"), name, metadata.path_segment(name, is_prefix=False))
    for position, subject in enumerate(subjects):
        yield from _subject(subject, _SUBJECTS.item(position), namespaced=namespaced)
    for position, subject in enumerate(subjects):
        if not subject.get("name"):
            yield fielderror.required(_SUBJECTS.item(position).child("name"))
    if not name:
        yield fielderror.required(_ROLE.child("name"))


def check_same_role(binding: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """That a changed binding is still one of the same role: who may give it to others was decided when it was made."""
    role = binding.get("roleRef") or {}
    if role != old.get("roleRef"):
        yield fielderror.invalid(_ROLE, _shown(role), metadata.IMMUTABLE)


def _subject(subject: Mapping[str, Any], at: Path, *, namespaced: bool) -> Errors:
    kind, name, group = (subject.get(field, "") for field in ("kind", "name", "apiGroup"))
    if kind == "ServiceAccount":
        if name:
            yield from fielderror.problems(at.child("name"), name, metadata.dns_subdomain(name, is_prefix=False))
        if group:
            yield fielderror.not_supported(at.child("apiGroup"), group, ("",))
        if not namespaced and not subject.get("namespace"):
            yield fielderror.required(at.child("namespace"))
    elif kind in _SUBJECT_KINDS:
        if group != GROUP:
            yield fielderror.not_supported(at.child("apiGroup"), group, (GROUP,))
    else:
        yield fielderror.not_supported(at.child("kind"), kind, _SUBJECT_KINDS)


def _shown(role: Mapping[str, Any]) -> rendering.Rendered:
    """A reference to a role in the form of upstream's internal type."""
    fields = (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))
    return rendering.Rendered(
        "{" + ",".join(f'"{name}":{rendering.wire(role.get(field, ""))}' for name, field in fields) + "}"
    )
