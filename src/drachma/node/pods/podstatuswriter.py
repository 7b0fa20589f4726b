"""Writer of a pod's status: it remembers the last status that the API server accepted, and the last refusal."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from drachma import errors
from drachma.api.pod import Pod
from drachma.node.pods.services import PodAPI
from drachma.runtime import resourceversion

_log = logging.getLogger(__name__)

_REFUSALS: Final = (errors.BadRequestError, errors.ForbiddenError, errors.InvalidObjectError)
"""Answers that a repetition of the request is not likely to change."""


class PodStatusWriter:
    """Writer of the statuses of one pod."""

    def __init__(self, api: PodAPI) -> None:
        self._api: Final = api
        self._version = 0
        self._conditions: Mapping[str, str] = {}
        self._refusal = ""

    async def write(self, pod: Pod, content: dict[str, Any]) -> bool:
        """Write a status. Return False if the API server refuses it; an event reports each refusal once.

        Raises:
            errors.RefusedError, errors.UnreachableError: it may be written later.
        """
        # Conditions without a status are removed.
        own = {each["type"]: each["status"] for each in content.get("conditions", ()) if "status" in each}
        # A watch may bring the new status before the API server's answer arrives.
        self._conditions = own
        try:
            stored_pod = await self._api.write_status(pod, content)
        except (errors.ObjectNotFoundError, errors.ObjectConflictError):
            # The pod is gone, or another pod has its name.
            return True
        except _REFUSALS as error:
            self._report_refusal(pod, str(error))
            return False
        self._version = resourceversion.number(stored_pod.metadata.resource_version)
        self._conditions = {each.type: each.status for each in stored_pod.status.conditions if each.type in own}
        self._refusal = ""
        return True

    def is_contradicted(self, pod: Pod) -> bool:
        """Return True if a version of the pod that is newer than the last write has other conditions."""
        if resourceversion.number(pod.metadata.resource_version) <= self._version:
            return False
        conditions = {each.type: each.status for each in pod.status.conditions}
        return any(conditions.get(kind) != status for kind, status in self._conditions.items())

    def _report_refusal(self, pod: Pod, refusal: str) -> None:
        if refusal == self._refusal:
            return
        self._refusal = refusal
        _log.warning(
            "pod %s/%s: the API server refuses its status: %s", pod.metadata.namespace, pod.metadata.name, refusal
        )
        message = f"The API server refuses the pod's status: {refusal}"
        self._api.record(pod, reason="FailedStatus", message=message, is_warning=True)
