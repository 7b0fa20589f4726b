"""The probes of one run of a container: asked again and again, and what the answers make of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from drachma.api.pod import ContainerPort
from drachma.node.containerstate import Stage
from drachma.node.probes import asking
from drachma.node.runningpod import Probe
from drachma.node.runtimes import protocol
from drachma.runtime import clock

STARTUP: Final = "startup"
LIVENESS: Final = "liveness"
READINESS: Final = "readiness"

Failed = Callable[[str, str], None]
"""Is told which probe failed, and why."""


class Probes(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a container."""

    startup: Probe | None = None
    readiness: Probe | None = None
    liveness: Probe | None = None
    ports: Sequence[ContainerPort] = ()

    def grace_seconds(self, kind: str) -> float | None:
        """How long a container has to end that failed a probe of a kind; None where the pod says it."""
        probe = {STARTUP: self.startup, LIVENESS: self.liveness}[kind]
        return None if probe is None else probe.termination_grace_period_seconds

    @property
    def stage(self) -> Stage:
        """How far a container is that has just begun to run."""
        if self.startup is not None:
            return Stage.STARTING
        return Stage.READY if self.readiness is None else Stage.STARTED


class Watch:
    """Asks the probes of a container that runs."""

    def __init__(
        self,
        probes: Probes,
        container: protocol.Container,
        *,
        time: clock.Clock,
        age: float,
        changed: Callable[[Stage], None],
        failed: Failed,
    ) -> None:
        """``changed`` is told how far the container is, ``failed`` of bad answers; it has run for ``age`` seconds."""
        self._probes = probes
        self._container = container
        self._clock = time
        self._began = time.monotonic() - age
        self._changed = changed
        self._failed = failed

    async def run(self) -> str:
        """Asks until the container is to be ended; the probe for which that is."""
        probes = self._probes
        if probes.startup is not None:
            if not await self._first(probes.startup):
                return STARTUP
            self._changed(Stage.READY if probes.readiness is None else Stage.STARTED)
        readiness = asyncio.create_task(self._keep_ready(probes.readiness))
        try:
            return await self._until_dead(probes.liveness)
        finally:
            readiness.cancel()
            await asyncio.gather(readiness, return_exceptions=True)

    async def _delay(self, probe: Probe) -> None:
        """Waits until the container has run so long that a probe is asked for the first time."""
        age = self._clock.monotonic() - self._began
        await self._clock.sleep(max(probe.initial_delay_seconds - age, 0.0))

    async def _first(self, probe: Probe) -> bool:
        """Whether the container says that it has begun, before it has failed to say so too often."""
        await self._delay(probe)
        failures = 0
        while True:
            if await self._ask(STARTUP, probe):
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
            answer = await self._ask(READINESS, probe)
            streak = streak + 1 if answer == last else 1
            last = answer
            enough = probe.success_threshold if answer else probe.failure_threshold
            if answer != is_ready and streak >= enough:
                is_ready = answer
                self._changed(Stage.READY if is_ready else Stage.STARTED)
            await self._clock.sleep(probe.period_seconds)

    async def _until_dead(self, probe: Probe | None) -> str:
        if probe is None:
            never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            return await never
        await self._delay(probe)
        failures = 0
        while True:
            failures = 0 if await self._ask(LIVENESS, probe) else failures + 1
            if failures >= probe.failure_threshold:
                return LIVENESS
            await self._clock.sleep(probe.period_seconds)

    async def _ask(self, kind: str, probe: Probe) -> bool:
        problem = await asking.ask(probe, self._container, self._probes.ports)
        if problem is not None:
            self._failed(kind, problem)
        return problem is None
