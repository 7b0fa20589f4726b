"""Requests to write the status of queues and cohorts, and to check finalizers, collected for a second.

Many workloads change at once, and one write reports all of them. Keys are names of cluster queues, ``namespace/name``
of local queues, and names of flavors, cohorts and topologies with a prefix.
"""

from __future__ import annotations

from typing import Final

from drachma.runtime import Surroundings, workqueue

FLAVOR: Final = "flavor:"
COHORT: Final = "cohort:"
TOPOLOGY: Final = "topology:"

_DELAY_SECONDS: Final = 1.0


class StatusRequests:
    """The work queue of the queue controller, to which admission adds too."""

    def __init__(self, surroundings: Surroundings) -> None:
        self.queue: Final[workqueue.Queue[str]] = workqueue.Queue(
            "kueue_queue", clock=surroundings.clock, metrics=surroundings.queues
        )

    def add(self, key: str) -> None:
        """Request a status write soon."""
        self.queue.add_after(key, _DELAY_SECONDS)

    def add_flavor(self, name: str) -> None:
        """Request a check of a flavor's finalizer soon."""
        self.add(f"{FLAVOR}{name}")

    def add_topology(self, name: str) -> None:
        """Request a check of a topology's finalizer soon."""
        self.add(f"{TOPOLOGY}{name}")

    def add_cohort(self, name: str) -> None:
        """Request a write of a cohort's status soon."""
        self.add(f"{COHORT}{name}")
