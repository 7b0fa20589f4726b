"""NamespaceLifecycle: new objects need a namespace that exists and is not being deleted."""

from typing import Final

from drachma.server import status
from drachma.server.admission.proposal import Proposal, Removal
from drachma.server.kinds.core import namespace as namespace_kind
from drachma.server.reads.reader import Reader
from drachma.store import record

IMMORTAL: Final = frozenset({"default", "kube-public", "kube-system"})
"""Namespaces that cannot be deleted."""

NAMESPACES: Final = "namespaces"
KINDS: Final = frozenset({NAMESPACES})
_TERMINATING: Final = "Terminating"


class NamespaceLifecycle:
    """Upstream's admission plugin of that name."""

    def __init__(self, store: Reader) -> None:
        self._store = store

    def admit(self, proposal: Proposal) -> None:
        """Refuse new objects in a namespace that does not exist or is being deleted."""
        write = proposal.write
        if not write.namespace or not write.resource.namespaced:
            return
        namespace = self._store.get(record.Key(NAMESPACES, "", write.namespace))
        if namespace is None:
            raise status.not_found(namespace_kind.KIND, write.namespace)
        if (namespace.value.get("status") or {}).get("phase") == _TERMINATING:
            raise _terminating(proposal)

    def admit_removal(self, removal: Removal) -> None:
        """Refuse the deletion of a namespace that every cluster needs."""
        write = removal.write
        if write.name in IMMORTAL:
            raise status.forbidden(write.resource, write.name, detail="this namespace may not be deleted")


def _terminating(proposal: Proposal) -> status.StatusError:
    namespace = proposal.write.namespace
    refusal = proposal.forbidden(
        f"unable to create new content in namespace {namespace} because it is being terminated"
    )
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    details = {**refusal.document["details"], "causes": [cause]}
    return status.StatusError({**refusal.document, "details": details})
