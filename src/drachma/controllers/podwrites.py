"""Writes of controllers to pods: the status or the deletion of this very pod, not of a later one of its name."""

from typing import Any

from drachma import errors
from drachma.api import meta, pod
from drachma.client import Client, patches


async def write_status(client: Client, of: pod.Pod, content: dict[str, Any]) -> pod.Pod:
    """Changes the status of a pod; conditions are merged by their type."""
    return await client.patch(
        pod.Pod,
        of.metadata.name,
        patch=patches.strategic({"status": content}, patches.same(of)),
        namespace=of.metadata.namespace,
        subresource="status",
    )


async def delete(client: Client, of: meta.Object, *, grace_period_seconds: int | None = None) -> bool:
    """Deletes a pod; False if it was gone already, perhaps replaced by another of its name."""
    try:
        await client.delete(
            pod.Pod,
            of.metadata.name,
            namespace=of.metadata.namespace,
            preconditions=patches.same(of),
            grace_period_seconds=grace_period_seconds,
        )
    except (errors.ObjectNotFoundError, errors.ObjectConflictError):
        return False
    return True
