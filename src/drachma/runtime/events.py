"""Events: messages for users about an object, recorded without making the component wait.

A component makes a :class:`Recorder` under its own name, runs it next to its other tasks, and calls ``record`` from
anywhere. Recording never fails: events are hints, and an API server that accepts none must not stop the component.
:mod:`drachma.runtime.correlation` decides which of them are written.

Components write their own changes by ``write``. If the API server commits several changes at once, the events about a
change and other new events are part of its commit, and cost no requests of their own.
"""

import asyncio
import datetime as dt
import logging
import random
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, cast

from drachma import errors
from drachma.api import codec, event, meta, scheme
from drachma.client import patches, protocol, target, transactions
from drachma.runtime import correlation, defects
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

_TURNS: Final = 4
"""Turns of the event loop that events wait for a write of their component, which takes them along."""

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
        self._pending: list[event.Event] = []
        self._has_pending: Final = asyncio.Event()
        self._unwritten = 0
        """Events that wait or are being written."""
        self._is_idle: Final = asyncio.Event()
        self._is_idle.set()
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
        component: str = "",
    ) -> None:
        """Record an event about an object of the scheme, or about the object of a reference. It is written later, or
        dropped. ``component`` is the name that the event reports, if that is not the recorder's.
        """
        self.put([self.event(subject, type=type, reason=reason, message=message, component=component)])

    async def run(self) -> None:
        """Write recorded events until cancelled."""
        while True:
            await self._has_pending.wait()
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            recorded = self._take(self._pending)
            try:
                writes = self._worth_writing(recorded)
                for begin in range(0, len(writes), _AT_ONCE):
                    await asyncio.gather(*map(self._write_event, writes[begin : begin + _AT_ONCE]))
            except Exception:
                defects.PROCESS.report("events", f"{len(recorded)} events lost")
            finally:
                self._count_dropped()
                self._end(recorded)

    async def flush(self) -> None:
        """Return once all events recorded so far are written or given up. ``run`` must be running."""
        await self._is_idle.wait()

    async def write(
        self,
        *changes: transactions.DocumentChange,
        reported: Sequence[event.Event] = (),
        client: protocol.Client | None = None,
    ) -> protocol.StoredObject[Any] | protocol.Document:
        """Make changes in turn, and write the events that report them. Return the last stored object.

        The events are dropped if a change is refused or fails; a refused event does not prevent the changes. Raises
        what the client raises for the changes. Give ``client`` if an account other than the recorder's makes them.
        """
        client = client or self._client
        server = transactions.offered(client)
        now = self._clock.monotonic()
        candidates = (*self._pending, *reported) if self._has_core_role else ()
        companions = self._correlator.pick_new(candidates, now=now)[:_AT_ONCE]
        if server is None or len(changes) + len(companions) == 1:
            return await self._write_in_turn(client, changes, reported)
        taken = self._take(companions)
        try:
            answers = await server.commit([*changes, *map(transactions.Create, companions)])
        except errors.CommitRefusedError as error:
            self.put(taken)
            if error.position < len(changes):
                raise error.refusal from None
            return await self._write_in_turn(client, changes, reported)
        except BaseException:
            self.put(taken)
            raise
        finally:
            self._end(taken)
        for each in companions:
            self._correlator.correlate(each, now=now)
        self.put(_without(reported, companions))
        return cast("protocol.StoredObject[Any]", answers[len(changes) - 1])

    async def _write_in_turn(
        self,
        client: protocol.Client,
        changes: Sequence[transactions.DocumentChange],
        reported: Sequence[event.Event],
    ) -> protocol.StoredObject[Any] | protocol.Document:
        for change in changes:
            stored = await _write_change(client, change)
        self.put(reported)
        return stored

    async def patch(
        self,
        change: transactions.PatchStored,
        *,
        reported: Sequence[event.Event] = (),
        client: protocol.Client | None = None,
    ) -> protocol.StoredObject[Any]:
        """Make a patch like write()."""
        return cast("protocol.StoredObject[Any]", await self.write(change, reported=reported, client=client))

    def put(self, recorded: Iterable[event.Event]) -> None:
        """Record events of event(). They are written later, or dropped if too many wait."""
        for each in recorded:
            if len(self._pending) >= _PENDING:
                # A flood of events must not become one of log lines.
                if not self._dropped:
                    _log.error("too many events wait to be written, dropped: %s", _describe(each))
                self._dropped += 1
                continue
            self._pending.append(each)
            self._unwritten += 1
            self._is_idle.clear()
            self._has_pending.set()

    def _take(self, wanted: Sequence[event.Event]) -> list[event.Event]:
        """Return those of the events that wait, and let them wait no longer. Call _end() with them afterwards."""
        before = self._pending
        self._pending = _without(before, wanted)
        if not self._pending:
            self._has_pending.clear()
        return _without(before, self._pending)

    def _end(self, taken: Sequence[event.Event]) -> None:
        self._unwritten -= len(taken)
        if not self._unwritten:
            self._is_idle.set()

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

    async def _write_event(self, write: correlation.Write) -> None:
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
                return defects.PROCESS.report("events", f"lost: {_describe(write.event)}")
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
        component: str = "",
    ) -> event.Event:
        """Return an event for the component to write itself, together with the change that it reports.

        Use it for events that happen once to an object. The name is new, so no event of this name exists.
        """
        reference = subject if isinstance(subject, event.ObjectReference) else reference_to(subject)
        source = event.EventSource(component=component, host=self._source.host) if component else self._source
        exactly = self._clock.utc()
        now = exactly.replace(microsecond=0)
        name = self._name(reference.name, exactly)
        metadata = meta.ObjectMeta(name=name, namespace=reference.namespace or _DEFAULT_NAMESPACE)
        return event.Event(
            metadata=metadata,
            involved_object=reference,
            reason=reason,
            message=message,
            source=source,
            first_timestamp=now,
            last_timestamp=now,
            count=1,
            type=type,
            reporting_component=source.component,
            reporting_instance=source.host,
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


async def _write_change(
    client: protocol.Client, change: transactions.DocumentChange
) -> protocol.StoredObject[Any] | protocol.Document:
    match change:
        case transactions.CreateDocument(kind, document):
            return await client.create_document(kind, document)
        case transactions.UpdateDocument(kind, document, subresource):
            return await client.update_document(kind, document, subresource=subresource)
        case transactions.PatchStored(kind, name, patch, namespace, subresource):
            return await client.patch_stored(kind, name, patch=patch, namespace=namespace, subresource=subresource)


def _without(recorded: Iterable[event.Event], removed: Iterable[event.Event]) -> list[event.Event]:
    removed_ids = set(map(id, removed))
    return [each for each in recorded if id(each) not in removed_ids]


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
