"""Writes how far PodGroups are: the condition that says whether enough of their pods have got nodes.

As upstream does it: a group that was scheduled once stays so, whatever becomes of further pods. Failures are logged;
the next attempt writes again.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from drachma import errors
from drachma.api import podgroup
from drachma.claims import conditions
from drachma.client import patches, protocol
from drachma.runtime import clock

_log = logging.getLogger(__name__)

SCHEDULED: Final = "PodGroupInitiallyScheduled"


class PodGroupStatusWriter:
    """Writes through a client."""

    def __init__(self, client: protocol.Client, *, time: clock.Clock) -> None:
        self._client: Final = client
        self._clock: Final = time

    async def write(self, group: podgroup.PodGroup, *, status: str, reason: str, message: str = "") -> None:
        """Has a group say that it is scheduled, or why it is not; nothing where it says so already."""
        before = conditions.find(group.status.conditions, SCHEDULED)
        if before is not None and (
            before.status == "True" or (before.status, before.reason, before.message) == (status, reason, message)
        ):
            return
        metadata = group.metadata
        condition: dict[str, Any] = {
            "type": SCHEDULED,
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": conditions.since(before, status, now=self._clock.utc()),
        }
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
