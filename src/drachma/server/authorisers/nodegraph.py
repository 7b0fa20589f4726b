"""Relations between nodes and objects: node <- pod <- secret, and so on.

An edge leads from an object to the nodes whose pods refer to it, and exists as long as the pod. So a node can read the
objects that its pods need, and no others. Volumes are reached through the claims that they are bound to.
"""

from collections.abc import Mapping
from typing import Any, Final

from drachma.server.authorisers import podreferences
from drachma.server.kinds import builtin
from drachma.server.reads import follower
from drachma.server.reads.reader import Reader
from drachma.store import record
from drachma.validation.podspec import pod as pod_rules

PODS: Final = "pods"
SLICES: Final = "resource.k8s.io/resourceslices"
NODE_SLICES: Final = "resource.k8s.io/noderesourceslices"
"""Slices of the first alpha, which nodes publish for their drivers."""

VOLUMES: Final = "persistentvolumes"
ATTACHMENTS: Final = "storage.k8s.io/volumeattachments"

_REST: Final = 256
"""Questions about other users after which a used graph is updated, so that it never lags far behind."""

_SECRET_SOURCES: Final = ("cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos")
_CSI_SECRETS: Final = ("nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef")


class NodeGraph:
    """Nodes that each object is related to, according to the store at the moment of the question."""

    def __init__(self, store: Reader) -> None:
        self._index = _Index()
        followed = (PODS, SLICES, NODE_SLICES, VOLUMES, ATTACHMENTS)
        keys = [key for resource in followed for key in builtin.stored_keys(resource)]
        self._follower = follower.Follower(store, keys, self._index)
        self._idle = 0
        self._is_asked = False

    def relates(self, node: str, key: record.Key) -> bool:
        """Return True if an object is related to a node."""
        self._is_asked = True
        self._follower.catch_up()
        return self._index.relates(node, key)

    def keep_up(self) -> None:
        """Count a question that is not about nodes. A graph that no node has used is not updated."""
        self._idle += 1
        if self._idle >= _REST and self._is_asked:
            self._idle = 0
            self._follower.catch_up()


class _Index:
    """Edges from objects to nodes with their counts, and the edges that each source object has made."""

    def __init__(self) -> None:
        self._nodes: dict[record.Key, dict[str, int]] = {}
        self._made: dict[record.Key, tuple[str, frozenset[record.Key]]] = {}
        self._claims: dict[str, record.Key] = {}
        self._volumes: dict[record.Key, set[str]] = {}
        self._secrets: dict[str, frozenset[record.Key]] = {}

    def clear(self) -> None:
        for each in (self._nodes, self._made, self._claims, self._volumes, self._secrets):
            each.clear()

    def relates(self, node: str, key: record.Key) -> bool:
        if node in self._nodes.get(key, ()):
            return True
        if key.resource == VOLUMES:
            claim = self._claims.get(key.name)
            return claim is not None and node in self._nodes.get(claim, ())
        return any(self.relates(node, record.Key(VOLUMES, "", volume)) for volume in self._volumes.get(key, ()))

    def put(self, source: record.Record) -> None:
        key, value = source.key, source.value
        if key.resource == VOLUMES:
            self._put_volume(key.name, value)
        elif key.resource == PODS:
            node = value["spec"].get("nodeName") or ""
            self._relate(key, node, _references(source) if node else frozenset())
        else:
            self._relate(key, node_of(value), frozenset())

    def drop(self, source: record.Record) -> None:
        if source.key.resource == VOLUMES:
            self._forget_volume(source.key.name)
        else:
            self._relate(source.key, "", frozenset())

    def _relate(self, key: record.Key, node: str, references: frozenset[record.Key]) -> None:
        """Set the edges of an object; without a node it has none."""
        previous = self._made.get(key)
        if previous == (node, references):
            return
        if previous is not None:
            del self._made[key]
            for each in (key, *previous[1]):
                self._take(each, previous[0])
        if node:
            self._made[key] = node, references
            for each in (key, *references):
                nodes = self._nodes.setdefault(each, {})
                nodes[node] = nodes.get(node, 0) + 1

    def _take(self, key: record.Key, node: str) -> None:
        nodes = self._nodes[key]
        nodes[node] -= 1
        if not nodes[node]:
            del nodes[node]
        if not nodes:
            del self._nodes[key]

    def _put_volume(self, name: str, value: Mapping[str, Any]) -> None:
        self._forget_volume(name)
        claim: Mapping[str, Any] | None = value["spec"].get("claimRef")
        if claim is None:
            return
        namespace = claim.get("namespace", "")
        self._claims[name] = record.Key(podreferences.VOLUME_CLAIMS, namespace, claim.get("name", ""))
        secrets = self._secrets[name] = frozenset(_volume_secrets(value["spec"], namespace))
        for secret in secrets:
            self._volumes.setdefault(secret, set()).add(name)

    def _forget_volume(self, name: str) -> None:
        self._claims.pop(name, None)
        for secret in self._secrets.pop(name, ()):
            volumes = self._volumes[secret]
            volumes.discard(name)
            if not volumes:
                del self._volumes[secret]


def node_of(value: Mapping[str, Any]) -> str:
    """Return the node that an object other than a pod names, or an empty string; slices of 1.30 have no ``spec``."""
    return (value.get("spec") or value).get("nodeName") or ""


def _references(pod: record.Record) -> frozenset[record.Key]:
    """Return the objects that a node may read because of a pod; a mirror pod gives no access."""
    value, namespace = pod.value, pod.key.namespace
    if pod_rules.MIRROR_ANNOTATION in (value["metadata"].get("annotations") or ()):
        return frozenset()
    return frozenset(
        record.Key(key, namespace, name)
        for resource, name in podreferences.find(value)
        for key in builtin.stored_keys(resource)
    )


def _volume_secrets(spec: Mapping[str, Any], namespace: str) -> list[record.Key]:
    """Return the secrets that a node needs to use a volume, in their namespaces or in that of the claim."""
    sources = [(spec.get(kind) or {}).get("secretRef") for kind in _SECRET_SOURCES]
    sources += [(spec.get("csi") or {}).get(field) for field in _CSI_SECRETS]
    keys = [
        record.Key(podreferences.SECRETS, each.get("namespace") or namespace, each["name"])
        for each in sources
        if each and each.get("name")
    ]
    file = spec.get("azureFile") or {}
    if file.get("secretName"):
        keys.append(record.Key(podreferences.SECRETS, file.get("secretNamespace") or namespace, file["secretName"]))
    return keys
