"""Rules for bindings of admission policies."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation import fielderror, rendering
from drachma.validation.admissionregistration import matching, resourcerules
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, Path

_ACTIONS: Final = ("Audit", "Deny", "Warn")
_BOTH: Final = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response "
    "and headers serves no purpose)"
)


def check_validating(spec: Mapping[str, Any]) -> Errors:
    """The binding of a validating policy. What upstream's declared rules say comes last, and without details."""
    yield from _frame(spec)
    actions = spec.get("validationActions") or ()
    yield from _actions(actions, SPEC.child("validationActions"))
    if not spec.get("policyName"):
        yield fielderror.required(SPEC.child("policyName"))
    if not actions:
        yield fielderror.required(SPEC.child("validationActions"))


def check_mutating(spec: Mapping[str, Any]) -> Errors:
    """The binding of a mutating policy."""
    if not spec.get("policyName"):
        yield fielderror.required(SPEC.child("policyName"))
    yield from _frame(spec)
    yield from check_operations(spec.get("matchResources"), SPEC.child("matchResources"))


def _frame(spec: Mapping[str, Any]) -> Errors:
    if spec.get("policyName"):
        yield from resourcerules.policy_name(spec["policyName"], SPEC.child("policyName"))
    if spec.get("paramRef") is not None:
        yield from matching.check_param_ref(spec["paramRef"], SPEC.child("paramRef"))
    if spec.get("matchResources") is not None:
        yield from matching.check_resources(spec["matchResources"], SPEC.child("matchResources"))


def _actions(actions: Sequence[str], at: Path) -> Errors:
    seen: set[str] = set()
    for position, action in enumerate(actions):
        if action not in _ACTIONS:
            yield fielderror.not_supported(at.item(position), rendering.named(action), _ACTIONS)
        if action in seen:
            yield fielderror.duplicate(at.item(position), rendering.named(action))
        seen.add(action)
    if {"Deny", "Warn"} <= seen:
        yield fielderror.invalid(at, rendering.wire(list(actions)), _BOTH)


_MUTABLE: Final = ("*", "CONNECT", "CREATE", "UPDATE")


def check_operations(resources: Mapping[str, Any] | None, at: Path) -> Errors:
    """Only what is created or changed can be mutated."""
    where = at.child("resourceRules", "operations")
    for rule in (resources or {}).get("resourceRules") or ():
        for operation in rule.get("operations") or ():
            if operation not in _MUTABLE:
                yield fielderror.not_supported(where, rendering.named(operation), _MUTABLE)
