"""Jobs whose pod templates are at known places in their document: the part of GenericJob that such kinds share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.jobs import topologyrequest
from drachma.queueing.jobs.interface import Document
from drachma.queueing.jobs.suspendable import SuspendableJob
from drachma.queueing.workloads import podsetinfo
from drachma.queueing.workloads.podsetinfo import PodSetInfo

Path = tuple[str | int, ...]
"""Keys and positions from the spec to a value in it."""


class TemplateSlot(NamedTuple):
    """A pod template of a job, which becomes a pod set."""

    pod_set: str
    path: Path
    pods: int
    index_label: str | None = None
    """Label that numbers the pods."""
    sub_group_label: str | None = None
    """Label that numbers the groups that the pods form."""
    sub_groups: int | None = None
    """Number of the groups that the pods form."""
    default: Document | None = None
    """Template that the job's controller uses if the job has none."""
    completed: Callable[[dict[str, Any]], dict[str, Any]] = lambda spec: spec
    """Returns the pod spec with the containers that the job's controller adds."""


class TemplateJob(SuspendableJob):
    """A job with one pod set for each of its templates."""

    checks_topology: ClassVar = True
    """True if Kueue's webhook checks the topology annotations of the templates."""

    @property
    @abstractmethod
    def slots(self) -> list[TemplateSlot]:
        """Pod templates in the order of pod sets."""

    @property
    def reclaimable_pods(self) -> Mapping[str, int]:
        return {}

    def template(self, slot: TemplateSlot) -> Document:
        """Return the pod template of a slot."""
        template: Document = get_path(self.spec, slot.path) or slot.default or {}
        return template

    def pod_sets(self, gates: Gates) -> list[dict[str, Any]]:
        return [self._pod_set(slot, gates) for slot in self.slots]

    def _pod_set(self, slot: TemplateSlot, gates: Gates) -> dict[str, Any]:
        template = self.template(slot)
        metadata = template.get("metadata") or {}
        spec = slot.completed(dict(template.get("spec") or {}))
        pod_set: dict[str, Any] = {
            "name": slot.pod_set,
            "count": slot.pods,
            "template": podsetinfo.sanitized({**({"metadata": metadata} if metadata else {}), "spec": spec}),
        }
        if gates.on(Gate.TAS):
            annotations = metadata.get("annotations") or {}
            pod_set["topologyRequest"] = topologyrequest.build(
                annotations,
                gates,
                index_label=slot.index_label,
                sub_group_index_label=slot.sub_group_label,
                sub_group_count=slot.sub_groups,
            )
        return pod_set

    def start(self, infos: Sequence[PodSetInfo]) -> None:
        slots = self.slots
        podsetinfo.check_count(infos, len(slots))
        spec = self.spec
        for slot, info in zip(slots, infos, strict=True):
            spec = put_path(spec, slot.path, info.applied(self.template(slot)))
        self._set(spec, is_suspended=False)

    def restore(self, infos: Sequence[PodSetInfo]) -> None:
        if self.is_suspended:
            return
        slots, spec = self.slots, self.spec
        if len(infos) == len(slots):
            for slot, info in zip(slots, infos, strict=True):
                if get_path(spec, slot.path):
                    spec = put_path(spec, slot.path, info.restored(self.template(slot)))
        self._set(spec, is_suspended=True)

    def suspend(self) -> None:
        self._set(self.spec, is_suspended=True)

    def _set(self, spec: Document, *, is_suspended: bool) -> None:
        """Set the spec, and whether the job is suspended."""
        self.document = {**self.document, "spec": {**spec, "suspend": is_suspended}}

    def is_condition_true(self, kind: str) -> bool:
        """Return True if the status has a condition that is true."""
        return self.condition(kind) is not None

    def condition(self, kind: str) -> Document | None:
        """Return a condition of the status that is true."""
        conditions = self.status.get("conditions") or ()
        return next((each for each in conditions if each["type"] == kind and each["status"] == "True"), None)


def get_path(value: Any, path: Path) -> Any:
    """Return the value at a path, or None if a key is missing."""
    for step in path:
        value = value[step] if isinstance(step, int) else (value or {}).get(step)
    return value


def put_path(value: Any, path: Path, inner: Any) -> Any:
    """Return a document with another value at a path."""
    if not path:
        return inner
    step, deeper = path[0], path[1:]
    if isinstance(step, int):
        return [put_path(each, deeper, inner) if position == step else each for position, each in enumerate(value)]
    mapping = value or {}
    return {**mapping, step: put_path(mapping.get(step), deeper, inner)}
