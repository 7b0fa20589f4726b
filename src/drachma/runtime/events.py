"""Events: what a component wants people to know about an object, recorded without making the component wait.

A component makes a :class:`Recorder` under its own name, runs it beside its other tasks, and calls ``record`` from
anywhere. Recording never fails: events are hints, and an API server that takes none must not stop the component.
What is written of them is up to :mod:`drachma.runtime.correlation`.
"""

import asyncio
import datetime as dt
import logging
import random
import uuid
from collections.abc import Iterable
from typing import Final, Literal

from drachma import errors
from drachma.api import event, meta, scheme
from drachma.client import patches, protocol
from drachma.runtime import clock, correlation
from drachma.values import names

NORMAL: Final = "Normal"
WARNING: Final = "Warning"

Type = Literal["Normal", "Warning"]

_DEFAULT_NAMESPACE: Final = "default"
_PENDING: Final = 1000
"""Events that wait to be written at most; when there are more, new ones are dropped."""

_AT_ONCE: Final = 16
"""Events that are written at the same time: whatever the component does otherwise comes first."""

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)

_TRIES: Final = 12
_PAUSE_SECONDS: Final = 10.0

_log = logging.getLogger(__name__)


class Recorder:
    """Records events of one component; ``host`` names the machine where that tells anything."""

    def __init__(
        self,
        client: protocol.Client,
        *,
        component: str,
        host: str = "",
        time: clock.Clock | None = None,
        chance: random.Random | None = None,
    ) -> None:
        self._client: Final = client
        self._source: Final = event.EventSource(component=component, host=host)
        self._clock: Final = time or clock.SystemClock()
        self._chance: Final = chance or random.Random()
        self._correlator: Final = correlation.Correlator()
        self._pending: Final[asyncio.Queue[event.Event]] = asyncio.Queue(_PENDING)
        self._dropped = 0
        self._last_stamp = 0

    def record(
        self,
        about: meta.Object | event.ObjectReference,
        *,
        type: Type,  # noqa: A002
        reason: str,
        message: str,
    ) -> None:
        """An event about an object of the scheme, or about what a reference names; written later, or never."""
        if self._pending.full():
            # A flood of events must not become one of log lines.
            if not self._dropped:
                made = self.event(about, type=type, reason=reason, message=message)
                _log.error("too many events wait to be written, dropped: %s", _shown(made))
            self._dropped += 1
            return
        self._pending.put_nowait(self.event(about, type=type, reason=reason, message=message))

    async def run(self) -> None:
        """Writes what is recorded until cancelled."""
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
        """Returns once all that is recorded so far is written, or given up; ``run`` must be running."""
        await self._pending.join()

    def _count_dropped(self) -> None:
        if self._dropped > 1:
            _log.error("too many events wait to be written, dropped in all: %d", self._dropped)
        self._dropped = 0

    def _worth_writing(self, recorded: Iterable[event.Event]) -> list[correlation.Write]:
        """One write for each event, also where it happened several times at once."""
        writes: dict[tuple[str, str], correlation.Write] = {}
        for made in recorded:
            write = self._correlator.correlate(made, now=self._clock.monotonic())
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
                return _log.log(level, "event refused: %s: %s", _shown(write.event), error)
            except errors.DrachmaError as error:
                _log.warning("event not written, may be tried again: %s: %s", _shown(write.event), error)
                # Clients that lost the same server come back at different times.
                await self._clock.sleep(_PAUSE_SECONDS * (self._chance.random() if attempt == 0 else 1))
            except Exception:
                # A defect, here or in a server of the same process: reported, and no reason to stop the component.
                return _log.exception("event lost: %s", _shown(write.event))
        return _log.error("event given up after %d tries: %s", _TRIES, _shown(write.event))

    async def _try(self, write: correlation.Write) -> None:
        made = write.event
        if write.is_known:
            changed = {"count": made.count, "lastTimestamp": made.last_timestamp, "message": made.message}
            name, namespace = made.metadata.name, made.metadata.namespace
            try:
                await self._client.patch(event.Event, name, patch=patches.merge(changed), namespace=namespace)
                return
            except errors.ObjectNotFoundError:
                # Events are deleted after a while; what goes on is worth a new one.
                pass
        await self._client.create(made)

    def event(
        self,
        about: meta.Object | event.ObjectReference,
        *,
        type: Type,  # noqa: A002
        reason: str,
        message: str,
    ) -> event.Event:
        """An event that the component writes itself, with what it tells of; only for what happens once to an object.

        Its name is new, so nothing can be there already.
        """
        reference = about if isinstance(about, event.ObjectReference) else reference_to(about)
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

    def _name(self, about: str, now: dt.datetime) -> str:
        nanoseconds = ((now - _EPOCH) // _MICROSECOND) * 1000
        # Two events of one moment are two events.
        self._last_stamp = max(nanoseconds, self._last_stamp + 1)
        name = f"{about}.{self._last_stamp:x}"
        if names.dns1123_subdomain(name):
            return str(uuid.UUID(int=self._chance.getrandbits(128), version=4))
        return name


def reference_to(about: meta.Object) -> event.ObjectReference:
    """How events name an object of the scheme."""
    kind = scheme.of(type(about))
    return event.ObjectReference(
        kind=kind.name,
        namespace=about.metadata.namespace,
        name=about.metadata.name,
        uid=about.metadata.uid,
        api_version=kind.api_versions[0],
        resource_version=about.metadata.resource_version,
    )


def _shown(made: event.Event) -> str:
    about = made.involved_object
    return f"{about.kind} {about.namespace}/{about.name}: {made.type} {made.reason}: {made.message}"
