"""Writers of the conditions of pods and PodGroups that are not scheduled. The newest message wins.

A pod that is tried again before the last message was written needs only the new message, so writes of one pod follow
each other and outdated messages are dropped. Failures are logged: the next attempt writes again.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final, NamedTuple

from drachma import errors
from drachma.api import pod, podgroup
from drachma.claims import conditions, wellknown
from drachma.client import patches, protocol
from drachma.runtime import clock

_log = logging.getLogger(__name__)

_GROUP_SCHEDULED: Final = "PodGroupInitiallyScheduled"


class Message(NamedTuple):
    """Reason why a pod is not scheduled, and the node nominated for it; None leaves the nomination as it is."""

    pod: pod.Pod
    reason: str
    text: str
    nominated: str | None = None


class PodStatusWriter:
    """Writes the status of pods in the background."""

    def __init__(self, client: protocol.Client, *, clock: clock.Clock, concurrency: int = 64) -> None:
        self._client: Final = client
        self._clock: Final = clock
        self._slots: Final = asyncio.Semaphore(concurrency)
        self._pending: Final[dict[str, Message]] = {}
        self._tasks: Final[dict[str, asyncio.Task[None]]] = {}

    def submit(self, message: Message) -> None:
        """Write a message soon, instead of an earlier message that was not written yet."""
        uid = message.pod.metadata.uid
        earlier = self._pending.get(uid)
        if earlier is not None and message.nominated is None:
            message = message._replace(nominated=earlier.nominated)
        self._pending[uid] = message
        if uid not in self._tasks:
            self._tasks[uid] = asyncio.create_task(self._write(uid), name=f"status of pod {uid}")

    async def flush(self) -> None:
        """Return once all submitted messages are written or have failed."""
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

    async def _patch(self, patched_pod: pod.Pod, content: dict[str, Any]) -> None:
        try:
            await self._client.patch(
                pod.Pod,
                patched_pod.metadata.name,
                namespace=patched_pod.metadata.namespace,
                subresource="status",
                patch=patches.strategic({"status": content}, patches.same(patched_pod)),
            )
        except errors.DrachmaError as error:
            _log.info(
                "pod %s/%s: status not written: %s", patched_pod.metadata.namespace, patched_pod.metadata.name, error
            )

    def _content(self, message: Message) -> dict[str, Any]:
        """Return the fields of the status that change; none if the pod has the message already."""
        content: dict[str, Any] = {}
        status = message.pod.status
        stored_condition = conditions.find(status.conditions, wellknown.POD_SCHEDULED)
        if stored_condition is None or (stored_condition.status, stored_condition.reason, stored_condition.message) != (
            "False",
            message.reason,
            message.text,
        ):
            condition = conditions.document(
                wellknown.POD_SCHEDULED,
                "False",
                reason=message.reason,
                message=message.text,
                now=self._clock.utc(),
                before=stored_condition,
            )
            if message.pod.metadata.generation:
                condition["observedGeneration"] = message.pod.metadata.generation
            content["conditions"] = [condition]
        if message.nominated is not None and message.nominated != status.nominated_node_name:
            content["nominatedNodeName"] = message.nominated or None
        return content


class PodGroupStatusWriter:
    """Writes the status of PodGroups: whether enough of their pods have got nodes.

    As upstream, a group that was scheduled once stays scheduled, whatever happens to further pods.
    """

    def __init__(self, client: protocol.Client, *, clock: clock.Clock) -> None:
        self._client: Final = client
        self._clock: Final = clock

    async def write(self, group: podgroup.PodGroup, *, status: str, reason: str, message: str = "") -> None:
        """Write that a group is scheduled, or why not. Write nothing if its status says so already."""
        before = conditions.find(group.status.conditions, _GROUP_SCHEDULED)
        if before is not None and (
            before.status == "True" or (before.status, before.reason, before.message) == (status, reason, message)
        ):
            return
        metadata = group.metadata
        condition = conditions.document(
            _GROUP_SCHEDULED, status, reason=reason, message=message, now=self._clock.utc(), before=before
        )
        if metadata.generation:
            condition["observedGeneration"] = metadata.generation
        try:
            await self._client.patch(
                podgroup.PodGroup,
                metadata.name,
                namespace=metadata.namespace,
                subresource="status",
                patch=patches.strategic({"status": {"conditions": [condition]}}, patches.same(group)),
            )
        except errors.DrachmaError as error:
            _log.info("pod group %s/%s: status not written: %s", metadata.namespace, metadata.name, error)
