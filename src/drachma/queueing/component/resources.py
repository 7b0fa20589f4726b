"""The resources that queueing reads and writes, with the types of their objects."""

from typing import Final, TypeVar

from drachma.api import job, meta
from drachma.client import target
from drachma.queueing.kinds import (
    admissioncheck,
    classes,
    clusterqueue,
    localqueue,
    resourceflavor,
    topology,
    workload,
)

GROUP: Final = "kueue.x-k8s.io"
VERSION: Final = "v1beta2"

ObjectT = TypeVar("ObjectT", bound=meta.Object)


def _kueue(plural: str, model: type[ObjectT], *, namespaced: bool = False) -> target.Target[ObjectT]:
    return target.Target(
        group=GROUP, versions=(VERSION,), plural=plural, kind=model.__name__, namespaced=namespaced, model=model
    )


WORKLOADS: Final = _kueue("workloads", workload.Workload, namespaced=True)
CLUSTER_QUEUES: Final = _kueue("clusterqueues", clusterqueue.ClusterQueue)
COHORTS: Final = _kueue("cohorts", clusterqueue.Cohort)
LOCAL_QUEUES: Final = _kueue("localqueues", localqueue.LocalQueue, namespaced=True)
FLAVORS: Final = _kueue("resourceflavors", resourceflavor.ResourceFlavor)
TOPOLOGIES: Final = _kueue("topologies", topology.Topology)
CHECKS: Final = _kueue("admissionchecks", admissioncheck.AdmissionCheck)
WORKLOAD_PRIORITIES: Final = _kueue("workloadpriorityclasses", classes.WorkloadPriorityClass)
POD_PRIORITIES: Final = target.Target(
    group="scheduling.k8s.io",
    versions=("v1",),
    plural="priorityclasses",
    kind="PriorityClass",
    namespaced=False,
    model=classes.PriorityClass,
)
RUNTIME_CLASSES: Final = target.Target(
    group="node.k8s.io",
    versions=("v1",),
    plural="runtimeclasses",
    kind="RuntimeClass",
    namespaced=False,
    model=classes.RuntimeClass,
)


class _JobSet(meta.Object, frozen=True, kw_only=True):
    """JobSet, of which only the metadata is typed; the controller of JobSets reads the document."""


JOBS: Final = target.of(job.Job)
JOB_SETS: Final = target.Target(
    group="jobset.x-k8s.io",
    versions=("v1alpha2",),
    plural="jobsets",
    kind="JobSet",
    namespaced=True,
    model=_JobSet,
    is_optional=True,
)
