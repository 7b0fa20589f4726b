"""Measuring as upstream does: pods bound per second, sampled every second, and how long each pod took."""

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
"""After how long without any pod bound those that are left are taken not to fit."""

_REJECTED_SECONDS: Final = 5.0
"""The same where the scheduler has said of each of them that it does not fit."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What a run comes to; rates in pods per second, the rest in seconds."""

    bound: int
    seconds: float
    """From the first pod created to the last one bound."""
    average: float
    """The average of the samples, which is upstream's throughput."""
    latencies: tuple[float, ...] = ()
    """From the moment a pod is created until it is known to be bound."""

    @property
    def overall(self) -> float:
        return self.bound / self.seconds if self.seconds else 0.0

    def latency(self, percent: float) -> float:
        """A percentile of the latencies."""
        return percentile(self.latencies, percent)


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that so many per cent of the sorted values do not exceed; 0 where there are none."""
    ordered = sorted(values)
    return ordered[max(math.ceil(len(ordered) * percent / 100) - 1, 0)] if ordered else 0.0


class Meter:
    """Watches the pods of one namespace become bound."""

    def __init__(self, place: str, pods: informer.Informer[pod.Pod], *, patience: float = PATIENCE_SECONDS) -> None:
        self._place: Final = place
        self._patience: Final = patience
        self._created: Final[dict[str, float]] = {}
        self._latencies: Final[list[float]] = []
        self._rates: Final[list[float]] = []
        self._began = 0.0
        self._last = 0.0
        self._wanted = 0
        self._reached: Final = asyncio.Event()
        self._rejected: Final[set[str]] = set()
        self._heard: Callable[[pod.Pod], None] = lambda _: None
        self._is_running = False
        pods.add_handler(informer.Handler(added=self._added, updated=self._updated))

    def begin(self, heard: Callable[[pod.Pod], None] = lambda _: None) -> None:
        """Counts from now on; ``heard`` gets every pod that was bound."""
        self._heard = heard
        self._is_running = True
        self._began = time.perf_counter()

    def created(self, name: str, moment: float) -> None:
        """A pod was created at a moment of the performance counter."""
        self._created.setdefault(name, moment)

    async def until(self, count: int) -> None:
        """Returns when so many pods are bound.

        Raises:
            errors.InvalidValueError: none of those that are left has been bound for a long time.
        """
        self._wanted = count
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
        """Takes a sample every second until cancelled; the first one that has pods only begins the count."""
        known, moment, skipped = 0, 0.0, 0
        while True:
            await asyncio.sleep(SAMPLE_SECONDS)
            now, bound = time.perf_counter(), len(self._latencies)
            if not moment:
                known, moment = (bound, now) if bound else (0, 0.0)
            elif bound == known:
                skipped += 1
            else:
                # A second without any pod is not a sample of its own: it belongs to the next that has some.
                self._rates.extend([(bound - known) / (now - moment)] * (skipped + 1))
                known, moment, skipped = bound, now, 0

    def figures(self) -> Figures:
        """What there is so far."""
        seconds = self._last - self._began
        bound = len(self._latencies)
        # Too short for samples: what there is of a rate is the overall one.
        average = sum(self._rates) / len(self._rates) if self._rates else bound / seconds if seconds > 0 else 0.0
        return Figures(bound=bound, seconds=seconds, average=average, latencies=tuple(self._latencies))

    def _added(self, new: pod.Pod) -> None:
        if new.spec.node_name:
            self._bound(new)

    def _updated(self, old: pod.Pod, new: pod.Pod) -> None:
        if new.spec.node_name and not old.spec.node_name:
            self._bound(new)
        elif new.metadata.namespace == self._place and _is_rejected(new):
            self._rejected.add(new.metadata.name)

    def _bound(self, new: pod.Pod) -> None:
        if new.metadata.namespace != self._place or not self._is_running:
            return
        self._rejected.discard(new.metadata.name)
        self._last = time.perf_counter()
        # The answer to a create may come after the news of the binding; then the pod was quick.
        self._latencies.append(self._last - self._created.pop(new.metadata.name, self._last))
        if len(self._latencies) >= self._wanted > 0:
            self._reached.set()
        self._heard(new)


def _is_rejected(of: pod.Pod) -> bool:
    """Whether the scheduler says that a pod fits nowhere."""
    scheduled = conditions.find(of.status.conditions, wellknown.POD_SCHEDULED)
    return scheduled is not None and scheduled.status == "False"
