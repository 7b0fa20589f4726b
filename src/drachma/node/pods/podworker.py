"""Worker of one pod on its node, from the moment that the pod is bound there until it is gone.

The worker admits the pod, makes its volumes, prepares its claims, runs its init containers one after the other, and
then its containers, each by a worker of its own (:mod:`drachma.node.pods.containerworker`). When the pod has ended or
is being deleted, the worker stops its containers and unprepares its claims, and only then deletes it. Each step that
fails is tried again, and the status shows the progress. A pod whose devices are lost fails. A status that the API
server refuses is tried again after pauses that grow; it delays neither the pod's end nor the unpreparing of its claims.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

from drachma import errors
from drachma.accounting import aggregate
from drachma.api import meta
from drachma.api.pod import Container, Pod
from drachma.claims import podstate
from drachma.node.logs.log import Log
from drachma.node.pods import containerstate, containerworker, podresources, podstatuswriter, resizing
from drachma.node.pods.admission import Verdict
from drachma.node.pods.containerworker import ContainerWorker
from drachma.node.pods.services import PodServices
from drachma.node.runtimes import protocol
from drachma.runtime.clock import sleep_unless

_log = logging.getLogger(__name__)

_FIRST_RETRY: Final = 1.0
_LONGEST_RETRY: Final = 60.0
_LONGEST_REFUSAL_PAUSE: Final = 300.0
"""Longest pause before a refused status is tried again."""
_MOST_REFUSALS: Final = 3
"""Attempts at the last status of a pod; then the pod ends without it."""


_DEVICE_UNAVAILABLE: Final = "DeviceUnavailable"
"""Reason in the status of a pod whose devices are lost."""


class PodWorker:
    """Worker of one pod."""

    def __init__(self, services: PodServices, pod: Pod) -> None:
        self._services: Final = services
        self._pod = self._allocated = pod
        self._resize_wait: resizing.Waiting | None = None
        self._is_resizing = False
        self._has_resize: Final = asyncio.Event()
        self._is_prepared = False
        self._is_released = False
        """Whether the pod's claims are unprepared for good."""
        self._phase = pod.status.phase or containerstate.PENDING
        """Last phase before the pod ended."""
        self._loss = ""
        self.is_gone = False
        """True once the pod is gone from the API server."""
        self._is_dirty: Final = asyncio.Event()
        self._has_to_end: Final = asyncio.Event()
        self._is_worth_a_try: Final = asyncio.Event()
        self._has_more_containers: Final = asyncio.Event()
        self._writer: Final = podstatuswriter.PodStatusWriter(services.api)
        self._containers: Final[dict[str, ContainerWorker]] = {
            each.name: self._container_worker(each) for each in _containers(pod)
        }
        self.update(pod)

    def _container_worker(self, container: Container) -> ContainerWorker:
        return ContainerWorker(self._services, container, get_pod=lambda: self._allocated, on_change=self.report)

    def update(self, pod: Pod) -> None:
        """Take over a newer version of the pod."""
        self._pod = pod
        self._allocated = resizing.with_resources(pod, self._allocated)
        if self._resize_wait is not None or resizing.differs(pod, self._allocated):
            self._has_resize.set()
        for container in pod.spec.ephemeral_containers:
            if container.name not in self._containers:
                self._containers[container.name] = self._container_worker(container)
                self._has_more_containers.set()
        if self._writer.is_contradicted(pod):
            # The node lifecycle controller marks pods as not ready while their node does not report.
            self._is_dirty.set()
        self.retry()
        if pod.metadata.deletion_timestamp is not None:
            self._has_to_end.set()

    def remove(self, pod: Pod) -> None:
        """End the pod, because it is gone from the API server. ``pod`` is its last version."""
        self.is_gone = True
        self.update(pod)
        self._has_to_end.set()

    def retry(self) -> None:
        """Cut short the pause before the next attempt at a step that failed."""
        self._is_worth_a_try.set()

    @property
    def pod(self) -> Pod:
        """The newest version of the pod."""
        return self._pod

    @property
    def allocated(self) -> Pod:
        """The newest version of the pod, with the resources that the node has allocated to it."""
        return self._allocated

    def reconsider_resize(self) -> None:
        """Try a deferred resize again, because another pod made room."""
        if self._resize_wait is not None:
            self._has_resize.set()

    @property
    def records(self) -> containerstate.Records:
        """Records of the pod's containers."""
        return {name: each.record for name, each in self._containers.items()}

    def current_run(self, container: str) -> protocol.Container | None:
        """Return the current run of a container, or None if it does not run or does not exist."""
        return self._containers[container].current_run if container in self._containers else None

    def log(self, container: str, run_id: str) -> Log | None:
        """Return the log of a container's current run or of the run before it."""
        return self._containers[container].log(run_id)

    def report(self) -> None:
        """Have the status written, because a container or the health of a device changed."""
        self._is_dirty.set()
        self._is_worth_a_try.set()

    async def run(self) -> None:
        """Run the pod. Return when it is deleted, or gone from the API server."""
        if self._pod.status.container_statuses or self._pod.status.init_container_statuses:
            await self._attempt(self._recall, reason="FailedRecall")
        if podstate.has_ended(self._pod):
            await self._release()
            # The stored status stands, whatever was recalled of the containers.
            self._is_dirty.clear()
            await self._finish()
            return
        verdict = self._services.resources.admit(self._pod)
        if not verdict.is_admitted:
            await self._refuse(verdict)
            return
        writer = asyncio.create_task(self._write_statuses(), name=f"status of {self._pod.metadata.name}")
        try:
            await self._run_until_end(writer)
            self._is_prepared = False
            await self._release()
        finally:
            writer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await writer
        await self._report(self._status, attempts=_MOST_REFUSALS)
        await self._finish()

    async def _release(self) -> None:
        """Unprepare the claims. The containers have ended.

        The status says so only afterwards, as that of a kubelet: then the devices may be allocated to others.
        """
        services = self._services
        await self._retry_until_done(
            lambda: services.claims.unprepare(self._pod), reason="FailedUnprepareDynamicResources"
        )
        self._is_released = True

    async def _finish(self) -> None:
        """Keep the pod's last status until it has to end, then delete it.

        Its containers have ended, and its claims are unprepared.
        """
        services = self._services
        corrections = asyncio.create_task(self._write_statuses(), name=f"last status of {self._pod.metadata.name}")
        end = asyncio.create_task(self._has_to_end.wait())
        try:
            await asyncio.wait({corrections, end}, return_when=asyncio.FIRST_COMPLETED)
            if corrections.done():
                corrections.result()
        finally:
            for task in (corrections, end):
                task.cancel()
            await asyncio.gather(corrections, end, return_exceptions=True)
        await self._retry_until_done(lambda: services.api.delete(self._pod), reason="FailedDelete")
        services.clean_up(self._pod)

    async def _refuse(self, verdict: Verdict) -> None:
        services = self._services
        services.api.record(self._pod, reason=verdict.reason, message=verdict.message, is_warning=True)
        content = containerstate.refusal(
            self._pod, reason=verdict.reason, message=verdict.message, now=services.clock.utc()
        )
        await self._report(lambda: content, attempts=_MOST_REFUSALS)
        await self._has_to_end.wait()
        await self._retry_until_done(lambda: services.api.delete(self._pod), reason="FailedDelete")

    async def _recall(self, pod: Pod) -> None:
        """Continue with the containers that an earlier agent started."""
        try:
            records = await self._services.api.recall(pod)
        except errors.NodeError:
            # A node may not read a pod that is gone: it is told that it has no permission.
            if not self.is_gone:
                raise
            return
        for name in records.keys() & self._containers.keys():
            await self._containers[name].recall(records[name])
        # A pod with a running container was prepared, whether or not that has to be done again.
        self._is_prepared = any(each.current_run is not None for each in self._containers.values())

    async def _run_until_end(self, writer: asyncio.Task[None]) -> None:
        """Run the pod's containers until they have ended for good or the pod has to end, and stop those that run.

        Raises what the writer of statuses raises, if it fails meanwhile.
        """
        life = asyncio.create_task(self._run_containers(), name=f"containers of {self._pod.metadata.name}")
        end = asyncio.create_task(self._has_to_end.wait())
        try:
            await asyncio.wait({life, end, writer}, return_when=asyncio.FIRST_COMPLETED)
            if writer.done():
                writer.result()
        finally:
            end.cancel()
            life.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await life
        await self._stop()

    async def _run_containers(self) -> None:
        self._is_dirty.set()
        try:
            await self._prepare()
        except errors.LostDeviceError as error:
            self._loss = str(error)
            return
        debugging = asyncio.create_task(self._debug(), name=f"ephemeral containers of {self._pod.metadata.name}")
        resizes = asyncio.create_task(self._resize_repeatedly(), name=f"resizes of {self._pod.metadata.name}")
        background: list[asyncio.Task[None]] = [debugging, resizes]
        try:
            for container in self._pod.spec.init_containers:
                if aggregate.is_sidecar(container):
                    sidecar = self._containers[container.name]
                    background.append(asyncio.create_task(sidecar.keep_running("Always")))
                    await self._wait_started(container)
                else:
                    policy = self._pod.spec.restart_policy or "Always"
                    worker = self._containers[container.name]
                    await worker.keep_running("Never" if policy == "Never" else "OnFailure")
                    if not worker.record.has_succeeded:
                        return
            policy = self._pod.spec.restart_policy or "Always"
            async with asyncio.TaskGroup() as group:
                for container in self._pod.spec.containers:
                    group.create_task(self._containers[container.name].keep_running(policy))
        finally:
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)

    async def _prepare(self) -> None:
        """Make the volumes and prepare the claims, before any container starts."""
        services = self._services
        await self._attempt(services.setups.begin, reason="FailedMount")
        await self._attempt(
            services.claims.prepare,
            reason="FailedPrepareDynamicResources",
            prefix="Failed to prepare dynamic resources: ",
        )
        if notice := services.resources.quality_notice(self._pod):
            services.api.record(self._pod, reason="QualityOfService", message=notice)
        self._is_prepared = True
        self._is_dirty.set()

    async def _resize_repeatedly(self) -> None:
        """Give the pod the resources that its spec asks for, whenever these change."""
        pause = _FIRST_RETRY
        while True:
            await self._has_resize.wait()
            self._has_resize.clear()
            try:
                await self._resize()
                pause = _FIRST_RETRY
            except errors.NodeError as error:
                self._services.api.record(self._pod, reason="ResizeError", message=str(error), is_warning=True)
                self._has_resize.set()
                pause = await self._pause(pause)

    async def _resize(self) -> None:
        pod, api = self._pod, self._services.api
        waiting = self._services.resources.check_resize(pod) if resizing.differs(pod, self._allocated) else None
        if waiting is not None and waiting != self._resize_wait:
            api.record(pod, reason=f"Resize{waiting.reason}", message=waiting.message, is_warning=True)
        if waiting != self._resize_wait:
            self._resize_wait = waiting
            self._is_dirty.set()
        if waiting is not None or not (resizing.differs(pod, self._allocated) or self._is_resizing):
            return
        changes = resizing.changed_resources(pod, self._allocated)
        policies = await api.resize_policies(pod) if changes else {}
        if pod.spec.resources != self._allocated.spec.resources or self._is_resizing:
            changes = {name: changes.get(name, set()) for name in self._containers}
        self._allocated, self._is_resizing = resizing.with_resources(self._pod, pod), True
        self._is_dirty.set()
        for name, names in changes.items():
            restarts = any(policies.get(name, {}).get(each) == resizing.RESTART for each in names)
            await self._containers[name].resize(restarts=restarts)
        self._is_resizing = False
        self._is_dirty.set()
        api.record(pod, reason="ResizeCompleted", message=f"Pod resize completed: generation {pod.metadata.generation}")

    async def _debug(self) -> None:
        """Run each ephemeral container once, as they are added."""
        started: set[str] = set()
        async with asyncio.TaskGroup() as group:
            while True:
                self._has_more_containers.clear()
                for name in {each.name for each in self._pod.spec.ephemeral_containers} - started:
                    group.create_task(self._containers[name].keep_running("Never"))
                    started.add(name)
                await self._has_more_containers.wait()

    async def _attempt(self, act: Callable[[Pod], Awaitable[None]], *, reason: str, prefix: str = "") -> None:
        """Call ``act`` until it succeeds; an event reports each failure."""
        pause = _FIRST_RETRY
        while True:
            self._is_worth_a_try.clear()
            try:
                await act(self._pod)
                return
            except errors.NodeError as error:
                self._services.api.record(self._pod, reason=reason, message=f"{prefix}{error}", is_warning=True)
                if isinstance(error, errors.LostDeviceError):
                    raise
                pause = await self._pause(pause)

    async def _wait_started(self, container: Container) -> None:
        while not self._containers[container.name].record.is_started:
            await self._services.clock.sleep(1)

    async def _stop(self) -> None:
        """Stop all containers within the pod's grace period, sidecars last."""
        grace = containerworker.grace_seconds(self._pod)
        sidecars = {each.name for each in self._pod.spec.init_containers}
        for names in (self._containers.keys() - sidecars, self._containers.keys() & sidecars):
            await asyncio.gather(*(self._containers[name].stop(grace) for name in sorted(names)))

    def _now(self) -> dt.datetime:
        return self._services.clock.utc().replace(microsecond=0)

    async def _write_statuses(self) -> None:
        while True:
            await self._is_dirty.wait()
            await self._report(self._status)

    def _status(self) -> dict[str, Any]:
        if self._loss and self._is_released:
            return containerstate.failure(
                self._pod, reason=_DEVICE_UNAVAILABLE, message=self._loss, now=self._services.clock.utc()
            )
        content = containerstate.status(
            self._pod,
            self.records,
            now=self._now(),
            is_ready_to_start=self._is_prepared,
            devices=self._services.claims.device_health(self._pod),
            resources={
                each.name: self._container_resources(each) for each in podresources.all_containers(self._allocated)
            },
            resize=containerstate.ResizeState(self._resize_wait, is_in_progress=self._is_resizing),
        )
        if content["phase"] not in containerstate.ENDED:
            self._phase = content["phase"]
        elif not self._is_released:
            content["phase"] = self._phase
        content.update(resizing.pod_resources(self._allocated))
        content.update(self._services.addresses.status(self._pod))
        if self._pod.status.start_time is None:
            content["startTime"] = meta.time_text(self._now())
        return content

    def _container_resources(self, container: Container) -> containerstate.Resources:
        resources = self._services.resources.container_resources(self._allocated, container)
        return containerstate.Resources(resources, resources.get("requests", {}))

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
            await self._retry_until_done(write, reason="FailedStatus")
            count += 1
            if is_written or count == attempts:
                return
            await sleep_unless(self._is_worth_a_try, pause, clock=self._services.clock)
            pause = min(2 * pause, _LONGEST_REFUSAL_PAUSE)

    async def _retry_until_done(self, act: Callable[[], Awaitable[None]], *, reason: str) -> None:
        """Call ``act`` until it succeeds or the pod is gone."""
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
                    self._services.api.record(self._pod, reason=reason, message=str(error), is_warning=True)
                pause = await self._pause(pause)
            else:
                return

    async def _pause(self, seconds: float) -> float:
        """Wait before the next attempt, unless something changes. Return the length of the pause after it."""
        await sleep_unless(self._is_worth_a_try, seconds, clock=self._services.clock)
        return min(2 * seconds, _LONGEST_RETRY)


def _containers(pod: Pod) -> Iterator[Container]:
    yield from pod.spec.init_containers
    yield from pod.spec.containers
    yield from pod.spec.ephemeral_containers
