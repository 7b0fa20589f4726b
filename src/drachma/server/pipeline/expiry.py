"""Expiry: objects that were not written for some time are removed. Events are, as in upstream.

The age of an object follows from its revision and from the newest revision at each sweep, so the objects themselves are
not read. Objects that are older than the process count as written when it started.
"""

import asyncio
import collections
from typing import Final

from drachma.server.admission.proposal import Get
from drachma.server.calls.call import Call, Target
from drachma.server.pipeline import intent
from drachma.server.pipeline.dispatcher import Dispatcher
from drachma.server.surface import verbs
from drachma.server.surface.strategy import Write
from drachma.server.user import User
from drachma.store import record

_SERVER: Final = User(name="system:apiserver", groups=("system:masters",))
_AT_ONCE: Final = 100
"""Objects that are removed at the same time. They share commits, and other writes run in between."""


class Expiry:
    """Removes objects that were not written for ``seconds``. The owner calls :meth:`sweep` from time to time."""

    def __init__(self, dispatcher: Dispatcher, *, plural: str, seconds: float) -> None:
        """``plural`` names a resource of the core group."""
        self._dispatcher: Final = dispatcher
        self._plural: Final = plural
        self._seconds: Final = seconds
        self._marks: Final[collections.deque[tuple[float, int]]] = collections.deque()

    async def sweep(self, moment: float) -> int:
        """Remove the objects that are due, and return their number. ``moment`` is from a monotonic clock."""
        services, surface = self._dispatcher.services, self._dispatcher.surface
        self._marks.append((moment, services.store.revision))
        horizon = 0
        while self._marks and self._marks[0][0] <= moment - self._seconds:
            _, horizon = self._marks.popleft()
        resource = surface.find("", "v1", plural=self._plural)
        if not horizon or resource is None:
            return 0
        overdue = [each for each in services.store.list(resource.key).records if each.revision <= horizon]
        for start in range(0, len(overdue), _AT_ONCE):
            some = overdue[start : start + _AT_ONCE]
            targets = [Target(resource, "v1", each.key.namespace, each.key.name, None) for each in some]
            calls = [Call(user=_SERVER, verb=verbs.DELETE, surface=surface, target=each) for each in targets]
            removals = [_Removal(services.write(call), each) for call, each in zip(calls, some, strict=True)]
            await asyncio.gather(*map(services.committer.commit, removals))
        return len(overdue)


class _Removal(intent.UniqueIntent):
    """Intent to remove an object with or without finalizers, if it was not written in the meantime."""

    is_dry_run: Final = False

    def __init__(self, write: Write, overdue: record.Record) -> None:
        self.write: Final = write
        self._overdue = overdue

    def decide(self, get: Get) -> intent.Decision:
        existing = get(self._overdue.key)
        if existing is None or existing.revision != self._overdue.revision:
            return intent.Leave(self._overdue)
        return intent.Remove(existing, existing.value)
