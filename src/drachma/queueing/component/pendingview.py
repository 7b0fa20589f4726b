"""A view of who waits, for somebody else in the process to show; it sees what the component that runs has in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drachma.queueing.admission import visibility
from drachma.queueing.admission.admitter import Admitter


class PendingView:
    """Made before the component, which says whose queues it shows."""

    def __init__(self) -> None:
        self._admitter: Admitter | None = None

    def show(self, admitter: Admitter) -> None:
        """Shows the queues of an admitter from now on."""
        self._admitter = admitter

    def cluster_queue(self, name: str, query: Mapping[str, Sequence[str]]) -> list[dict[str, Any]] | None:
        """Who waits for a cluster queue; None where there is no such queue.

        Raises:
            errors.InvalidValueError: the query makes no sense.
        """
        window = visibility.Window.of(query)
        queue = self._admitter.queues.get(name) if self._admitter is not None else None
        return None if queue is None else visibility.of_cluster_queue(queue.waiting(), window)

    def local_queue(self, namespace: str, name: str, query: Mapping[str, Sequence[str]]) -> list[dict[str, Any]] | None:
        """Who waits by a local queue; None where there is none, or nothing behind it. InvalidValueError as above."""
        window = visibility.Window.of(query)
        if self._admitter is None:
            return None
        queue = self._admitter.queues.get(self._admitter.queue_behind(namespace, name) or "")
        return None if queue is None else visibility.of_local_queue(queue.waiting(), namespace, name, window=window)
