"""Small plugins of upstream that complete new objects by a class, tolerations, a finalizer or a taint."""

from typing import Any, Final

from drachma.api import codec, persistentvolumeclaim, storageclass
from drachma.claims import taints, volumeclaims, wellknown
from drachma.server.admission import podspecs
from drachma.server.admission.proposal import Proposal
from drachma.server.kinds.core import podspec
from drachma.server.reads.reader import Reader

NODES: Final = frozenset({"nodes"})
VOLUME_CLAIMS: Final = frozenset({"persistentvolumeclaims"})

_CLASSES: Final = "storage.k8s.io/storageclasses"
_FINALIZERS: Final = {
    "persistentvolumes": wellknown.VOLUME_FINALIZER,
    "persistentvolumeclaims": wellknown.VOLUME_CLAIM_FINALIZER,
}
PROTECTED: Final = frozenset(_FINALIZERS)
"""Resources that :func:`add_storage_finalizer` protects."""

_TAINT: Final = {"key": taints.NOT_READY, "effect": taints.NO_SCHEDULE}


class DefaultStorageClass:
    """Upstream's admission plugin of that name."""

    def __init__(self, store: Reader) -> None:
        self._store = store
        self._listed = -1
        self._name = ""

    def admit(self, proposal: Proposal) -> None:
        """Set the class of a new claim. A claim with an empty class name wants none."""
        subject = proposal.subject
        spec = subject.content.get("spec") or {}
        annotations = subject.metadata.get("annotations") or {}
        if spec.get("storageClassName") is not None or persistentvolumeclaim.CLASS_ANNOTATION in annotations:
            return
        if name := self._default():
            subject.content = {**subject.content, "spec": {**spec, "storageClassName": name}}

    def _default(self) -> str:
        """Return the name of the default class; empty if there is none."""
        if self._listed < self._store.changed(_CLASSES):
            self._listed = self._store.revision
            classes = (codec.decode(each.value) for each in self._store.list(_CLASSES).records)
            self._name = volumeclaims.default_class(
                each for each in classes if isinstance(each, storageclass.StorageClass)
            )
        return self._name


def add_tolerations(proposal: Proposal) -> None:
    """Let a pod stay for a while on a node that is not ready or not reachable (DefaultTolerationSeconds).

    A pod with its own tolerations for these taints keeps them.
    """
    podspecs.change(proposal, podspec.with_tolerations)


def add_storage_finalizer(proposal: Proposal) -> None:
    """Keep a volume or volume claim as long as it is used (StorageObjectInUseProtection)."""
    subject, finalizer = proposal.subject, _FINALIZERS[proposal.write.resource.group_resource]
    own: list[str] = subject.metadata.get("finalizers") or []
    if finalizer not in own:
        subject.metadata = {**subject.metadata, "finalizers": [*own, finalizer]}


def add_group_finalizer(proposal: Proposal) -> None:
    """Keep a PodGroup as long as it has pods that have not finished (PodGroupProtection)."""
    subject = proposal.subject
    own: list[str] = subject.metadata.get("finalizers") or []
    if wellknown.POD_GROUP_FINALIZER not in own:
        subject.metadata = {**subject.metadata, "finalizers": [*own, wellknown.POD_GROUP_FINALIZER]}


def add_not_ready_taint(proposal: Proposal) -> None:
    """Keep pods off a new node until the node lifecycle controller finds it ready (TaintNodesByCondition)."""
    subject = proposal.subject
    spec: dict[str, Any] = subject.content.get("spec") or {}
    own: list[dict[str, Any]] = spec.get("taints") or []
    if not any((each.get("key"), each.get("effect")) == (_TAINT["key"], _TAINT["effect"]) for each in own):
        subject.content = {**subject.content, "spec": {**spec, "taints": [*own, dict(_TAINT)]}}
