"""What a job does to pods: makes them, deletes them, and lets them go once they are counted.

Pods are made as those of all workloads; counting them is what only jobs do.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from drachma import errors
from drachma.api import event, labelselectors, pod
from drachma.api import job as jobs
from drachma.client import Client, patches
from drachma.controllers.job import podtemplate, tally
from drachma.controllers.workload import adoption, expectations, podcontrol
from drachma.runtime import Informer, cache, controller, events

_log = logging.getLogger(__name__)


class PodControl:
    """The pods of all jobs."""

    def __init__(self, client: Client, pods: Informer[pod.Pod], *, recorder: events.Recorder) -> None:
        self._client: Final = client
        self._pods: Final = pods.cache
        self._released: Final[dict[str, dict[str, cache.Key]]] = {}
        """Pods without finalizer, by their uids and the uids of their jobs, until the cache shows them so."""
        self._expected: Final = expectations.Expectations(pods)
        self._control: Final = podcontrol.PodControl(client, expected=self._expected, recorder=recorder)
        self._adopter: Final = adoption.Adopter(client, pod.Pod, expected=self._expected, finalizer=tally.FINALIZER)

    def forget(self, job: str) -> None:
        """Nothing more is asked about a job, by its uid."""
        self._expected.forget(job)
        self._released.pop(job, None)

    def is_up_to_date(self, job: str) -> bool:
        """Return True if the cache has seen all that was written to pods of a job.

        A pod that has lost its finalizer was counted. If it were judged by an older state, it would be counted again.
        """
        return self._expected.are_met(job) and not self._unseen(job)

    def _unseen(self, job: str) -> bool:
        """Return True if the cache shows a pod with the finalizer that it has lost."""
        released = self._released.pop(job, {})
        unseen = {uid: key for uid, key in released.items() if self._has_finalizer(uid, key)}
        if unseen:
            self._released[job] = unseen
        return bool(unseen)

    def _has_finalizer(self, uid: str, key: cache.Key) -> bool:
        known = self._pods.get(key.name, namespace=key.namespace)
        return known is not None and known.metadata.uid == uid and tally.is_tracked(known)

    async def claim(self, owner: jobs.Job, candidates: Iterable[pod.Pod]) -> tuple[pod.Pod, ...]:
        """The pods of a job after it adopted those that match and belong to nobody, and let go of those that do not."""
        selector = labelselectors.of(owner.spec.selector)
        claimed = await self._adopter.claim(
            owner, candidates, matches=lambda each: selector.matches(each.metadata.labels)
        )
        return tuple(claimed)

    async def create(self, job: Mapping[str, Any], places: Iterable[podtemplate.Place]) -> int:
        """Makes a pod for each place; returns how many. Raises the first error of the batch that had one."""
        documents = [podtemplate.pod_document(job, place) for place in places]
        return await self._control.create(reference(job), documents)

    async def delete(self, job: Mapping[str, Any], pods: Iterable[pod.Pod], *, is_counted: bool) -> None:
        """Deletes pods; those that are not to be counted as failed lose their finalizer first."""

        def deleting(each: pod.Pod) -> Callable[[], Any]:
            return lambda: self._delete(job, each, is_counted=is_counted)

        await controller.side_by_side(map(deleting, pods))

    async def _delete(self, job: Mapping[str, Any], known: pod.Pod, *, is_counted: bool) -> None:
        if not is_counted:
            await self._release(job["metadata"]["uid"], known)
        await self._control.delete_one(reference(job), known)

    async def release(self, job: str, pods: Iterable[pod.Pod]) -> None:
        """Take the finalizer off pods of the job with this uid, which is empty for a job that is gone."""

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
        else:
            self._expected.note(job, changed.metadata.resource_version)
        if job:
            self._released.setdefault(job, {})[known.metadata.uid] = cache.key_of(known)


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
