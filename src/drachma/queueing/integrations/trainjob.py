"""TrainJob of Kubeflow's trainer as a GenericJob.

A TrainJob has no pod templates. Its controller creates a JobSet from a training runtime, with the values of the
TrainJob and its ``runtimePatches`` applied. The pod sets are those of that JobSet. Kueue starts the job through a patch
of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from drachma.queueing.configuration import frameworks
from drachma.queueing.configuration.frameworks import GroupVersionKind
from drachma.queueing.configuration.gates import Gates
from drachma.queueing.integrations.jobset import JobSet
from drachma.queueing.jobs.interface import Completion, Document, Reference, RetryError
from drachma.queueing.jobs.suspendable import SuspendableJob
from drachma.queueing.jobs.templatejob import put_path
from drachma.queueing.workloads import podsetinfo
from drachma.queueing.workloads.podsetinfo import PodSetInfo

MANAGER: Final = "kueue.x-k8s.io/manager"
"""Manager of the runtime patch that belongs to Kueue."""

_CLUSTER_RUNTIME: Final = "ClusterTrainingRuntime"
_ANCESTOR_LABEL: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
_TRAINER: Final = "trainer"
_INITIALIZERS: Final = ("dataset-initializer", "model-initializer")
_NODE: Final = "node"
"""Name of the replicated job, and of its container, that trains."""
_MERGE_KEYS: Final = {
    "volumeMounts": "mountPath",
    **dict.fromkeys(
        (
            "replicatedJobs", "containers", "initContainers", "env", "volumes", "imagePullSecrets", "schedulingGates",
            "resourceClaims",
        ),
        "name",
    ),
}  # fmt: skip
"""Lists that a runtime patch merges item by item, with the field that identifies an item."""


class TrainJob(SuspendableJob):
    """A TrainJob. ``related`` has its runtime."""

    kind: ClassVar = frameworks.KINDS["trainer.kubeflow.org/trainjob"]
    own_controller: ClassVar = "trainer.kubeflow.org/trainjob-controller"

    @classmethod
    def references(cls, document: Document) -> Sequence[Reference]:
        reference = (document.get("spec") or {}).get("runtimeRef") or {}
        kind = reference.get("kind") or _CLUSTER_RUNTIME
        namespace = "" if kind == _CLUSTER_RUNTIME else document["metadata"].get("namespace", "")
        group = reference.get("apiGroup") or cls.kind.group
        return [Reference(GroupVersionKind(group, cls.kind.version, kind), namespace, reference.get("name", ""))]

    # State

    @property
    def is_active(self) -> bool:
        return any(each.get("active") for each in self.status.get("jobsStatus") or ())

    @property
    def completion(self) -> Completion | None:
        conditions = {each["type"]: each for each in self.status.get("conditions") or () if each["status"] == "True"}
        for kind, is_success in (("Complete", True), ("Failed", False)):
            if kind in conditions:
                return Completion(is_success, conditions[kind].get("message", ""))
        return None

    @property
    def are_pods_ready(self) -> bool:
        return self.has_runtime and self.job_set().are_pods_ready

    @property
    def reclaimable_pods(self) -> Mapping[str, int]:
        return self.job_set().reclaimable_pods if self.status.get("jobsStatus") and self.has_runtime else {}

    def pod_sets(self, gates: Gates) -> list[dict[str, Any]]:
        return self.job_set().pod_sets(gates)

    # The JobSet

    @property
    def has_runtime(self) -> bool:
        """True if the runtime exists that the job refers to."""
        return self._runtime() is not None

    def _runtime(self) -> Document | None:
        (reference,) = self.references(self.document)
        return self.related.get((reference.kind.api_version, reference.kind.kind, reference.name))

    def job_set(self) -> JobSet:
        """Return the JobSet that the trainer creates, with this job's state. Raises RetryError without a runtime."""
        runtime = self._runtime()
        if runtime is None:
            raise RetryError(f"runtime '{(self.spec.get('runtimeRef') or {}).get('name', '')}' not found")
        spec = ((runtime.get("spec") or {}).get("template") or {}).get("spec") or {}
        for patch in self._patches:
            spec = _merge(spec, _patched_spec(patch))
        policy = (runtime.get("spec") or {}).get("mlPolicy") or {}
        jobs = [self._replicated_job(each, policy) for each in spec.get("replicatedJobs") or ()]
        status = {"replicatedJobsStatus": self.status.get("jobsStatus") or ()}
        return JobSet({"metadata": self.metadata, "spec": {**spec, "replicatedJobs": jobs}, "status": status})

    def _replicated_job(self, job: Document, policy: Document) -> Document:
        """Return a replicated job of the runtime with the values of the TrainJob."""
        trainer = self.spec.get(_TRAINER) or {}
        template = job.get("template") or {}
        ancestor = ((template.get("metadata") or {}).get("labels") or {}).get(_ANCESTOR_LABEL, "")
        pods = self._pods(job, ancestor, policy)
        job = _merge(job, {"template": {"spec": {"parallelism": pods, "completions": pods}}})
        values: dict[str, Any] = {}
        if ancestor == _TRAINER:
            values |= {name: trainer[name] for name in ("image", "command", "args") if trainer.get(name) is not None}
        is_node = (policy.get("mpi") or {}).get("runLauncherAsNode") and job.get("name") == _NODE
        if (ancestor == _TRAINER and policy) or is_node:
            values |= {"resources": trainer["resourcesPerNode"]} if trainer.get("resourcesPerNode") else {}
        if ancestor == _TRAINER or is_node:
            values |= {"env": trainer["env"]} if trainer.get("env") else {}
        if values:
            job = _with_container(job, _NODE, values)
        return {**job, "replicas": 1} if ancestor in (_TRAINER, *_INITIALIZERS) else job

    def _pods(self, job: Document, ancestor: str, policy: Document) -> int:
        """Return the number of pods of a replicated job."""
        nodes = (self.spec.get(_TRAINER) or {}).get("numNodes")
        mpi = policy.get("mpi")
        if mpi is not None:
            if job.get("name") == _NODE and nodes is not None:
                return max(int(nodes) - 1, 1) if mpi.get("runLauncherAsNode") else int(nodes)
        elif ancestor == _TRAINER and nodes is not None:
            return int(nodes)
        if ancestor == _TRAINER and policy:
            return int(policy.get("numNodes") or 1)
        parallelism = ((job.get("template") or {}).get("spec") or {}).get("parallelism")
        return 1 if parallelism is None else int(parallelism)

    # Changes of the job

    def prepare(self, gates: Gates) -> None:
        """Add Kueue's runtime patch, which the trainer only accepts while the job is suspended."""
        if not any(each.get("manager") == MANAGER for each in self._patches):
            self._set_patch({})

    def start(self, infos: Sequence[PodSetInfo]) -> None:
        job_set = self.job_set()
        slots = job_set.slots
        podsetinfo.check_count(infos, len(slots))
        patches = [
            {"name": info.name, "template": {"spec": {"template": _template_patch(info, job_set.template(slot))}}}
            for slot, info in zip(slots, infos, strict=True)
        ]
        self._set_patch({"replicatedJobs": patches})
        self.set_spec(suspend=False)

    def restore(self, infos: Sequence[PodSetInfo]) -> None:
        """Suspend the job. The trainer accepts the removal of patches when no pod is left."""
        self.suspend()
        if not self.is_active:
            self._set_patch({})

    def _set_patch(self, spec: Document) -> None:
        """Set Kueue's runtime patch. Patches are applied in their order, so that it keeps its place."""
        patch = {"manager": MANAGER, "trainingRuntimeSpec": {"template": {"spec": spec}}}
        patches = [patch if each.get("manager") == MANAGER else each for each in self._patches]
        self.set_spec(runtimePatches=patches if patch in patches else [*patches, patch])

    @property
    def _patches(self) -> Sequence[Document]:
        return self.spec.get("runtimePatches") or ()


def _patched_spec(patch: Document) -> Document:
    """Return the part of a runtime patch that changes the spec of the JobSet."""
    template = (patch.get("trainingRuntimeSpec") or {}).get("template") or {}
    return template.get("spec") or {}


def _template_patch(info: PodSetInfo, template: Document) -> dict[str, Any]:
    """Return the changes of a pod template that admission makes. Tolerations replace those of the runtime."""
    tolerations: Sequence[Document] = info.tolerations
    if tolerations:
        present = podsetinfo.template_info(template).tolerations
        own = [each for each in present if not any(podsetinfo.is_same_toleration(each, added) for added in tolerations)]
        tolerations = [*own, *tolerations]
    metadata = {"annotations": dict(info.annotations), "labels": dict(info.labels)}
    spec = {
        "nodeSelector": dict(info.node_selector),
        "tolerations": list(tolerations),
        "schedulingGates": list(info.scheduling_gates),
    }
    filled = {
        field: {name: value for name, value in part.items() if value}
        for field, part in (("metadata", metadata), ("spec", spec))
    }
    return {field: part for field, part in filled.items() if part}


def _with_container(job: Document, name: str, values: Document) -> Document:
    """Return a replicated job with other values of a container, if it has that container. New variables come last."""
    containers = ((job["template"].get("spec") or {}).get("template") or {}).get("spec", {}).get("containers") or ()
    container = next((each for each in containers if each.get("name") == name), None)
    if container is None:
        return job
    variables = {each.get("name"): each for field in (container, values) for each in field.get("env") or ()}
    changed = {**_merge(container, values), **({"env": list(variables.values())} if variables else {})}
    path = ("template", "spec", "template", "spec", "containers")
    after: Document = put_path(job, path, [changed if each is container else each for each in containers])
    return after


def _merge(value: Any, patch: Any, key: str | None = None) -> Any:
    """Return a value with a strategic merge patch applied; ``key`` identifies the items of lists."""
    if isinstance(value, Mapping) and isinstance(patch, Mapping):
        merged = dict(value)
        for name, change in patch.items():
            if change is None:
                merged.pop(name, None)
            else:
                merged[name] = _merge(merged.get(name), change, _MERGE_KEYS.get(name))
        return merged
    if key is not None and isinstance(value, list | tuple) and isinstance(patch, list | tuple):
        return _merge_items(value, patch, key)
    return patch


def _merge_items(items: Sequence[Any], patch: Sequence[Any], key: str) -> list[Any]:
    """Return a list with the items of a patch merged into it: new items come before those that the patch leaves alone.

    Items that the list has already keep their order.
    """
    ranks = {each.get(key): rank for rank, each in enumerate(items)}
    changes = {each.get(key) for each in patch}
    untouched = [each for each in items if each.get(key) not in changes]
    merged: list[Any] = []
    for change in patch:
        rank = ranks.get(change.get(key))
        if rank is None:
            merged.append(change)
            continue
        while untouched and ranks[untouched[0].get(key)] < rank:
            merged.append(untouched.pop(0))
        merged.append(_merge(items[rank], change))
    return [*merged, *untouched]
