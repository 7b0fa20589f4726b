"""The node authoriser: a node may read the objects that its pods need, and write its own objects.

It cannot see the content of new objects; the admission plugin NodeRestriction checks that.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from drachma.server.access.authentication import NODE_PREFIX
from drachma.server.access.authentication import NODES as NODES_GROUP
from drachma.server.access.authorization import ALLOWED, NO_OPINION, NO_RULES, Attributes, Decision, Opinion, Rules
from drachma.server.access.policyrules import Permissions, Rule
from drachma.server.authorisers import podreferences
from drachma.server.authorisers.nodegraph import ATTACHMENTS, NODE_SLICES, PODS, SLICES, VOLUMES, NodeGraph
from drachma.server.kinds import builtin
from drachma.server.user import User
from drachma.store import record
from drachma.values import quotation

LEASES: Final = "coordination.k8s.io/leases"
LEASE_NAMESPACE: Final = "kube-node-lease"
NODES: Final = "nodes"
CSI_NODES: Final = "storage.k8s.io/csinodes"

_NODE_FIELDS: Final = ("spec.nodeName", "nodeName")
"""Fields with the name of a node; a selector by a field that a version does not have is refused."""

_OWN_VERBS: Final = ("get", "create", "update", "patch", "delete")


def name_of(user: User) -> str | None:
    """Return the name of the node that a user is, which may be empty; None for other users."""
    if not user.name.startswith(NODE_PREFIX) or NODES_GROUP not in user.groups:
        return None
    return user.name.removeprefix(NODE_PREFIX)


class NodeAuthoriser:
    """Upstream's authoriser Node; ``rules`` cover objects that are not divided among nodes."""

    name: Final = "node"

    def __init__(self, graph: NodeGraph, rules: Sequence[Rule]) -> None:
        self._graph = graph
        self._permissions = Permissions([(ALLOWED, rules)])
        self._divided: Mapping[str, Callable[[str, Attributes], Opinion]] = {
            podreferences.SECRETS: self._read,
            podreferences.CONFIG_MAPS: self._read,
            podreferences.VOLUME_CLAIMS: self._volume_claim,
            podreferences.CLAIMS: self._get,
            podreferences.SERVICE_ACCOUNTS: self._service_account,
            VOLUMES: self._get,
            ATTACHMENTS: self._get,
            SLICES: self._slice,
            NODE_SLICES: self._slice,
            PODS: self._pod,
            LEASES: _lease,
            CSI_NODES: _csi_node,
            NODES: _node,
        }

    def authorise(self, attributes: Attributes) -> Opinion:
        node = name_of(attributes.user)
        if node is None:
            self._graph.keep_up()
            return NO_OPINION
        if not node:
            return _refuse(f"unknown node for user {quotation.quote(attributes.user.name)}")
        if attributes.path is not None:
            return self._permissions.find_path_source(attributes.verb, attributes.path) or NO_OPINION
        judge = self._divided.get(_group_resource(attributes))
        if judge is not None:
            return judge(node, attributes)
        opinion = self._permissions.find_resource_source(
            attributes.verb,
            attributes.group,
            resource=attributes.resource,
            subresource=attributes.subresource,
            name=attributes.name,
        )
        return opinion or NO_OPINION

    def rules(self, user: User, namespace: str) -> Rules:
        """Return no rules for nodes, because rules cannot express their permissions."""
        if name_of(user) is None:
            return NO_RULES
        return Rules(problem="node authorizer does not support user rule resolution", is_complete=False)

    def _authorise_related(self, node: str, attributes: Attributes) -> Opinion:
        if not attributes.name:
            return _refuse("No Object name found")
        # A review without a version is about the newest one.
        resource_key = (
            builtin.stored_key(attributes.group, attributes.version, attributes.resource)
            or builtin.stored_keys(_group_resource(attributes))[0]
        )
        key = record.Key(resource_key, attributes.namespace, attributes.name)
        if self._graph.relates(node, key):
            return ALLOWED
        return _refuse(f"no relationship found between node '{node}' and this object")

    def _volume_claim(self, node: str, attributes: Attributes) -> Opinion:
        if attributes.subresource != "status":
            return self._get(node, attributes)
        if attributes.verb not in ("update", "patch"):
            return _refuse("can only get/update/patch this type")
        return self._authorise_related(node, attributes)

    def _get(self, node: str, attributes: Attributes) -> Opinion:
        if attributes.verb != "get":
            return _refuse("can only get individual resources of this type")
        if attributes.subresource:
            return _refuse("cannot get subresource")
        return self._authorise_related(node, attributes)

    def _read(self, node: str, attributes: Attributes) -> Opinion:
        if attributes.verb not in ("get", "list", "watch"):
            return _refuse("can only read resources of this type")
        if attributes.subresource:
            return _refuse("cannot read subresource")
        if not attributes.namespace:
            return _refuse("can only read namespaced object of this type")
        return self._authorise_related(node, attributes)

    def _service_account(self, node: str, attributes: Attributes) -> Opinion:
        if attributes.verb == "get" and not attributes.subresource:
            return self._read(node, attributes)
        if attributes.verb != "create" or not attributes.name:
            return _refuse("can only create tokens for individual service accounts")
        if attributes.subresource != "token":
            return _refuse("can only create token subresource of serviceaccount")
        return self._authorise_related(node, attributes)

    def _slice(self, node: str, attributes: Attributes) -> Opinion:
        if attributes.subresource:
            return _refuse("cannot authorize ResourceSlice subresources")
        match attributes.verb:
            case "create":
                return ALLOWED
            case "get" | "update" | "patch" | "delete":
                return self._authorise_related(node, attributes)
            case "watch" | "list" | "deletecollection":
                if _selects(node, attributes):
                    return ALLOWED
                return _refuse("can only list/watch/deletecollection resourceslices with nodeName field selector")
        return _refuse(
            "only the following verbs are allowed for a ResourceSlice: "
            "get, watch, list, create, update, patch, delete, deletecollection"
        )

    def _pod(self, node: str, attributes: Attributes) -> Opinion:
        match attributes.subresource, attributes.verb:
            case "", "get":
                return self._get(node, attributes)
            case "", "list" | "watch":
                if _selects(node, attributes):
                    return ALLOWED
                if attributes.name:
                    return self._authorise_related(node, attributes)
                return _refuse("can only list/watch pods with spec.nodeName field selector")
            case ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create"):
                return ALLOWED
        return NO_OPINION


def _lease(node: str, attributes: Attributes) -> Opinion:
    if attributes.verb not in _OWN_VERBS:
        return _refuse("can only get, create, update, patch, or delete a node lease")
    if attributes.namespace != LEASE_NAMESPACE:
        return _refuse(f"can only access leases in the {quotation.quote(LEASE_NAMESPACE)} system namespace")
    if attributes.verb != "create" and attributes.name != node:
        return _refuse("can only access node lease with the same name as the requesting node")
    return ALLOWED


def _csi_node(node: str, attributes: Attributes) -> Opinion:
    if attributes.subresource == "status":
        return _refuse("CSINode status access requires CSIVolumeHealth feature")
    if attributes.subresource:
        return _refuse("cannot authorize CSINode subresources")
    if attributes.verb not in _OWN_VERBS:
        return _refuse("can only get, create, update, patch, or delete a CSINode")
    if attributes.verb != "create" and attributes.name != node:
        return _refuse("can only access CSINode with the same name as the requesting node")
    return ALLOWED


def _node(node: str, attributes: Attributes) -> Opinion:
    match attributes.subresource, attributes.verb:
        case ("", "create" | "update" | "patch") | ("status", "update" | "patch"):
            return ALLOWED
        case "", "get" | "list" | "watch":
            if attributes.name == node:
                return ALLOWED
            if not attributes.name:
                return _refuse(f"node '{node}' cannot read all nodes, only its own Node object")
            return _refuse(f"node '{node}' cannot read '{attributes.name}', only its own Node object")
    return NO_OPINION


def _group_resource(attributes: Attributes) -> str:
    """Return the resource, of whichever version, that a question is about."""
    return f"{attributes.group}/{attributes.resource}" if attributes.group else attributes.resource


def _selects(node: str, attributes: Attributes) -> bool:
    """Return True if a question is limited to objects that name the node."""
    return any(term.field in _NODE_FIELDS and term.value == node and not term.is_negated for term in attributes.fields)


def _refuse(reason: str) -> Opinion:
    return Opinion(Decision.NO_OPINION, reason)
