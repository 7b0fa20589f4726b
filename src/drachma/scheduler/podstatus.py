"""Writes what scheduling has to say in pods' status: the PodScheduled condition and nominations, newest wins.

A pod that is tried again before the last message was written needs only the new one, so writes of one pod follow each
other and what is outdated is left out. Failures are logged; the next attempt writes again.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final, NamedTuple

from drachma import errors
from drachma.api import pod
from drachma.claims import conditions, wellknown
from drachma.client import patches, protocol
from drachma.runtime import clock

_log = logging.getLogger(__name__)


class Message(NamedTuple):
    """Why a pod is not scheduled, and the node that is kept for it: None leaves that as it is."""

    pod: pod.Pod
    reason: str
    text: str
    nominated: str | None = None


class PodStatusWriter:
    """Writes in the background."""

    def __init__(self, client: protocol.Client, *, time: clock.Clock, at_once: int = 64) -> None:
        self._client: Final = client
        self._clock: Final = time
        self._slots: Final = asyncio.Semaphore(at_once)
        self._pending: Final[dict[str, Message]] = {}
        self._tasks: Final[dict[str, asyncio.Task[None]]] = {}

    def submit(self, message: Message) -> None:
        """Write a message soon, in place of an earlier one that was not written yet."""
        uid = message.pod.metadata.uid
        earlier = self._pending.get(uid)
        if earlier is not None and message.nominated is None:
            message = message._replace(nominated=earlier.nominated)
        self._pending[uid] = message
        if uid not in self._tasks:
            self._tasks[uid] = asyncio.create_task(self._write(uid), name=f"status of pod {uid}")

    async def flush(self) -> None:
        """Returns once everything submitted so far is written, or given up."""
        while self._tasks:
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _write(self, uid: str) -> None:
        try:
            while uid in self._pending:
                async with self._slots:
                    message = self._pending.pop(uid)
                    content = self._content(message)
                    if content:
                        await self._patch(message.pod, content)
        finally:
            del self._tasks[uid]

    async def _patch(self, about: pod.Pod, content: dict[str, Any]) -> None:
        try:
            await self._client.patch(
                pod.Pod,
                about.metadata.name,
                namespace=about.metadata.namespace,
                subresource="status",
                patch=patches.strategic({"status": content}, patches.same(about)),
            )
        except errors.DrachmaError as error:
            _log.info("pod %s/%s: status not written: %s", about.metadata.namespace, about.metadata.name, error)

    def _content(self, message: Message) -> dict[str, Any]:
        """What changes; nothing where the pod says so already."""
        content: dict[str, Any] = {}
        status = message.pod.status
        known = conditions.find(status.conditions, wellknown.POD_SCHEDULED)
        if known is None or (known.status, known.reason, known.message) != ("False", message.reason, message.text):
            condition: dict[str, Any] = {
                "type": wellknown.POD_SCHEDULED,
                "status": "False",
                "reason": message.reason,
                "message": message.text,
                "lastTransitionTime": conditions.since(known, "False", now=self._clock.utc()),
            }
            if message.pod.metadata.generation:
                condition["observedGeneration"] = message.pod.metadata.generation
            content["conditions"] = [condition]
        if message.nominated is not None and message.nominated != status.nominated_node_name:
            content["nominatedNodeName"] = message.nominated or None
        return content
