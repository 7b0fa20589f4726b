"""Operations of a job on its pods: creating and deleting them, and removing their finalizer once they are counted.

Pods are created like those of all workloads; only jobs count them.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from drachma import errors
from drachma.api import job, labelselectors, pod
from drachma.api import job as jobs
from drachma.claims import ownership
from drachma.client import Client, patches
from drachma.controllers.job import indexes, tally
from drachma.controllers.workload import adoption, expectations, podcontrol, podtemplates
from drachma.runtime import Informer, cache, controller, events

_log = logging.getLogger(__name__)

_ENVIRONMENT_VARIABLE: Final = "JOB_COMPLETION_INDEX"
_LONGEST_PREFIX: Final = 58


class Place(NamedTuple):
    """Index of a new pod of an indexed job, and additional annotations."""

    number: int | None = None
    marks: Mapping[str, str] = {}


class PodControl:
    """Pods of all jobs."""

    def __init__(self, client: Client, pods: Informer[pod.Pod], *, recorder: events.Recorder) -> None:
        self._client: Final = client
        self._pods: Final = pods.cache
        self._released: Final[dict[str, dict[str, cache.Key]]] = {}
        """Pods without finalizer, by their uids and the uids of their jobs, until the cache shows them so."""
        self._expected: Final = expectations.Expectations(pods)
        self.groups: Final[dict[str, str]] = {}
        """PodGroups of new pods, by the uid of their job."""
        self._control: Final = podcontrol.PodControl(client, expected_writes=self._expected, recorder=recorder)
        self._adopter: Final = adoption.Adopter(
            client, pod.Pod, expected_writes=self._expected, finalizer=tally.FINALIZER
        )

    def forget(self, job: str) -> None:
        """Forget a job by its uid."""
        self._expected.forget(job)
        self._released.pop(job, None)

    def is_up_to_date(self, job: str) -> bool:
        """Return True if the cache has seen all writes to pods of a job.

        A pod that has lost its finalizer was counted. An older state of it would be counted again.
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
        cached = self._pods.get(key.name, namespace=key.namespace)
        return cached is not None and cached.metadata.uid == uid and tally.is_tracked(cached)

    async def claim(self, owner: jobs.Job, candidates: Iterable[pod.Pod]) -> tuple[pod.Pod, ...]:
        """Return the pods of a job after it adopted matching orphans and released other pods."""
        selector = labelselectors.of(owner.spec.selector)
        claimed = await self._adopter.claim(
            owner, candidates, matches=lambda each: selector.matches(each.metadata.labels)
        )
        return tuple(claimed)

    async def create(self, entry: cache.Entry[jobs.Job], places: Sequence[Place]) -> int:
        """Create a pod for each place. Return how many were created. Raises the first error of a batch."""
        if not places:
            return 0
        job, template = entry.object, entry.document()["spec"]["template"]
        group = self.groups.get(job.metadata.uid, "")
        documents = [pod_document(job, template, place, group=group) for place in places]
        return await self._control.create(events.reference_to(job), documents)

    async def delete(self, job: jobs.Job, pods: Iterable[pod.Pod], *, is_counted: bool) -> None:
        """Delete pods. Those that must not count as failed lose their finalizer first."""

        def deleting(each: pod.Pod) -> Callable[[], Any]:
            return lambda: self._delete(job, each, is_counted=is_counted)

        await controller.side_by_side(map(deleting, pods))

    async def _delete(self, job: jobs.Job, pod: pod.Pod, *, is_counted: bool) -> None:
        if not is_counted:
            await self._release(job.metadata.uid, pod)
        await self._control.delete_one(events.reference_to(job), pod)

    async def release(self, job: str, pods: Iterable[pod.Pod]) -> None:
        """Remove the finalizer of pods of the job with this uid, which is empty for a deleted job."""

        def releasing(each: pod.Pod) -> Callable[[], Any]:
            return lambda: self._release(job, each)

        await controller.side_by_side(releasing(each) for each in pods if tally.is_tracked(each))

    async def _release(self, job: str, subject: pod.Pod) -> None:
        content = {"metadata": {"$deleteFromPrimitiveList/finalizers": [tally.FINALIZER]}}
        try:
            changed = await self._client.patch(
                pod.Pod,
                subject.metadata.name,
                patch=patches.strategic(content, patches.same(subject)),
                namespace=subject.metadata.namespace,
            )
        except (errors.ObjectNotFoundError, errors.ObjectConflictError) as error:
            # Deleted, perhaps replaced: the pod has no finalizer any more.
            _log.debug("pod %s/%s: %s", subject.metadata.namespace, subject.metadata.name, error)
        else:
            self._expected.note(job, changed.metadata.resource_version)
        if job:
            self._released.setdefault(job, {})[subject.metadata.uid] = cache.key_of(subject)


def pod_document(owner: job.Job, template: Mapping[str, Any], place: Place, *, group: str = "") -> dict[str, Any]:
    """Return a new pod of a job, made of the job's template with all its fields, in a PodGroup if there is one."""
    name = owner.metadata.name
    document = podtemplates.pod_document(template, owner=ownership.reference(owner), namespace=owner.metadata.namespace)
    metadata, spec = document["metadata"], document["spec"]
    metadata["finalizers"] = list(dict.fromkeys((*metadata["finalizers"], tally.FINALIZER)))
    metadata["annotations"] |= place.marks
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    index = place.number
    if index is not None:
        metadata["generateName"] = _prefix(name, index)
        metadata["labels"][indexes.LABEL] = metadata["annotations"][indexes.LABEL] = str(index)
        spec["hostname"] = f"{name}-{index}"
        for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
            _set_index_variable(container)
    return document


def _prefix(name: str, index: int) -> str:
    suffix = f"-{index}-"
    return name[: _LONGEST_PREFIX - len(suffix)] + suffix


def _set_index_variable(container: dict[str, Any]) -> None:
    variables = container.setdefault("env", [])
    if not any(each.get("name") == _ENVIRONMENT_VARIABLE for each in variables):
        source = {"fieldRef": {"fieldPath": f"metadata.labels['{indexes.LABEL}']"}}
        variables.append({"name": _ENVIRONMENT_VARIABLE, "valueFrom": source})
