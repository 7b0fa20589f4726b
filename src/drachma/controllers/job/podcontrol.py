"""What a job does to pods: makes them, deletes them, and lets them go once they are counted.

It remembers the newest version that it wrote for each job, so that nobody decides on a cache that has not seen it.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from drachma import errors
from drachma.api import event, pod
from drachma.client import Client, patches
from drachma.controllers import podwrites
from drachma.controllers.job import podtemplate, tally
from drachma.runtime import Informer, controller, events, resourceversion

MOST_AT_ONCE: Final = 500
"""Pods that one look at a job makes or deletes at most."""

_log = logging.getLogger(__name__)


class PodControl:
    """The pods of all jobs."""

    def __init__(self, client: Client, pods: Informer[pod.Pod], *, recorder: events.Recorder) -> None:
        self._client: Final = client
        self._pods: Final = pods
        self._recorder: Final = recorder
        self._written: Final[dict[str, int]] = {}

    def forget(self, job: str) -> None:
        """Nothing more is asked about a job, by its uid."""
        self._written.pop(job, None)

    def is_up_to_date(self, job: str) -> bool:
        """Whether the cache has seen all that was written to pods of a job."""
        reached = self._pods.resource_version
        return self._written.get(job, 0) <= resourceversion.number(reached)

    async def create(self, job: Mapping[str, Any], indexes: list[int | None]) -> int:
        """Makes a pod for each index; returns how many.

        They are made in growing batches, so that a refusal of all of them costs few requests. Raises the first error
        of the batch that had one.
        """
        made, size = 0, 1
        while made < len(indexes):
            batch = indexes[made : made + size]
            await controller.side_by_side(self._creating(job, index) for index in batch)
            made, size = made + len(batch), size * 2
        return made

    def _creating(self, job: Mapping[str, Any], index: int | None) -> Callable[[], Any]:
        return lambda: self._create(job, index)

    async def _create(self, job: Mapping[str, Any], index: int | None) -> None:
        try:
            document = await self._client.create_document(pod.Pod, podtemplate.pod_document(job, index=index))
        except errors.RefusedError as error:
            if not _is_namespace_ending(error):
                self._tell(job, events.WARNING, "FailedCreate", f"Error creating: {error}")
            raise
        self._note(job["metadata"]["uid"], document["metadata"]["resourceVersion"])
        self._tell(job, events.NORMAL, "SuccessfulCreate", f"Created pod: {document['metadata']['name']}")

    async def delete(self, job: Mapping[str, Any], pods: Iterable[pod.Pod], *, is_counted: bool) -> None:
        """Deletes pods; those that are not to be counted as failed lose their finalizer first."""

        def deleting(each: pod.Pod) -> Callable[[], Any]:
            return lambda: self._delete(job, each, is_counted=is_counted)

        await controller.side_by_side(map(deleting, pods))

    async def _delete(self, job: Mapping[str, Any], known: pod.Pod, *, is_counted: bool) -> None:
        try:
            if not is_counted:
                await self._release(job["metadata"]["uid"], known)
            if await podwrites.delete(self._client, known):
                self._tell(job, events.NORMAL, "SuccessfulDelete", f"Deleted pod: {known.metadata.name}")
        except errors.RefusedError as error:
            self._tell(job, events.WARNING, "FailedDelete", f"Error deleting: {error}")
            raise

    async def release(self, job: str, pods: Iterable[pod.Pod]) -> None:
        """Takes the finalizer off pods, of the job with this uid."""

        def releasing(each: pod.Pod) -> Callable[[], Any]:
            return lambda: self._release(job, each)

        await controller.side_by_side(releasing(each) for each in pods if tally.is_tracked(each))

    async def _release(self, job: str, known: pod.Pod) -> None:
        content = {"metadata": {"$deleteFromPrimitiveList/finalizers": [tally.FINALIZER]}}
        try:
            changed = await self._client.patch(
                pod.Pod,
                known.metadata.name,
                patch=patches.strategic(content, patches.same(known)),
                namespace=known.metadata.namespace,
            )
        except (errors.ObjectNotFoundError, errors.ObjectConflictError) as error:
            # Gone, perhaps replaced: it holds no finalizer any more.
            _log.debug("pod %s/%s: %s", known.metadata.namespace, known.metadata.name, error)
            return
        self._note(job, changed.metadata.resource_version)

    def _note(self, job: str, resource_version: str) -> None:
        self._written[job] = max(self._written.get(job, 0), resourceversion.number(resource_version))

    def _tell(self, job: Mapping[str, Any], kind: events.Type, reason: str, message: str) -> None:
        self._recorder.record(reference(job), type=kind, reason=reason, message=message)


def reference(job: Mapping[str, Any]) -> event.ObjectReference:
    """A job document as events name it."""
    metadata = job["metadata"]
    return event.ObjectReference(
        api_version="batch/v1",
        kind="Job",
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
    )


def _is_namespace_ending(error: errors.RefusedError) -> bool:
    return any(cause.get("reason") == "NamespaceTerminating" for cause in error.details.get("causes") or ())
