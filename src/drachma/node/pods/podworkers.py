"""Workers of all pods of one node."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from drachma.api.pod import Pod
from drachma.claims import podstate
from drachma.node.pods.podworker import PodWorker
from drachma.node.pods.services import PodServices
from drachma.runtime import defects

_REPLACEMENT_SECONDS: Final = 10.0
"""Pause before a worker that failed unexpectedly is replaced."""


class PodWorkers:
    """Workers of the pods of one node. A worker that fails is replaced."""

    def __init__(self, node: str, services: PodServices) -> None:
        self._node: Final = node
        self._services: Final = services
        self._workers: Final[dict[str, PodWorker]] = {}
        self._tasks: Final[dict[str, asyncio.Task[None]]] = {}
        self._finished: Final[set[str]] = set()
        """UIDs of pods whose workers have deleted them, until the watch reports the deletion."""
        self._is_started = False

    def start(self, pods: Iterable[Pod]) -> None:
        """Start the workers of the pods that the node has. Before this, :meth:`update` starts none."""
        self._is_started = True
        for pod in pods:
            self.update(pod)

    async def stop(self) -> None:
        """Cancel all workers."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def update(self, pod: Pod) -> None:
        """Take over a new pod of the node, or a newer version of a pod.

        The watch may report changes of a pod that its worker has deleted already. They start no other worker.
        """
        uid = pod.metadata.uid
        if uid in self._finished:
            return
        if uid in self._workers:
            self._workers[uid].update(pod)
            if podstate.has_ended(pod):
                self._reconsider_resizes()
        elif self._is_started:
            self._workers[uid] = PodWorker(self._services, pod)
            task = self._tasks[uid] = asyncio.create_task(self._run(uid), name=f"pod {pod.metadata.name}")
            task.add_done_callback(lambda _: self._forget(uid))

    def remove(self, pod: Pod) -> None:
        """End a pod that is gone from the API server, maybe by force: stop its containers and unprepare its claims."""
        self._finished.discard(pod.metadata.uid)
        worker = self._workers.get(pod.metadata.uid)
        if worker is not None:
            worker.remove(pod)

    def clean_up(self, pod: Pod) -> None:
        """Remove what a pod without a worker left on the node."""
        self._services.clean_up(pod)

    @property
    def uids(self) -> frozenset[str]:
        """UIDs of the pods that have a worker."""
        return frozenset(self._workers)

    def all(self) -> list[PodWorker]:
        """Return the workers of all pods."""
        return list(self._workers.values())

    def find(self, namespace: str, name: str) -> PodWorker | None:
        """Return the worker of a pod, or None if the node has no such pod."""
        for worker in self._workers.values():
            metadata = worker.pod.metadata
            if metadata.name == name and metadata.namespace == namespace:
                return worker
        return None

    def retry(self) -> None:
        """Have all workers retry at once the steps that failed."""
        for worker in self._workers.values():
            worker.retry()

    def report(self, uids: Iterable[str]) -> None:
        """Have the statuses of pods written again, because the health of their devices changed."""
        for uid in uids:
            if uid in self._workers:
                self._workers[uid].report()

    async def _run(self, uid: str) -> None:
        """Run the worker of a pod. A worker that fails unexpectedly is replaced, as after a restart of the agent."""
        while True:
            worker = self._workers[uid]
            try:
                await worker.run()
                return
            except Exception:
                defects.PROCESS.report("node", f"{self._node}: pod {worker.pod.metadata.name} of uid {uid}")
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    # The worker failed while it was cancelled, and the agent waits for its end.
                    return
            await self._services.clock.sleep(_REPLACEMENT_SECONDS)
            self._workers[uid] = PodWorker(self._services, worker.pod)
            if worker.is_gone:
                self._workers[uid].remove(worker.pod)

    def _reconsider_resizes(self) -> None:
        for worker in self._workers.values():
            worker.reconsider_resize()

    def _forget(self, uid: str) -> None:
        del self._tasks[uid]
        if not self._workers.pop(uid).is_gone:
            self._finished.add(uid)
        self._reconsider_resizes()
