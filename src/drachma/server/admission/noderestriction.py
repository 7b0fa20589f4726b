"""NodeRestriction: a node writes only its own objects: its Node, lease and slices, and the status of its pods.

The node authoriser has allowed the request already. This plugin also sees the object.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from drachma.server import documents, status
from drachma.server.access.authorization import Attributes, Authoriser
from drachma.server.admission import mirrorpods
from drachma.server.admission.proposal import Proposal, Removal
from drachma.server.authorisers import node as nodes
from drachma.server.authorisers import nodegraph, podreferences
from drachma.server.reads.reader import Reader
from drachma.server.surface.strategy import Write
from drachma.server.user import User
from drachma.store import record
from drachma.values import quotation

Document: TypeAlias = Mapping[str, Any]

KINDS: Final = frozenset(
    {
        nodegraph.PODS,
        nodegraph.SLICES,
        nodegraph.NODE_SLICES,
        nodes.CSI_NODES,
        nodes.LEASES,
        nodes.NODES,
        podreferences.VOLUME_CLAIMS,
    }
)

_OWN_LABELS: Final = frozenset(
    {
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "beta.kubernetes.io/os",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "kubernetes.io/arch",
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
    }
)
"""Labels of Kubernetes that a node may set on itself."""

_OWN_DOMAINS: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")
_CLUSTER_DOMAINS: Final = ("kubernetes.io", "k8s.io")
_RESTRICTED_DOMAIN: Final = "node-restriction.kubernetes.io"
_CLAIM_STATUSES: Final = {
    "resourceClaimStatuses": "resource claim statues",
    "extendedResourceClaimStatus": "extended resource claim status",
    "nodeAllocatableResourceClaimStatuses": "node allocatable resource claim statuses",
}
"""Fields of a pod's status that nodes may not set, with their names in refusals."""

_NODE_WRITES: Final = ("capacity", "conditions", "allocatedResources", "allocatedResourceStatuses")
"""Status fields of a volume claim that a node may set."""


def concerns(write: Write) -> bool:
    """Return True for writes of nodes."""
    return nodes.name_of(write.user) is not None


class NodeRestriction:
    """Upstream's admission plugin of that name."""

    def __init__(self, store: Reader, authoriser: Authoriser) -> None:
        self._store = store
        self._authoriser = authoriser
        self._rules: Mapping[str, Callable[[str, Proposal], None]] = {
            nodegraph.PODS: self._pod,
            nodegraph.SLICES: _slice,
            nodegraph.NODE_SLICES: _slice,
            nodes.CSI_NODES: _csi_node,
            nodes.LEASES: _lease,
            nodes.NODES: _node,
            podreferences.VOLUME_CLAIMS: _volume_claim,
        }

    def admit(self, proposal: Proposal) -> None:
        """Refuse writes of a node to other objects than its own, and to fields that it may not set."""
        write = proposal.write
        node = nodes.name_of(write.user)
        if node is None:
            return
        if not node:
            raise proposal.forbidden(_unknown_node(write.user))
        self._rules[write.resource.group_resource](node, proposal)

    def admit_removal(self, removal: Removal) -> None:
        """Refuse deletions and evictions by a node of other objects than its own."""
        write = removal.write
        node = nodes.name_of(write.user)
        if node is None:
            return
        detail = _removal(node, removal) if node else _unknown_node(write.user)
        if detail:
            raise status.forbidden(write.resource, write.name, detail=detail)

    def check_token(self, user: User, *, namespace: str, name: str, request: Document) -> str:
        """Return the reason why a node may not get a token of a service account.

        It is empty if the node may get the token, and for users that are no nodes.

        Raises:
            status.StatusError: the pod does not exist (404).
        """
        node = nodes.name_of(user)
        if node is None:
            return ""
        if not node:
            return _unknown_node(user)
        spec: Document = request.get("spec") or {}
        bound: Document = spec.get("boundObjectRef") or {}
        if (bound.get("apiVersion"), bound.get("kind")) != ("v1", "Pod") or not bound.get("name"):
            return "node requested token not bound to a pod"
        if not bound.get("uid"):
            return "node requested token with a pod binding without a uid"
        pod = self._store.get(record.Key(nodegraph.PODS, namespace, bound["name"]))
        if pod is None:
            raise _no_pod(bound["name"])
        if bound["uid"] != pod.uid:
            return (
                f"the UID in the bound object reference ({bound['uid']}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
        if pod.value["spec"].get("nodeName") != node:
            return "node requested token bound to a pod scheduled on a different node"
        return self._audience(user, pod, spec.get("audiences") or (), place=(namespace, name))

    def _audience(self, user: User, pod: record.Record, audiences: Any, *, place: tuple[str, str]) -> str:
        """Return the reason why a node may not get a token for these audiences; its pod must mount one for them."""
        if len(audiences) > 1:
            return "node may only request 0 or 1 audiences"
        audience = audiences[0] if audiences else ""
        if audience in podreferences.audiences(pod.value):
            return ""
        namespace, name = place
        question = Attributes(
            user=user,
            verb="request-serviceaccounts-token-audience",
            version="v1",
            resource=audience,
            namespace=namespace,
            name=name,
        )
        if self._authoriser.authorise(question).is_allowed:
            return ""
        return f"{user.name} is not authorized to request tokens for audience {quotation.quote(audience)}"

    def _pod(self, node: str, proposal: Proposal) -> None:
        quoted = quotation.quote(node)
        match proposal.write.subresource, proposal.stored:
            case "", None:
                own = self._store.get(record.Key(nodes.NODES, "", node))
                mirrorpods.admit(node, proposal, own=own)
            case "", _:
                raise proposal.forbidden(
                    f'unexpected operation "UPDATE", node {quoted} can only create and delete mirror pods'
                )
            case "status", record.Record() as stored:
                detail = _pod_status(proposal, stored.value, node=node)
                if detail:
                    raise proposal.forbidden(f"node {quoted} {detail}")
            case subresource, _:
                raise proposal.forbidden(
                    f"unexpected pod subresource {quotation.quote(subresource)}, "
                    "only 'status' and 'eviction' are allowed"
                )


def absence(write: Write) -> status.StatusError | None:
    """Return the plugin's refusal for a node that deletes or evicts a missing pod; None for other users."""
    if write.resource.group_resource == nodegraph.PODS and nodes.name_of(write.user):
        return _no_pod(write.name)
    return None


def _no_pod(name: str) -> status.StatusError:
    """Return the 404 for a pod. Upstream's plugin uses the singular name of the resource."""
    message = f"pod {quotation.quote(name)} not found"
    return status.failure(404, "NotFound", message, details={"name": name, "kind": "pod"})


def _pod_status(proposal: Proposal, old: Document, *, node: str) -> str:
    if old["spec"].get("nodeName") != node:
        return "can only update pod status for pods with spec.nodeName set to itself"
    if (proposal.subject.metadata.get("labels") or {}) != (old["metadata"].get("labels") or {}):
        return "cannot update labels through pod status"
    new: Document = proposal.document().get("status") or {}
    before: Document = old.get("status") or {}
    for field, title in _CLAIM_STATUSES.items():
        if not documents.same(new.get(field) or None, before.get(field) or None):
            return f"cannot update {title}"
    return ""


def _node(node: str, proposal: Proposal) -> None:
    quoted, name = quotation.quote(node), proposal.write.name or proposal.subject.metadata.get("name", "")
    if name != node:
        raise proposal.forbidden(f"node {quoted} is not allowed to modify node {quotation.quote(name)}")
    labels: Mapping[str, str] = proposal.subject.metadata.get("labels") or {}
    if proposal.stored is None:
        forbidden_labels = _find_forbidden_labels(labels, {})
        if forbidden_labels:
            raise proposal.forbidden(f"node {quoted} is not allowed to set the following labels: {forbidden_labels}")
        return
    old, new = proposal.stored.value, proposal.document()
    if not documents.same(new["spec"].get("taints") or None, old["spec"].get("taints") or None):
        raise proposal.forbidden(f"node {quoted} is not allowed to modify taints")
    owners, before = new["metadata"].get("ownerReferences"), old["metadata"].get("ownerReferences")
    if not documents.same(owners or None, before or None):
        raise proposal.forbidden(f"node {quoted} is not allowed to modify ownerReferences")
    forbidden_labels = _find_forbidden_labels(labels, old["metadata"].get("labels") or {})
    if forbidden_labels:
        raise proposal.forbidden(f"is not allowed to modify labels: {forbidden_labels}")


def _find_forbidden_labels(new: Mapping[str, str], old: Mapping[str, str]) -> str:
    """Return the changed labels that a node may not set; empty if there are none."""
    changed = {key for key in new.keys() | old.keys() if new.get(key) != old.get(key)}
    return ", ".join(sorted(key for key in changed if _is_restricted(key)))


def _is_restricted(key: str) -> bool:
    domain = key.partition("/")[0] if "/" in key else ""
    if _is_in(domain, _RESTRICTED_DOMAIN):
        return True
    is_own = key in _OWN_LABELS or any(_is_in(domain, own) for own in _OWN_DOMAINS)
    return not is_own and any(_is_in(domain, each) for each in _CLUSTER_DOMAINS)


def _is_in(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith(f".{parent}")


def _lease(node: str, proposal: Proposal) -> None:
    write = proposal.write
    if write.namespace != nodes.LEASE_NAMESPACE:
        raise proposal.forbidden(
            f"can only access leases in the {quotation.quote(nodes.LEASE_NAMESPACE)} system namespace"
        )
    if (write.name or proposal.subject.metadata.get("name", "")) != node:
        raise proposal.forbidden("can only access node lease with the same name as the requesting node")


def _csi_node(node: str, proposal: Proposal) -> None:
    if (proposal.write.name or proposal.subject.metadata.get("name", "")) != node:
        raise proposal.forbidden("can only access CSINode with the same name as the requesting node")


def _slice(node: str, proposal: Proposal) -> None:
    if proposal.stored is None and nodegraph.node_of(proposal.document()) != node:
        kind = proposal.write.resource.kind
        raise proposal.forbidden(f"can only create {kind} with the same NodeName as the requesting node")


def _volume_claim(node: str, proposal: Proposal) -> None:
    if proposal.write.subresource != "status" or proposal.stored is None:
        raise proposal.forbidden("may only update PVC status")
    if not documents.same(_strip_node_fields(proposal.document()), _strip_node_fields(proposal.stored.value)):
        raise proposal.forbidden(
            f"node {quotation.quote(node)} is not allowed to update fields other than status.quantity and "
            "status.conditions"
        )


def _strip_node_fields(claim: Document) -> dict[str, Any]:
    """Return a volume claim without the fields that a node may change."""
    status_: Document = claim.get("status") or {}
    metadata = {
        key: value for key, value in claim["metadata"].items() if key not in ("managedFields", "resourceVersion")
    }
    other_fields = {field: value for field, value in status_.items() if field not in _NODE_WRITES}
    return {**claim, "metadata": metadata, "status": other_fields}


def _removal(node: str, removal: Removal) -> str:
    """Return the reason why a node may not delete an object; empty if it may."""
    write, old = removal.write, removal.stored.value
    quoted = quotation.quote(node)
    match write.resource.group_resource:
        case nodegraph.PODS if old["spec"].get("nodeName") != node:
            if write.subresource == "eviction":
                return f"node {node} can only evict pods with spec.nodeName set to itself"
            return f"node {quoted} can only delete pods with spec.nodeName set to itself"
        case nodegraph.SLICES | nodegraph.NODE_SLICES if nodegraph.node_of(old) != node:
            return f"can only delete {write.resource.kind} with the same NodeName as the requesting node"
        case nodes.NODES if write.name != node:
            return f"node {quoted} is not allowed to modify node {quotation.quote(write.name)}"
        case nodes.LEASES if write.namespace != nodes.LEASE_NAMESPACE:
            return f"can only access leases in the {quotation.quote(nodes.LEASE_NAMESPACE)} system namespace"
        case nodes.LEASES if write.name != node:
            return "can only access node lease with the same name as the requesting node"
        case nodes.CSI_NODES if write.name != node:
            return "can only access CSINode with the same name as the requesting node"
        case podreferences.VOLUME_CLAIMS:
            return "may only update PVC status"
    return ""


def _unknown_node(user: User) -> str:
    return f"could not determine node from user {quotation.quote(user.name)}"
