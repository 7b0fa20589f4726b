"""One container of a pod on its node: started, asked how it is, and started again as a policy says.

Pauses between starts grow as the kubelet's do. The worker of its pod (:mod:`drachma.node.podworker`) says when it
begins and when it is to end.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

from drachma import errors
from drachma.api import pod
from drachma.node import containerstate, pastpod
from drachma.node.containerstate import Record, Running, Stage, Terminated, Waiting
from drachma.node.logs.log import Log
from drachma.node.probes.watching import Probes, Watch
from drachma.node.runtimes import protocol
from drachma.node.runtimes.protocol import Exit
from drachma.runtime import clock

_FIRST_PAUSE: Final = 10.0
_LONGEST_PAUSE: Final = 300.0
_CALM_SECONDS: Final = 600.0
"""After so long a run, the pauses begin from the first again."""

_DEFAULT_GRACE: Final = 30.0
_LEAST_GRACE: Final = 2.0
"""What is left to a container of its grace period, however long it took to do what it wanted done before."""


_PLAIN: Final = protocol.Setup()


class Node(Protocol):
    """What a worker needs of the agent of its node."""

    @property
    def clock(self) -> clock.Clock: ...
    @property
    def runtime(self) -> protocol.Runtime: ...

    def devices(self, of: pod.Pod, container: pod.Container) -> Sequence[str]:
        """The CDI ids of a container's devices."""

    async def setup(self, of: pod.Pod, container: pod.Container) -> protocol.Setup:
        """What a container is started with; a StartError where that cannot be had yet."""

    def end_setup(self, of: pod.Pod, container: pod.Container) -> None:
        """Undo what was set up for the start of a container alone: it has begun, or cannot."""

    def bounds(self, of: pod.Pod, container: pod.Container) -> protocol.Bounds | None:
        """What a container may use of the machine, where that is bounded."""

    def probes(self, of: pod.Pod, container: pod.Container) -> Probes | None:
        """What is asked of a container while it runs, if anything."""

    async def after_start(self, of: pod.Pod, container: str, run: protocol.Container) -> str | None:
        """Does what a container wants done once it has begun: None, or what went wrong with it."""

    async def before_stop(self, of: pod.Pod, container: str, run: protocol.Container, *, seconds: float) -> str | None:
        """Does what a container wants done before it is stopped: None, or what went wrong with it."""

    async def last_words(self, of: pod.Pod, container: str, run: protocol.Container, ended: Exit) -> str:
        """What a container that has ended left to be said about that."""

    def record(self, of: pod.Pod, *, reason: str, message: str, is_warning: bool = False) -> None:
        """Says in an event what happens to a pod."""


class ContainerWorker:
    """The life of one container."""

    def __init__(
        self,
        node: Node,
        container: pod.Container,
        *,
        newest: Callable[[], pod.Pod],
        changed: Callable[[], None],
    ) -> None:
        """``newest`` is the pod as it is now; ``changed`` is called whenever there is something new to tell."""
        self._node = node
        self._container = container
        self._newest = newest
        self._changed = changed
        self._record = Record()
        self._running: protocol.Container | None = None
        self._logs: dict[str, Log] = {}

    @property
    def record(self) -> Record:
        """How it is."""
        return self._record

    @property
    def running(self) -> protocol.Container | None:
        """The run that is there now."""
        return self._running

    def log_of(self, run: str) -> Log | None:
        """What a run wrote that the record knows: the one that runs or the last one before."""
        return self._logs.get(run)

    async def recall(self, record: Record) -> None:
        """Goes on where an agent before this one ended; what ran then and is lost has ended."""
        self._record = record
        runtime, work = self._node.runtime, self._work(record.restarts)
        if isinstance(record.state, Running):
            name, since = record.state.id, record.state.since
            self._running = await runtime.recall(work, name, since=since)
            if self._running is None:
                self._record = Record(Terminated(name, pastpod.LOST, since, self._now()), record.last, record.restarts)
        if self._running is not None:
            self._logs[self._running.id] = self._running.log
        elif isinstance(self._record.state, Terminated) and (log := runtime.log(work)) is not None:
            self._logs[self._record.state.id] = log
        if record.last is not None:
            log = runtime.log(self._work(pastpod.last_attempt(record)))
            if log is not None:
                self._logs.setdefault(record.last.id, log)
        self._changed()

    # Running

    async def keep(self, policy: str) -> None:
        """Runs the container, and again as the policy says."""
        pause = 0.0
        is_first = True
        ended = self._past_end() or await self._run_once()
        while True:
            if ended is not None and (policy == "Never" or (policy == "OnFailure" and ended.exit.code == 0)):
                return
            before = self._record
            if ended is not None and (is_first or (ended.until - ended.since).total_seconds() >= _CALM_SECONDS):
                # As the kubelet: only who fails again, or soon, has to wait.
                pause = 0.0
            else:
                pause = min(max(2 * pause, _FIRST_PAUSE), _LONGEST_PAUSE)
            is_first = is_first and ended is None
            if ended is not None and pause:
                self._put(Record(self._crash_loop(pause), ended, before.restarts))
                message = f"Back-off restarting failed container {self.name} in pod {self._full_name()}"
                self._say("BackOff", message, is_warning=True)
            elif ended is not None:
                self._put(Record(ended, ended, before.restarts))
            await self._node.clock.sleep(pause)
            if ended is not None:
                self._put(msgspec.structs.replace(self._record, restarts=before.restarts + 1))
            ended = await self._run_once()

    @property
    def name(self) -> str:
        return self._container.name

    def _past_end(self) -> Terminated | None:
        """How the container ended before this agent began, if it is not there any more."""
        state, last = self._record.state, self._record.last
        return state if isinstance(state, Terminated) else last if isinstance(state, Waiting) else None

    async def _run_once(self) -> Terminated | None:
        """Starts the container and waits until it has ended; None where it could not be started."""
        if self._running is not None:
            return await self._watch(self._running, self._now())
        before, of = self._record, self._newest()
        try:
            work = self._work(
                before.restarts,
                devices=self._node.devices(of, self._container),
                setup=await self._node.setup(of, self._container),
                bounds=self._node.bounds(of, self._container),
            )
            started = await self._node.runtime.start(work)
        except (protocol.StartError, errors.NodeError) as error:
            reason = error.reason if isinstance(error, protocol.StartError) else "CreateContainerError"
            self._put(msgspec.structs.replace(before, state=Waiting(reason, str(error))))
            self._say("Failed", f"Error: {error}", is_warning=True)
            return None
        finally:
            self._node.end_setup(of, self._container)
        self._running, since = started, self._now()
        self._logs[started.id] = started.log
        self._say("Started", f"Container started: {self.name}")
        if await self._node.after_start(of, self.name, started) is not None:
            # What went wrong may be a secret: only that something did is for everybody.
            self._say("FailedPostStartHook", "PostStartHook failed", is_warning=True)
            self._say("Killing", "FailedPostStartHook")
            await self._end(started, self._grace_seconds())
        return await self._watch(started, since)

    async def _watch(self, run: protocol.Container, since: dt.datetime) -> Terminated:
        """Waits until a run has ended, and says how it is meanwhile."""
        before = self._record
        probes = self._node.probes(self._newest(), self._container)
        if isinstance(before.state, Running):
            since = before.state.since
            if probes is not None and before.is_started:
                probes = msgspec.structs.replace(probes, startup=None)
        stage = Stage.READY if probes is None else probes.stage
        self._put(msgspec.structs.replace(before, state=Running(run.id, since, stage)))
        exited = await (run.wait() if probes is None else self._wait_probing(run, probes, since))
        ended = await self._ended(run, exited, since)
        self._running = None
        self._put(Record(ended, before.last, before.restarts))
        return ended

    async def _wait_probing(self, run: protocol.Container, probes: Probes, since: dt.datetime) -> Exit:
        """Waits until a run has ended; it is ended where its probes say so."""

        def changed(stage: Stage) -> None:
            record = self._record
            if isinstance(record.state, Running):
                state = msgspec.structs.replace(record.state, stage=stage)
                self._put(msgspec.structs.replace(record, state=state))

        def failed(kind: str, problem: str) -> None:
            self._say("Unhealthy", f"{kind.capitalize()} probe failed: {problem}", is_warning=True)

        age = (self._now() - since).total_seconds()
        watch = Watch(probes, run, time=self._node.clock, age=age, changed=changed, failed=failed)
        asking = asyncio.create_task(watch.run(), name=f"probes of {self.name}")
        ending = asyncio.create_task(run.wait())
        try:
            await asyncio.wait((asking, ending), return_when=asyncio.FIRST_COMPLETED)
            if not ending.done():
                kind = asking.result()
                self._say("Killing", f"Container {self.name} failed {kind} probe, will be restarted")
                grace = probes.grace_seconds(kind)
                await self._end(run, self._grace_seconds() if grace is None else grace)
            return await ending
        finally:
            asking.cancel()
            ending.cancel()
            await asyncio.gather(asking, ending, return_exceptions=True)

    async def stop(self, grace: float) -> None:
        """Stops what runs, within so many seconds; nothing where nothing does."""
        run, self._running = self._running, None
        if run is None:
            return
        self._say("Killing", f"Stopping container {self.name}")
        await self._end(run, grace)
        before = self._record
        since = before.state.since if isinstance(before.state, Running) else self._now()
        self._put(Record(await self._ended(run, await run.wait(), since), before.last, before.restarts))

    async def _end(self, run: protocol.Container, grace: float) -> None:
        """Ends a run, after what it wants done before; both have the time of the grace period together."""
        began = self._node.clock.monotonic()
        if grace:
            if await self._node.before_stop(self._newest(), self.name, run, seconds=grace) is not None:
                self._say("FailedPreStopHook", "PreStopHook failed", is_warning=True)
            grace = max(grace - (self._node.clock.monotonic() - began), min(grace, _LEAST_GRACE))
        await run.stop(grace)

    async def _ended(self, run: protocol.Container, exited: Exit, since: dt.datetime) -> Terminated:
        words = await self._node.last_words(self._newest(), self.name, run, exited)
        message = ": ".join(filter(None, (exited.message, words)))
        return Terminated(run.id, exited._replace(message=message), since, self._now())

    # Telling

    def _put(self, record: Record) -> None:
        self._record = record
        runs = containerstate.runs(record)
        self._logs = {name: log for name, log in self._logs.items() if name in runs or self._is_current(name)}
        self._changed()

    def _is_current(self, run: str) -> bool:
        return self._running is not None and self._running.id == run

    def _work(
        self,
        attempt: int,
        *,
        devices: Sequence[str] = (),
        setup: protocol.Setup = _PLAIN,
        bounds: protocol.Bounds | None = None,
    ) -> protocol.Work:
        return protocol.Work(
            pod=self._newest(),
            container=self._container,
            attempt=attempt,
            devices=devices,
            setup=setup,
            bounds=bounds,
        )

    def _say(self, reason: str, message: str, *, is_warning: bool = False) -> None:
        self._node.record(self._newest(), reason=reason, message=message, is_warning=is_warning)

    def _now(self) -> dt.datetime:
        return self._node.clock.utc().replace(microsecond=0)

    def _crash_loop(self, pause: float) -> Waiting:
        minutes, seconds = divmod(round(pause), 60)
        shown = f"{minutes}m{seconds}s" if minutes else f"{seconds}s"
        about = f"container={self.name} pod={self._full_name()}"
        return Waiting("CrashLoopBackOff", f"back-off {shown} restarting failed {about}")

    def _full_name(self) -> str:
        """The pod as the kubelet names it to people."""
        metadata = self._newest().metadata
        return f"{metadata.name}_{metadata.namespace}({metadata.uid})"

    def _grace_seconds(self) -> float:
        return grace_seconds(self._newest())


def grace_seconds(of: pod.Pod) -> float:
    """How long the containers of a pod have to end."""
    if of.metadata.deletion_grace_period_seconds is not None:
        return of.metadata.deletion_grace_period_seconds
    seconds = of.spec.termination_grace_period_seconds
    return _DEFAULT_GRACE if seconds is None else seconds
