"""Measurement as upstream does it: pods bound per second, sampled every second, and the latency of each pod."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from drachma import errors
from drachma.api import pod
from drachma.claims import conditions, wellknown
from drachma.runtime import informer

SAMPLE_SECONDS: Final = 1.0
PATIENCE_SECONDS: Final = 90.0
"""Time without a bound pod after which the remaining pods count as unschedulable."""

_REJECTED_SECONDS: Final = 5.0
"""Time of patience if the scheduler has rejected each remaining pod."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Results of a run; rates in pods per second, times in seconds."""

    bound: int
    seconds: float
    """Time from the first creation to the last binding."""
    average: float
    """Average of the samples, which is upstream's throughput."""
    latencies: tuple[float, ...] = ()
    """Times from the creation of a pod until the client sees it bound."""

    @property
    def overall(self) -> float:
        return self.bound / self.seconds if self.seconds else 0.0

    def latency(self, percent: float) -> float:
        """Return a percentile of the latencies."""
        return percentile(self.latencies, percent)


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value that a percentage of the sorted values does not exceed; 0 without values."""
    ordered = sorted(values)
    return ordered[max(math.ceil(len(ordered) * percent / 100) - 1, 0)] if ordered else 0.0


class Meter:
    """Counter of the bindings of pods in one namespace."""

    def __init__(self, namespace: str, pods: informer.Informer[pod.Pod], *, patience: float = PATIENCE_SECONDS) -> None:
        self._namespace: Final = namespace
        self._patience: Final = patience
        self._created: Final[dict[str, float]] = {}
        self._latencies: Final[list[float]] = []
        self._rates: Final[list[float]] = []
        self._began = 0.0
        self._last = 0.0
        self._expected_count = 0
        self._reached: Final = asyncio.Event()
        self._rejected: Final[set[str]] = set()
        self._on_bound: Callable[[pod.Pod], None] = lambda _: None
        self._is_running = False
        pods.add_handler(informer.Handler(added=self._added, updated=self._updated))

    def begin(self, on_bound: Callable[[pod.Pod], None] = lambda _: None) -> None:
        """Start counting, and call ``on_bound`` with every pod that is bound."""
        self._on_bound = on_bound
        self._is_running = True
        self._began = time.perf_counter()

    def created(self, name: str, moment: float) -> None:
        """Note the time of a pod's creation, by the performance counter."""
        self._created.setdefault(name, moment)

    async def until(self, count: int) -> None:
        """Wait until this number of pods is bound.

        Raises:
            errors.InvalidValueError: no pod has been bound for a long time.
        """
        self._expected_count = count
        quiet, step = 0.0, min(SAMPLE_SECONDS, self._patience)
        while (bound := len(self._latencies)) < count:
            try:
                async with asyncio.timeout(step):
                    await self._reached.wait()
            except TimeoutError:
                quiet = quiet + step if len(self._latencies) == bound else 0.0
                are_rejected = bound + len(self._rejected) >= count
                if quiet >= (min(_REJECTED_SECONDS, self._patience) if are_rejected else self._patience):
                    raise errors.InvalidValueError(
                        f"{bound} of {count} pods were bound, and none for {quiet:g} seconds: the others do not fit"
                    ) from None

    async def sample(self) -> None:
        """Take a sample every second until cancelled; the first sample with bindings only starts the count."""
        previous, moment, skipped = 0, 0.0, 0
        while True:
            await asyncio.sleep(SAMPLE_SECONDS)
            now, bound = time.perf_counter(), len(self._latencies)
            if not moment:
                previous, moment = (bound, now) if bound else (0, 0.0)
            elif bound == previous:
                skipped += 1
            else:
                # A second without bindings is no sample of its own; it belongs to the next one with bindings.
                self._rates.extend([(bound - previous) / (now - moment)] * (skipped + 1))
                previous, moment, skipped = bound, now, 0

    def figures(self) -> Figures:
        """Return the results so far."""
        seconds = self._last - self._began
        bound = len(self._latencies)
        # A run that is too short for samples has only its overall rate.
        average = sum(self._rates) / len(self._rates) if self._rates else bound / seconds if seconds > 0 else 0.0
        return Figures(bound=bound, seconds=seconds, average=average, latencies=tuple(self._latencies))

    def _added(self, new: pod.Pod) -> None:
        if new.spec.node_name:
            self._bound(new)

    def _updated(self, old: pod.Pod, new: pod.Pod) -> None:
        if new.spec.node_name and not old.spec.node_name:
            self._bound(new)
        elif new.metadata.namespace == self._namespace and _is_rejected(new):
            self._rejected.add(new.metadata.name)

    def _bound(self, new: pod.Pod) -> None:
        if new.metadata.namespace != self._namespace or not self._is_running:
            return
        self._rejected.discard(new.metadata.name)
        self._last = time.perf_counter()
        # The answer to a create may arrive after the event of the binding; then the latency is 0.
        self._latencies.append(self._last - self._created.pop(new.metadata.name, self._last))
        if len(self._latencies) >= self._expected_count > 0:
            self._reached.set()
        self._on_bound(new)


def _is_rejected(candidate: pod.Pod) -> bool:
    """Return True if the scheduler has rejected a pod."""
    scheduled = conditions.find(candidate.status.conditions, wellknown.POD_SCHEDULED)
    return scheduled is not None and scheduled.status == "False"
