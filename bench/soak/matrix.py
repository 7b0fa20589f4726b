"""Rounds of the matrix: put components under faults while the load goes on, and measure how they recover."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from bench.soak import invariants, load, manifests
from bench.soak.components import Component
from bench.soak.load import Load
from bench.soak.observer import Observer
from bench.soak.plane import SERVERS, Plane

KILL: Final = "kill"
LONG_FAULTS: Final = ("stop", "partition", "slow-disk", "full-disk", "clock+2h", "clock-2h")
FAULTS: Final = (KILL, *LONG_FAULTS)
DISK_KINDS: Final = (*SERVERS, "node", "driver")
"""Components that keep files."""

STUCK_SECONDS: Final = 120.0
_CATCH_UP_SECONDS: Final = 20.0
_CANARY_PAUSE_SECONDS: Final = 0.05
_CLOCK_START_SECONDS: Final = 3.0
_CLOCK_OFFSETS: Final = {"clock+2h": 7200, "clock-2h": -7200}


class Cell(msgspec.Struct):
    """Results of one component under one fault."""

    count: int = 0
    recoveries: list[float] = []
    violations: int = 0


class Attempts:
    """Attempts to create one object: how often each status code came, and the longest time it took."""

    def __init__(self) -> None:
        self._codes: dict[int, tuple[int, float]] = {}

    def add(self, code: int, seconds: float) -> None:
        """Record an answer; code 0 stands for none."""
        count, longest = self._codes.get(code, (0, 0.0))
        self._codes[code] = count + 1, max(longest, seconds)

    def __str__(self) -> str:
        parts = (f"{count} times code {code} within {longest:.1f} s" for code, (count, longest) in self._codes.items())
        return ", ".join(parts) or "none"


class Settings(msgspec.Struct, frozen=True):
    """Size of a run on one layout."""

    kills: int
    fault_seconds: float
    repeats: int
    settle_every: int
    components: Sequence[str]
    faults: Sequence[str]
    deadline: float


class Matrix:
    """One run on one cluster."""

    def __init__(
        self, plane: Plane, observer: Observer, writer: Load, *, settings: Settings, rng: random.Random
    ) -> None:
        self.cells: dict[tuple[str, str], Cell] = defaultdict(Cell)
        self.kills = 0
        self._plane = plane
        self._observer = observer
        self._load = writer
        self._settings = settings
        self._rng = rng
        self._canaries = itertools.count()
        self._ignored: set[str] = set()

    async def run(self) -> None:
        """Run all rounds: long faults are spread evenly over the kills."""
        await self._check_canary("")
        long_rounds = [cell for cell in self._long_cells() for _ in range(self._settings.repeats)]
        self._rng.shuffle(long_rounds)
        every = max(1, self._settings.kills // (len(long_rounds) + 1))
        settled_at = 0
        while self.kills < self._settings.kills or long_rounds:
            if time.monotonic() > self._settings.deadline:
                print(f"  time is up: {self.kills} kills, {len(long_rounds)} long faults left", flush=True)
                break
            if long_rounds and (self.kills >= self._settings.kills or self.kills >= every * (self._done() + 1)):
                await self._run_long(*long_rounds.pop())
            else:
                await self._run_kills()
            self._observer.check_tasks()
            if self.kills - settled_at >= self._settings.settle_every:
                settled_at = self.kills
                await self.settle()
        await self.settle()

    async def settle(self) -> None:
        """Pause load and faults, and check that everything finishes and every acknowledged write was seen."""
        self._load.is_paused = True
        began = time.monotonic()
        checker = self._observer.checker
        while (unfinished := checker.unfinished(ignored=self._ignored)) and time.monotonic() - began < STUCK_SECONDS:
            await asyncio.sleep(0.2)
        for uid, description in unfinished.items():
            self._ignored.add(uid)
            self._observer.complain(invariants.Violation("stuck after two minutes", description, uid))
        caught_up = time.monotonic() + _CATCH_UP_SECONDS
        while checker.lost_writes() and time.monotonic() < caught_up:
            await asyncio.sleep(0.2)
        for violation in checker.lost_writes():
            self._observer.complain(violation)
        seconds = time.monotonic() - began
        print(
            f"  {self._observer.seconds:7.1f} s: {self.kills} kills; settled in {seconds:.1f} s; "
            f"{self._load.acknowledged:,} writes acknowledged, {self._observer.events:,} events, "
            f"{self._observer.gaps} gaps, {len(self._observer.violations)} violations",
            flush=True,
        )
        self._load.is_paused = False

    def _done(self) -> int:
        return sum(cell.count for (_, fault), cell in self.cells.items() if fault != KILL)

    def _long_cells(self) -> list[tuple[Component, str]]:
        """Return each other fault once for each kind of component, on one of its processes.

        Nodes and drivers are the same in both layouts, so that one layout is enough for their long faults.
        """
        kinds = defaultdict(list)
        for component in self._targets():
            if self._plane.layout != "up" or component.kind == "up" or "up" not in self._settings.components:
                kinds[component.kind].append(component)
        return [
            (self._rng.choice(candidates), fault)
            for candidates in kinds.values()
            for fault in LONG_FAULTS
            if fault in self._settings.faults and self._can_suffer(candidates[0], fault)
        ]

    def _targets(self) -> list[Component]:
        return [each for each in self._plane.components if each.kind in self._settings.components]

    def _can_suffer(self, component: Component, fault: str) -> bool:
        if fault.endswith("-disk"):
            return component.kind in DISK_KINDS and component.disk is not None
        return component.clock is not None if fault.startswith("clock") else True

    async def _run_kills(self) -> None:
        """Kill one to three components at once, start them again, and wait for the canary."""
        targets = self._targets()
        if not targets or KILL not in self._settings.faults:
            self.kills = self._settings.kills
            return
        victims = self._rng.sample(targets, min(len(targets), self._rng.randint(1, 3)))
        self._observer.mark(f"kill {', '.join(each.name for each in victims)}")
        before = len(self._observer.violations)
        for victim in victims:
            victim.kill()
            self.kills += 1
        await asyncio.sleep(self._rng.uniform(0.0, 0.3))
        for victim in victims:
            victim.start()
        seconds = await self._check_canary(_node_of(victims))
        self._note(victims, KILL, seconds, violations=len(self._observer.violations) - before)

    async def _run_long(self, component: Component, fault: str) -> None:
        """Hold one component under a fault while others are killed now and then, and wait for the canary."""
        self._observer.mark(f"{fault} of {component.name} begins")
        before = len(self._observer.violations)
        fault_task = asyncio.create_task(self._apply(component, fault))
        others = [
            each
            for each in self._targets()
            if each is not component and KILL in self._settings.faults and each.disk is not component.disk
        ]
        while not fault_task.done():
            pause = self._settings.fault_seconds * self._rng.uniform(0.15, 0.35)
            await asyncio.wait((fault_task,), timeout=pause)
            if others and not fault_task.done() and self.kills < self._settings.kills:
                victim = self._rng.choice(others)
                self._observer.mark(f"kill {victim.name} during {fault} of {component.name}")
                victim.kill()
                victim.start()
                self.kills += 1
                self.cells[victim.kind, KILL].count += 1
        await fault_task
        self._observer.mark(f"{fault} of {component.name} ends")
        seconds = await self._check_canary(_node_of([component]))
        self._note([component], fault, seconds, violations=len(self._observer.violations) - before)

    async def _apply(self, component: Component, fault: str) -> None:
        seconds = self._settings.fault_seconds
        match fault:
            case "stop":
                component.suspend()
                try:
                    await asyncio.sleep(seconds)
                finally:
                    component.resume()
            case "partition":
                for partition in self._plane.partitions(component):
                    partition.close()
                try:
                    await asyncio.sleep(seconds)
                finally:
                    for partition in self._plane.partitions(component):
                        partition.open()
            case "slow-disk":
                assert component.disk is not None, "checked by _can_suffer"
                await component.disk.slow_down(seconds)
            case "full-disk":
                assert component.disk is not None, "checked by _can_suffer"
                component.disk.fill()
                try:
                    await asyncio.sleep(seconds)
                finally:
                    component.disk.free()
            case _:
                assert component.clock is not None, "checked by _can_suffer"
                # The clock jumps while the process runs; before and after it runs without the library.
                component.kill()
                component.start(has_movable_clock=True)
                await asyncio.sleep(_CLOCK_START_SECONDS)
                component.clock.set_offset(_CLOCK_OFFSETS[fault])
                try:
                    await asyncio.sleep(seconds)
                finally:
                    component.clock.set_offset(0)
                await asyncio.sleep(_CLOCK_START_SECONDS)
                component.kill()
                component.start()

    async def _check_canary(self, node: str) -> float:
        """Return how long a job takes from now on that needs every component; a violation after two minutes."""
        name = f"canary-{next(self._canaries)}"
        began = time.monotonic()
        document = manifests.canary(name, node=node)
        is_created = False
        attempts = Attempts()
        while time.monotonic() - began < STUCK_SECONDS:
            # A create that was not acknowledged may have been done all the same.
            is_created = is_created or self._find_job(name) is not None or await self._create(document, attempts)
            job = self._find_job(name)
            if job is not None and _is_complete(job):
                await self._delete_canary(name)
                return time.monotonic() - began
            await asyncio.sleep(_CANARY_PAUSE_SECONDS)
        facts = "; ".join(
            text for text in self._observer.checker.unfinished().values() if name in text or "canary" in text
        )
        detail = facts or await self._describe_absence(name, attempts)
        self._observer.complain(invariants.Violation("stuck after two minutes", name, detail))
        for uid, text in self._observer.checker.unfinished().items():
            if name in text:
                self._ignored.add(uid)
        await self._delete_canary(name)
        return time.monotonic() - began

    async def _create(self, document: Mapping[str, Any], attempts: Attempts) -> bool:
        began = time.monotonic()
        answer = await self._load.attempt_create("jobs", dict(document))
        attempts.add(answer.code, time.monotonic() - began)
        return load.is_acknowledged(answer)

    async def _describe_absence(self, name: str, attempts: Attempts) -> str:
        """Return what the creates of a job came to, and what the server itself says about the job now."""
        began = time.monotonic()
        async with self._plane.connect() as direct:
            answer = await direct.call("GET", f"/apis/batch/v1/namespaces/default/jobs/{name}")
        seconds = time.monotonic() - began
        return (
            f"never seen; creates: {attempts}; jobs were last heard of {self._observer.silence('jobs')} s ago; "
            f"a GET now: code {answer.code} after {seconds:.1f} s"
        )

    def _find_job(self, name: str) -> Mapping[str, object] | None:
        jobs = self._observer.checker.objects["jobs"].values()
        return next((each for each in jobs if each["metadata"]["name"] == name), None)

    async def _delete_canary(self, name: str) -> None:
        for _ in range(20):
            jobs = list(self._observer.checker.objects["jobs"].values())
            left = [each for each in jobs if each["metadata"]["name"].startswith("canary-")]
            if not left:
                return
            for each in left:
                await self._load.delete("jobs", each)
            await asyncio.sleep(0.1)

    def _note(self, components: Iterable[Component], fault: str, seconds: float, *, violations: int) -> None:
        for component in components:
            cell = self.cells[component.kind, fault]
            cell.count += 1
            cell.recoveries = [*cell.recoveries, seconds]
            cell.violations += violations


def _is_complete(job: Mapping[str, object]) -> bool:
    status = job.get("status") or {}
    assert isinstance(status, dict)
    return any(each["type"] == "Complete" and each["status"] == "True" for each in status.get("conditions", ()))


def _node_of(components: Sequence[Component]) -> str:
    """Return the node whose recovery the canary is to show, or an empty text for any."""
    numbers = [each.name.partition("-")[2] for each in components if each.kind in ("node", "driver")]
    return f"worker-{numbers[0]}" if numbers else ""
