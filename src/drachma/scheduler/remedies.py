"""Remedies under way: applied in the background for pods that fit nowhere."""

from __future__ import annotations

import collections
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Final

from drachma import errors
from drachma.scheduler import queue
from drachma.scheduler.framework import handle, remedy, verdict
from drachma.scheduler.snapshot import podinfo

_log = logging.getLogger(__name__)

Spawn = Callable[[Coroutine[Any, Any, None], str], None]
"""Function that runs a coroutine in the background, under a name."""


class Remedies:
    """Applies remedies for pods that fit nowhere."""

    def __init__(self, pods: queue.Queue, handle: handle.Handle, *, spawn: Spawn) -> None:
        self._queue: Final = pods
        self._handle: Final = handle
        self._spawn: Final = spawn
        self._under_way: Final[set[str]] = set()
        self._helped: Final[collections.Counter[str]] = collections.Counter()
        """Number of remedies that are being applied for each pod."""

    def start(self, remedies: Iterable[remedy.Remedy], pods: Sequence[podinfo.PodInfo]) -> None:
        """Start to apply remedies for waiting pods of one profile. The changes that a remedy makes wake the pods."""
        for each in remedies:
            self._under_way.add(each.title)
            self._helped.update(info.uid for info in pods)
            self._spawn(self._apply(each, pods), each.title)

    def is_under_way(self, title: str) -> bool:
        """Return True while a remedy with this title is being applied."""
        return title in self._under_way

    def is_helping(self, uid: str) -> bool:
        """Return True while a remedy for the pod of this uid is being applied."""
        return uid in self._helped

    async def _apply(self, proposed: remedy.Remedy, pods: Sequence[podinfo.PodInfo]) -> None:
        try:
            is_done = await proposed.apply(self._handle._replace(scheduler=pods[0].scheduler))
        except (errors.DrachmaError, verdict.AbortError, handle.CollisionError) as error:
            _log.warning("%s failed: %s", proposed.title, error)
            return
        finally:
            self._under_way.discard(proposed.title)
            self._settle(pods)
        if not is_done:
            for info in pods:
                self._queue.activate(info.key)

    def _settle(self, pods: Sequence[podinfo.PodInfo]) -> None:
        for info in pods:
            self._helped[info.uid] -= 1
            if not self._helped[info.uid]:
                del self._helped[info.uid]
                self._queue.remedied(info.key)
