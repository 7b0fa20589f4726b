"""Rules for roles and their bindings.

The rules that upstream declares on its types (verbs, and names of subjects and roles, are required) come last, as in
its answers.
"""

from typing import Final

from drachma.validation import fielderror, kindrules, rendering, rulenotation, selectors
from drachma.validation.fielderror import Errors
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
KINDS: Final = kindrules.read(_TYPES)
