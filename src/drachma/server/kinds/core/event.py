"""Events: something that happened to an object. They come in masses and are soon forgotten."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.api import event as events
from drachma.server.kinds.core import references
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import age, cells, layout, resources, selectable
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject
from drachma.validation import event as rules
from drachma.validation import metadata
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
Event: action=str apiVersion=str count=int32 eventTime=MicroTime! firstTimestamp=Time! involvedObject=ObjectReference!*
    kind=str lastTimestamp=Time! message=str metadata=ObjectMeta!* reason=str related=ObjectReference
    reportingComponent=str!/ reportingInstance=str!/ series=EventSeries source=EventSource! type=str
EventSeries: count=int32 lastObservedTime=MicroTime!
EventSource: component=str host=str
"""
_NUMBERS: Final = """\
Event: metadata involvedObject reason message source firstTimestamp lastTimestamp count type eventTime series action
    related reportingComponent reportingInstance
EventSeries: count lastObservedTime
EventSource: component host
"""
_TEXTS: Final = """\
Event: Something that happened to an object.
Event.involvedObject: The object that it happened to.
Event.related: Another object that has to do with it.
"""
TYPES: Final = notation.Types(
    "io.k8s.api.core.v1",
    _TYPES,
    numbers=_NUMBERS,
    texts=_TEXTS,
    docs=(events,),
    uses=(metatypes.META, references.REFERENCES),
)


class EventStrategy(DocumentStrategy):
    """Any name will do that fits into a URL."""

    name_rule = staticmethod(metadata.path_segment)
    qualifies_finalizers = False

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from rules.check(content, namespace=subject.metadata.get("namespace", ""))


def _cells(event: Document, now: datetime) -> layout.Cells:
    series = event.get("series")
    first = age.since(event.get("firstTimestamp") or event.get("eventTime"), now=now)
    last = age.since(event["lastTimestamp"], now=now) if event.get("lastTimestamp") else first
    count = event.get("count") or 1
    if series is not None:
        last, count = age.since(series.get("lastObservedTime"), now=now), series.get("count", 0)
    about, source = cells.part(event, "involvedObject"), cells.part(event, "source")
    target = "/".join(part for part in (about.get("kind", "").lower(), about.get("name", "")) if part)
    reporter = (
        source.get("component") or event.get("reportingComponent", ""),
        source.get("host") or event.get("reportingInstance", ""),
    )
    return [
        last,
        event.get("type", ""),
        event.get("reason", ""),
        target if about.get("name") else about.get("kind", "").lower(),
        about.get("fieldPath", ""),
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
    schemas={"v1": TYPES.object("Event")},
    traits=resources.Traits(creates_on_update=True, has_dependents=False),
    layout=layout.Layout(
        (
            layout.text("Last Seen", "When it last happened."),
            layout.text("Type", "Normal or Warning."),
            layout.text("Reason", "Why the event was reported, in one word."),
            layout.text("Object", "What the event is about."),
            layout.wide("Subobject", "Which part of the object it is about."),
            layout.wide("Source", "Who reported it."),
            layout.text("Message", "What happened."),
            layout.wide("First Seen", "When it first happened."),
            layout.wide("Count", "How often it happened."),
            layout.Column("Name", format="name", description=layout.NAME.description, priority=1),
        ),
        _cells,
    ),
    selectable=selectable.Selectable(fields=_FIELDS, special={"source": _source}, unknown=selectable.unknown_in_core),
    strategy=EventStrategy,
)
