"""Correlation of events: repeated events are counted, similar ones combined, and floods cut off.

Pure, and by client-go's rules, so that users see as many events as they are used to. An event that equals an earlier
one raises its count. The tenth message for the same object, type and reason within ten minutes and all later ones
become one event. An object gets 25 events at once and then one every five minutes. Called by
:class:`drachma.runtime.events.Recorder`.
"""

from collections import OrderedDict
from collections.abc import Iterable
from datetime import datetime
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import structs

from drachma.api import event

COMBINED: Final = "(combined from similar events): "

_REMEMBERED: Final = 4096
_SIMILAR: Final = 10
_SIMILAR_SECONDS: Final = 600.0
_BURST: Final = 25
_REFILL_PER_SECOND: Final = 1 / 300

_ValueT = TypeVar("_ValueT")
_Key = tuple[str, ...]


class Write(NamedTuple):
    """An event to write. ``is_known`` if one of this name was written before and only its count and time are new."""

    event: event.Event
    is_known: bool


class _Recent(Generic[_ValueT]):
    """A dictionary that drops the entry that was not used for longest."""

    def __init__(self) -> None:
        self._values: Final[OrderedDict[_Key, _ValueT]] = OrderedDict()

    def get(self, key: _Key) -> _ValueT | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: _Key, value: _ValueT) -> None:
        if key in self._values:
            self._values.move_to_end(key)
        self._values[key] = value
        if len(self._values) > _REMEMBERED:
            self._values.popitem(last=False)


class _Series(msgspec.Struct):
    messages: set[str]
    last: float


class _Bucket(msgspec.Struct):
    tokens: float
    filled: float


class _Occurrence(NamedTuple):
    name: str
    times: int
    first: datetime | None


class Correlator:
    """State of one source of events."""

    def __init__(self) -> None:
        self._series: Final[_Recent[_Series]] = _Recent()
        self._occurrences: Final[_Recent[_Occurrence]] = _Recent()
        self._buckets: Final[_Recent[_Bucket]] = _Recent()

    def correlate(self, new: event.Event, *, now: float) -> Write | None:
        """Return the write for an event at a time in seconds, or None if its object has had too many."""
        combined, key = self._combine(new, now)
        write = self._count(combined, key)
        return write if self._is_affordable(new, now) else None

    def pick_new(self, candidates: Iterable[event.Event], *, now: float) -> list[event.Event]:
        """Return events that correlate() would have created as they are: the first of a reason about an object."""
        picked: dict[_Key, event.Event] = {}
        for each in candidates:
            subject = _subject_key(each)
            similar = (*subject, each.reason)
            bucket = self._buckets.get(subject)
            is_affordable = bucket is None or bucket.tokens + (now - bucket.filled) * _REFILL_PER_SECOND >= 1
            if is_affordable and self._series.get(similar) is None:
                picked.setdefault(similar, each)
        return list(picked.values())

    def _combine(self, new: event.Event, now: float) -> tuple[event.Event, _Key]:
        similar = (*_subject_key(new), new.reason)
        series = self._series.get(similar)
        if series is None or now - series.last > _SIMILAR_SECONDS:
            series = _Series(set(), now)
        series.messages.add(new.message)
        series.last = now
        self._series.put(similar, series)
        if len(series.messages) < _SIMILAR:
            return new, (*similar, new.involved_object.field_path, new.message)
        series.messages.pop()
        return structs.replace(new, message=COMBINED + new.message), similar

    def _count(self, new: event.Event, key: _Key) -> Write:
        earlier = self._occurrences.get(key)
        if earlier is not None:
            metadata = structs.replace(new.metadata, name=earlier.name)
            new = structs.replace(new, metadata=metadata, count=earlier.times + 1, first_timestamp=earlier.first)
        self._occurrences.put(key, _Occurrence(new.metadata.name, new.count, new.first_timestamp))
        return Write(new, is_known=earlier is not None)

    def _is_affordable(self, new: event.Event, now: float) -> bool:
        key = _subject_key(new)
        bucket = self._buckets.get(key) or _Bucket(_BURST, now)
        bucket.tokens = min(_BURST, bucket.tokens + (now - bucket.filled) * _REFILL_PER_SECOND)
        bucket.filled = now
        self._buckets.put(key, bucket)
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True


def _subject_key(new: event.Event) -> _Key:
    """Return a key of the object and the type of an event. All events of a correlator have one source."""
    subject = new.involved_object
    return (subject.api_version, subject.kind, subject.namespace, subject.name, subject.uid, new.type)
