"""Who waits where: the answers of ``visibility.kueue.x-k8s.io``, with places in cluster queue and local queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import meta
from drachma.queueing.workloads.workloadinfo import WorkloadInfo
from drachma.values import labels, quotation

KIND: Final = "PendingWorkloadsSummary"
_DEFAULT_LIMIT: Final = 1000
_MOST: Final = 100_000


class Window(msgspec.Struct, frozen=True):
    """Which part of a queue is asked for."""

    offset: int = 0
    limit: int = _DEFAULT_LIMIT

    @classmethod
    def of(cls, query: Mapping[str, Sequence[str]]) -> Window:
        """From the parameters of a request; InvalidValueError for one that is no number."""
        offset, limit = _number(query, "offset"), _number(query, "limit")
        return cls(max(0, offset), min(max(0, limit or _DEFAULT_LIMIT), _MOST))


def _number(query: Mapping[str, Sequence[str]], name: str) -> int:
    values = query.get(name) or ("0",)
    number = labels.parse_int64(values[0])
    if number is None:
        raise errors.InvalidValueError(f"{name}: {quotation.quote(values[0])}: expected a whole number")
    return number


def of_cluster_queue(waiting: Iterable[WorkloadInfo], window: Window) -> list[dict[str, Any]]:
    """Those who wait for a cluster queue, in its order."""
    places: dict[tuple[str, str], int] = {}
    items = []
    for position, info in enumerate(waiting):
        if position >= window.offset + window.limit:
            break
        queue = (info.workload.metadata.namespace, info.workload.spec.queue_name)
        local = places.get(queue, 0)
        places[queue] = local + 1
        if position >= window.offset:
            items.append(_item(info, position, local=local))
    return items


def of_local_queue(
    waiting: Iterable[WorkloadInfo], namespace: str, name: str, *, window: Window
) -> list[dict[str, Any]]:
    """Those of them who came by one local queue."""
    own = [
        (position, info)
        for position, info in enumerate(waiting)
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
