"""Writer of a pod's status: it remembers the last status that the API server accepted, and the last refusal."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from drachma import errors
from drachma.api.pod import Pod
from drachma.node.pods.services import PodAPI
from drachma.runtime import resourceversion

_log = logging.getLogger(__name__)

_REFUSALS: Final = (errors.BadRequestError, errors.ForbiddenError, errors.InvalidObjectError)
"""Answers that a repetition of the request is not likely to change."""


_Facts: TypeAlias = Mapping[tuple[str, str], str | int]
"""Facts by kind and name that tell an older status from a newer one: phase, conditions and restarts."""


class PodStatusWriter:
    """Writer of the statuses of one pod."""

    def __init__(self, api: PodAPI) -> None:
        self._api: Final = api
        self._version = 0
        self._facts: _Facts = {}
        """Facts of the last status."""
        self._refusal = ""

    async def write(self, pod: Pod, content: dict[str, Any]) -> bool:
        """Write a status. Return False if the API server refuses it; an event reports each refusal once.

        Raises:
            errors.RefusedError, errors.UnreachableError: it may be written later.
        """
        # A watch may bring the new status before the API server's answer arrives.
        self._facts = own = _facts_of_content(content)
        try:
            stored_pod = await self._api.write_status(pod, content)
        except (errors.ObjectNotFoundError, errors.ObjectConflictError):
            # The pod is gone, or another pod has its name.
            return True
        except _REFUSALS as error:
            self._report_refusal(pod, str(error))
            return False
        self._version = resourceversion.number(stored_pod.metadata.resource_version)
        self._facts = {name: value for name, value in _facts_of_pod(stored_pod).items() if name in own}
        self._refusal = ""
        return True

    def is_contradicted(self, pod: Pod) -> bool:
        """Return True if a version of the pod that is newer than the last write has another status.

        Another client may have written it, or an API server that was stopped carries out an earlier write of this node
        after a later one, though the node has given the request up.
        """
        if resourceversion.number(pod.metadata.resource_version) <= self._version:
            return False
        facts = _facts_of_pod(pod)
        return any(facts.get(name) != value for name, value in self._facts.items())

    def _report_refusal(self, pod: Pod, refusal: str) -> None:
        if refusal == self._refusal:
            return
        self._refusal = refusal
        _log.warning(
            "pod %s/%s: the API server refuses its status: %s", pod.metadata.namespace, pod.metadata.name, refusal
        )
        message = f"The API server refuses the pod's status: {refusal}"
        self._api.record(pod, reason="FailedStatus", message=message, is_warning=True)


def _facts_of_content(content: Mapping[str, Any]) -> _Facts:
    """Return the facts of a status that is written. Conditions without a status are removed."""
    facts: dict[tuple[str, str], str | int] = {("phase", ""): content["phase"]} if "phase" in content else {}
    for condition in content.get("conditions", ()):
        if "status" in condition:
            facts["condition", condition["type"]] = condition["status"]
    for container in (*content.get("initContainerStatuses", ()), *content.get("containerStatuses", ())):
        facts["restarts", container["name"]] = container["restartCount"]
    return facts


def _facts_of_pod(pod: Pod) -> _Facts:
    status = pod.status
    facts: dict[tuple[str, str], str | int] = {("phase", ""): status.phase}
    facts |= {("condition", each.type): each.status for each in status.conditions}
    containers = (*status.init_container_statuses, *status.container_statuses)
    return facts | {("restarts", each.name): each.restart_count for each in containers}
