"""Rules for label selectors."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation import fielderror, rendering, rulenotation
from drachma.validation.fielderror import Errors, FieldError, Found
from drachma.validation.path import Path

SET_OPERATORS: Final = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})


def check(selector: Mapping[str, Any] | None, at: Path) -> Found:
    """Return the errors of a selector, if there is one."""
    return TYPES["LabelSelector"](selector, at) if selector else ()


def _check_operator(requirement: Mapping[str, Any], at: Path) -> Errors:
    operator = requirement.get("operator", "")
    if operator in SET_OPERATORS:
        yield from check_values(operator, requirement.get("values") or (), at.child("values"))
    else:
        yield unknown_operator(operator, at)


def unknown_operator(operator: str, at: Path) -> FieldError:
    """Return the error of a requirement with an operator that does not exist."""
    return fielderror.invalid(at.child("operator"), rendering.named(operator), "not a valid selector operator")


def check_values(operator: str, values: Sequence[str], at: Path) -> Errors:
    """Yield an error if a set operator has values and takes none, or has none and takes some."""
    if operator in ("In", "NotIn"):
        if not values:
            yield fielderror.required(at, "must be specified when `operator` is 'In' or 'NotIn'")
    elif values:
        yield fielderror.forbidden(at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")


TYPES: Final = rulenotation.load("selectors", globals())
