"""Probes of one run of a container: called periodically, with their thresholds applied to the results."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from drachma.api.pod import ContainerPort
from drachma.node.podview.containers import Probe
from drachma.node.probes import handlers
from drachma.node.runtimes import protocol
from drachma.runtime.clock import Clock

STARTUP: Final = "startup"
LIVENESS: Final = "liveness"
READINESS: Final = "readiness"

FailureListener = Callable[[str, str], None]
"""Receives the kind of a probe that failed, and the problem."""


class Stage(enum.IntEnum):
    """Progress of a running container according to its probes; a container without probes is ready."""

    STARTING = 0
    STARTED = 1
    READY = 2


class Probes(msgspec.Struct, frozen=True, kw_only=True):
    """Probes of a container."""

    startup: Probe | None = None
    readiness: Probe | None = None
    liveness: Probe | None = None
    ports: Sequence[ContainerPort] = ()

    def grace_seconds(self, kind: str) -> float | None:
        """Return the grace period after a failed probe, or None to use the pod's own."""
        probe = {STARTUP: self.startup, LIVENESS: self.liveness}[kind]
        return None if probe is None else probe.termination_grace_period_seconds

    @property
    def stage(self) -> Stage:
        """Stage of a container that has just started."""
        if self.startup is not None:
            return Stage.STARTING
        return Stage.READY if self.readiness is None else Stage.STARTED


class Watch:
    """Calls the probes of a running container."""

    def __init__(
        self,
        probes: Probes,
        container: protocol.Container,
        *,
        clock: Clock,
        age: float,
        on_stage: Callable[[Stage], None],
        on_failure: FailureListener,
    ) -> None:
        """``on_stage`` receives each new stage, ``on_failure`` each failure; ``age`` is the age of the run."""
        self._probes = probes
        self._container = container
        self._clock = clock
        self._began = clock.monotonic() - age
        self._on_stage = on_stage
        self._on_failure = on_failure

    async def run(self) -> str:
        """Call the probes until one fails too often. Return the kind of that probe."""
        probes = self._probes
        if probes.startup is not None:
            if not await self._has_started(probes.startup):
                return STARTUP
            self._on_stage(Stage.READY if probes.readiness is None else Stage.STARTED)
        readiness = asyncio.create_task(self._keep_ready(probes.readiness))
        try:
            return await self._wait_for_failure(probes.liveness)
        finally:
            readiness.cancel()
            await asyncio.gather(readiness, return_exceptions=True)

    async def _delay(self, probe: Probe) -> None:
        """Wait until the container has run for the initial delay of a probe."""
        age = self._clock.monotonic() - self._began
        await self._clock.sleep(max(probe.initial_delay_seconds - age, 0.0))

    async def _has_started(self, probe: Probe) -> bool:
        """Return True once the startup probe succeeds, and False if it fails too often."""
        await self._delay(probe)
        failures = 0
        while True:
            if await self._probe(STARTUP, probe):
                return True
            failures += 1
            if failures >= probe.failure_threshold:
                return False
            await self._clock.sleep(probe.period_seconds)

    async def _keep_ready(self, probe: Probe | None) -> None:
        if probe is None:
            return
        await self._delay(probe)
        is_ready, streak, last = False, 0, False
        while True:
            answer = await self._probe(READINESS, probe)
            streak = streak + 1 if answer == last else 1
            last = answer
            enough = probe.success_threshold if answer else probe.failure_threshold
            if answer != is_ready and streak >= enough:
                is_ready = answer
                self._on_stage(Stage.READY if is_ready else Stage.STARTED)
            await self._clock.sleep(probe.period_seconds)

    async def _wait_for_failure(self, probe: Probe | None) -> str:
        if probe is None:
            never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            return await never
        await self._delay(probe)
        failures = 0
        while True:
            failures = 0 if await self._probe(LIVENESS, probe) else failures + 1
            if failures >= probe.failure_threshold:
                return LIVENESS
            await self._clock.sleep(probe.period_seconds)

    async def _probe(self, kind: str, probe: Probe) -> bool:
        problem = await handlers.run_probe(probe, self._container, self._probes.ports)
        if problem is not None:
            self._on_failure(kind, problem)
        return problem is None
