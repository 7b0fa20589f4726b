"""Mirror pods: pods that a node runs from its own files, shown to the cluster. Nodes create no other pods.

They refer to no objects of the cluster, because a node may read the objects that its pods refer to.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from drachma.server import status
from drachma.server.admission.proposal import Proposal
from drachma.server.authorisers import podreferences
from drachma.store import record
from drachma.validation.podspec import pod as pod_rules
from drachma.values import quotation

Document: TypeAlias = Mapping[str, Any]

_VOLUMES: Final = {
    "configMap": "configmaps (via configmap volumes)",
    "secret": "secrets (via secret volumes)",
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
    "persistentVolumeClaim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
    "azureFile": "secrets (via azureFile volumes)",
}
_PROJECTIONS: Final = {
    "configMap": "configmaps (via projected volumes)",
    "secret": "secrets (via projected volumes)",
    "serviceAccountToken": "serviceaccounts (via projected volumes)",
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}


def admit(node: str, proposal: Proposal, *, own: record.Record | None) -> None:
    """Refuse a pod that is not a mirror pod of the node; ``own`` is its Node object."""
    metadata, pod = proposal.subject.metadata, proposal.document()
    quoted = quotation.quote(node)
    if pod_rules.MIRROR_ANNOTATION not in (metadata.get("annotations") or ()):
        annotation = quotation.quote(pod_rules.MIRROR_ANNOTATION)
        raise proposal.forbidden(
            f"pod does not have {annotation} annotation, node {quoted} can only create mirror pods"
        )
    if pod["spec"].get("nodeName") != node:
        raise proposal.forbidden(f"node {quoted} can only create pods with spec.nodeName set to itself")
    _check_owner(node, proposal, own=own)
    reference = _reference(pod)
    if reference:
        raise proposal.forbidden(f"node {quoted} can not create pods that reference {reference}")


def _check_owner(node: str, proposal: Proposal, *, own: record.Record | None) -> None:
    """Require the node as the only owner of a mirror pod."""
    owners = proposal.subject.metadata.get("ownerReferences") or []
    can = f"node {quotation.quote(node)} can only create pods with"
    if len(owners) > 1:
        raise proposal.forbidden(f"{can} a single owner reference set to itself")
    owner: Document = owners[0] if owners else {}
    if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", node):
        raise proposal.forbidden(f"{can} an owner reference set to itself")
    if not owner.get("controller"):
        raise proposal.forbidden(f"{can} a controller owner reference set to itself")
    if owner.get("blockOwnerDeletion"):
        raise proposal.forbidden(f"node {quotation.quote(node)} must not set blockOwnerDeletion on an owner reference")
    if own is None:
        message = f"node {quotation.quote(node)} not found"
        raise status.failure(404, "NotFound", message, details={"name": node, "kind": "node"})
    if owner.get("uid") != own.uid:
        raise proposal.forbidden(f"node {node} UID mismatch: expected {owner.get('uid', '')} got {own.uid}")


def _reference(pod: Document) -> str:
    """Return the first reference of a pod to an object, in the words of refusals; empty if there is none."""
    spec: Document = pod["spec"]
    if spec.get("serviceAccountName"):
        return "serviceaccounts"
    resources = {resource for resource, _ in podreferences.find(pod)}
    for resource in (podreferences.SECRETS, podreferences.CONFIG_MAPS):
        if resource in resources:
            return resource
    if spec.get("resourceClaims"):
        return "resourceclaims"
    for volume in spec.get("volumes") or ():
        for field, title in _VOLUMES.items():
            if volume.get(field) is not None:
                return title
        for source in (volume.get("projected") or {}).get("sources") or ():
            for field, title in _PROJECTIONS.items():
                if source.get(field) is not None:
                    return title
    return ""
