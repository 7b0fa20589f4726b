"""Kinds of jobs that configurations may name, with their API kinds."""

from typing import Final, NamedTuple


class GroupVersionKind(NamedTuple):
    """An API kind in one version."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """The apiVersion of objects."""
        return f"{self.group}/{self.version}" if self.group else self.version


BATCH_JOB: Final = "batch/job"
JOB_SET: Final = "jobset.x-k8s.io/jobset"
POD: Final = "pod"

KINDS: Final = {
    BATCH_JOB: GroupVersionKind("batch", "v1", "Job"),
    "deployment": GroupVersionKind("apps", "v1", "Deployment"),
    JOB_SET: GroupVersionKind("jobset.x-k8s.io", "v1alpha2", "JobSet"),
    "kubeflow.org/jaxjob": GroupVersionKind("kubeflow.org", "v1", "JAXJob"),
    "kubeflow.org/mpijob": GroupVersionKind("kubeflow.org", "v2beta1", "MPIJob"),
    "kubeflow.org/paddlejob": GroupVersionKind("kubeflow.org", "v1", "PaddleJob"),
    "kubeflow.org/pytorchjob": GroupVersionKind("kubeflow.org", "v1", "PyTorchJob"),
    "kubeflow.org/tfjob": GroupVersionKind("kubeflow.org", "v1", "TFJob"),
    "kubeflow.org/xgboostjob": GroupVersionKind("kubeflow.org", "v1", "XGBoostJob"),
    "leaderworkerset.x-k8s.io/leaderworkerset": GroupVersionKind("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet"),
    POD: GroupVersionKind("", "v1", "Pod"),
    "ray.io/raycluster": GroupVersionKind("ray.io", "v1", "RayCluster"),
    "ray.io/rayjob": GroupVersionKind("ray.io", "v1", "RayJob"),
    "ray.io/rayservice": GroupVersionKind("ray.io", "v1", "RayService"),
    "sparkoperator.k8s.io/sparkapplication": GroupVersionKind("sparkoperator.k8s.io", "v1beta2", "SparkApplication"),
    "statefulset": GroupVersionKind("apps", "v1", "StatefulSet"),
    "trainer.kubeflow.org/trainjob": GroupVersionKind("trainer.kubeflow.org", "v1alpha1", "TrainJob"),
    "workload.codeflare.dev/appwrapper": GroupVersionKind("workload.codeflare.dev", "v1beta2", "AppWrapper"),
}
"""API kinds by the name that configurations use, in the order of messages."""

INSTALLED_JOBS: Final = (
    "kubeflow.org/jaxjob",
    "kubeflow.org/mpijob",
    "kubeflow.org/paddlejob",
    "kubeflow.org/pytorchjob",
    "kubeflow.org/tfjob",
    "kubeflow.org/xgboostjob",
    "ray.io/raycluster",
    "ray.io/rayjob",
    "ray.io/rayservice",
    "trainer.kubeflow.org/trainjob",
    "workload.codeflare.dev/appwrapper",
)
"""Kinds of jobs that users install with other projects."""

DEPLOYMENT: Final = "deployment"
STATEFUL_SET: Final = "statefulset"
LEADER_WORKER_SET: Final = "leaderworkerset.x-k8s.io/leaderworkerset"
POD_PARENTS: Final = (DEPLOYMENT, LEADER_WORKER_SET, STATEFUL_SET)
"""Kinds that are queued through their pods; each enables the pod integration for its own pods."""

CARRIED_OUT: Final = (BATCH_JOB, JOB_SET, POD, *INSTALLED_JOBS, *POD_PARENTS)
"""Frameworks that have an implementation here."""

NOT_DISPATCHED: Final = frozenset({"deployment", "sparkoperator.k8s.io/sparkapplication"})
"""Frameworks whose jobs Kueue cannot dispatch to other clusters."""


def parse_kind(text: str) -> GroupVersionKind | None:
    """Return the kind in the form ``Kind.version.group.com``, or None for another form."""
    kind, _, version_and_group = text.partition(".")
    version, dot, group = version_and_group.partition(".")
    return GroupVersionKind(group, version, kind) if dot else None
