"""Events: messages for users about an object, recorded without making the component wait.

A component makes a :class:`Recorder` under its own name, runs it next to its other tasks, and calls ``record`` from
anywhere. Recording never fails: events are hints, and an API server that accepts none must not stop the component.
:mod:`drachma.runtime.correlation` decides which of them are written.
"""

import asyncio
import datetime as dt
import logging
import random
import uuid
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from drachma import errors
from drachma.api import codec, event, meta, scheme
from drachma.client import patches, protocol, target
from drachma.runtime import correlation
from drachma.runtime.clock import Clock, SystemClock
from drachma.values import names

NORMAL: Final = "Normal"
WARNING: Final = "Warning"

Type = Literal["Normal", "Warning"]

_DEFAULT_NAMESPACE: Final = "default"
_PENDING: Final = 1000
"""Most events that wait to be written. Further events are dropped."""

_AT_ONCE: Final = 16
"""Events that are written concurrently; few, because the other requests of the component come first."""

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)

_STAMPS: Final = 1000
"""Names of events within a microsecond, which components share: names have a time in nanoseconds, as upstream."""

_TRIES: Final = 12
_PAUSE_SECONDS: Final = 10.0

_NEWER_EVENTS: Final = target.Target(
    group="events.k8s.io", versions=("v1",), plural="events", kind="Event", namespaced=True, model=meta.Object
)
"""Events of ``events.k8s.io``, for components whose role allows events of that group only, such as recent Kueue's."""

_MOST_NOTE_BYTES: Final = 1024
"""Limit of a note in ``events.k8s.io``."""

_log = logging.getLogger(__name__)


class Recorder:
    """Recorder of the events of one component. ``host`` names the machine, if that is useful."""

    def __init__(
        self,
        client: protocol.Client,
        *,
        component: str,
        host: str = "",
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._client: Final = client
        self._source: Final = event.EventSource(component=component, host=host)
        self._clock: Final = clock or SystemClock()
        self._rng: Final = rng or random.Random()
        self._correlator: Final = correlation.Correlator()
        self._pending: Final[asyncio.Queue[event.Event]] = asyncio.Queue(_PENDING)
        self._has_core_role = True
        self._dropped = 0
        self._last_stamp = 0
        self._offset: Final = zlib.crc32(component.encode()) % _STAMPS

    def record(
        self,
        subject: meta.Object | event.ObjectReference,
        *,
        type: Type,  # noqa: A002
        reason: str,
        message: str,
    ) -> None:
        """Record an event about an object of the scheme, or about the object of a reference. It is written later, or
        dropped.
        """
        if self._pending.full():
            # A flood of events must not become one of log lines.
            if not self._dropped:
                dropped = self.event(subject, type=type, reason=reason, message=message)
                _log.error("too many events wait to be written, dropped: %s", _describe(dropped))
            self._dropped += 1
            return
        self._pending.put_nowait(self.event(subject, type=type, reason=reason, message=message))

    async def run(self) -> None:
        """Write recorded events until cancelled."""
        while True:
            recorded = [await self._pending.get()]
            while not self._pending.empty():
                recorded.append(self._pending.get_nowait())
            try:
                writes = self._worth_writing(recorded)
                for begin in range(0, len(writes), _AT_ONCE):
                    await asyncio.gather(*map(self._write, writes[begin : begin + _AT_ONCE]))
            finally:
                self._count_dropped()
                for _ in recorded:
                    self._pending.task_done()

    async def flush(self) -> None:
        """Return once all events recorded so far are written or given up. ``run`` must be running."""
        await self._pending.join()

    def _count_dropped(self) -> None:
        if self._dropped > 1:
            _log.error("too many events wait to be written, dropped in all: %d", self._dropped)
        self._dropped = 0

    def _worth_writing(self, recorded: Iterable[event.Event]) -> list[correlation.Write]:
        """Return one write for each event, also if it was recorded several times."""
        writes: dict[tuple[str, str], correlation.Write] = {}
        for new in recorded:
            write = self._correlator.correlate(new, now=self._clock.monotonic())
            if write is not None:
                key = (write.event.metadata.namespace, write.event.metadata.name)
                earlier = writes.get(key)
                writes[key] = write if earlier is None else write._replace(is_known=earlier.is_known)
        return list(writes.values())

    async def _write(self, write: correlation.Write) -> None:
        for attempt in range(_TRIES):
            try:
                return await self._try(write)
            except errors.RefusedError as error:
                level = logging.DEBUG if isinstance(error, errors.ObjectExistsError) else logging.WARNING
                return _log.log(level, "event refused: %s: %s", _describe(write.event), error)
            except errors.DrachmaError as error:
                _log.warning("event not written, may be tried again: %s: %s", _describe(write.event), error)
                # Clients that lost the same server come back at different times.
                await self._clock.sleep(_PAUSE_SECONDS * (self._rng.random() if attempt == 0 else 1))
            except Exception:
                # A defect, here or in a server of the same process: it is reported, and must not stop the component.
                return _log.exception("event lost: %s", _describe(write.event))
        return _log.error("event given up after %d tries: %s", _TRIES, _describe(write.event))

    async def _try(self, write: correlation.Write) -> None:
        """Write an event in the core group, or in events.k8s.io if the role of the component allows only that."""
        if self._has_core_role:
            try:
                return await self._try_core(write)
            except errors.ForbiddenError as refusal:
                try:
                    await self._try_events_group(write)
                except errors.RefusedError:
                    raise refusal from None
                self._has_core_role = False
                return None
        return await self._try_events_group(write)

    async def _try_events_group(self, write: correlation.Write) -> None:
        new, now = write.event, self._clock.utc()
        if write.is_known:
            metadata, patch = new.metadata, patches.merge(_series(new, now))
            try:
                await self._client.patch_document(
                    _NEWER_EVENTS, metadata.name, patch=patch, namespace=metadata.namespace
                )
                return
            except errors.ObjectNotFoundError:
                pass
        await self._client.create_document(_NEWER_EVENTS, _newer_document(new, now))

    async def _try_core(self, write: correlation.Write) -> None:
        new = write.event
        if write.is_known:
            changed = {"count": new.count, "lastTimestamp": new.last_timestamp, "message": new.message}
            name, namespace = new.metadata.name, new.metadata.namespace
            try:
                await self._client.patch(event.Event, name, patch=patches.merge(changed), namespace=namespace)
                return
            except errors.ObjectNotFoundError:
                # Events are deleted after a while. This one continues, so it is written again.
                pass
        await self._client.create(new)

    def event(
        self,
        subject: meta.Object | event.ObjectReference,
        *,
        type: Type,  # noqa: A002
        reason: str,
        message: str,
    ) -> event.Event:
        """Return an event for the component to write itself, together with the change that it reports.

        Use it for events that happen once to an object. The name is new, so no event of this name exists.
        """
        reference = subject if isinstance(subject, event.ObjectReference) else reference_to(subject)
        exactly = self._clock.utc()
        now = exactly.replace(microsecond=0)
        name = self._name(reference.name, exactly)
        metadata = meta.ObjectMeta(name=name, namespace=reference.namespace or _DEFAULT_NAMESPACE)
        return event.Event(
            metadata=metadata,
            involved_object=reference,
            reason=reason,
            message=message,
            source=self._source,
            first_timestamp=now,
            last_timestamp=now,
            count=1,
            type=type,
            reporting_component=self._source.component,
            reporting_instance=self._source.host,
        )

    def _name(self, subject: str, now: dt.datetime) -> str:
        microseconds = (now - _EPOCH) // _MICROSECOND
        # Two events at the same time need two names, also if two components record them.
        self._last_stamp = max(microseconds, self._last_stamp + 1)
        name = f"{subject}.{self._last_stamp * _STAMPS + self._offset:x}"
        if names.dns1123_subdomain(name):
            return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        return name


def reference_to(subject: meta.Object) -> event.ObjectReference:
    """Return the reference by which events name an object of the scheme."""
    kind = scheme.of(type(subject))
    return event.ObjectReference(
        kind=kind.name,
        namespace=subject.metadata.namespace,
        name=subject.metadata.name,
        uid=subject.metadata.uid,
        api_version=kind.api_versions[0],
        resource_version=subject.metadata.resource_version,
    )


def _describe(new: event.Event) -> str:
    subject = new.involved_object
    return f"{subject.kind} {subject.namespace}/{subject.name}: {new.type} {new.reason}: {new.message}"


# Events of events.k8s.io


def _newer_document(new: event.Event, now: dt.datetime) -> dict[str, Any]:
    """Return a core event in the form of ``events.k8s.io``, which has no counts."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": new.metadata.name, "namespace": new.metadata.namespace},
        "eventTime": meta.micro_time_text(now),
        "reportingController": new.reporting_component,
        "reportingInstance": new.reporting_instance or new.reporting_component,
        "action": new.reason,
        "reason": new.reason,
        "regarding": codec.encode(new)["involvedObject"],
        "note": new.message.encode()[:_MOST_NOTE_BYTES].decode(errors="ignore"),
        "type": new.type,
    }


def _series(new: event.Event, now: dt.datetime) -> Mapping[str, Any]:
    """Return the change of an event of ``events.k8s.io`` that has happened again."""
    return {"series": {"count": new.count, "lastObservedTime": meta.micro_time_text(now)}}
