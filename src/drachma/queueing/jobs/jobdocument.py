"""What is queued as one document: a kind with a ``suspend`` in its spec, held back and let go by that.

It is a document, of which every field is kept that is not changed here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import msgspec

from drachma.queueing.configuration.frameworks import GroupVersionKind
from drachma.queueing.configuration.gates import Gates
from drachma.queueing.workloads.podsetinfo import PodSetInfo

Document = Mapping[str, Any]


class Ending(msgspec.Struct, frozen=True):
    """How a job ended."""

    is_success: bool
    message: str


class JobDocument(msgspec.Struct, frozen=True):
    """One of them; what its kind does differently is abstract."""

    kind: ClassVar[GroupVersionKind]

    document: Document

    @property
    def metadata(self) -> Document:
        metadata: Document = self.document.get("metadata", {})
        return metadata

    @property
    def name(self) -> str:
        return str(self.metadata.get("name", ""))

    @property
    def uid(self) -> str:
        return str(self.metadata.get("uid", ""))

    @property
    def key(self) -> str:
        return f"{self.metadata.get('namespace', '')}/{self.name}"

    @property
    def labels(self) -> Mapping[str, str]:
        return self.metadata.get("labels") or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.metadata.get("annotations") or {}

    @property
    def spec(self) -> Document:
        spec: Document = self.document.get("spec", {})
        return spec

    @property
    def status(self) -> Document:
        return self.document.get("status") or {}

    @property
    def is_suspended(self) -> bool:
        return bool(self.spec.get("suspend"))

    @property
    @abstractmethod
    def is_active(self) -> bool:
        """Whether it has pods."""

    @property
    @abstractmethod
    def are_pods_ready(self) -> bool:
        """Whether all pods are ready, or did what they had to."""

    @property
    @abstractmethod
    def ending(self) -> Ending | None:
        """How it ended, if it did."""

    @property
    @abstractmethod
    def reclaimable_pods(self) -> Mapping[str, int]:
        """How many of the pods need their quota no more, by pod set."""

    @abstractmethod
    def pod_sets(self, gates: Gates) -> list[dict[str, Any]]:
        """Its pods, as the pod sets of a workload; an InvalidValueError where annotations are wrong."""

    @abstractmethod
    def started(self, infos: Sequence[PodSetInfo]) -> Self:
        """Let go, with what its pods are to get; a PodSetConflictError where they have something else."""

    @abstractmethod
    def stopped(self, infos: Sequence[PodSetInfo]) -> Self:
        """Held back, its pods as they were; without any infos: how they were is not known."""

    def suspended(self) -> Self:
        """Held back."""
        return self.with_spec(suspend=True)

    def with_spec(self, **fields: Any) -> Self:
        """With fields of the spec set."""
        return type(self)({**self.document, "spec": {**self.spec, **fields}})
