"""AppWrapper of CodeFlare as a GenericJob: objects of any kinds that are admitted together.

A component declares the places of its pod templates, or has a kind whose places are known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from drachma.queueing.configuration import frameworks
from drachma.queueing.integrations.batchjob import BatchJob
from drachma.queueing.integrations.jobset import JobSet
from drachma.queueing.integrations.kubeflow import PyTorchJob
from drachma.queueing.integrations.podgroup import parse_int
from drachma.queueing.jobs.interface import Completion, Document
from drachma.queueing.jobs.templatejob import Path, TemplateJob, TemplateSlot, get_path
from drachma.queueing.workloads import podsetinfo
from drachma.queueing.workloads.podsetinfo import PodSetInfo
from drachma.values import imagename

_INDEX_LABEL: Final = "workload.codeflare.dev.appwrapper/tas-pod-index-label"
_SUB_GROUP_LABEL: Final = "workload.codeflare.dev.appwrapper/tas-sub-group-index-label"
_SUB_GROUPS: Final = "workload.codeflare.dev.appwrapper/tas-sub-group-count"
_STEP: Final = re.compile(r"\.([^.\[]+)|\[([0-9]+)\]")
_JOB_MODELS: Final[Mapping[tuple[str, str], type[TemplateJob]]] = {
    (each.kind.api_version, each.kind.kind): each for each in (JobSet, PyTorchJob)
}
_POD_FIELDS: Final = (
    "restartPolicy", "dnsPolicy", "nodeSelector", "nodeName", "securityContext", "affinity", "schedulerName",
    "tolerations", "priorityClassName", "preemptionPolicy", "overhead", "topologySpreadConstraints", "runtimeClassName",
    "resourceClaims", "resources",
)  # fmt: skip
_CONTAINER_FIELDS: Final = (
    "name", "image", "command", "args", "resources", "terminationMessagePath", "terminationMessagePolicy",
    "imagePullPolicy", "securityContext", "restartPolicy",
)  # fmt: skip
"""Fields in a workload."""
_POD_DEFAULTS: Final = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
    "preemptionPolicy": "PreemptLowerPriority",
}
_CONTAINER_DEFAULTS: Final = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}


class AppWrapper(TemplateJob):
    """An AppWrapper."""

    kind: ClassVar = frameworks.KINDS["workload.codeflare.dev/appwrapper"]
    own_controller: ClassVar = "workload.codeflare.dev/appwrapper-controller"
    checks_topology: ClassVar = False

    @property
    def _components(self) -> Sequence[Document]:
        return self.spec.get("components") or ()

    @property
    def _pod_sets_by_component(self) -> list[list[Document]]:
        """Pod sets of each component, as its status has them, or declared, or by its kind."""
        statuses = self.status.get("componentStatus") or ()
        if len(statuses) == len(self._components):
            return [list(each.get("podSets") or ()) for each in statuses]
        return [list(each.get("podSets") or _inferred(each.get("template") or {})) for each in self._components]

    @property
    def slots(self) -> list[TemplateSlot]:
        slots: list[TemplateSlot] = []
        for position, pod_sets in enumerate(self._pod_sets_by_component):
            for pod_set in pod_sets:
                path = _parse_path(pod_set.get("path", ""))
                if path is None or not _has_spec(self._components[position].get("template") or {}, path):
                    continue
                annotations = pod_set.get("annotations") or {}
                slots.append(
                    TemplateSlot(
                        pod_set=f"{self.name}-{len(slots)}".lower(),
                        path=("components", position, "template", *path),
                        pods=1 if pod_set.get("replicas") is None else int(pod_set["replicas"]),
                        index_label=annotations.get(_INDEX_LABEL),
                        sub_group_label=annotations.get(_SUB_GROUP_LABEL),
                        sub_groups=parse_int(annotations.get(_SUB_GROUPS, "")),
                        completed=_relevant,
                    )
                )
        return slots

    def template(self, slot: TemplateSlot) -> Document:
        """Return the pod template of a slot. A component that is a pod has further metadata, which does not count."""
        template = super().template(slot)
        metadata = template.get("metadata") or {}
        relevant = {name: metadata[name] for name in ("labels", "annotations") if name in metadata}
        return {**template, "metadata": relevant}

    # State

    @property
    def is_active(self) -> bool:
        return self.is_condition_true("QuotaReserved")

    @property
    def are_pods_ready(self) -> bool:
        return self.is_condition_true("PodsReady")

    @property
    def completion(self) -> Completion | None:
        phase = self.status.get("phase")
        if phase == "Succeeded":
            return Completion(is_success=True, message="AppWrapper finished successfully")
        if phase == "Failed" and not self.is_condition_true("ResourcesDeployed"):
            return Completion(is_success=False, message="AppWrapper failed")
        return None

    # Changes of the job

    def start(self, infos: Sequence[PodSetInfo]) -> None:
        sizes = [len(each) for each in self._pod_sets_by_component]
        if sum(sizes) != len(infos):
            problem = f"expecting {sum(sizes)} podsets, got {len(infos)}"
            raise podsetinfo.PodSetConflictError(f"invalid podset infos: {problem}")
        info_documents = iter([_info_document(each) for each in infos])
        components = [
            {**each, "podSetInfos": [next(info_documents) for _ in range(size)]} if size else each
            for each, size in zip(self._components, sizes, strict=True)
        ]
        self.set_spec(components=components, suspend=False)

    def restore(self, infos: Sequence[PodSetInfo]) -> None:
        self.suspend()
        if infos:
            components = [
                {key: value for key, value in each.items() if key != "podSetInfos"} for each in self._components
            ]
            self.set_spec(components=components)


def _info_document(info: PodSetInfo) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "annotations": dict(info.annotations),
        "labels": dict(info.labels),
        "nodeSelector": dict(info.node_selector),
        "tolerations": list(info.tolerations),
        "schedulingGates": list(info.scheduling_gates),
    }
    return {name: value for name, value in fields.items() if value}


def _relevant(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a pod spec that admission depends on, with the defaults that an API server would set."""
    relevant = {**_POD_DEFAULTS, **_present(spec, _POD_FIELDS)}
    if spec.get("terminationGracePeriodSeconds") is not None:
        del relevant["terminationGracePeriodSeconds"]
    for field in ("initContainers", "containers"):
        if spec.get(field):
            relevant[field] = [_relevant_container(each) for each in spec[field]]
    return relevant


def _relevant_container(container: Document) -> dict[str, Any]:
    is_latest = imagename.tag(str(container.get("image", ""))) == imagename.LATEST
    defaults = {**_CONTAINER_DEFAULTS, "imagePullPolicy": "Always" if is_latest else "IfNotPresent"}
    return {**defaults, **_present(container, _CONTAINER_FIELDS)}


def _present(document: Document, fields: Sequence[str]) -> dict[str, Any]:
    return {name: document[name] for name in fields if document.get(name) not in (None, "")}


# Places of pod templates


def _parse_path(text: str) -> Path | None:
    """Return the steps of a path such as ``template.spec.jobs[0].template``, or None if it cannot be read."""
    prefix, suffix_text = text[: len("template")], text[len("template") :]
    steps = tuple(int(match[2]) if match[2] else match[1] for match in _STEP.finditer(suffix_text))
    suffix = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return steps if prefix == "template" and suffix == suffix_text else None


def _has_spec(component: Document, path: Path) -> bool:
    """Return True if a component has a pod template, or is a pod, at a path. A spec without containers is no pod's."""
    try:
        template = get_path(component, path)
    except (AttributeError, IndexError, KeyError, TypeError):
        return False
    spec = template.get("spec") if isinstance(template, dict) else None
    return isinstance(spec, dict) and "containers" in spec


def _inferred(component: Document) -> list[Document]:
    """Return the pod sets of a component of a known kind, as far as it has their templates."""
    return [each for each in _known_pod_sets(component) if _has_spec(component, _parse_path(each["path"]) or ())]


def _known_pod_sets(component: Document) -> list[Document]:
    """Return the pod sets that a component of a known kind can have."""
    kind = (component.get("apiVersion", ""), component.get("kind", ""))
    spec = component.get("spec") or {}
    if kind == ("v1", "Pod"):
        return [{"path": "template", "replicas": 1}]
    if kind in (("apps/v1", "Deployment"), ("apps/v1", "StatefulSet")):
        return [{"path": "template.spec.template", "replicas": spec.get("replicas")}]
    if kind == ("batch/v1", "Job"):
        annotations = {_INDEX_LABEL: "batch.kubernetes.io/job-completion-index"}
        return [{"path": "template.spec.template", "replicas": BatchJob(component).pods, "annotations": annotations}]
    if kind == ("ray.io/v1", "RayCluster"):
        return _ray_pod_sets(spec, "template.spec")
    if kind == ("ray.io/v1", "RayJob"):
        return _ray_pod_sets(spec.get("rayClusterSpec") or {}, "template.spec.rayClusterSpec")
    model = _JOB_MODELS.get(kind)
    return [] if model is None else [_slot_pod_set(slot) for slot in model(component).slots]


def _slot_pod_set(slot: TemplateSlot) -> dict[str, Any]:
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in slot.path)
    labels = {_INDEX_LABEL: slot.index_label, _SUB_GROUP_LABEL: slot.sub_group_label}
    groups = {} if slot.sub_groups is None else {_SUB_GROUPS: str(slot.sub_groups)}
    annotations = {name: label for name, label in labels.items() if label is not None} | groups
    return {"path": f"template.spec{path}", "replicas": slot.pods, "annotations": annotations}


def _ray_pod_sets(cluster: Document, prefix: str) -> list[Document]:
    head = {"path": f"{prefix}.headGroupSpec.template", "replicas": 1}
    return [
        head,
        *(
            {"path": f"{prefix}.workerGroupSpecs[{position}].template", "replicas": group.get("replicas")}
            for position, group in enumerate(cluster.get("workerGroupSpecs") or ())
        ),
    ]
