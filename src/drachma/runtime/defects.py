"""Defects: exceptions that no code expects, which one object may bring about and others must not suffer from.

A component that meets one reports it here, puts the object back to be tried again later, and goes on with the others.
Reports are logged with the object and counted, so that an alert can tell what a log line alone would hide.
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from prometheus_client import core, registry

from drachma.runtime.clock import Clock

_log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 60.0
"""Pauses before something that failed unexpectedly is tried again; they double."""


class Defects(registry.Collector):
    """Defects of a process so far, by component."""

    def __init__(self) -> None:
        self._counts: Final[Counter[str]] = Counter()

    def count(self, component: str) -> int:
        """Return the number of defects that a component has reported."""
        return self._counts[component]

    def components(self) -> dict[str, int]:
        """Return the number of defects by component."""
        return dict(self._counts)

    def report(self, component: str, subject: object) -> None:
        """Log the exception that is being handled, with the object that it is about, and count it."""
        self._counts[component] += 1
        _log.exception("%s: %s: failed unexpectedly", component, subject)

    def collect(self) -> Iterable[core.Metric]:
        """Return the metric ``drachma_unexpected_failures_total``."""
        family = core.CounterMetricFamily(
            "drachma_unexpected_failures",
            "Exceptions that a component did not expect. It has gone on without the object, and tries it again.",
            labels=["component"],
        )
        for component, count in sorted(self._counts.items()):
            family.add_metric([component], count)
        return [family]


PROCESS: Final = Defects()
"""Defects of this process."""


async def survive(component: str, work: Callable[[], Awaitable[None]], *, clock: Clock) -> None:
    """Run work that never ends, and start it again after a growing pause whenever it fails unexpectedly."""
    pause = FIRST_PAUSE_SECONDS
    while True:
        began = clock.monotonic()
        try:
            await work()
            return
        except Exception:
            PROCESS.report(component, f"starts again in {pause:g} seconds")
        if clock.monotonic() - began > LONGEST_PAUSE_SECONDS:
            pause = FIRST_PAUSE_SECONDS
        await clock.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
