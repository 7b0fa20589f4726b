"""CapacityBuffers of ``autoscaling.x-k8s.io``: spare capacity, as pods that exist only for the autoscaler.

A buffer names a pod by a PodTemplate, or by a workload, and a number of them. The autoscaler plans with placeholder
pods of that shape: it adds nodes until they fit, and keeps the nodes that they need. Real pods use the capacity as soon
as they come, since no placeholder is ever created. Conditions and counts are those of cluster-autoscaler.

Buffers are objects of users, and the schema of their kind is not drachma's: one that cannot be read says so in its
conditions. The buffers and placeholders of a namespace are limited, so that no user can make a plan last for ever.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from drachma import errors
from drachma.accounting import requests
from drachma.api import codec, meta, pod
from drachma.client import patches, target
from drachma.runtime import Surroundings
from drachma.values import quantity

ACTIVE: Final = "buffer.x-k8s.io/active-capacity"
_STRATEGIES: Final = (None, "", ACTIVE, "active-capacity")

_MOST_PODS: Final = 1000
"""Placeholders of the buffers of a namespace, at most. A plan with more would take too long."""
_MOST_PODS_IN_ALL: Final = 5000
_MOST_BUFFERS: Final = 100
"""Buffers of a namespace that are looked at; each of them is a call."""
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


class _Reference(msgspec.Struct, frozen=True):
    """PodTemplate that a buffer names."""

    name: str


class _ScalableReference(msgspec.Struct, frozen=True, rename="camel"):
    """Workload that a buffer names."""

    kind: str
    name: str
    api_group: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    """Spec of a CapacityBuffer."""

    pod_template_ref: _Reference | None = None
    scalable_ref: _ScalableReference | None = None
    replicas: int | None = None
    percentage: int | None = None
    limits: dict[str, str | int | float] | None = None


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
        rooms = {each["metadata"]["namespace"]: _Room() for each in self._documents()}
        for buffer in self._documents():
            namespace = buffer["metadata"]["namespace"]
            try:
                room = min(rooms[namespace].enter(), _MOST_PODS_IN_ALL - sum(map(len, self._pods.values())))
                spec = _read(buffer)
                shape = await self._shape(spec, namespace)
                pods = self._make(buffer, spec, shape, most=room)
                rooms[namespace].pods -= len(pods)
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

    async def report(self, pending_titles: Container[str]) -> None:
        """Report which buffers have their capacity, on nodes or on nodes on their way.

        ``pending_titles`` are the titles of pods without a node.
        """
        for buffer in self._documents():
            pods = self._pods.get(buffer["metadata"]["uid"])
            if pods is None:
                continue
            pending_count = sum(f"{each.metadata.namespace}/{each.metadata.name}" in pending_titles for each in pods)
            condition = ("True", "FakePodsInjected", "")
            if pending_count:
                condition = ("False", "CapacityIsNotFound", f"{pending_count} of {len(pods)} pods find no room")
            await self._write(buffer, {}, {"Provisioning": condition})

    def _documents(self) -> list[Document]:
        keys = sorted((each.metadata.namespace, each.metadata.name) for each in self._informer.cache)
        entries = (self._informer.cache.entry(name, namespace=namespace) for namespace, name in keys)
        documents = [entry.document() for entry in entries if entry is not None]
        return [each for each in documents if _strategy(each) in _STRATEGIES]

    async def _shape(self, spec: _Spec, namespace: str) -> _Shape:
        reference, scalable = spec.pod_template_ref, spec.scalable_ref
        if reference is not None and scalable is None:
            template = await self._client.get_document(_TEMPLATES, reference.name, namespace=namespace)
            generation = int(template["metadata"].get("generation", 0))
            return _Shape(template.get("template") or {}, reference.name, generation, None)
        if scalable is None or reference is not None:
            raise errors.InvalidValueError("exactly one of podTemplateRef and scalableRef is required")
        key = (scalable.api_group, scalable.kind)
        if key not in _WORKLOADS:
            kinds = ", ".join(kind for _, kind in _WORKLOADS)
            raise errors.InvalidValueError(f"scalableRef: {scalable.kind}: not supported; expected one of {kinds}")
        parent = await self._client.get_document(_WORKLOADS[key], scalable.name, namespace=namespace)
        content = parent.get("spec") or {}
        replicas = content.get("parallelism" if key[1] == "Job" else "replicas", 1)
        return _Shape(content.get("template") or {}, "", int(parent["metadata"].get("generation", 0)), int(replicas))

    def _make(self, buffer: Document, buffer_spec: _Spec, shape: _Shape, *, most: int) -> list[pod.Pod]:
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
        for number in range(min(_count(buffer_spec, first, shape.replicas), most)):
            name = f"capacity-buffer-{metadata['name']}-{number}"
            own_metadata = {**document["metadata"], "name": name, "uid": f"buffer/{metadata['uid']}/{number}"}
            pods.append(codec.view({**document, "metadata": own_metadata}, pod.Pod))
        return pods

    async def _write(self, buffer: Document, resolved: Document, changes: Mapping[str, tuple[str, str, str]]) -> None:
        """Set fields of the status and conditions by type. Nothing is written if all of them are so already."""
        status = _mapping(buffer.get("status"))
        conditions = {each.get("type"): each for each in map(_mapping, status.get("conditions") or ())}
        is_changed = any(status.get(key) != value for key, value in resolved.items())
        for kind, (value, reason, message) in changes.items():
            current = conditions.get(kind)
            if current is not None and [current.get(key) for key in ("status", "reason", "message")] == [
                value,
                reason,
                message,
            ]:
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


class _Room:
    """Room for buffers and placeholders of a namespace."""

    def __init__(self) -> None:
        self.pods = _MOST_PODS
        self._buffers = 0

    def enter(self) -> int:
        """Return the placeholders that one more buffer may have. Raises errors.InvalidValueError if there is no room.

        A buffer that fits partly has fewer placeholders than it asks for.
        """
        self._buffers += 1
        if self._buffers > _MOST_BUFFERS:
            raise errors.InvalidValueError(f"the namespace has more than {_MOST_BUFFERS} buffers")
        return self.pods


def _mapping(value: Any) -> Document:
    return value if isinstance(value, dict) else {}


def _strategy(buffer: Document) -> Any:
    """Return the provisioning strategy of a buffer; None for one that is no text, so that its buffer says why."""
    strategy = _mapping(buffer.get("spec")).get("provisioningStrategy")
    return strategy if isinstance(strategy, str) else None


def _read(buffer: Document) -> _Spec:
    try:
        return msgspec.convert(buffer.get("spec") or {}, _Spec)
    except msgspec.ValidationError as error:
        raise errors.InvalidValueError(f"spec: {error}") from None


def _count(spec: _Spec, placeholder: pod.Pod, scaled: int | None) -> int:
    """Return the number of pods: the least that replicas, percentage and limits say."""
    counts: list[int] = []
    if spec.replicas is not None:
        counts.append(max(0, spec.replicas))
    if spec.percentage is not None and scaled is not None:
        counts.append(max(0, spec.percentage * scaled // 100))
    if spec.limits is not None:
        counts.append(_count_within(spec.limits, placeholder))
    if not counts:
        raise errors.InvalidValueError("replicas, percentage and limits are not defined")
    return min(counts)


def _count_within(limits: Mapping[str, Any], placeholder: pod.Pod) -> int:
    counts = [
        quantity.Quantity.parse(str(limits[name])).nanos // nanos
        for name, nanos in requests.total(placeholder).items()
        if name in limits and nanos > 0
    ]
    if not counts:
        raise errors.InvalidValueError("resources in configured limits not found in the pod template")
    return max(0, min(counts))
