"""Events: reports about objects, numerous and short-lived."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.surface import age, cells, layout, resources, selectable
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import FastPath, Marks, Subject
from drachma.validation import event, metadata
from drachma.validation.fielderror import FieldError


class EventStrategy(DocumentStrategy):
    """Strategy of events, whose names may be any path segment."""

    name_rule = staticmethod(metadata.path_segment)
    qualifies_finalizers = False

    def check_create(self, content: Document, subject: Subject, metadata_errors: list[FieldError]) -> list[FieldError]:
        # Upstream's rules for events leave metadata to the rules for all kinds, which apply to valid objects.
        return [*self.check(content, subject), *self.check_new(content, subject)] or metadata_errors


class EventFastPath(FastPath):
    """Fast path for events, most of which differ in their object and message."""

    def mark_object(self, new: Any) -> Marks | None:
        subject = new.involved_object
        if not new.metadata.name or new.metadata.generate_name or new.metadata.owner_references or new.event_time:
            return None
        names = (new.metadata.name, *filter(None, (subject.name, subject.uid)))
        versions = (subject.resource_version,) if subject.resource_version else ()
        return Marks(names, (new.message,) if new.message else (), versions)


def _cells(event: Document, now: datetime) -> layout.Cells:
    series = event.get("series")
    first = age.since(event.get("firstTimestamp") or event.get("eventTime"), now=now)
    last = age.since(event["lastTimestamp"], now=now) if event.get("lastTimestamp") else first
    count = event.get("count") or 1
    if series is not None:
        last, count = age.since(series.get("lastObservedTime"), now=now), series.get("count", 0)
    involved, source = cells.part(event, "involvedObject"), cells.part(event, "source")
    target = "/".join(part for part in (involved.get("kind", "").lower(), involved.get("name", "")) if part)
    reporter = (
        source.get("component") or event.get("reportingComponent", ""),
        source.get("host") or event.get("reportingInstance", ""),
    )
    return [
        last,
        event.get("type", ""),
        event.get("reason", ""),
        target if involved.get("name") else involved.get("kind", "").lower(),
        involved.get("fieldPath", ""),
        ", ".join(reporter) if reporter[1] else reporter[0],
        event.get("message", "").strip(),
        first,
        count,
        cells.name(event),
    ]


def _source(event: Mapping[str, Any]) -> str:
    return selectable.dig(event, ("source", "component")) or event.get("reportingComponent") or ""


_FIELDS: Final = frozenset(
    {
        selectable.NAME,
        selectable.NAMESPACE,
        "involvedObject.apiVersion",
        "involvedObject.fieldPath",
        "involvedObject.kind",
        "involvedObject.name",
        "involvedObject.namespace",
        "involvedObject.resourceVersion",
        "involvedObject.uid",
        "reason",
        "reportingComponent",
        "source",
        "type",
    }
)

KIND: Final = Kind(
    group="",
    versions=("v1",),
    plural="events",
    kind="Event",
    namespaced=True,
    short_names=("ev",),
    traits=resources.Traits(creates_on_update=True, has_dependents=False),
    layout=layout.Layout(
        (
            layout.text("Last Seen", "The time since the last occurrence."),
            layout.text("Type", "Normal or Warning."),
            layout.text("Reason", "The reason of the event."),
            layout.text("Object", "The object of the event."),
            layout.wide("Subobject", "The part of the object."),
            layout.wide("Source", "The component that reports."),
            layout.text("Message", "The message of the event."),
            layout.wide("First Seen", "The time since the first occurrence."),
            layout.wide("Count", "The number of occurrences."),
            layout.Column("Name", format="name", description=layout.NAME.description, priority=1),
        ),
        _cells,
    ),
    selectable=selectable.Selectable(fields=_FIELDS, special={"source": _source}, unknown=selectable.unknown_in_core),
    rules=event.KINDS["Event"],
    strategy=EventStrategy,
    fast_path=EventFastPath,
)
