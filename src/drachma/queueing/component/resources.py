"""The resources that queueing reads and writes, with the types of their objects."""

from typing import Final, TypeVar

from drachma.api import job, meta, statefulset
from drachma.client import target
from drachma.queueing.configuration import frameworks
from drachma.queueing.kinds import (
    admissioncheck,
    classes,
    clusterqueue,
    localqueue,
    multikueue,
    provisioning,
    resourceflavor,
    topology,
    workload,
)

GROUP: Final = "kueue.x-k8s.io"
VERSION: Final = "v1beta2"

ObjectT = TypeVar("ObjectT", bound=meta.Object)


def _kueue(
    plural: str, model: type[ObjectT], *, namespaced: bool = False, is_optional: bool = False
) -> target.Target[ObjectT]:
    return target.Target(
        group=GROUP,
        versions=(VERSION,),
        plural=plural,
        kind=model.__name__,
        namespaced=namespaced,
        model=model,
        is_optional=is_optional,
    )


WORKLOADS: Final = _kueue("workloads", workload.Workload, namespaced=True)
CLUSTER_QUEUES: Final = _kueue("clusterqueues", clusterqueue.ClusterQueue)
COHORTS: Final = _kueue("cohorts", clusterqueue.Cohort)
LOCAL_QUEUES: Final = _kueue("localqueues", localqueue.LocalQueue, namespaced=True)
FLAVORS: Final = _kueue("resourceflavors", resourceflavor.ResourceFlavor)
TOPOLOGIES: Final = _kueue("topologies", topology.Topology)
CHECKS: Final = _kueue("admissionchecks", admissioncheck.AdmissionCheck)
MULTI_KUEUE_CLUSTERS: Final = _kueue("multikueueclusters", multikueue.MultiKueueCluster, is_optional=True)
MULTI_KUEUE_CONFIGS: Final = _kueue("multikueueconfigs", multikueue.MultiKueueConfig, is_optional=True)
PROVISIONING_CONFIGS: Final = _kueue(
    "provisioningrequestconfigs", provisioning.ProvisioningRequestConfig, is_optional=True
)
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


class _Job(meta.Object, frozen=True, kw_only=True):
    """Object of another project, of which only the metadata is typed; its controller reads the document."""


def _optional(kind: frameworks.GroupVersionKind) -> target.Target[_Job]:
    """Return the resource of a kind that users install."""
    return target.Target(
        group=kind.group,
        versions=(kind.version,),
        plural=f"{kind.kind.lower()}s",
        kind=kind.kind,
        namespaced=True,
        model=_Job,
        is_optional=True,
    )


POD_TEMPLATES: Final = target.metadata_of("", "v1", plural="podtemplates", kind="PodTemplate", namespaced=True)
PROVISIONING_REQUESTS: Final = _optional(
    frameworks.GroupVersionKind("autoscaling.x-k8s.io", "v1", "ProvisioningRequest")
)
STATEFUL_SETS: Final = target.of(statefulset.StatefulSet)
LEADER_WORKER_SETS: Final = _optional(frameworks.KINDS[frameworks.LEADER_WORKER_SET])
JOBS: Final = target.of(job.Job)
JOB_SETS: Final = _optional(frameworks.KINDS[frameworks.JOB_SET])
INSTALLED_JOBS: Final = {name: _optional(frameworks.KINDS[name]) for name in frameworks.INSTALLED_JOBS}
"""Resources of other projects by the name of their kind in configurations."""
