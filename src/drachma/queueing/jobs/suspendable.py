"""Jobs that are one document with ``spec.suspend``: the part of GenericJob that all such kinds share.

The document keeps every field that this package does not change. A kind derives from :class:`SuspendableJob` and adds
its state, its pod sets, and the way that pod templates are changed and restored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, Self

from drachma.queueing.configuration.frameworks import GroupVersionKind
from drachma.queueing.configuration.gates import Gates
from drachma.queueing.jobs import construction, elastic
from drachma.queueing.jobs.interface import (
    Candidates,
    Completion,
    ConstructedWorkload,
    Document,
    Reference,
    Session,
    controller_of,
    with_metadata,
)
from drachma.queueing.jobs.settings import Owners
from drachma.queueing.kinds import admissioncheck, workload
from drachma.queueing.workloads import podsetinfo
from drachma.queueing.workloads.podsetinfo import PodSetInfo

_NOTHING: Final[Owners] = {}


class JobDocument:
    """Parts of the document of an object that runs pods."""

    document: Document

    @property
    def metadata(self) -> Document:
        metadata: Document = self.document.get("metadata", {})
        return metadata

    @property
    def namespace(self) -> str:
        return str(self.metadata.get("namespace", ""))

    @property
    def name(self) -> str:
        return str(self.metadata.get("name", ""))

    @property
    def uid(self) -> str:
        return str(self.metadata.get("uid", ""))

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def labels(self) -> Mapping[str, str]:
        return self.metadata.get("labels") or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.metadata.get("annotations") or {}

    @property
    def pod_priority_class(self) -> str:
        return ""

    @property
    def spec(self) -> Document:
        return self.document.get("spec") or {}

    @property
    def status(self) -> Document:
        return self.document.get("status") or {}


class SuspendableJob(JobDocument, ABC):
    """A GenericJob over one document."""

    kind: ClassVar[GroupVersionKind]
    managed_by_path: ClassVar[tuple[str, ...]] = ("managedBy",)
    """Place in the spec of the name of the controller that runs the job."""
    own_controller: ClassVar[str]
    """Name of the controller of the job's own project."""
    has_ancestors: Final = True
    follows_queue: Final = True

    def __init__(self, document: Document, related: Owners = _NOTHING) -> None:
        """``related`` has the objects that references() names, as far as they exist."""
        self.document = document
        self.related: Final = related
        self._is_gone = False

    @classmethod
    def missing(cls, namespace: str, name: str) -> Self:
        """Return a job that does not exist, of which workloads may be left."""
        job = cls({"metadata": {"namespace": namespace, "name": name}})
        job._is_gone = True
        return job

    @classmethod
    def references(cls, document: Document) -> Sequence[Reference]:
        """Return the objects that the pod sets of a job depend on."""
        return ()

    # Identity

    @property
    def event_keys(self) -> Iterable[str]:
        return (self.key,)

    # State

    @property
    def is_gone(self) -> bool:
        return self._is_gone

    @property
    def is_deleted(self) -> bool:
        return bool(self.metadata.get("deletionTimestamp"))

    @property
    def is_skipped(self) -> bool:
        return False

    @property
    def is_dispatched(self) -> bool:
        place: Any = self.spec
        for field in self.managed_by_path:
            place = place.get(field) if isinstance(place, Mapping) else None
        return bool(place == admissioncheck.MULTI_KUEUE)

    @property
    def is_on_hold(self) -> bool:
        return False

    @property
    def is_suspended(self) -> bool:
        return bool(self.spec.get("suspend"))

    @property
    @abstractmethod
    def is_active(self) -> bool:
        """True if pods of the job run."""

    @property
    @abstractmethod
    def are_pods_ready(self) -> bool:
        """True if all pods are ready or have succeeded."""

    @property
    @abstractmethod
    def completion(self) -> Completion | None:
        """Result of the job, or None if it has not ended."""

    @property
    @abstractmethod
    def reclaimable_pods(self) -> Mapping[str, int]:
        """Number of pods that no longer need their quota, by pod set."""

    @abstractmethod
    def pod_sets(self, gates: Gates) -> list[dict[str, Any]]:
        """Return the pod sets of the job's workload. Raises errors.InvalidValueError for wrong annotations."""

    def can_requeue(self, wl: workload.Workload, gates: Gates) -> bool:
        return True

    # Changes of the job

    def prepare(self, gates: Gates) -> None:
        """Add the fields that Kueue's webhook adds to every new job."""

    @abstractmethod
    def start(self, infos: Sequence[PodSetInfo]) -> None:
        """Unsuspend the job and apply infos to its pod templates. Raises PodSetConflictError."""

    @abstractmethod
    def restore(self, infos: Sequence[PodSetInfo]) -> None:
        """Suspend the job and restore its pod templates; without infos, leave the templates alone."""

    def suspend(self) -> None:
        self.set_spec(suspend=True)

    def set_spec(self, **fields: Any) -> None:
        """Set fields of the spec."""
        self.document = {**self.document, "spec": {**self.spec, **fields}}

    def run(self, infos: Sequence[PodSetInfo], message: str, session: Session) -> None:
        self.start(infos)
        session.record(self.key, "Started", message)

    def stop(self, wl: workload.Workload | None, message: str, *, reason: str, session: Session) -> None:
        if not self.is_suspended:
            session.record(self.key, "Stopped", message)
        self.restore(() if wl is None else _template_infos(session.pod_sets(wl)))

    def finalize(self) -> None:
        """Do nothing: a document needs no finalizer."""

    def delete(self) -> bool:
        self._is_gone = True
        return True

    # Workloads

    def child_workloads(self, session: Session) -> list[workload.Workload]:
        return session.owned_by(self.kind, self.name)

    def find_workloads(self, session: Session) -> Candidates:
        match: workload.Workload | None = None
        unmatched: list[workload.Workload] = []
        for each in session.owned_by(self.kind, self.name):
            if match is None and self.is_equivalent(each, session):
                match = each
            else:
                unmatched.append(each)
        return Candidates(match, unmatched)

    def construct_workload(self, session: Session) -> ConstructedWorkload:
        is_elastic = elastic.is_elastic(self.annotations, session.gates)
        generation = self.metadata.get("generation", 0) if is_elastic else None
        wl, pod_sets = construction.construct(
            self,
            session,
            name=construction.workload_name(
                self.name, uid=self.uid, kind=self.kind, gates=session.gates, generation=generation
            ),
            label_keys=session.settings.label_keys,
            annotation_keys=session.settings.annotation_keys,
        )
        wl = construction.with_controller(wl, self)
        if is_elastic:
            slices = elastic.unfinished(session.owned_by(self.kind, self.name))
            annotations = elastic.slice_annotations(wl.metadata.name, slices)
            wl = with_metadata(wl, annotations={**wl.metadata.annotations, **annotations})
        return ConstructedWorkload(wl, pod_sets)

    def is_equivalent(self, wl: workload.Workload, session: Session) -> bool:
        return construction.is_equivalent(self, wl, session)

    def own(self, wl: workload.Workload, session: Session) -> workload.Workload:
        if controller_of(wl) is not None:
            return wl
        return session.put(construction.with_controller(wl, self))

    def update_conditions(self, wl: workload.Workload, session: Session) -> bool:
        return False


def _template_infos(pod_sets: Sequence[Document]) -> tuple[PodSetInfo, ...]:
    """Return the original labels, node selectors and tolerations of the pods of each set."""
    return tuple(
        podsetinfo.template_info(each.get("template", {}), name=each.get("name", ""), count=each.get("count", 0))
        for each in pod_sets
    )
