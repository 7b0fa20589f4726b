"""Writing the status of one pod: what the API server accepted last, and what it refuses."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, Protocol

from drachma import errors
from drachma.api import pod
from drachma.runtime import resourceversion

_log = logging.getLogger(__name__)

_REFUSALS: Final = (errors.BadRequestError, errors.ForbiddenError, errors.InvalidObjectError)
"""Answers that a repetition of the request is not likely to change."""


class Node(Protocol):
    """What the writer needs of the agent that the pod belongs to."""

    async def write_status(self, of: pod.Pod, content: dict[str, Any]) -> pod.Pod:
        """Writes the node's part of a pod's status, and returns the pod as it is then."""

    def record(self, of: pod.Pod, *, reason: str, message: str, is_warning: bool = False) -> None:
        """Records an event about a pod."""


class PodStatusWriter:
    """Writer of the statuses of one pod."""

    def __init__(self, node: Node) -> None:
        self._node: Final = node
        self._version = 0
        self._conditions: Mapping[str, str] = {}
        self._refusal = ""

    async def write(self, of: pod.Pod, content: dict[str, Any]) -> bool:
        """Write a status; return False if the API server refuses it, which is told once.

        Raises:
            errors.RefusedError, errors.UnreachableError: it may be written later.
        """
        try:
            written = await self._node.write_status(of, content)
        except (errors.ObjectNotFoundError, errors.ObjectConflictError):
            # The pod is gone, or another one has its name.
            return True
        except _REFUSALS as error:
            self._tell(of, str(error))
            return False
        own = {each["type"] for each in content.get("conditions", ())}
        self._version = resourceversion.number(written.metadata.resource_version)
        self._conditions = {each.type: each.status for each in written.status.conditions if each.type in own}
        self._refusal = ""
        return True

    def is_contradicted(self, stored: pod.Pod) -> bool:
        """Return True if a version of the pod that is newer than the last write has other conditions."""
        if resourceversion.number(stored.metadata.resource_version) <= self._version:
            return False
        conditions = {each.type: each.status for each in stored.status.conditions}
        return any(conditions.get(kind) != status for kind, status in self._conditions.items())

    def _tell(self, of: pod.Pod, refusal: str) -> None:
        if refusal == self._refusal:
            return
        self._refusal = refusal
        _log.warning(
            "pod %s/%s: the API server refuses its status: %s", of.metadata.namespace, of.metadata.name, refusal
        )
        message = f"The API server refuses the pod's status: {refusal}"
        self._node.record(of, reason="FailedStatus", message=message, is_warning=True)
