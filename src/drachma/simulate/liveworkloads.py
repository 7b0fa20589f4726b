"""What of a running cluster stands for pods that are not there yet, as documents.

That is suspended Jobs, Kueue's Workloads, and the priority classes that their pods may name. Who plans for such pods
makes them of these documents in the same way as of files (:mod:`drachma.offline.clusterfiles`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from drachma.api import codec, job, meta
from drachma.api.struct import ABSENT_INT, ABSENT_MAP
from drachma.client import Client, target
from drachma.scheduler.recording import essentials
from drachma.simulate import livecluster


class _Whole(meta.Object, frozen=True, kw_only=True):
    """An object of which nothing is looked at here."""

    spec: Mapping[str, Any] = ABSENT_MAP
    status: Mapping[str, Any] = ABSENT_MAP
    value: int = ABSENT_INT
    global_default: bool | None = None


_WORKLOADS: Final = target.Target(
    group="kueue.x-k8s.io",
    versions=("v1beta2", "v1beta1"),
    plural="workloads",
    kind="Workload",
    namespaced=True,
    model=_Whole,
    is_optional=True,
)
_CLASSES: Final = target.Target(
    group="scheduling.k8s.io",
    versions=("v1",),
    plural="priorityclasses",
    kind="PriorityClass",
    namespaced=False,
    model=_Whole,
)


async def read(client: Client) -> list[dict[str, Any]]:
    """All such documents, without what containers run."""
    jobs = await livecluster.everything(client, job.Job)
    documents = [codec.encode(essentials.of(each)) for each in jobs if isinstance(each, job.Job) and each.spec.suspend]
    for resource in (_WORKLOADS, _CLASSES):
        head = {"apiVersion": resource.api_version(resource.versions[0]), "kind": resource.kind}
        for each in await livecluster.everything(client, resource):
            content: dict[str, Any] = msgspec.json.decode(codec.encode_part(essentials.of(each)))
            documents.append({**head, **content})
    return documents
