"""Rules for access reviews."""

from typing import Final

from drachma.validation import fielderror, rendering, rulenotation
from drachma.validation.fielderror import Errors
from drachma.validation.path import METADATA, SPEC, Document, Path

_ATTRIBUTES: Final = SPEC.child("resourceAttributes")


def check(review: Document, *, is_local: bool) -> Errors:
    """Yield the errors of a review of a user's access; a local one is about a namespace."""
    spec: Document = review.get("spec") or {}
    yield from _check_attributes(spec)
    if not spec.get("user") and not spec.get("groups"):
        yield fielderror.invalid(SPEC.child("user"), "", "at least one of user or group must be specified")
    yield from _TYPES["ResourceAttributes"](spec.get("resourceAttributes") or {}, _ATTRIBUTES)
    if not is_local:
        yield from _check_no_metadata(review, "must be empty")
        return
    yield from _check_no_metadata(review, "must be empty except for namespace", "namespace")
    attributes, path_attributes = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    namespace = attributes.get("namespace", "") if attributes is not None else ""
    if attributes is not None and namespace != review["metadata"].get("namespace", ""):
        yield fielderror.invalid(_ATTRIBUTES.child("namespace"), namespace, "must match metadata.namespace")
    if path_attributes is not None:
        at = SPEC.child("nonResourceAttributes")
        yield fielderror.invalid(at, _show_path(path_attributes), "disallowed on this kind of request")


def check_self(review: Document) -> Errors:
    """Yield the errors of a review of the requester's own access."""
    spec: Document = review.get("spec") or {}
    yield from _check_attributes(spec)
    yield from _TYPES["ResourceAttributes"](spec.get("resourceAttributes") or {}, _ATTRIBUTES)
    yield from _check_no_metadata(review, "must be empty")


def _check_attributes(spec: Document) -> Errors:
    path_attributes = spec.get("nonResourceAttributes")
    if (spec.get("resourceAttributes") is None) is (path_attributes is None):
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        yield fielderror.invalid(SPEC, _show_path(path_attributes), detail)


def _check_no_metadata(review: Document, detail: str, *allowed: str) -> Errors:
    metadata = {field: value for field, value in review["metadata"].items() if field != "managedFields"}
    if any(field not in allowed for field in metadata):
        yield fielderror.invalid(METADATA, rendering.wire(metadata), detail)


def _check_has_requirements(selector: Document, at: Path) -> Errors:
    if not selector.get("rawSelector") and not selector.get("requirements"):
        detail = f"when {at} is specified, requirements or rawSelector is required"
        yield fielderror.required(at.child("requirements"), detail)


def _show_path(attributes: Document | None) -> rendering.Rendered:
    return rendering.internal_fields(attributes, ("Path", "path", ""), ("Verb", "verb", ""))


_TYPES: Final = rulenotation.load("accessreview", globals())
