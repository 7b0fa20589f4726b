"""Protection of PodGroups in use: the finalizer of a deleted group is removed once all of its pods have finished.

Admission adds the finalizer to new groups (:mod:`drachma.server.admission.newobjects`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from drachma.api import pod, podgroup
from drachma.claims import podstate, wellknown
from drachma.client import Selection
from drachma.controllers import objectwrites
from drachma.runtime import Surroundings, cache, controller, informer, workqueue

_INDEX: Final = "pod group protection: groups"


class PodGroupProtection:
    """Keeps groups as long as they have pods that have not finished."""

    name: Final = "podgroupprotection"

    def __init__(self, surroundings: Surroundings) -> None:
        self._client: Final = surroundings.client
        groups, pods = surroundings.informers.of(podgroup.PodGroup), surroundings.informers.of(pod.Pod)
        self._groups: Final = groups.cache
        self._pods: Final = pods.cache
        self._writer: Final = objectwrites.Writer(surroundings.client, groups)
        self._queue: Final[workqueue.Queue[cache.Key]] = workqueue.Queue(
            self.name, clock=surroundings.clock, metrics=surroundings.queues
        )
        pods.cache.add_index(_INDEX, _group_keys)
        groups.add_handler(informer.Handler.on_write(self._handle_group))
        pods.add_handler(informer.Handler(updated=lambda _, new: self._handle_pod(new), deleted=self._handle_deletion))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=1)

    def _handle_group(self, group: podgroup.PodGroup) -> None:
        if _is_blocked(group):
            self._queue.add(cache.key_of(group))

    def _handle_pod(self, member: pod.Pod) -> None:
        if podstate.has_ended(member):
            self._handle_deletion(member)

    def _handle_deletion(self, member: pod.Pod) -> None:
        name = _group_name(member)
        group = self._groups.get(name, namespace=member.metadata.namespace) if name else None
        if group is not None:
            self._handle_group(group)

    async def _reconcile(self, key: cache.Key) -> None:
        group = self._groups.get(key.name, namespace=key.namespace)
        if group is None or not _is_blocked(group):
            return
        members = self._pods.by(_INDEX, f"{key.namespace}/{key.name}")
        if all(map(podstate.has_ended, members)) and not await self._has_members(key):
            finalizers = [each for each in group.metadata.finalizers if each != wellknown.POD_GROUP_FINALIZER]
            await self._writer.update(group, {"metadata": {"finalizers": finalizers}}, only_if_unchanged=True)

    async def _has_members(self, key: cache.Key) -> bool:
        """Ask the server for pods that have not finished, because a pod may be too new for the cache."""
        current = await self._client.list(pod.Pod, Selection(key.namespace))
        return any(_group_name(each) == key.name and not podstate.has_ended(each) for each in current.items)


def _is_blocked(group: podgroup.PodGroup) -> bool:
    """Return True if a group is being deleted and still has the finalizer."""
    metadata = group.metadata
    return metadata.deletion_timestamp is not None and wellknown.POD_GROUP_FINALIZER in metadata.finalizers


def _group_name(member: pod.Pod) -> str:
    group = member.spec.scheduling_group
    return "" if group is None else group.pod_group_name or ""


def _group_keys(member: pod.Pod) -> Sequence[str]:
    name = _group_name(member)
    return (f"{member.metadata.namespace}/{name}",) if name else ()
