"""StorageObjectInUseProtection: volumes and claims for them stay until nobody uses them any more."""

from typing import Final

from drachma.claims import wellknown
from drachma.server.admission.proposal import Proposal

_FINALIZERS: Final = {
    "persistentvolumes": wellknown.VOLUME_FINALIZER,
    "persistentvolumeclaims": wellknown.VOLUME_CLAIM_FINALIZER,
}
KINDS: Final = frozenset(_FINALIZERS)


def admit(proposal: Proposal) -> None:
    """Adds the finalizer, which a controller takes off; an object that comes with it keeps its own."""
    subject, finalizer = proposal.subject, _FINALIZERS[proposal.write.resource.group_resource]
    own: list[str] = subject.metadata.get("finalizers") or []
    if finalizer not in own:
        subject.metadata = {**subject.metadata, "finalizers": [*own, finalizer]}
