"""DefaultStorageClass: a claim for a volume that names no class gets the one that says that it is for such claims."""

from typing import Final

from drachma.api import codec, persistentvolumeclaim, storageclass
from drachma.claims import volumeclaims
from drachma.server.admission.proposal import Proposal
from drachma.server.reads.reader import Reader

CLAIMS: Final = frozenset({"persistentvolumeclaims"})
_CLASSES: Final = "storage.k8s.io/storageclasses"


class DefaultStorageClass:
    """Upstream's admission plugin of that name."""

    def __init__(self, store: Reader) -> None:
        self._store = store
        self._listed = -1
        self._name = ""

    def admit(self, proposal: Proposal) -> None:
        """Names the class of a new claim; one that names an empty class wants none."""
        subject = proposal.subject
        spec = subject.content.get("spec") or {}
        annotations = subject.metadata.get("annotations") or {}
        if spec.get("storageClassName") is not None or persistentvolumeclaim.CLASS_ANNOTATION in annotations:
            return
        if name := self._default():
            subject.content = {**subject.content, "spec": {**spec, "storageClassName": name}}

    def _default(self) -> str:
        """The class of claims that name none; empty where there is no such."""
        if self._listed < self._store.changed(_CLASSES):
            self._listed = self._store.revision
            stored = (codec.decode(each.value) for each in self._store.list(_CLASSES).records)
            self._name = volumeclaims.default_class(
                each for each in stored if isinstance(each, storageclass.StorageClass)
            )
        return self._name
