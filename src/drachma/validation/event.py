"""Rules for Event, in the stored form of the core group.

Events with an ``eventTime`` have more rules. So have events of the newer group, which are checked in the stored form.
"""

from typing import Final

from drachma.validation import constraints, fielderror, kindrules, rendering, rulenotation
from drachma.validation.fielderror import Errors
from drachma.validation.path import Document, Path
from drachma.values import names

_REFERENCE: Final = (
    ("Kind", "kind", ""),
    ("Namespace", "namespace", ""),
    ("Name", "name", ""),
    ("UID", "uid", ""),
    ("APIVersion", "apiVersion", ""),
    ("ResourceVersion", "resourceVersion", ""),
    ("FieldPath", "fieldPath", ""),
)


def _is_misplaced(event: Document, metadata: Document) -> bool:
    object_namespace, namespace = (event.get("involvedObject") or {}).get("namespace"), metadata.get("namespace", "")
    is_timed = event.get("eventTime") is not None
    if object_namespace:
        return namespace != object_namespace and not is_timed
    # Events about objects of cluster scope are kept in the default namespace.
    return namespace not in (("default", "kube-system") if is_timed else ("default",))


def _limit_text(limit: int) -> constraints.Constraint:
    detail = f"can have at most {limit} characters"
    return lambda text, at: [fielderror.invalid(at, "", detail)] if names.byte_length(text) > limit else ()


def _event_type(kind: str, at: Path) -> Errors:
    if kind not in ("Normal", "Warning"):
        yield fielderror.invalid(at, "", f"has invalid value: {kind}")


def _show_reference(reference: Document | None) -> rendering.Rendered:
    return rendering.internal_fields(reference, *_REFERENCE)


def _show_object(reference: Document | None) -> rendering.Rendered:
    return _show_reference(reference or {})


def _show_source(source: Document | None) -> rendering.Rendered:
    return rendering.internal_fields(source or {}, ("Component", "component", ""), ("Host", "host", ""))


_short_text: Final = _limit_text(128)
_note: Final = _limit_text(1024)
_TYPES: Final = rulenotation.load("event", globals())
KINDS: Final = kindrules.read(_TYPES)
