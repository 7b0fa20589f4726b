"""Rules for access reviews."""

from typing import Final

from drachma.validation import fielderror, rendering, rulenotation
from drachma.validation.fielderror import Errors
from drachma.validation.path import METADATA, SPEC, Document, Path


def check(review: Document, *, is_local: bool) -> Errors:
    """Yield the errors of a review of a user's access; a local one is about a namespace."""
    spec: Document = review.get("spec") or {}
    yield from _TYPES["SubjectAccessReviewSpec"](spec, SPEC)
    if not is_local:
        yield from _check_no_metadata(review, "must be empty")
        return
    yield from _check_no_metadata(review, "must be empty except for namespace", "namespace")
    yield from _TYPES["LocalSpec"](spec, SPEC, review["metadata"])


def check_self(review: Document) -> Errors:
    """Yield the errors of a review of the requester's own access."""
    yield from _TYPES["SelfSubjectAccessReviewSpec"](review.get("spec") or {}, SPEC)
    yield from _check_no_metadata(review, "must be empty")


def _is_elsewhere(spec: Document, metadata: Document) -> bool:
    return bool(spec["resourceAttributes"].get("namespace", "") != metadata.get("namespace", ""))


def _show_spec(spec: Document) -> rendering.Rendered:
    return _show_path(spec.get("nonResourceAttributes"))


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
