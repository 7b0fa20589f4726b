"""Pods of a node at the API server: their statuses, events and deletion."""

from __future__ import annotations

from typing import Any, Final

from drachma import errors
from drachma.api.pod import Pod
from drachma.client import Client, patches, protocol, target, transactions
from drachma.node.pods import containerstate, resizing
from drachma.node.podview.pod import PodView
from drachma.runtime import events
from drachma.runtime.clock import Clock

_POD_VIEWS: Final = target.view_of(target.of(Pod), PodView)


class PodClient:
    """Client for the pods of one node."""

    def __init__(self, client: Client, recorder: events.Recorder, *, clock: Clock) -> None:
        self._client: Final = client
        self._recorder: Final = recorder
        self._clock: Final = clock

    async def write_status(self, pod: Pod, content: dict[str, Any]) -> Pod:
        """Write the node's part of a pod's status, and return the pod that the API server stored."""
        change = transactions.PatchStored(
            Pod,
            pod.metadata.name,
            patches.strategic({"status": content}, patches.same(pod)),
            namespace=pod.metadata.namespace,
            subresource="status",
        )
        stored: protocol.StoredObject[Pod] = await self._recorder.patch(change, client=self._client)
        return stored.object

    async def delete(self, pod: Pod) -> None:
        """Delete a pod without a grace period."""
        await self._client.delete(
            Pod,
            pod.metadata.name,
            namespace=pod.metadata.namespace,
            preconditions=patches.same(pod),
            grace_period_seconds=0,
        )

    async def recall(self, pod: Pod) -> containerstate.Records:
        """Return the records of the pod's containers in its stored status; none if the pod is gone.

        Raises:
            errors.NodeError: the pod cannot be read now.
        """
        try:
            view = await self._client.get(_POD_VIEWS, pod.metadata.name, namespace=pod.metadata.namespace)
        except errors.ObjectNotFoundError:
            return {}
        except (errors.RefusedError, errors.UnreachableError) as error:
            raise errors.NodeError(f"the stored status of its containers cannot be read: {error}") from error
        return containerstate.recall(view, now=self._clock.utc())

    async def resize_policies(self, pod: Pod) -> resizing.Policies:
        """Return the resize policies of the pod's containers; none if the pod is gone.

        Raises:
            errors.NodeError: the pod cannot be read now.
        """
        try:
            view = await self._client.get(_POD_VIEWS, pod.metadata.name, namespace=pod.metadata.namespace)
        except errors.ObjectNotFoundError:
            return {}
        except (errors.RefusedError, errors.UnreachableError) as error:
            raise errors.NodeError(f"its resize policies cannot be read: {error}") from error
        return {
            each.name: {policy.resource_name: policy.restart_policy for policy in each.resize_policy}
            for each in (*view.spec.init_containers, *view.spec.containers)
        }

    def record(self, pod: Pod, *, reason: str, message: str, is_warning: bool = False) -> None:
        """Record an event about a pod."""
        self._recorder.record(pod, type="Warning" if is_warning else "Normal", reason=reason, message=message)
