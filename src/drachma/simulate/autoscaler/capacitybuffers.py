"""CapacityBuffers of ``autoscaling.x-k8s.io``: spare capacity, as pods that exist only for the autoscaler.

A buffer names a pod by a PodTemplate, or by a workload, and a number of them. The autoscaler plans with placeholder
pods of that shape: it adds nodes until they fit, and keeps the nodes that they need. Real pods use the capacity as soon
as they come, since no placeholder is ever created. Conditions and counts are those of cluster-autoscaler.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, Final, NamedTuple

from drachma import errors
from drachma.accounting import requests
from drachma.api import codec, meta, pod
from drachma.client import patches, target
from drachma.runtime import Surroundings
from drachma.values import quantity

ACTIVE: Final = "buffer.x-k8s.io/active-capacity"
_STRATEGIES: Final = (None, "", ACTIVE, "active-capacity")

_MOST_PODS: Final = 1000
"""Placeholders of one buffer, at most. A plan with more would take too long."""
_PRIORITY: Final = -(2**31)
"""Placeholders come after all pods."""

Document = Mapping[str, Any]


class _Buffer(meta.Object, frozen=True, kw_only=True):
    """CapacityBuffer, of which only the metadata is typed."""


BUFFERS: Final = target.Target(
    group="autoscaling.x-k8s.io",
    versions=("v1beta1", "v1", "v1alpha1"),
    plural="capacitybuffers",
    kind="CapacityBuffer",
    namespaced=True,
    model=_Buffer,
    is_optional=True,
)
_TEMPLATES: Final = target.metadata_of("", "v1", plural="podtemplates", kind="PodTemplate", namespaced=True)
_WORKLOADS: Final = {
    (group, kind): target.metadata_of(group, "v1", plural=f"{kind.lower()}s", kind=kind, namespaced=True)
    for group, kind in (
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("batch", "Job"),
        ("", "ReplicationController"),
    )
}
"""Kinds whose template and number of replicas a buffer can refer to."""


class _Shape(NamedTuple):
    """Pod of a buffer, and the object that describes it."""

    template: Document
    reference: str
    """Name of the PodTemplate; empty for a workload."""
    generation: int
    replicas: int | None
    """Number of pods of the workload; None for a PodTemplate."""


class CapacityBuffers:
    """Buffers of one cluster, if it serves them."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._informer: Final = surroundings.informers.of(BUFFERS, with_documents=True)
        self._pods: dict[str, list[pod.Pod]] = {}
        """Placeholders of the last round by the uid of their buffer."""

    async def placeholders(self) -> list[pod.Pod]:
        """Return the pods of all buffers, and report which buffers can be provisioned."""
        self._pods = {}
        for buffer in self._documents():
            try:
                shape = await self._shape(buffer)
                pods = self._make(buffer, shape)
            except errors.DrachmaError as error:
                await self._write(buffer, {}, {"ReadyForProvisioning": ("False", "error", str(error))})
                continue
            self._pods[buffer["metadata"]["uid"]] = pods
            resolved = {
                "replicas": len(pods),
                "podTemplateGeneration": shape.generation,
                "provisioningStrategy": ACTIVE,
                **({"podTemplateRef": {"name": shape.reference}} if shape.reference else {}),
            }
            await self._write(
                buffer, resolved, {"ReadyForProvisioning": ("True", "AttributesSetSuccessfully", "ready")}
            )
        return [each for pods in self._pods.values() for each in pods]

    async def report(self, pending: Container[str]) -> None:
        """Report which buffers have their capacity, on nodes or on nodes on their way; ``pending`` are titles."""
        for buffer in self._documents():
            pods = self._pods.get(buffer["metadata"]["uid"])
            if pods is None:
                continue
            pending_count = sum(f"{each.metadata.namespace}/{each.metadata.name}" in pending for each in pods)
            condition = ("True", "FakePodsInjected", "")
            if pending_count:
                condition = ("False", "CapacityIsNotFound", f"{pending_count} of {len(pods)} pods find no room")
            await self._write(buffer, {}, {"Provisioning": condition})

    def _documents(self) -> list[Document]:
        keys = sorted((each.metadata.namespace, each.metadata.name) for each in self._informer.cache)
        entries = (self._informer.cache.entry(name, namespace=namespace) for namespace, name in keys)
        documents = [entry.document() for entry in entries if entry is not None]
        return [each for each in documents if each["spec"].get("provisioningStrategy") in _STRATEGIES]

    async def _shape(self, buffer: Document) -> _Shape:
        spec, namespace = buffer["spec"], buffer["metadata"]["namespace"]
        reference, scalable = spec.get("podTemplateRef"), spec.get("scalableRef")
        if bool(reference) == bool(scalable):
            raise errors.InvalidValueError("exactly one of podTemplateRef and scalableRef is required")
        if reference:
            template = await self._client.get_document(_TEMPLATES, reference["name"], namespace=namespace)
            generation = int(template["metadata"].get("generation", 0))
            return _Shape(template.get("template") or {}, reference["name"], generation, None)
        key = (scalable.get("apiGroup", ""), scalable["kind"])
        if key not in _WORKLOADS:
            kinds = ", ".join(kind for _, kind in _WORKLOADS)
            raise errors.InvalidValueError(f"scalableRef: {scalable['kind']}: not supported; expected one of {kinds}")
        parent = await self._client.get_document(_WORKLOADS[key], scalable["name"], namespace=namespace)
        content = parent.get("spec") or {}
        replicas = content.get("parallelism" if key[1] == "Job" else "replicas", 1)
        return _Shape(content.get("template") or {}, "", int(parent["metadata"].get("generation", 0)), int(replicas))

    def _make(self, buffer: Document, shape: _Shape) -> list[pod.Pod]:
        metadata, content = buffer["metadata"], shape.template.get("metadata") or {}
        spec = {key: value for key, value in (shape.template.get("spec") or {}).items() if key not in _OMITTED}
        owner = {
            "apiVersion": "autoscaling.x-k8s.io/v1beta1",
            "kind": "CapacityBuffer",
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
        }
        document: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **{key: content[key] for key in ("labels", "annotations") if key in content},
                "namespace": metadata["namespace"],
                "ownerReferences": [owner],
            },
            "spec": {**spec, "priority": _PRIORITY, "preemptionPolicy": "Never"},
        }
        first = codec.view(document, pod.Pod)
        pods: list[pod.Pod] = []
        for number in range(_count(buffer["spec"], first, shape.replicas)):
            name = f"capacity-buffer-{metadata['name']}-{number}"
            own_metadata = {**document["metadata"], "name": name, "uid": f"buffer/{metadata['uid']}/{number}"}
            pods.append(codec.view({**document, "metadata": own_metadata}, pod.Pod))
        return pods

    async def _write(self, buffer: Document, resolved: Document, changes: Mapping[str, tuple[str, str, str]]) -> None:
        """Set fields of the status and conditions by type. Nothing is written if all of them are so already."""
        status = buffer.get("status") or {}
        conditions = {each["type"]: each for each in status.get("conditions") or ()}
        is_changed = any(status.get(key) != value for key, value in resolved.items())
        for kind, (value, reason, message) in changes.items():
            current = conditions.get(kind)
            if current is not None and (current["status"], current["reason"], current["message"]) == (
                value,
                reason,
                message,
            ):
                continue
            is_changed = True
            conditions[kind] = {
                "type": kind,
                "status": value,
                "reason": reason,
                "message": message,
                "lastTransitionTime": meta.time_text(self._clock.utc()),
            }
        if not is_changed:
            return
        metadata = buffer["metadata"]
        patch = patches.merge(
            {"status": {**resolved, "conditions": list(conditions.values())}},
            patches.Preconditions(uid=metadata["uid"], resource_version=metadata["resourceVersion"]),
        )
        try:
            latest = await self._client.patch_document(
                BUFFERS, metadata["name"], namespace=metadata["namespace"], subresource="status", patch=patch
            )
        except (errors.ObjectNotFoundError, errors.ObjectConflictError):
            return
        self._informer.observe(latest)


_OMITTED: Final = frozenset({"nodeName", "priority", "priorityClassName", "preemptionPolicy", "schedulingGates"})


def _count(spec: Document, placeholder: pod.Pod, scaled: int | None) -> int:
    """Return the number of pods: the least that replicas, percentage and limits say."""
    counts: list[int] = []
    if spec.get("replicas") is not None:
        counts.append(max(0, int(spec["replicas"])))
    if spec.get("percentage") is not None and scaled is not None:
        counts.append(max(0, int(spec["percentage"]) * scaled // 100))
    if spec.get("limits") is not None:
        counts.append(_count_within(spec["limits"], placeholder))
    if not counts:
        raise errors.InvalidValueError("replicas, percentage and limits are not defined")
    return min(*counts, _MOST_PODS)


def _count_within(limits: Mapping[str, Any], placeholder: pod.Pod) -> int:
    counts = [
        quantity.Quantity.parse(str(limits[name])).nanos // nanos
        for name, nanos in requests.total(placeholder).items()
        if name in limits and nanos > 0
    ]
    if not counts:
        raise errors.InvalidValueError("resources in configured limits not found in the pod template")
    return max(0, min(counts))
