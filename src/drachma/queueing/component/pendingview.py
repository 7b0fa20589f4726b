"""Pending workloads with their positions, as ``visibility.kueue.x-k8s.io`` serves them, from the component's memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import meta
from drachma.queueing.admission.admitter import Admitter
from drachma.queueing.workloads.workloadinfo import WorkloadInfo
from drachma.values import labels, quotation

_DEFAULT_LIMIT: Final = 1000
_MAX_LIMIT: Final = 100_000


class Window(msgspec.Struct, frozen=True):
    """Part of a queue that a request asks for."""

    offset: int = 0
    limit: int = _DEFAULT_LIMIT

    @classmethod
    def parse(cls, query: Mapping[str, Sequence[str]]) -> Window:
        """Return the window of a request. Raises errors.InvalidValueError for a parameter that is not a number."""
        offset, limit = _number(query, "offset"), _number(query, "limit")
        return cls(max(0, offset), min(max(0, limit or _DEFAULT_LIMIT), _MAX_LIMIT))


def _number(query: Mapping[str, Sequence[str]], name: str) -> int:
    values = query.get(name) or ("0",)
    number = labels.parse_int64(values[0])
    if number is None:
        raise errors.InvalidValueError(f"{name}: {quotation.quote(values[0])}: expected a whole number")
    return number


def list_cluster_queue(workloads: Iterable[WorkloadInfo], window: Window) -> list[dict[str, Any]]:
    """Return the pending workloads of a cluster queue, in its order, with their positions."""
    places: dict[tuple[str, str], int] = {}
    items = []
    for position, info in enumerate(workloads):
        if position >= window.offset + window.limit:
            break
        queue = (info.workload.metadata.namespace, info.workload.spec.queue_name)
        local = places.get(queue, 0)
        places[queue] = local + 1
        if position >= window.offset:
            items.append(_item(info, position, local=local))
    return items


def list_local_queue(
    workloads: Iterable[WorkloadInfo], namespace: str, name: str, *, window: Window
) -> list[dict[str, Any]]:
    """Return the pending workloads of one local queue."""
    own = [
        (position, info)
        for position, info in enumerate(workloads)
        if (info.workload.metadata.namespace, info.workload.spec.queue_name) == (namespace, name)
    ]
    part = own[window.offset : window.offset + window.limit]
    return [_item(info, position, local=window.offset + local) for local, (position, info) in enumerate(part)]


def _item(info: WorkloadInfo, position: int, *, local: int) -> dict[str, Any]:
    metadata = info.workload.metadata
    owners = [
        {"apiVersion": each.api_version, "kind": each.kind, "name": each.name, "uid": each.uid}
        for each in metadata.owner_references
    ]
    created = metadata.creation_timestamp
    return {
        "metadata": {
            "name": str(metadata.name),
            "namespace": str(metadata.namespace),
            **({"creationTimestamp": meta.time_text(created)} if created is not None else {}),
            **({"ownerReferences": owners} if owners else {}),
        },
        "priority": int(info.workload.spec.priority or 0),
        "localQueueName": str(info.workload.spec.queue_name),
        "positionInClusterQueue": position,
        "positionInLocalQueue": local,
    }


class PendingView:
    """Shows the queues of the admitter that the component runs. It is made before the component."""

    def __init__(self) -> None:
        self._admitter: Admitter | None = None

    def show(self, admitter: Admitter) -> None:
        """Show the queues of an admitter from now on."""
        self._admitter = admitter

    def cluster_queue(self, name: str, query: Mapping[str, Sequence[str]]) -> list[dict[str, Any]] | None:
        """Return the pending workloads of a cluster queue, or None if it does not exist.

        Raises:
            errors.InvalidValueError: a parameter of the query is not a number.
        """
        window = Window.parse(query)
        queue = self._admitter.queues.get(name) if self._admitter is not None else None
        return None if queue is None else list_cluster_queue(queue.waiting(), window)

    def local_queue(self, namespace: str, name: str, query: Mapping[str, Sequence[str]]) -> list[dict[str, Any]] | None:
        """Like cluster_queue(), for a local queue; None too if its cluster queue does not exist."""
        window = Window.parse(query)
        if self._admitter is None:
            return None
        queue = self._admitter.queues.get(self._admitter.cluster_queue_of(namespace, name) or "")
        return None if queue is None else list_local_queue(queue.waiting(), namespace, name, window=window)
