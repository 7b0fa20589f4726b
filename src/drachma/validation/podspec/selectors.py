"""Rules for label selectors, which pods and workloads choose other pods by."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation import fielderror, formats, metadata, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path

SET_OPERATORS: Final = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})


def check(selector: Mapping[str, Any] | None, at: Path) -> Errors:
    """A selector, or none."""
    if not selector:
        return
    yield from metadata.labels(selector.get("matchLabels") or {}, at.child("matchLabels"))
    for position, requirement in enumerate(selector.get("matchExpressions") or ()):
        yield from _requirement(requirement, at.child("matchExpressions").item(position))


def _requirement(requirement: Mapping[str, Any], at: Path) -> Errors:
    operator, values = requirement.get("operator", ""), requirement.get("values") or ()
    if operator in SET_OPERATORS:
        yield from check_values(operator, values, at.child("values"))
    else:
        yield fielderror.invalid(at.child("operator"), rendering.named(operator), "not a valid selector operator")
    yield from formats.label_key(requirement.get("key", ""), at.child("key"))
    for position, value in enumerate(values):
        yield from formats.label_value(value, at.child("values").item(position))


def check_values(operator: str, values: Sequence[str], at: Path) -> Errors:
    """Whether a set operator has values exactly where it needs them."""
    if operator in ("In", "NotIn"):
        if not values:
            yield fielderror.required(at, "must be specified when `operator` is 'In' or 'NotIn'")
    elif values:
        yield fielderror.forbidden(at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
