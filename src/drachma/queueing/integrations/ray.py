"""Kinds of KubeRay: a pod set for the head, one for each worker group, and one for the submitter of a RayJob."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from drachma.queueing import resourcelists
from drachma.queueing.configuration import frameworks
from drachma.queueing.jobs.interface import Completion, Document
from drachma.queueing.jobs.templatejob import Path, TemplateJob, TemplateSlot
from drachma.values import quantity

HEAD: Final = "head"
"""Pod set of a cluster's head."""

CLUSTER_CONFIG: Final = "rayClusterConfig"
"""Field of a RayService with its cluster."""

_READY: Final = "ready"
_CLUSTER_SPEC: Final = "rayClusterSpec"
_OPERATOR: Final = "ray.io/kuberay-operator"
_KUBERNETES_JOB: Final = "K8sJobMode"
_SIDECAR: Final = "SidecarMode"
_SUBMITTER: Final = "ray-job-submitter"
_FAULT_TOLERANT: Final = "ray.io/ft-enabled"
"""Annotation of clusters whose state is kept in Redis."""
_AUTOSCALER_RESOURCES: Final = {
    "requests": {"cpu": "500m", "memory": "512Mi"},
    "limits": {"cpu": "500m", "memory": "512Mi"},
}
_SUBMITTER_RESOURCES: Final = {
    "limits": {"cpu": "1", "memory": "1Gi"},
    "requests": {"cpu": "500m", "memory": "200Mi"},
}
_CLEANUP_REQUESTS: Final = {"cpu": "200m", "memory": "256Mi"}
"""Requests of the pod with which KubeRay cleans up Redis."""


class _EndlessCluster(TemplateJob):
    """A kind that keeps a cluster ready and never ends by itself."""

    own_controller: ClassVar = _OPERATOR

    @property
    def are_pods_ready(self) -> bool:
        return self.is_active

    @property
    def completion(self) -> Completion | None:
        return None


class RayCluster(_EndlessCluster):
    """A RayCluster."""

    kind: ClassVar = frameworks.KINDS["ray.io/raycluster"]

    @property
    def slots(self) -> list[TemplateSlot]:
        return _cluster_slots(self.spec, (), self.annotations)

    @property
    def is_active(self) -> bool:
        return bool(self.status.get("state") == _READY)


class RayJob(TemplateJob):
    """A RayJob, with the cluster that it creates."""

    kind: ClassVar = frameworks.KINDS["ray.io/rayjob"]
    own_controller: ClassVar = _OPERATOR

    @property
    def is_skipped(self) -> bool:
        """True for a job on an existing cluster."""
        return bool(self.spec.get("clusterSelector"))

    @property
    def is_on_hold(self) -> bool:
        return bool(self.status.get("jobDeploymentStatus") == "ValidationFailed")

    @property
    def slots(self) -> list[TemplateSlot]:
        mode = self.spec.get("submissionMode")
        cluster = self.spec.get(_CLUSTER_SPEC) or {}
        slots = _cluster_slots(cluster, (_CLUSTER_SPEC,), self.annotations, has_submitter=mode == _SIDECAR)
        if mode == _KUBERNETES_JOB:
            slots.append(TemplateSlot("submitter", ("submitterPodTemplate",), 1, default=_submitter(cluster)))
        return slots

    @property
    def is_active(self) -> bool:
        return self.status.get("jobDeploymentStatus", "") not in ("", "Suspended")

    @property
    def are_pods_ready(self) -> bool:
        return bool((self.status.get("rayClusterStatus") or {}).get("state") == _READY)

    @property
    def completion(self) -> Completion | None:
        if self.status.get("jobDeploymentStatus") not in ("Failed", "Complete"):
            return None
        return Completion(self.status.get("jobStatus") == "SUCCEEDED", self.status.get("message", ""))


class RayService(_EndlessCluster):
    """A RayService. Its cluster is suspended, not the service."""

    kind: ClassVar = frameworks.KINDS["ray.io/rayservice"]

    @property
    def _cluster(self) -> Document:
        return self.spec.get(CLUSTER_CONFIG) or {}

    @property
    def is_skipped(self) -> bool:
        """True for a deleted service whose state in Redis is being removed: the pod that does it needs its quota."""
        return self.is_deleted and _is_fault_tolerant(self._cluster, self.annotations)

    @property
    def is_suspended(self) -> bool:
        return bool(self._cluster.get("suspend"))

    def _set(self, spec: Document, *, is_suspended: bool) -> None:
        cluster = {**(spec.get(CLUSTER_CONFIG) or {}), "suspend": is_suspended}
        self.document = {**self.document, "spec": {**spec, CLUSTER_CONFIG: cluster}}

    @property
    def slots(self) -> list[TemplateSlot]:
        return _cluster_slots(self._cluster, (CLUSTER_CONFIG,), self.annotations)

    @property
    def is_active(self) -> bool:
        return self.is_condition_true("Ready")


def _is_fault_tolerant(cluster: Document, annotations: Mapping[str, str]) -> bool:
    """Return True if the state of a cluster is kept in Redis."""
    is_annotated = annotations.get(_FAULT_TOLERANT, "").lower() == "true"
    return is_annotated or bool(cluster.get("gcsFaultToleranceOptions"))


def _cluster_slots(
    cluster: Document, path: Path, annotations: Mapping[str, str], *, has_submitter: bool = False
) -> list[TemplateSlot]:
    """Return the slots of a cluster's head and of its worker groups."""

    def complete_head(spec: dict[str, Any]) -> dict[str, Any]:
        containers = list(spec.get("containers") or ())
        if containers and _is_fault_tolerant(cluster, annotations):
            containers[0] = _with_requests(containers[0], _CLEANUP_REQUESTS)
        if cluster.get("enableInTreeAutoscaling"):
            resources = (cluster.get("autoscalerOptions") or {}).get("resources")
            containers.append(
                {"name": "autoscaler", "resources": _AUTOSCALER_RESOURCES if resources is None else resources}
            )
        if has_submitter:
            containers.append({"name": _SUBMITTER, "resources": _SUBMITTER_RESOURCES})
        return {**spec, "containers": containers}

    slots = [TemplateSlot(HEAD, (*path, "headGroupSpec", "template"), 1, completed=complete_head)]
    for position, group in enumerate(cluster.get("workerGroupSpecs") or ()):
        replicas = 1 if group.get("replicas") is None else int(group["replicas"])
        count = replicas * max(1, int(group.get("numOfHosts") or 1))
        name = str(group.get("groupName", "")).lower()
        slots.append(TemplateSlot(name, (*path, "workerGroupSpecs", position, "template"), count))
    return slots


def _with_requests(container: Document, least: Mapping[str, str]) -> Document:
    """Return a container that requests at least these amounts."""
    resources = container.get("resources") or {}
    present, added = (
        {name: quantity.Quantity.parse(str(text)) for name, text in (each or {}).items()}
        for each in (resources.get("requests"), least)
    )
    merged = resourcelists.merge(present, added, resourcelists.largest)
    return {**container, "resources": {**resources, "requests": {name: str(each) for name, each in merged.items()}}}


def _submitter(cluster: Document) -> Document:
    """Return the pod template that KubeRay uses for a submitter without one."""
    template = (cluster.get("headGroupSpec") or {}).get("template") or {}
    containers = (template.get("spec") or {}).get("containers") or [{}]
    container = {"name": _SUBMITTER, "image": containers[0].get("image", ""), "resources": _SUBMITTER_RESOURCES}
    return {"spec": {"containers": [container], "restartPolicy": "Never"}}
