"""One pod on its node, from the moment that it is bound there until it is gone.

A pod is judged, its claims are prepared, its init containers run one after the other, then its containers; each is
started again as the pod's policy says, after pauses that grow. When the pod has ended or is to go, its containers are
stopped and its claims unprepared, and only then is it deleted. Whatever fails is tried again; the status says where it
stands.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from drachma import errors
from drachma.accounting import aggregate
from drachma.api import pod
from drachma.claims import podstate
from drachma.node import containerstate
from drachma.node.admission import Verdict
from drachma.node.containerstate import Record, Running, Stage, Terminated, Waiting
from drachma.node.probes.watching import Probes, Watch
from drachma.node.runtimes import protocol
from drachma.node.runtimes.protocol import Exit
from drachma.runtime import clock

_log = logging.getLogger(__name__)

_FIRST_PAUSE: Final = 10.0
_LONGEST_PAUSE: Final = 300.0
_CALM_SECONDS: Final = 600.0
"""After so long a run, the pauses begin from the first again."""

_FIRST_RETRY: Final = 1.0
_LONGEST_RETRY: Final = 60.0
_DEFAULT_GRACE: Final = 30.0
_LEAST_GRACE: Final = 2.0
"""What is left to a container of its grace period, however long it took to do what it wanted done before."""


class Node(Protocol):
    """What a worker needs of the agent that it belongs to."""

    @property
    def clock(self) -> clock.Clock: ...
    @property
    def runtime(self) -> protocol.Runtime: ...
    @property
    def addresses(self) -> Mapping[str, Any]:
        """Where the node and its pods are reached, as a pod's status says it."""

    def judge(self, of: pod.Pod) -> Verdict:
        """Whether there is room for a pod."""

    async def prepare(self, of: pod.Pod) -> None:
        """Prepares all claims of a pod; a NodeError where that is not done yet."""

    async def unprepare(self, of: pod.Pod) -> None:
        """Undoes that; a NodeError where that is not done yet."""

    def devices(self, of: pod.Pod, container: pod.Container) -> Sequence[str]:
        """The CDI ids of a container's devices."""

    async def mount(self, of: pod.Pod) -> None:
        """Makes the volumes of a pod; a NodeError where that is not done yet."""

    def clean_up(self, of: pod.Pod) -> None:
        """A pod is gone: what is left of it goes too."""

    async def setup(self, of: pod.Pod, container: pod.Container) -> protocol.Setup:
        """What a container is started with; a StartError where that cannot be had yet."""

    def bounds(self, of: pod.Pod, container: pod.Container) -> protocol.Bounds | None:
        """What a container may use of the machine, where that is bounded."""

    def health(self, of: pod.Pod) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """The health of devices by container."""

    def probes(self, of: pod.Pod, container: pod.Container) -> Probes | None:
        """What is asked of a container while it runs, if anything."""

    async def before_stop(self, of: pod.Pod, container: str, run: protocol.Container, *, seconds: float) -> str | None:
        """Does what a container wants done before it is stopped: None, or what went wrong with it."""

    async def write_status(self, of: pod.Pod, content: dict[str, Any]) -> None:
        """Writes the node's part of a pod's status."""

    async def delete(self, of: pod.Pod) -> None:
        """Deletes a pod for good."""

    def record(self, of: pod.Pod, *, reason: str, message: str, is_warning: bool = False) -> None:
        """Says in an event what happens to a pod."""


class PodWorker:
    """The life of one pod."""

    def __init__(self, node: Node, of: pod.Pod) -> None:
        self._node = node
        self._pod = of
        self._records: dict[str, Record] = {each.name: Record() for each in _all(of)}
        self._running: dict[str, protocol.Container] = {}
        self._runs: dict[str, protocol.Container] = {}
        self._is_prepared = False
        self._is_dirty = asyncio.Event()
        self._is_to_go = asyncio.Event()
        self._is_worth_a_try = asyncio.Event()
        self.update(of)

    def update(self, of: pod.Pod) -> None:
        """Takes a newer version of the pod in."""
        self._pod = of
        self.try_again()
        if of.metadata.deletion_timestamp is not None:
            self.go()

    def go(self) -> None:
        """Has the pod end: it is to be deleted, or is gone already."""
        self._is_to_go.set()

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
        return self._records

    def run_of(self, container_id: str) -> protocol.Container | None:
        """A run of a container that its record knows, the one that runs or the last one before; None for others."""
        return self._runs.get(container_id)

    def look_again(self) -> None:
        """Has the status written anew, because the health of devices changed."""
        self._is_dirty.set()

    async def run(self) -> None:
        """Lives the pod's life; returns when the pod is deleted, or nobody is left to be told."""
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
        await self._write_status()
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
        await self._until_done(lambda: self._node.write_status(self._pod, content), reason="FailedStatus")
        await self._is_to_go.wait()
        await self._until_done(lambda: self._node.delete(self._pod), reason="FailedDelete")

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
        sidecars: list[asyncio.Task[None]] = []
        try:
            for container in self._pod.spec.init_containers:
                if aggregate.is_sidecar(container):
                    sidecars.append(asyncio.create_task(self._keep(container, policy="Always")))
                    await self._until_started(container)
                else:
                    policy = self._pod.spec.restart_policy or "Always"
                    await self._keep(container, policy="Never" if policy == "Never" else "OnFailure")
                    if not self._records[container.name].has_succeeded:
                        return
            policy = self._pod.spec.restart_policy or "Always"
            async with asyncio.TaskGroup() as group:
                for container in self._pod.spec.containers:
                    group.create_task(self._keep(container, policy=policy))
        finally:
            for sidecar in sidecars:
                sidecar.cancel()
            await asyncio.gather(*sidecars, return_exceptions=True)

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

    async def _keep(self, container: pod.Container, *, policy: str) -> None:
        """Runs a container, and again as the policy says."""
        pause = 0.0
        is_first = True
        while True:
            ended = await self._run_once(container)
            if ended is not None and (policy == "Never" or (policy == "OnFailure" and ended.exit.code == 0)):
                return
            before = self._records[container.name]
            if ended is not None and (is_first or (ended.until - ended.since).total_seconds() >= _CALM_SECONDS):
                # As the kubelet: only who fails again, or soon, has to wait.
                pause = 0.0
            else:
                pause = min(max(2 * pause, _FIRST_PAUSE), _LONGEST_PAUSE)
            is_first = is_first and ended is None
            if ended is not None and pause:
                self._put(container, Record(self._crash_loop(container, pause), ended, before.restarts))
                message = f"Back-off restarting failed container {container.name} in pod {self._full_name()}"
                self._node.record(self._pod, reason="BackOff", message=message, is_warning=True)
            elif ended is not None:
                self._put(container, Record(ended, ended, before.restarts))
            await self._node.clock.sleep(pause)
            if ended is not None:
                self._put(
                    container, msgspec.structs.replace(self._records[container.name], restarts=before.restarts + 1)
                )

    async def _run_once(self, container: pod.Container) -> Terminated | None:
        """Starts a container and waits until it has ended; None where it could not be started."""
        before = self._records[container.name]
        try:
            work = protocol.Work(
                pod=self._pod,
                container=container,
                devices=self._node.devices(self._pod, container),
                attempt=before.restarts,
                setup=await self._node.setup(self._pod, container),
                bounds=self._node.bounds(self._pod, container),
            )
            started = await self._node.runtime.start(work)
        except (protocol.StartError, errors.NodeError) as error:
            reason = error.reason if isinstance(error, protocol.StartError) else "CreateContainerError"
            self._put(container, msgspec.structs.replace(before, state=Waiting(reason, str(error))))
            self._node.record(self._pod, reason="Failed", message=f"Error: {error}", is_warning=True)
            return None
        self._running[container.name] = self._runs[started.id] = started
        since = self._now()
        probes = self._node.probes(self._pod, container)
        stage = Stage.READY if probes is None else probes.stage
        self._put(container, msgspec.structs.replace(before, state=Running(started.id, since, stage)))
        self._node.record(self._pod, reason="Started", message=f"Container started: {container.name}")
        exited = await (started.wait() if probes is None else self._wait_probing(container, started, probes))
        ended = Terminated(started.id, exited, since, self._now())
        del self._running[container.name]
        self._put(container, Record(ended, before.last, before.restarts))
        return ended

    async def _wait_probing(self, container: pod.Container, started: protocol.Container, probes: Probes) -> Exit:
        """Waits until a container has ended; it is ended where its probes say so."""

        def changed(stage: Stage) -> None:
            record = self._records[container.name]
            if isinstance(record.state, Running):
                state = msgspec.structs.replace(record.state, stage=stage)
                self._put(container, msgspec.structs.replace(record, state=state))

        def failed(kind: str, problem: str) -> None:
            message = f"{kind.capitalize()} probe failed: {problem}"
            self._node.record(self._pod, reason="Unhealthy", message=message, is_warning=True)

        watch = Watch(probes, started, time=self._node.clock, changed=changed, failed=failed)
        asking = asyncio.create_task(watch.run(), name=f"probes of {container.name}")
        ending = asyncio.create_task(started.wait())
        try:
            await asyncio.wait((asking, ending), return_when=asyncio.FIRST_COMPLETED)
            if not ending.done():
                message = f"Container {container.name} failed {asking.result()} probe, will be restarted"
                self._node.record(self._pod, reason="Killing", message=message)
                await self._end(container.name, started, self._grace_seconds())
            return await ending
        finally:
            asking.cancel()
            ending.cancel()
            await asyncio.gather(asking, ending, return_exceptions=True)

    async def _until_started(self, container: pod.Container) -> None:
        while not self._records[container.name].is_started:
            await self._node.clock.sleep(1)

    async def _stop(self) -> None:
        """Stops what runs, sidecars after the containers, within the time that the pod has."""
        grace = float(self._grace_seconds())
        sidecars = {each.name for each in self._pod.spec.init_containers}
        for names in (set(self._running) - sidecars, set(self._running) & sidecars):
            await asyncio.gather(*(self._stop_one(name, grace) for name in sorted(names)))

    async def _stop_one(self, name: str, grace: float) -> None:
        container = self._running.pop(name)
        self._node.record(self._pod, reason="Killing", message=f"Stopping container {name}")
        await self._end(name, container, grace)
        before = self._records[name]
        since = before.state.since if isinstance(before.state, Running) else self._now()
        ended = Terminated(container.id, await container.wait(), since, self._now())
        self._records[name] = Record(ended, before.last, before.restarts)
        self._is_dirty.set()

    async def _end(self, name: str, container: protocol.Container, grace: float) -> None:
        """Stops a container, after what it wants done before; both have the time of the grace period together."""
        began = self._node.clock.monotonic()
        if grace:
            problem = await self._node.before_stop(self._pod, name, container, seconds=grace)
            if problem is not None:
                message = f"PreStopHook failed: {problem}"
                self._node.record(self._pod, reason="FailedPreStopHook", message=message, is_warning=True)
            grace = max(grace - (self._node.clock.monotonic() - began), min(grace, _LEAST_GRACE))
        await container.stop(grace)

    def _crash_loop(self, container: pod.Container, pause: float) -> Waiting:
        minutes, seconds = divmod(round(pause), 60)
        shown = f"{minutes}m{seconds}s" if minutes else f"{seconds}s"
        about = f"container={container.name} pod={self._full_name()}"
        return Waiting("CrashLoopBackOff", f"back-off {shown} restarting failed {about}")

    def _full_name(self) -> str:
        """The pod as the kubelet names it to people."""
        metadata = self._pod.metadata
        return f"{metadata.name}_{metadata.namespace}({metadata.uid})"

    def _grace_seconds(self) -> float:
        metadata, spec = self._pod.metadata, self._pod.spec
        if metadata.deletion_grace_period_seconds is not None:
            return metadata.deletion_grace_period_seconds
        seconds = spec.termination_grace_period_seconds
        return _DEFAULT_GRACE if seconds is None else seconds

    # Telling

    def _put(self, container: pod.Container, record: Record) -> None:
        self._records[container.name] = record
        names = {name for each in self._records.values() for name in containerstate.runs(each)}
        self._runs = {name: each for name, each in self._runs.items() if name in names}
        self._is_dirty.set()

    def _now(self) -> dt.datetime:
        return self._node.clock.utc().replace(microsecond=0)

    async def _write_statuses(self) -> None:
        while True:
            await self._is_dirty.wait()
            await self._write_status()

    async def _write_status(self) -> None:
        self._is_dirty.clear()
        content = containerstate.status(
            self._pod,
            self._records,
            now=self._now(),
            is_ready_to_start=self._is_prepared,
            devices=self._node.health(self._pod),
        )
        content.update(self._node.addresses)
        if self._pod.status.start_time is None:
            content["startTime"] = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        await self._until_done(lambda: self._node.write_status(self._pod, content), reason="FailedStatus")

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
