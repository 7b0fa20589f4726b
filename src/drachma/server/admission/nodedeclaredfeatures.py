"""NodeDeclaredFeatureValidator: refuses slices with node-allocatable resources that their nodes cannot account for.

The rule is in :mod:`drachma.validation.admission`; this module provides the nodes.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from drachma.api import gates as feature
from drachma.server.admission.proposal import Proposal
from drachma.server.reads.reader import Reader
from drachma.store import record
from drachma.validation import admission

SLICES: Final = frozenset({"resource.k8s.io/resourceslices"})
_NODES: Final = "nodes"


class NodeDeclaredFeatureValidator:
    """Upstream's admission plugin of that name, for slices only."""

    def __init__(self, store: Reader, gates: feature.Gates) -> None:
        self._nodes = _Nodes(store)
        self._gates = gates

    def validate(self, proposal: Proposal) -> None:
        """Refuse a slice for nodes that do not declare the feature."""
        refusal = admission.slice_refusal(proposal.subject.content, self._nodes, gates=self._gates)
        if refusal is not None:
            raise proposal.forbidden(refusal)


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
