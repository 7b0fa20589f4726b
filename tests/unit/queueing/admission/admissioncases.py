"""Queues and workloads for cases of admission: one flavor, cpu, and local queues named like their cluster queues."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from drachma.queueing.admission.admitter import Admitter
from drachma.queueing.kinds import clusterqueue, decoding, localqueue, resourceflavor, workload
from drachma.queueing.workloads import admissibility
from drachma.queueing.workloads.settings import Settings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FLAVOR = "default"


def a_queue(
    name: str, nominal: int, *, flavor: str = FLAVOR, quota: dict[str, str] | None = None, **spec: Any
) -> clusterqueue.ClusterQueue:
    """A cluster queue of the cohort ``team`` with so many CPUs; ``quota`` has limits, ``spec`` any other field."""
    resource = {"name": "cpu", "nominalQuota": str(nominal), **(quota or {})}
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": flavor, "resources": [resource]}]}]
    document = {
        "metadata": {"name": name},
        "spec": {"cohortName": "team", "namespaceSelector": {}, "resourceGroups": groups, **spec},
    }
    return decoding.decode(document, clusterqueue.ClusterQueue)


def a_workload(
    name: str,
    queue: str,
    cpu: int,
    *,
    holds: bool = False,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> workload.Workload:
    """A workload of one pod: it waits, or ``holds`` its quota."""
    container = {"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}
    pod_set = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
    document: dict[str, Any] = {
        "metadata": {"name": name, "namespace": "ns", "uid": name, "annotations": annotations or {}},
        "spec": {"queueName": queue, "podSets": [pod_set], **spec},
    }
    if holds:
        assignment = {"name": "main", "count": 1, "flavors": {"cpu": FLAVOR}, "resourceUsage": {"cpu": str(cpu)}}
        reserved = {"type": "QuotaReserved", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        document["status"] = {
            "admission": {"clusterQueue": queue, "podSetAssignments": [assignment]},
            "conditions": [reserved],
        }
    return decoding.decode(document, workload.Workload)


def an_admitter(
    *queues: clusterqueue.ClusterQueue, settings: Settings | None = None, flavors: Iterable[str] = (FLAVOR,)
) -> Admitter:
    """Return an admitter with these queues, without quota holders or pending workloads."""
    new_admitter = Admitter(settings=settings or Settings())
    new_admitter.set_places({"ns": admissibility.Place()})
    set_queues(new_admitter, queues, flavors=flavors)
    return new_admitter


def set_queues(
    admitter: Admitter,
    queues: Iterable[clusterqueue.ClusterQueue],
    holders: Iterable[workload.Workload] = (),
    flavors: Iterable[str] = (FLAVOR,),
) -> None:
    """Set queues, a local queue for each, and quota holders."""
    queues = tuple(queues)
    names = [each.metadata.name for each in queues]
    locals_ = [{"metadata": {"name": name, "namespace": "ns"}, "spec": {"clusterQueue": name}} for name in names]
    admitter.set_queues(
        queues,
        local_queues=[decoding.decode(each, localqueue.LocalQueue) for each in locals_],
        flavors=[decoding.decode({"metadata": {"name": name}}, resourceflavor.ResourceFlavor) for name in flavors],
        holders=holders,
    )
