"""Rules for roles and their bindings.

The rules that upstream declares on its types (verbs, and names of subjects and roles, are required) come last, as in
its answers.
"""

from typing import Final

from drachma.validation import fielderror, rendering, rulenotation, selectors, typerules
from drachma.validation.fielderror import Errors
from drachma.validation.kindrules import Change, KindRules
from drachma.validation.path import Document, Path

GROUP: Final = "rbac.authorization.k8s.io"


def _role_selector(selector: Document, at: Path) -> Errors:
    errors = selectors.check(selector, at)
    yield from errors
    if errors:
        yield fielderror.invalid(at, rendering.NULL, "invalid label selector.")


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
