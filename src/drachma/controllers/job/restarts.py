"""How often the containers of a job's pods were restarted, which counts as failing where pods restart on failure.

The view of pods does not have it, so whole pods are asked for: once for every version of a pod that still runs.
"""

from collections.abc import Iterable
from typing import Any, Final

from drachma import errors
from drachma.api import pod
from drachma.claims import podstate
from drachma.client import Client


class Restarts:
    """Asks for restart counts and remembers them."""

    def __init__(self, client: Client) -> None:
        self._client: Final = client
        self._known: Final[dict[str, tuple[str, int]]] = {}

    def forget(self, gone: pod.Pod) -> None:
        self._known.pop(gone.metadata.uid, None)

    async def total(self, pods: Iterable[pod.Pod]) -> int:
        """The restarts of all pods that have not ended."""
        count = 0
        for each in pods:
            if not podstate.has_ended(each):
                count += await self._of(each)
        return count

    async def _of(self, known: pod.Pod) -> int:
        metadata = known.metadata
        version, count = self._known.get(metadata.uid, ("", 0))
        if version == metadata.resource_version:
            return count
        try:
            document = await self._client.get_document(pod.Pod, metadata.name, namespace=metadata.namespace)
        except errors.ObjectNotFoundError:
            return 0
        status: dict[str, Any] = document.get("status") or {}
        containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
        count = sum(each.get("restartCount") or 0 for each in containers)
        self._known[metadata.uid] = (metadata.resource_version, count)
        return count
