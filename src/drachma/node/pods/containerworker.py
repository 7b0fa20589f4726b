"""Worker of one container of a pod: it starts the container, probes it, and restarts it as its policy says.

Restarts back off as the kubelet's do. The worker of the pod (:mod:`drachma.node.pods.podworker`) decides when the
container starts and when it stops.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from drachma import errors
from drachma.api.pod import Container, Pod
from drachma.node.logs.log import Log
from drachma.node.pods import containerstate
from drachma.node.pods.containerstate import Record, Running, Terminated, Waiting
from drachma.node.pods.services import PodServices
from drachma.node.probes.watching import Probes, Stage, Watch
from drachma.node.runtimes import protocol
from drachma.node.runtimes.protocol import Exit

_FIRST_PAUSE: Final = 10.0
_LONGEST_PAUSE: Final = 300.0
_CALM_SECONDS: Final = 600.0
"""Length of a run after which the pauses start over."""

_DEFAULT_GRACE: Final = 30.0
_LEAST_GRACE: Final = 2.0
"""Part of the grace period that is left for the container itself, however long its hook took."""

_PLAIN: Final = protocol.Setup()


class ContainerWorker:
    """Worker of one container."""

    def __init__(
        self,
        services: PodServices,
        container: Container,
        *,
        get_pod: Callable[[], Pod],
        on_change: Callable[[], None],
    ) -> None:
        """``get_pod`` returns the newest version of the pod; ``on_change`` is called when the record changes."""
        self._services: Final = services
        self._clock: Final = services.clock
        self._container: Final = container
        self._get_pod: Final = get_pod
        self._on_change: Final = on_change
        self._record = Record()
        self._run: protocol.Container | None = None
        self._restarts_at_once = False
        self._logs: dict[str, Log] = {}

    @property
    def name(self) -> str:
        return self._container.name

    @property
    def record(self) -> Record:
        """State and history of the container."""
        return self._record

    @property
    def current_run(self) -> protocol.Container | None:
        """The run of the container at this moment, if any."""
        return self._run

    def log(self, run_id: str) -> Log | None:
        """Return the log of the current run or the run before it."""
        return self._logs.get(run_id)

    async def recall(self, record: Record) -> None:
        """Continue from the record of an earlier agent. A run that the runtime has lost counts as ended."""
        self._record = record
        runtime, work = self._services.runtime, self._work(record.restarts)
        if isinstance(record.state, Running):
            run_id, since = record.state.id, record.state.since
            self._run = await runtime.recall(work, run_id, since=since)
            if self._run is None:
                end = Terminated(run_id, containerstate.LOST, since, self._now())
                self._record = Record(end, record.last, record.restarts)
        if self._run is not None:
            self._logs[self._run.id] = self._run.log
        elif isinstance(self._record.state, Terminated) and (log := runtime.log(work)) is not None:
            self._logs[self._record.state.id] = log
        if record.last is not None:
            log = runtime.log(self._work(record.last_attempt))
            if log is not None:
                self._logs.setdefault(record.last.id, log)
        self._on_change()

    async def keep_running(self, policy: str) -> None:
        """Run the container, and restart it as the policy says. Return when the policy allows no more restarts."""
        pause = 0.0
        is_first = True
        end = self._recalled_end() or await self._run_once()
        while True:
            if end is not None and (policy == "Never" or (policy == "OnFailure" and end.exit.code == 0)):
                return
            record = self._record
            if end is not None and (is_first or (end.until - end.since).total_seconds() >= _CALM_SECONDS):
                # As in the kubelet, the first restart and a restart after a long run do not wait.
                pause = 0.0
            else:
                pause = min(max(2 * pause, _FIRST_PAUSE), _LONGEST_PAUSE)
            if self._restarts_at_once:
                pause, self._restarts_at_once = 0.0, False
            is_first = is_first and end is None
            if end is not None and pause:
                self._put(Record(self._crash_loop(pause), end, record.restarts))
                message = f"Back-off restarting failed container {self.name} in pod {self._full_pod_name()}"
                self._record_event("BackOff", message, is_warning=True)
            elif end is not None:
                self._put(Record(end, end, record.restarts))
            await self._clock.sleep(pause)
            if end is not None:
                self._put(msgspec.structs.replace(self._record, restarts=record.restarts + 1))
            end = await self._run_once()

    async def stop(self, grace: float) -> None:
        """Stop the current run, if any, within a grace period in seconds."""
        run, self._run = self._run, None
        if run is None:
            return
        self._record_event("Killing", f"Stopping container {self.name}")
        await self._terminate(run, grace)
        record = self._record
        since = record.state.since if isinstance(record.state, Running) else self._now()
        self._put(Record(await self._end(run, await run.wait(), since), record.last, record.restarts))

    async def resize(self, *, restarts: bool) -> None:
        """Apply the resources of the newest version of the pod to the current run, if any; or restart it with them.

        Raises:
            errors.NodeError: the runtime cannot change them now.
        """
        run = self._run
        if run is None:
            return
        if restarts:
            self._record_event("Killing", f"Container {self.name} resize requires restart")
            self._restarts_at_once = True
            await self._terminate(run, grace_seconds(self._get_pod()))
            return
        pod, container = self._get_pod(), self._current_container()
        work = self._work(self._record.restarts, bounds=self._services.resources.bounds(pod, container))
        await self._services.runtime.update(work)

    def _current_container(self) -> Container:
        """Return the container in the newest version of the pod, whose resources may have changed."""
        spec = self._get_pod().spec
        every = (*spec.init_containers, *spec.containers)
        return next((each for each in every if each.name == self.name), self._container)

    def _recalled_end(self) -> Terminated | None:
        """Return the end of the run before this agent started, unless that run continues."""
        state, last = self._record.state, self._record.last
        return state if isinstance(state, Terminated) else last if isinstance(state, Waiting) else None

    async def _run_once(self) -> Terminated | None:
        """Start the container and wait for its end. Return None if it could not be started."""
        if self._run is not None:
            return await self._watch(self._run, self._now())
        record, pod = self._record, self._get_pod()
        services = self._services
        kind = _container_type(pod, self.name)
        services.metrics.count_start(kind)
        try:
            work = self._work(
                record.restarts,
                devices=services.claims.cdi_devices(pod, self._container),
                setup=await services.setups.setup(pod, self._container),
                bounds=services.resources.bounds(pod, self._current_container()),
            )
            run = await services.runtime.start(work)
        except (protocol.StartError, errors.NodeError) as error:
            reason = error.reason if isinstance(error, protocol.StartError) else "CreateContainerError"
            services.metrics.count_start_error(kind, reason)
            self._put(msgspec.structs.replace(record, state=Waiting(reason, str(error))))
            self._record_event("Failed", f"Error: {error}", is_warning=True)
            return None
        finally:
            services.setups.end_setup(pod, self._container)
        self._run, since = run, self._now()
        self._logs[run.id] = run.log
        self._record_event("Started", f"Container started: {self.name}")
        if await services.setups.run_start_hook(pod, self.name, run) is not None:
            # The problem may contain a secret, so the event does not show it.
            self._record_event("FailedPostStartHook", "PostStartHook failed", is_warning=True)
            self._record_event("Killing", "FailedPostStartHook")
            await self._terminate(run, grace_seconds(self._get_pod()))
        return await self._watch(run, since)

    async def _watch(self, run: protocol.Container, since: dt.datetime) -> Terminated:
        """Wait for the end of a run, and record its state meanwhile."""
        record = self._record
        probes = self._services.setups.probes(self._get_pod(), self._container)
        if isinstance(record.state, Running):
            since = record.state.since
            if probes is not None and record.is_started:
                probes = msgspec.structs.replace(probes, startup=None)
        stage = Stage.READY if probes is None else probes.stage
        self._put(msgspec.structs.replace(record, state=Running(run.id, since, stage)))
        exit_ = await (run.wait() if probes is None else self._wait_probing(run, probes, since))
        end = await self._end(run, exit_, since)
        self._run = None
        self._put(Record(end, record.last, record.restarts))
        return end

    async def _wait_probing(self, run: protocol.Container, probes: Probes, since: dt.datetime) -> Exit:
        """Wait for the end of a run, and stop it if a probe fails too often."""

        def put_stage(stage: Stage) -> None:
            record = self._record
            if isinstance(record.state, Running):
                state = msgspec.structs.replace(record.state, stage=stage)
                self._put(msgspec.structs.replace(record, state=state))

        def report_failure(kind: str, problem: str) -> None:
            self._record_event("Unhealthy", f"{kind.capitalize()} probe failed: {problem}", is_warning=True)

        age = (self._now() - since).total_seconds()
        watch = Watch(probes, run, clock=self._clock, age=age, on_stage=put_stage, on_failure=report_failure)
        probing = asyncio.create_task(watch.run(), name=f"probes of {self.name}")
        ending = asyncio.create_task(run.wait())
        try:
            await asyncio.wait((probing, ending), return_when=asyncio.FIRST_COMPLETED)
            if not ending.done():
                kind = probing.result()
                self._record_event("Killing", f"Container {self.name} failed {kind} probe, will be restarted")
                grace = probes.grace_seconds(kind)
                await self._terminate(run, grace_seconds(self._get_pod()) if grace is None else grace)
            return await ending
        finally:
            probing.cancel()
            ending.cancel()
            await asyncio.gather(probing, ending, return_exceptions=True)

    async def _terminate(self, run: protocol.Container, grace: float) -> None:
        """Run the hook before the stop, and stop the run. Both share the grace period."""
        start = self._clock.monotonic()
        if grace:
            problem = await self._services.setups.run_stop_hook(self._get_pod(), self.name, run, seconds=grace)
            if problem is not None:
                self._record_event("FailedPreStopHook", "PreStopHook failed", is_warning=True)
            grace = max(grace - (self._clock.monotonic() - start), min(grace, _LEAST_GRACE))
        await run.stop(grace)

    async def _end(self, run: protocol.Container, exit_: Exit, since: dt.datetime) -> Terminated:
        own = await self._services.setups.termination_message(self._get_pod(), self.name, run, exit_=exit_)
        message = ": ".join(filter(None, (exit_.message, own)))
        return Terminated(run.id, exit_._replace(message=message), since, self._now())

    def _put(self, record: Record) -> None:
        self._record = record
        run_ids = record.run_ids | ({self._run.id} if self._run is not None else set())
        self._logs = {run_id: log for run_id, log in self._logs.items() if run_id in run_ids}
        self._on_change()

    def _work(
        self,
        attempt: int,
        *,
        devices: Sequence[str] = (),
        setup: protocol.Setup = _PLAIN,
        bounds: protocol.Bounds | None = None,
    ) -> protocol.Work:
        return protocol.Work(
            pod=self._get_pod(),
            container=self._current_container(),
            attempt=attempt,
            devices=devices,
            setup=setup,
            bounds=bounds,
        )

    def _record_event(self, reason: str, message: str, *, is_warning: bool = False) -> None:
        self._services.api.record(self._get_pod(), reason=reason, message=message, is_warning=is_warning)

    def _now(self) -> dt.datetime:
        return self._clock.utc().replace(microsecond=0)

    def _crash_loop(self, pause: float) -> Waiting:
        minutes, seconds = divmod(round(pause), 60)
        duration = f"{minutes}m{seconds}s" if minutes else f"{seconds}s"
        subject = f"container={self.name} pod={self._full_pod_name()}"
        return Waiting("CrashLoopBackOff", f"back-off {duration} restarting failed {subject}")

    def _full_pod_name(self) -> str:
        """Return the pod's name in the kubelet's form for messages."""
        metadata = self._get_pod().metadata
        return f"{metadata.name}_{metadata.namespace}({metadata.uid})"


def _container_type(pod: Pod, name: str) -> str:
    """Return the kubelet's word for the kind of a container."""
    if any(each.name == name for each in pod.spec.init_containers):
        return "init_container"
    return "container" if any(each.name == name for each in pod.spec.containers) else "ephemeral_container"


def grace_seconds(pod: Pod) -> float:
    """Return the grace period of a pod's containers."""
    if pod.metadata.deletion_grace_period_seconds is not None:
        return pod.metadata.deletion_grace_period_seconds
    seconds = pod.spec.termination_grace_period_seconds
    return _DEFAULT_GRACE if seconds is None else seconds
