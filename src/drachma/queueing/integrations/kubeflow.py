"""Jobs of Kubeflow's training operator and of its MPI operator: one pod set for each type of replicas."""

from __future__ import annotations

from typing import ClassVar, Final

from drachma.queueing.configuration import frameworks
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.jobs import topologyrequest
from drachma.queueing.jobs.interface import Completion, Document
from drachma.queueing.jobs.templatejob import TemplateJob, TemplateSlot, put_path
from drachma.queueing.topology import ungating

_INDEX_LABEL: Final = "training.kubeflow.org/replica-index"


class KubeflowJob(TemplateJob):
    """A job with ``runPolicy`` and replica specs by type."""

    managed_by_path: ClassVar = ("runPolicy", "managedBy")
    own_controller: ClassVar = "kubeflow.org/training-operator"
    replicas_field: ClassVar[str]
    """Field of the spec with the replica specs."""
    replica_types: ClassVar[tuple[str, ...]]
    """Types of replicas in the order of pod sets."""

    @property
    def slots(self) -> list[TemplateSlot]:
        specs = self.spec.get(self.replicas_field) or {}
        return [
            TemplateSlot(
                pod_set=kind.lower(),
                path=(self.replicas_field, kind, "template"),
                pods=1 if specs[kind].get("replicas") is None else int(specs[kind]["replicas"]),
                index_label=_INDEX_LABEL,
            )
            for kind in self.replica_types
            if specs.get(kind) is not None
        ]

    @property
    def pod_priority_class(self) -> str:
        policy = (self.spec.get("runPolicy") or {}).get("schedulingPolicy") or {}
        return str(policy.get("priorityClass") or "")

    @property
    def is_suspended(self) -> bool:
        return bool((self.spec.get("runPolicy") or {}).get("suspend"))

    def _set(self, spec: Document, *, is_suspended: bool) -> None:
        policy = {**(spec.get("runPolicy") or {}), "suspend": is_suspended}
        self.document = {**self.document, "spec": {**spec, "runPolicy": policy}}

    @property
    def is_active(self) -> bool:
        return any(each.get("active") for each in (self.status.get("replicaStatuses") or {}).values())

    @property
    def are_pods_ready(self) -> bool:
        return self.is_condition_true("Running")

    @property
    def completion(self) -> Completion | None:
        for each in self.status.get("conditions") or ():
            if each["type"] in ("Succeeded", "Failed") and each["status"] == "True":
                return Completion(each["type"] == "Succeeded", each.get("message", ""))
        return None


class PyTorchJob(KubeflowJob):
    """A PyTorchJob."""

    kind: ClassVar = frameworks.KINDS["kubeflow.org/pytorchjob"]
    replicas_field: ClassVar = "pytorchReplicaSpecs"
    replica_types: ClassVar = ("Master", "Worker")


class TFJob(KubeflowJob):
    """A TFJob."""

    kind: ClassVar = frameworks.KINDS["kubeflow.org/tfjob"]
    replicas_field: ClassVar = "tfReplicaSpecs"
    replica_types: ClassVar = ("Chief", "Master", "PS", "Worker", "Evaluator")


class XGBoostJob(KubeflowJob):
    """An XGBoostJob."""

    kind: ClassVar = frameworks.KINDS["kubeflow.org/xgboostjob"]
    replicas_field: ClassVar = "xgbReplicaSpecs"
    replica_types: ClassVar = ("Master", "Worker")


class PaddleJob(KubeflowJob):
    """A PaddleJob."""

    kind: ClassVar = frameworks.KINDS["kubeflow.org/paddlejob"]
    replicas_field: ClassVar = "paddleReplicaSpecs"
    replica_types: ClassVar = ("Master", "Worker")


class JAXJob(KubeflowJob):
    """A JAXJob."""

    kind: ClassVar = frameworks.KINDS["kubeflow.org/jaxjob"]
    replicas_field: ClassVar = "jaxReplicaSpecs"
    replica_types: ClassVar = ("Worker",)


class MPIJob(KubeflowJob):
    """An MPIJob."""

    kind: ClassVar = frameworks.KINDS["kubeflow.org/mpijob"]
    own_controller: ClassVar = "kubeflow.org/mpi-operator"
    replicas_field: ClassVar = "mpiReplicaSpecs"
    replica_types: ClassVar = ("Launcher", "Worker")

    def prepare(self, gates: Gates) -> None:
        """Note that workers are numbered after a launcher that is a worker, unless a group places them together."""
        templates = {slot.path[1]: self.template(slot) for slot in self.slots}
        is_numbered = bool(self.spec.get("runLauncherAsWorker")) and len(templates) == len(self.replica_types)
        if not gates.on(Gate.TAS) or not is_numbered:
            return
        launcher, worker = (templates[kind].get("metadata") or {} for kind in self.replica_types)
        if topologyrequest.GROUP_NAME in (launcher.get("annotations") or {}):
            return
        annotations = {**(worker.get("annotations") or {}), ungating.INDEX_OFFSET: "1"}
        path = (self.replicas_field, "Worker", "template", "metadata", "annotations")
        self.document = {**self.document, "spec": put_path(self.spec, path, annotations)}
