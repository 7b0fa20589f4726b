"""References of pods to objects that their node must be able to read.

Pure: documents of pods in, resources and names in the pod's namespace out.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

Document: TypeAlias = Mapping[str, Any]
Reference: TypeAlias = tuple[str, str]

SECRETS: Final = "secrets"
CONFIG_MAPS: Final = "configmaps"
SERVICE_ACCOUNTS: Final = "serviceaccounts"
VOLUME_CLAIMS: Final = "persistentvolumeclaims"
CLAIMS: Final = "resource.k8s.io/resourceclaims"

_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
_SECRET_VOLUMES: Final = ("cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos")


def find(pod: Document) -> Iterator[Reference]:
    """Yield all references of a pod, to claims by their generated names; some may come twice."""
    spec: Document = pod.get("spec") or {}
    account = spec.get("serviceAccountName")
    if account:
        yield SERVICE_ACCOUNTS, account
    for secret in spec.get("imagePullSecrets") or ():
        yield from _reference(SECRETS, secret)
    for field in _CONTAINERS:
        for container in spec.get(field) or ():
            yield from _container_references(container)
    for volume in spec.get("volumes") or ():
        yield from _volume_references(volume, pod)
    yield from _claims(pod, spec)


def audiences(pod: Document) -> frozenset[str]:
    """Return the audiences of the account tokens that a pod mounts; an empty string is the API server."""
    return frozenset(
        source["serviceAccountToken"].get("audience", "")
        for volume in (pod.get("spec") or {}).get("volumes") or ()
        for source in (volume.get("projected") or {}).get("sources") or ()
        if source.get("serviceAccountToken") is not None
    )


def _container_references(container: Document) -> Iterator[Reference]:
    for source in container.get("envFrom") or ():
        yield from _reference(SECRETS, source.get("secretRef"))
        yield from _reference(CONFIG_MAPS, source.get("configMapRef"))
    for variable in container.get("env") or ():
        source = variable.get("valueFrom")
        if source:
            yield from _reference(SECRETS, source.get("secretKeyRef"))
            yield from _reference(CONFIG_MAPS, source.get("configMapKeyRef"))


def _volume_references(volume: Document, pod: Document) -> Iterator[Reference]:
    for source in (volume.get("projected") or {}).get("sources") or ():
        yield from _reference(SECRETS, source.get("secret"))
        yield from _reference(CONFIG_MAPS, source.get("configMap"))
    yield from _reference(CONFIG_MAPS, volume.get("configMap"))
    yield from _reference(SECRETS, volume.get("secret"), field="secretName")
    yield from _reference(SECRETS, volume.get("azureFile"), field="secretName")
    yield from _reference(SECRETS, (volume.get("csi") or {}).get("nodePublishSecretRef"))
    for kind in _SECRET_VOLUMES:
        source = volume.get(kind)
        if source:
            yield from _reference(SECRETS, source.get("secretRef"))
    yield from _reference(VOLUME_CLAIMS, volume.get("persistentVolumeClaim"), field="claimName")
    if volume.get("ephemeral") is not None:
        yield VOLUME_CLAIMS, f"{pod['metadata'].get('name', '')}-{volume.get('name', '')}"


def _claims(pod: Document, spec: Document) -> Iterator[Reference]:
    status: Document = pod.get("status") or {}
    generated_names = {
        each.get("name"): each.get("resourceClaimName") for each in status.get("resourceClaimStatuses") or ()
    }
    for claim in spec.get("resourceClaims") or ():
        name = claim.get("resourceClaimName") or generated_names.get(claim.get("name"))
        if name:
            yield CLAIMS, name
    yield from _reference(CLAIMS, status.get("extendedResourceClaimStatus"), field="resourceClaimName")


def _reference(resource: str, source: Document | None, *, field: str = "name") -> Iterator[Reference]:
    name = source.get(field) if source else None
    if name:
        yield resource, name
