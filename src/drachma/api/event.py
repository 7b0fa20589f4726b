"""Event: a report of a component about an object. A partial view."""

from drachma.api import meta
from drachma.api.struct import ABSENT_INT, ABSENT_TEXT, Int32, Struct


class ObjectReference(Struct, frozen=True, kw_only=True):
    """Object of an event."""

    kind: str = ABSENT_TEXT
    namespace: str = ABSENT_TEXT
    name: str = ABSENT_TEXT
    uid: str = ABSENT_TEXT
    api_version: str = ABSENT_TEXT
    resource_version: str = ABSENT_TEXT
    field_path: str = ABSENT_TEXT


class EventSource(Struct, frozen=True, kw_only=True):
    """Component that reports."""

    component: str = ABSENT_TEXT
    host: str = ABSENT_TEXT


class Event(meta.Object, frozen=True, kw_only=True):
    """Core Event, namespaced; a partial view."""

    involved_object: ObjectReference = ObjectReference()
    reason: str = ABSENT_TEXT
    message: str = ABSENT_TEXT
    source: EventSource = EventSource()
    first_timestamp: meta.Time | None = None
    last_timestamp: meta.Time | None = None
    count: Int32 = ABSENT_INT
    type: str = ABSENT_TEXT
    event_time: meta.MicroTime | None = None
    action: str = ABSENT_TEXT
    reporting_component: str = ABSENT_TEXT
    reporting_instance: str = ABSENT_TEXT
