"""Rules for events, in the form of the core group; those with a time of their own say more about who reports them.

The newer group has more of them (:func:`check_new`, :func:`check_update`), also under the names of the core group.
"""

from collections.abc import Mapping
from typing import Any, Final

from drachma.validation import fielderror, metadata, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.validation.podspec import choices
from drachma.values import names

_ABOUT: Final = Path("involvedObject").child("namespace")
_SHORT: Final = 128
_NOTE: Final = 1024
_KINDS: Final = ("Normal", "Warning")
_UNSET: Final = "needs to be unset"
_FEWEST: Final = 2
"""Fewer make no series."""

_FIXED: Final = tuple(
    (field, "reportingController" if field == "reportingComponent" else field)
    for field in (
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "type",
        "eventTime",
        "action",
        "related",
        "reportingComponent",
        "reportingInstance",
    )
)
"""What cannot be changed, and what messages call it."""

_TEXTS: Final = ("reason", "message", "type", "action", "reportingComponent", "reportingInstance")
_REFERENCE: Final = (
    ("Kind", "kind"),
    ("Namespace", "namespace"),
    ("Name", "name"),
    ("UID", "uid"),
    ("APIVersion", "apiVersion"),
    ("ResourceVersion", "resourceVersion"),
    ("FieldPath", "fieldPath"),
)
_PARTS: Final = {
    "involvedObject": _REFERENCE,
    "related": _REFERENCE,
    "source": (("Component", "component"), ("Host", "host")),
}
"""How upstream's internal types call the parts of fields."""


def check(event: Mapping[str, Any], *, namespace: str, reporter: str = "reportingComponent") -> Errors:
    """An event in a namespace; ``reporter`` is what the client's group calls who reports it."""
    about = (event.get("involvedObject") or {}).get("namespace", "")
    # Events about objects of cluster scope are kept in the default namespace.
    homes = ("default",) if event.get("eventTime") is None else ("default", "kube-system")
    is_at_home = namespace in homes if not about else namespace == about or event.get("eventTime") is not None
    if not is_at_home:
        yield fielderror.invalid(_ABOUT, about, "does not match event.namespace")
    if event.get("eventTime") is None:
        return
    name = event.get("reportingComponent", "")
    if not name:
        yield fielderror.required(Path(reporter))
    yield from choices.qualified_name(name, Path(reporter))
    for field, most in (("reportingInstance", _SHORT), ("action", _SHORT), ("reason", _SHORT), ("message", _NOTE)):
        text = event.get(field, "")
        if not text and field != "message":
            yield fielderror.required(Path(field))
        if names.byte_length(text) > most:
            yield fielderror.invalid(Path(field), "", f"can have at most {most} characters")


def check_new(event: Mapping[str, Any]) -> Errors:
    """What else a new event of the newer group must say, and what it must not."""
    yield from _series(event)
    if event.get("eventTime") is None:
        yield fielderror.required(Path("eventTime"))
    kind = event.get("type", "")
    if kind not in _KINDS:
        yield fielderror.invalid(Path("type"), "", f"has invalid value: {kind}")
    for field in ("firstTimestamp", "lastTimestamp", "count"):
        if event.get(field):
            yield fielderror.invalid(Path(field), "", _UNSET)
    if any((event.get("source") or {}).values()):
        yield fielderror.invalid(Path("source"), "", _UNSET)


def check_update(event: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """A change through the newer group: only the series goes on."""
    if event.get("series") != old.get("series"):
        yield from _series(event)
    for field, shown in _FIXED:
        if (event.get(field) or None) != (old.get(field) or None):
            yield fielderror.invalid(Path(shown), _shown(field, event), metadata.IMMUTABLE)


def _series(event: Mapping[str, Any]) -> Errors:
    series = event.get("series")
    if series is None:
        return
    if series.get("count", 0) < _FEWEST:
        yield fielderror.invalid(Path("series.count"), "", f"should be at least {_FEWEST}")
    if series.get("lastObservedTime") is None:
        yield fielderror.required(Path("series.lastObservedTime"))


def _shown(field: str, event: Mapping[str, Any]) -> object:
    value = event.get(field)
    names = _PARTS.get(field)
    if names is None:
        zero = 0 if field == "count" else ""
        return (value or zero) if field in ("count", *_TEXTS) else rendering.wire(value)
    if value is None and field == "related":
        return rendering.NULL
    parts = (f'"{go}":{rendering.wire((value or {}).get(wire, ""))}' for go, wire in names)
    return rendering.Rendered("{" + ",".join(parts) + "}")
