"""Expiry: objects of a resource that nobody has written for some time are forgotten. Events are, as upstream.

When an object was last written follows from its revision and from which revision was the newest at which time, so
nothing is asked of the objects themselves. What was stored before the process began counts as written at its begin.
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
"""Objects that are forgotten at the same time, so that they share commits and others get in between."""


class Expiry:
    """Forgets what nobody has written for ``seconds``; who runs it calls :meth:`sweep` now and then."""

    def __init__(self, dispatcher: Dispatcher, *, plural: str, seconds: float) -> None:
        """``plural`` names a resource of the core group."""
        self._dispatcher: Final = dispatcher
        self._plural: Final = plural
        self._seconds: Final = seconds
        self._marks: Final[collections.deque[tuple[float, int]]] = collections.deque()

    async def sweep(self, moment: float) -> int:
        """Forgets what is due at a moment of a clock that only goes forward; how many objects that were."""
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
            forgetting = [_Forgetting(services.write(call), each) for call, each in zip(calls, some, strict=True)]
            await asyncio.gather(*map(services.committer.commit, forgetting))
        return len(overdue)


class _Forgetting:
    """Removes an object, finalizers or not, if nobody has written it in the meantime."""

    is_dry_run: Final = False

    def __init__(self, write: Write, overdue: record.Record) -> None:
        self.write: Final = write
        self._overdue = overdue

    def decide(self, get: Get) -> intent.Decision:
        stored = get(self._overdue.key)
        if stored is None or stored.revision != self._overdue.revision:
            return intent.Leave(self._overdue)
        return intent.Remove(stored, stored.value)
