"""Rules for roles and their bindings.

The rules that upstream declares on its types (verbs, and names of subjects and roles, are required) come last, as in
its answers.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation import fielderror, rendering, rulenotation, selectors, typerules
from drachma.validation.fielderror import Errors
from drachma.validation.kindrules import Change, KindRules
from drachma.validation.path import Path

Document = Mapping[str, Any]

GROUP: Final = "rbac.authorization.k8s.io"


def _check_rules(role: Document, at: Path) -> Errors:
    yield from check_rules(role.get("rules") or (), at.child("rules"), namespaced=True)


def _check_cluster_rules(role: Document, at: Path) -> Errors:
    yield from check_rules(role.get("rules") or (), at.child("rules"), namespaced=False)


def check_rules(rules: Sequence[Document], at: Path, *, namespaced: bool) -> Errors:
    """Yield the errors of rules; those of a namespaced role are about resources only."""
    for position, rule in enumerate(rules):
        if rule.get("nonResourceURLs"):
            yield from _check_paths(rule, at.item(position).child("nonResourceURLs"), namespaced=namespaced)
        else:
            yield from _TYPES["PolicyRule"](rule, at.item(position))
    for position, rule in enumerate(rules):
        if not rule.get("verbs"):
            yield fielderror.required(at.item(position).child("verbs"))


def _check_paths(rule: Document, at: Path, *, namespaced: bool) -> Errors:
    display = rendering.wire(rule["nonResourceURLs"])
    if namespaced:
        yield fielderror.invalid(at, display, "namespaced rules cannot apply to non-resource URLs")
    if any(rule.get(field) for field in ("apiGroups", "resources", "resourceNames")):
        yield fielderror.invalid(at, display, "rules cannot apply to both regular resources and non-resource URLs")


def _role_selector(selector: Document, at: Path) -> Errors:
    errors = selectors.check(selector, at)
    yield from errors
    if errors:
        yield fielderror.invalid(at, rendering.NULL, "invalid label selector.")


def _check_names(binding: Document, at: Path) -> Errors:
    for position, subject in enumerate(binding.get("subjects") or ()):
        if not subject.get("name"):
            yield fielderror.required(at.child("subjects").item(position).child("name"))
    if not (binding.get("roleRef") or {}).get("name"):
        yield fielderror.required(at.child("roleRef", "name"))


def _show_role(role: Document | None) -> rendering.Rendered:
    return rendering.internal_fields(
        role or {}, ("APIGroup", "apiGroup", ""), ("Kind", "kind", ""), ("Name", "name", "")
    )


_TYPES: Final = rulenotation.load("rbac", globals())
_SAME_ROLE: Final = Change(typerules.immutable("roleRef", show=_show_role))
ROLE: Final = KindRules(always=_TYPES["Role"])
CLUSTER_ROLE: Final = KindRules(always=_TYPES["ClusterRole"])
ROLE_BINDING: Final = KindRules(always=_TYPES["RoleBinding"], update=_SAME_ROLE)
CLUSTER_ROLE_BINDING: Final = KindRules(always=_TYPES["ClusterRoleBinding"], update=_SAME_ROLE)
