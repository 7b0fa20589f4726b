"""One pod on its node, from the moment that it is bound there until it is gone.

A pod is judged, its claims are prepared, its init containers run one after the other, then its containers, each by a
worker of its own (:mod:`drachma.node.containerworker`). When the pod has ended or is to go, its containers are
stopped and its claims unprepared, and only then is it deleted. Whatever fails is tried again; the status says where it
stands. A status that the API server refuses is tried again after pauses that grow, and holds up neither the pod's end
nor its claims.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from drachma import errors
from drachma.accounting import aggregate
from drachma.api import meta, pod
from drachma.claims import podstate
from drachma.node import containerstate, containerworker, podstatuswriter
from drachma.node.admission import Verdict
from drachma.node.containerworker import ContainerWorker
from drachma.node.logs.log import Log
from drachma.node.runtimes import protocol
from drachma.runtime import clock

_log = logging.getLogger(__name__)

_FIRST_RETRY: Final = 1.0
_LONGEST_RETRY: Final = 60.0
_LONGEST_REFUSAL_PAUSE: Final = 300.0
"""Longest pause before a refused status is tried again."""
_MOST_REFUSALS: Final = 3
"""Attempts at a status before the pod's end goes on without it."""


class Node(containerworker.Node, podstatuswriter.Node, Protocol):
    """What a worker needs of the agent that it belongs to."""

    def addresses(self, of: pod.Pod) -> Mapping[str, Any]:
        """Where the node and a pod of it are reached, as the pod's status says it."""

    def judge(self, of: pod.Pod) -> Verdict:
        """Whether there is room for a pod."""

    async def recall(self, of: pod.Pod) -> containerstate.Records:
        """How the pod's containers were when an agent last said so; a NodeError where that cannot be learnt yet."""

    async def prepare(self, of: pod.Pod) -> None:
        """Prepares all claims of a pod; a NodeError where that is not done yet."""

    async def unprepare(self, of: pod.Pod) -> None:
        """Undoes that; a NodeError where that is not done yet."""

    async def mount(self, of: pod.Pod) -> None:
        """Makes the volumes of a pod; a NodeError where that is not done yet."""

    def clean_up(self, of: pod.Pod) -> None:
        """A pod is gone: what is left of it goes too."""

    def health(self, of: pod.Pod) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """The health of devices by container."""

    async def delete(self, of: pod.Pod) -> None:
        """Deletes a pod for good."""


class PodWorker:
    """The life of one pod."""

    def __init__(self, node: Node, of: pod.Pod) -> None:
        self._node = node
        self._pod = of
        self._is_prepared = False
        self._is_dirty = asyncio.Event()
        self._is_to_go = asyncio.Event()
        self._is_worth_a_try = asyncio.Event()
        self._has_more_containers = asyncio.Event()
        self._writer = podstatuswriter.PodStatusWriter(node)
        self._containers: dict[str, ContainerWorker] = {each.name: self._worker(each) for each in _all(of)}
        self.update(of)

    def _worker(self, container: pod.Container) -> ContainerWorker:
        return ContainerWorker(self._node, container, newest=lambda: self._pod, changed=self.look_again)

    def update(self, of: pod.Pod) -> None:
        """Takes a newer version of the pod in."""
        self._pod = of
        for container in of.spec.ephemeral_containers:
            if container.name not in self._containers:
                self._containers[container.name] = self._worker(container)
                self._has_more_containers.set()
        if self._writer.is_contradicted(of):
            # The node lifecycle controller says that pods are not ready while it does not hear of their node.
            self._is_dirty.set()
        self.try_again()
        if of.metadata.deletion_timestamp is not None:
            self.go()

    def go(self) -> None:
        """Has the pod end: it is to be deleted, or is gone already."""
        self._is_to_go.set()

    @property
    def is_to_go(self) -> bool:
        """True if the pod is to end."""
        return self._is_to_go.is_set()

    def try_again(self) -> None:
        """Ends the pause before the next attempt at something that failed: it may succeed now."""
        self._is_worth_a_try.set()

    @property
    def newest(self) -> pod.Pod:
        """The newest version of the pod."""
        return self._pod

    @property
    def records(self) -> containerstate.Records:
        """How its containers are."""
        return {name: each.record for name, each in self._containers.items()}

    def running(self, container: str) -> protocol.Container | None:
        """The run of a container that is there now; None where there is none."""
        return self._containers[container].running if container in self._containers else None

    def log_of(self, container: str, run: str) -> Log | None:
        """What a run of one of its containers wrote, the one that runs or the last one before."""
        return self._containers[container].log_of(run)

    def look_again(self) -> None:
        """Has the status written again, because a container or the health of a device changed."""
        self._is_dirty.set()
        self._is_worth_a_try.set()

    async def run(self) -> None:
        """Lives the pod's life; returns when the pod is deleted, or nobody is left to be told."""
        if self._pod.status.container_statuses or self._pod.status.init_container_statuses:
            await self._attempt(self._recall, reason="FailedRecall")
        if podstate.has_ended(self._pod):
            await self._go()
            return
        verdict = self._node.judge(self._pod)
        if not verdict.is_admitted:
            await self._refuse(verdict)
            return
        writer = asyncio.create_task(self._write_statuses(), name=f"status of {self._pod.metadata.name}")
        try:
            await self._live()
        finally:
            writer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await writer
        self._is_prepared = False
        await self._report(self._status, attempts=_MOST_REFUSALS)
        await self._go()

    async def _go(self) -> None:
        """What is left when no container runs any more: claims are given back at once, the pod goes when it is to."""
        await self._until_done(lambda: self._node.unprepare(self._pod), reason="FailedUnprepareDynamicResources")
        await self._is_to_go.wait()
        await self._until_done(lambda: self._node.delete(self._pod), reason="FailedDelete")
        self._node.clean_up(self._pod)

    async def _refuse(self, verdict: Verdict) -> None:
        self._node.record(self._pod, reason=verdict.reason, message=verdict.message, is_warning=True)
        content = containerstate.refusal(
            self._pod, reason=verdict.reason, message=verdict.message, now=self._node.clock.utc()
        )
        await self._report(lambda: content, attempts=_MOST_REFUSALS)
        await self._is_to_go.wait()
        await self._until_done(lambda: self._node.delete(self._pod), reason="FailedDelete")

    async def _recall(self, of: pod.Pod) -> None:
        """Goes on with what an agent before this one began."""
        records = await self._node.recall(of)
        for name in records.keys() & self._containers.keys():
            await self._containers[name].recall(records[name])
        # What runs was prepared, whether or not that has to be done again.
        self._is_prepared = any(each.running is not None for each in self._containers.values())

    # Running

    async def _live(self) -> None:
        """Runs the pod's containers until they have ended for good, or the pod is to go; then none runs any more."""
        life = asyncio.create_task(self._run_containers(), name=f"containers of {self._pod.metadata.name}")
        going = asyncio.create_task(self._is_to_go.wait())
        try:
            await asyncio.wait({life, going}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            going.cancel()
            life.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await life
        await self._stop()

    async def _run_containers(self) -> None:
        self._is_dirty.set()
        await self._attempt(self._node.mount, reason="FailedMount")
        await self._attempt(
            self._node.prepare,
            reason="FailedPrepareDynamicResources",
            prefix="Failed to prepare dynamic resources: ",
        )
        self._is_prepared = True
        self._is_dirty.set()
        debugging = asyncio.create_task(self._debug(), name=f"ephemeral containers of {self._pod.metadata.name}")
        beside: list[asyncio.Task[None]] = [debugging]
        try:
            for container in self._pod.spec.init_containers:
                if aggregate.is_sidecar(container):
                    beside.append(asyncio.create_task(self._containers[container.name].keep("Always")))
                    await self._until_started(container)
                else:
                    policy = self._pod.spec.restart_policy or "Always"
                    worker = self._containers[container.name]
                    await worker.keep("Never" if policy == "Never" else "OnFailure")
                    if not worker.record.has_succeeded:
                        return
            policy = self._pod.spec.restart_policy or "Always"
            async with asyncio.TaskGroup() as group:
                for container in self._pod.spec.containers:
                    group.create_task(self._containers[container.name].keep(policy))
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)

    async def _debug(self) -> None:
        """Runs ephemeral containers once, as they come."""
        begun: set[str] = set()
        async with asyncio.TaskGroup() as group:
            while True:
                self._has_more_containers.clear()
                for name in {each.name for each in self._pod.spec.ephemeral_containers} - begun:
                    group.create_task(self._containers[name].keep("Never"))
                    begun.add(name)
                await self._has_more_containers.wait()

    async def _attempt(self, act: Callable[[pod.Pod], Awaitable[None]], *, reason: str, prefix: str = "") -> None:
        """Does something for the pod, again and again until it succeeds; events say why it does not."""
        pause = _FIRST_RETRY
        while True:
            self._is_worth_a_try.clear()
            try:
                await act(self._pod)
                return
            except errors.NodeError as error:
                self._node.record(self._pod, reason=reason, message=f"{prefix}{error}", is_warning=True)
                pause = await self._pause(pause)

    async def _until_started(self, container: pod.Container) -> None:
        while not self._containers[container.name].record.is_started:
            await self._node.clock.sleep(1)

    async def _stop(self) -> None:
        """Stops what runs, sidecars after the containers, within the time that the pod has."""
        grace = containerworker.grace_seconds(self._pod)
        sidecars = {each.name for each in self._pod.spec.init_containers}
        for names in (self._containers.keys() - sidecars, self._containers.keys() & sidecars):
            await asyncio.gather(*(self._containers[name].stop(grace) for name in sorted(names)))

    # Telling

    def _now(self) -> dt.datetime:
        return self._node.clock.utc().replace(microsecond=0)

    async def _write_statuses(self) -> None:
        while True:
            await self._is_dirty.wait()
            await self._report(self._status)

    def _status(self) -> dict[str, Any]:
        content = containerstate.status(
            self._pod,
            self.records,
            now=self._now(),
            is_ready_to_start=self._is_prepared,
            devices=self._node.health(self._pod),
        )
        content.update(self._node.addresses(self._pod))
        if self._pod.status.start_time is None:
            content["startTime"] = meta.time_text(self._now())
        return content

    async def _report(self, build: Callable[[], dict[str, Any]], *, attempts: int | None = None) -> None:
        """Write the status that ``build`` returns, built again for each attempt.

        A refused status is tried again after pauses that grow, or when something changes, ``attempts`` times in all.
        """
        pause, count, is_written = _FIRST_RETRY, 0, False

        async def write() -> None:
            nonlocal is_written
            self._is_dirty.clear()
            is_written = await self._writer.write(self._pod, build())

        while True:
            await self._until_done(write, reason="FailedStatus")
            count += 1
            if is_written or count == attempts:
                return
            await clock.sleep_unless(self._is_worth_a_try, pause, time=self._node.clock)
            pause = min(2 * pause, _LONGEST_REFUSAL_PAUSE)

    async def _until_done(self, act: Callable[[], Awaitable[None]], *, reason: str) -> None:
        """Acts until that succeeds; where the pod is gone there is nothing to do any more."""
        pause = _FIRST_RETRY
        while True:
            self._is_worth_a_try.clear()
            try:
                await act()
            except errors.ObjectNotFoundError:
                return
            except errors.ObjectConflictError as error:
                _log.debug("pod %s: %s: %s", self._pod.metadata.name, reason, error)
                return
            except (errors.NodeError, errors.RefusedError, errors.UnreachableError) as error:
                _log.warning("pod %s/%s: %s: %s", self._pod.metadata.namespace, self._pod.metadata.name, reason, error)
                if isinstance(error, errors.NodeError):
                    self._node.record(self._pod, reason=reason, message=str(error), is_warning=True)
                pause = await self._pause(pause)
            else:
                return

    async def _pause(self, seconds: float) -> float:
        """Waits so long before the next attempt, unless something changes; how long to wait after that one."""
        await clock.sleep_unless(self._is_worth_a_try, seconds, time=self._node.clock)
        return min(2 * seconds, _LONGEST_RETRY)


def _all(of: pod.Pod) -> Iterator[pod.Container]:
    yield from of.spec.init_containers
    yield from of.spec.containers
    yield from of.spec.ephemeral_containers
