"""Taking pods in hand where several schedulers work: one at a time says what becomes of a pod and of its claims.

A scheduler has a pod in hand while the pod's status names a node for it; every such write asks for the version that was
seen, so of two that try one fails. Only who has a pod in hand binds it, and only then are claims taken from it:
whoever has it relies on what they say. :mod:`drachma.scheduler.peers` knows who has what in hand and for how long.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, Final

from drachma import errors
from drachma.api import pod
from drachma.client import patches, protocol
from drachma.runtime import clock
from drachma.scheduler import peers

_ATTEMPTS: Final = 5
_PAUSE_SECONDS: Final = 0.01


class Custody:
    """Takes pods in hand and lets them go, for one scheduler."""

    def __init__(self, client: protocol.Client, others: peers.Peers, *, time: clock.Clock) -> None:
        self._client: Final = client
        self._peers: Final = others
        self._clock: Final = time

    async def take(self, wanted: pod.Pod, node: str, *, kept: str = "", content: Mapping[str, Any] = {}) -> pod.Pod:
        """Takes a pod in hand, in one write with other content of its status; ``kept`` is the node kept for it anyway.

        Raises CollisionError where another scheduler has it, or it is not as it was.
        """
        current = self._peers.may_take(wanted, kept=kept)
        try:
            return await self._patch(current, {**content, "nominatedNodeName": node}, patches.unchanged(current))
        except errors.ObjectConflictError as error:
            raise peers.CollisionError("the pod got changed in the meantime") from error

    async def is_taken(self, wanted: pod.Pod, node: str, *, kept: str = "") -> bool:
        """Takes a pod in hand, if need be after a few tries; False where another scheduler has it, or it is gone."""
        for _ in range(_ATTEMPTS):
            try:
                current = self._peers.may_take(wanted, kept=kept)
                await self._patch(current, {"nominatedNodeName": node}, patches.unchanged(current))
            except errors.ObjectConflictError:
                await self._clock.sleep(_PAUSE_SECONDS)
            except (peers.CollisionError, errors.DrachmaError):
                return False
            else:
                return True
        return False

    async def let_go(self, held: pod.Pod, node: str, *, content: Mapping[str, Any] = {}) -> None:
        """Leaves a pod to others, in one write with other content of its status, unless one of them has it already."""
        metadata = held.metadata
        for _ in range(_ATTEMPTS):
            current = await self._client.get(pod.Pod, metadata.name, namespace=metadata.namespace)
            is_ours = current.metadata.uid == metadata.uid and current.status.nominated_node_name == node
            if not is_ours or current.spec.node_name:
                return
            with contextlib.suppress(errors.ObjectConflictError):
                await self._patch(current, {**content, "nominatedNodeName": None}, patches.unchanged(current))
                return

    async def _patch(self, about: pod.Pod, status: dict[str, Any], preconditions: patches.Preconditions) -> pod.Pod:
        return await self._client.patch(
            pod.Pod,
            about.metadata.name,
            namespace=about.metadata.namespace,
            subresource="status",
            patch=patches.merge({"status": status}, preconditions),
        )
