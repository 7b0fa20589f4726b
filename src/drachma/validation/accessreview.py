"""Rules for questions about what somebody may do."""

from collections.abc import Mapping
from typing import Any, Final

from drachma.validation import fielderror, formats, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, Path
from drachma.validation.podspec import selectors

_ATTRIBUTES: Final = SPEC.child("resourceAttributes")
_METADATA: Final = Path("metadata")


def check(review: Mapping[str, Any], *, is_local: bool) -> Errors:
    """A question about a user; a local one is about a namespace."""
    spec: Mapping[str, Any] = review.get("spec") or {}
    yield from _one_subject(spec)
    if not spec.get("user") and not spec.get("groups"):
        yield fielderror.invalid(SPEC.child("user"), "", "at least one of user or group must be specified")
    yield from _selectors(spec)
    if not is_local:
        yield from _no_metadata(review, "must be empty")
        return
    yield from _no_metadata(review, "must be empty except for namespace", "namespace")
    attributes, beside = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    namespace = attributes.get("namespace", "") if attributes is not None else ""
    if attributes is not None and namespace != review["metadata"].get("namespace", ""):
        yield fielderror.invalid(_ATTRIBUTES.child("namespace"), namespace, "must match metadata.namespace")
    if beside is not None:
        at = SPEC.child("nonResourceAttributes")
        yield fielderror.invalid(at, _shown(beside), "disallowed on this kind of request")


def check_self(review: Mapping[str, Any]) -> Errors:
    """A question about oneself."""
    spec: Mapping[str, Any] = review.get("spec") or {}
    yield from _one_subject(spec)
    yield from _selectors(spec)
    yield from _no_metadata(review, "must be empty")


def _one_subject(spec: Mapping[str, Any]) -> Errors:
    beside = spec.get("nonResourceAttributes")
    if (spec.get("resourceAttributes") is None) is (beside is None):
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        yield fielderror.invalid(SPEC, _shown(beside), detail)


def _no_metadata(review: Mapping[str, Any], detail: str, *allowed: str) -> Errors:
    metadata = {field: value for field, value in review["metadata"].items() if field != "managedFields"}
    if any(field not in allowed for field in metadata):
        yield fielderror.invalid(_METADATA, rendering.wire(metadata), detail)


def _selectors(spec: Mapping[str, Any]) -> Errors:
    attributes: Mapping[str, Any] = spec.get("resourceAttributes") or {}
    for field in ("fieldSelector", "labelSelector"):
        selector = attributes.get(field)
        if selector is not None:
            yield from _selector(selector, _ATTRIBUTES.child(field), is_of_labels=field == "labelSelector")


def _selector(selector: Mapping[str, Any], at: Path, *, is_of_labels: bool) -> Errors:
    raw, requirements = selector.get("rawSelector", ""), selector.get("requirements") or ()
    if raw and requirements:
        detail = "may not specified at the same time as requirements"
        yield fielderror.invalid(at.child("rawSelector"), raw, detail)
    if not raw and not requirements:
        detail = f"when {at} is specified, requirements or rawSelector is required"
        yield fielderror.required(at.child("requirements"), detail)
    for position, requirement in enumerate(requirements):
        place = at.child("requirements").item(position)
        key, operator = requirement.get("key", ""), requirement.get("operator", "")
        if not is_of_labels and not key:
            yield fielderror.required(place.child("key"), "must be specified")
        if operator in selectors.SET_OPERATORS:
            yield from selectors.check_values(operator, requirement.get("values") or (), place.child("values"))
        if is_of_labels:
            yield from formats.label_key(key, place.child("key"))
            for number, value in enumerate(requirement.get("values") or ()):
                yield from formats.label_value(value, place.child("values").item(number))


def _shown(beside: Mapping[str, Any] | None) -> rendering.Rendered:
    """Attributes of a path in the form of upstream's internal type."""
    if beside is None:
        return rendering.NULL
    fields = (("Path", "path"), ("Verb", "verb"))
    return rendering.Rendered(
        "{" + ",".join(f'"{name}":{rendering.wire(beside.get(field, ""))}' for name, field in fields) + "}"
    )
