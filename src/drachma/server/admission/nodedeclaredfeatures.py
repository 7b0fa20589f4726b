"""NodeDeclaredFeatureValidator: refuses slices and changes of pods that need features which nodes do not declare.

A slice with node-allocatable resources needs nodes that account for them; the rule is in
:mod:`drachma.validation.admission`. Some changes of the resources of a pod with a node need a newer kubelet.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from drachma.api import gates as feature
from drachma.claims import podfeatures
from drachma.server.admission.proposal import Proposal
from drachma.server.reads.reader import Reader
from drachma.server.surface.strategy import Write
from drachma.store import record
from drachma.validation import admission
from drachma.values import quotation

SLICES: Final = frozenset({"resource.k8s.io/resourceslices"})
_NODES: Final = "nodes"
_STATUS: Final = "status"


def concerns(write: Write) -> bool:
    """Return True if a change of a pod may depend on the name of its node: the status alone never does."""
    return write.subresource != _STATUS


class NodeDeclaredFeatureValidator:
    """Upstream's admission plugin of that name."""

    def __init__(self, store: Reader, gates: feature.Gates) -> None:
        self._nodes = _Nodes(store)
        self._gates = gates

    def validate(self, proposal: Proposal) -> None:
        """Refuse a slice for nodes that do not declare the feature."""
        refusal = admission.slice_refusal(proposal.subject.content, self._nodes, gates=self._gates)
        if refusal is not None:
            raise proposal.forbidden(refusal)

    def validate_pod(self, proposal: Proposal) -> None:
        """Refuse a change of a pod's resources that its node does not support."""
        if proposal.stored is None or not self._gates.on(feature.Gate.NODE_DECLARED_FEATURES):
            return
        spec, old = proposal.subject.content["spec"], proposal.stored.value["spec"]
        name = old.get("nodeName")
        needed = podfeatures.needed_for_resize(spec, old) if name else []
        node = self._nodes.get(name) if needed else None
        if node is None:
            return
        missing_features = [each for each in needed if each not in node.declared_features]
        if missing_features:
            raise proposal.forbidden(
                f"pod update requires features {', '.join(missing_features)} which are not available on node "
                f"{quotation.quote(name)}"
            )


class _Nodes(Mapping[str, admission.DeclaredNode]):
    """Nodes of the cluster, read from the store on demand."""

    def __init__(self, store: Reader) -> None:
        self._store = store

    def __getitem__(self, name: str) -> admission.DeclaredNode:
        node = self._store.get(record.Key(_NODES, "", name))
        if node is None:
            raise KeyError(name)
        return _read_node(node)

    def __iter__(self) -> Iterator[str]:
        return (node.key.name for node in self._store.list(_NODES).records)

    def __len__(self) -> int:
        return len(self._store.list(_NODES).records)


def _read_node(node: record.Record) -> admission.DeclaredNode:
    features = (node.value.get("status") or {}).get("declaredFeatures") or ()
    return admission.DeclaredNode(
        name=node.key.name,
        labels=node.value["metadata"].get("labels") or {},
        declared_features=frozenset(features),
    )
