"""Events in their newer shape. They are the events of the core group under other names, and stored only once.

Whoever writes them in this shape is held to more: a time to the microsecond, who reports, and nothing of the old way to
count. What an event says cannot be changed by it, except for its series.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server.kinds.core import event as core
from drachma.server.kinds.core import references
from drachma.server.kinds.document import Document
from drachma.server.schema import emptyfields, metatypes, notation
from drachma.server.surface import layout, resources, selectable
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import event as rules
from drachma.validation import metadata
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
Event: action=str apiVersion=str deprecatedCount=int32 deprecatedFirstTimestamp=Time! deprecatedLastTimestamp=Time!
    deprecatedSource=EventSource! eventTime=MicroTime!* kind=str metadata=ObjectMeta! note=str reason=str
    regarding=ObjectReference! related=ObjectReference reportingController=str reportingInstance=str
    series=EventSeries type=str
EventSeries: count=int32!* lastObservedTime=MicroTime!*
"""
_NUMBERS: Final = """\
Event: metadata eventTime series reportingController reportingInstance action reason regarding related note type
    deprecatedSource deprecatedFirstTimestamp deprecatedLastTimestamp deprecatedCount
EventSeries: count lastObservedTime
"""
_TEXTS: Final = """\
Event: Something that happened to an object.
Event.eventTime: When it was first seen.
Event.note: What happened, for people.
Event.regarding: The object that it happened to.
Event.related: Another object that has to do with it.
Event.reportingController: Who reports it, such as kubernetes.io/kubelet.
Event.series: How often it has happened since; only where it happened more than once.
EventSeries: How often something has happened, and when last.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.events.v1",
    _TYPES,
    numbers=_NUMBERS,
    texts=_TEXTS,
    uses=(metatypes.META, references.REFERENCES, core.TYPES),
)

_EVENT: Final = _PACKAGE.object("Event")

_NAMES: Final = {
    "deprecatedCount": "count",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedSource": "source",
    "note": "message",
    "regarding": "involvedObject",
    "reportingController": "reportingComponent",
}
"""What fields are called in the core group, where that differs."""

_SHOWN: Final = {stored: shown for shown, stored in _NAMES.items()}


class EventStrategy(core.EventStrategy):
    """Reads and serves the newer shape; everything between is done to the stored one."""

    name_rule = staticmethod(metadata.dns_subdomain)
    qualifies_finalizers = True

    def stored_form(self, resource: resources.Resource) -> resources.Resource:
        return core.KIND

    def settled(self, fields: Document, write: Write) -> Document:
        # A field that this shape does not have must not become one that the stored shape has.
        own = {field: value for field, value in super().settled(fields, write).items() if field in _EVENT.fields}
        return _renamed(own, _NAMES)

    def convert(self, document: Mapping[str, Any], version: str) -> Mapping[str, Any]:
        api_version = self._api_versions[version]
        if document["apiVersion"] == api_version:
            return document
        shown = _renamed({**document, "apiVersion": api_version}, _SHOWN)
        for field in ("reportingController", "reportingInstance"):
            # The core group writes them even where they are empty.
            if not shown.get(field):
                shown.pop(field, None)
        emptyfields.fill(shown, self.resource.schema(version))
        return shown

    serve = convert

    def check(self, content: Document, subject: Subject) -> Errors:
        namespace = subject.metadata.get("namespace", "")
        yield from rules.check(content, namespace=namespace, reporter="reportingController")

    def check_new(self, content: Document, subject: Subject) -> Errors:
        yield from rules.check_new(content)

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rules.check_update(content, old)


def _renamed(document: Mapping[str, Any], names: Mapping[str, str]) -> Document:
    return {names.get(field, field): value for field, value in document.items()}


def _cells(event: Document, now: datetime) -> layout.Cells:
    return core.KIND.layout.cells(_renamed(event, _NAMES), now)


def _reader(field: str) -> selectable.Read:
    first, *rest = field.split(".")
    path = (_NAMES.get(first, first), *rest)
    return lambda event: selectable.dig(event, path) or ""


_FIELDS: Final = frozenset(
    {
        "reason",
        "regarding.apiVersion",
        "regarding.fieldPath",
        "regarding.kind",
        "regarding.name",
        "regarding.namespace",
        "regarding.resourceVersion",
        "regarding.uid",
        "reportingController",
        "type",
    }
)

KIND: Final = Kind(
    group="events.k8s.io",
    versions=("v1",),
    plural="events",
    kind="Event",
    namespaced=True,
    short_names=("ev",),
    schemas={"v1": _EVENT},
    stored_as="events",
    traits=resources.Traits(creates_on_update=True, has_dependents=False),
    layout=layout.Layout(core.KIND.layout.columns, _cells),
    selectable=selectable.Selectable(
        fields=_FIELDS | {selectable.NAME, selectable.NAMESPACE},
        special={field: _reader(field) for field in _FIELDS},
        unknown=selectable.unknown_in_core,
    ),
    strategy=EventStrategy,
)
