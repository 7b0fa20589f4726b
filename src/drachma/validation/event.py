"""Rules for Event, in the stored form of the core group.

Events with an ``eventTime`` have more rules. So have events of the newer group, which are checked in the stored form.
"""

from typing import Any, Final

from drachma.validation import fielderror, kindrules, rendering, rulenotation, typerules
from drachma.validation.fielderror import Errors
from drachma.validation.path import Document, Path
from drachma.values import names

_SHORT: Final = 128
_NOTE: Final = 1024

_FIXED: Final = {
    field: "reportingController" if field == "reportingComponent" else field
    for field in (
        "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type",
        "eventTime", "action", "related", "reportingComponent", "reportingInstance",
    )
}  # fmt: skip
"""Fields that updates leave as they are, and their names in messages."""

_TEXTS: Final = ("reason", "message", "type", "action", "reportingComponent", "reportingInstance")
_REFERENCE: Final = (
    ("Kind", "kind", ""),
    ("Namespace", "namespace", ""),
    ("Name", "name", ""),
    ("UID", "uid", ""),
    ("APIVersion", "apiVersion", ""),
    ("ResourceVersion", "resourceVersion", ""),
    ("FieldPath", "fieldPath", ""),
)
_SOURCE: Final = (("Component", "component", ""), ("Host", "host", ""))


def _is_misplaced(event: Document, metadata: Document) -> bool:
    object_namespace, namespace = (event.get("involvedObject") or {}).get("namespace"), metadata.get("namespace", "")
    is_timed = event.get("eventTime") is not None
    if object_namespace:
        return namespace != object_namespace and not is_timed
    # Events about objects of cluster scope are kept in the default namespace.
    return namespace not in (("default", "kube-system") if is_timed else ("default",))


def _short_text(text: str, at: Path) -> Errors:
    return _limit_text(_SHORT, text, at)


def _note(text: str, at: Path) -> Errors:
    return _limit_text(_NOTE, text, at)


def _limit_text(limit: int, text: str, at: Path) -> Errors:
    if names.byte_length(text) > limit:
        yield fielderror.invalid(at, "", f"can have at most {limit} characters")


def _event_type(kind: str, at: Path) -> Errors:
    if kind not in ("Normal", "Warning"):
        yield fielderror.invalid(at, "", f"has invalid value: {kind}")


def _check_update(event: Document, at: Path, old: Document) -> Errors:
    """Check an update through the newer group, which may only change the series."""
    if event.get("series") is not None and event["series"] != old.get("series"):
        yield from _TYPES["EventSeries"](event["series"], at.child("series"))
    for field, title in _FIXED.items():
        if (event.get(field) or None) != (old.get(field) or None):
            yield fielderror.invalid(at.child(title), _show(field, event.get(field)), typerules.IMMUTABLE)


def _show(field: str, value: Any) -> object:
    if field == "source":
        return rendering.internal_fields(value or {}, *_SOURCE)
    if field == "involvedObject":
        return rendering.internal_fields(value or {}, *_REFERENCE)
    if field == "related":
        return rendering.internal_fields(value, *_REFERENCE)
    if field in _TEXTS:
        return value or ""
    return value or 0 if field == "count" else rendering.wire(value)


_TYPES: Final = rulenotation.load("event", globals())
KINDS: Final = kindrules.read(_TYPES)
