"""Pods without claims: those of upstream's benchmarks of the other plugins, as documents."""

from __future__ import annotations

from typing import Final

from drachma.cli.benchmark.objects import Document, node_name

ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"

_COLOR: Final = "color"
_HIGH: Final = "high-priority"


def zone_labels(number: int, zones: int) -> dict[str, str]:
    """Return the labels of a node in one of several zones; none if there are no zones."""
    return {ZONE: _zone_name(number % zones)} if zones else {}


def _zone_name(number: int) -> str:
    return f"zone-{number}"


def pod(namespace: str, _number: int) -> Document:
    """Return a pod that requests 100m and 500 MB."""
    return _pod(namespace, cpu="100m")


def repelling_pod(namespace: str, _number: int) -> Document:
    """Return a pod that shares its node with no other pod like it."""
    return _colored_pod(namespace, "green", affinity={"podAntiAffinity": _required(_term("green", HOST))})


def attracted_pod(namespace: str, _number: int) -> Document:
    """Return a pod in the zone of pods like it."""
    return _colored_pod(namespace, "blue", affinity={"podAffinity": _required(_term("blue", ZONE))})


def preferring_pod(namespace: str, _number: int) -> Document:
    """Return a pod that prefers nodes with pods like it."""
    preferred = [{"weight": 1, "podAffinityTerm": _term("red", HOST)}]
    affinity = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    return _colored_pod(namespace, "red", affinity=affinity)


def shunning_pod(namespace: str, _number: int) -> Document:
    """Return a pod that prefers nodes without pods like it."""
    preferred = [{"weight": 1, "podAffinityTerm": _term("yellow", HOST)}]
    affinity = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    return _colored_pod(namespace, "yellow", affinity=affinity)


def repelled_pod(namespace: str, _number: int) -> Document:
    """Return a pod without rules that other pods share no node with."""
    return _colored_pod(namespace, "green")


def mixed_pod(namespace: str, number: int) -> Document:
    """Return one of five sorts of pods in turn: without rules, and with each kind of affinity."""
    sorts = (pod, attracted_pod, repelling_pod, preferring_pod, shunning_pod)
    return sorts[number % len(sorts)](namespace, number)


def zoned_pod(namespace: str, _number: int) -> Document:
    """Return a pod for the nodes of two zones, of which upstream's cluster has the first."""
    expression = {"key": ZONE, "operator": "In", "values": [_zone_name(0), _zone_name(1)]}
    return _pod(namespace, cpu="100m", affinity=_node_affinity({"matchExpressions": [expression]}))


def spread_pod(namespace: str, _number: int) -> Document:
    """Return a pod of which each zone has about as many as the others."""
    return _colored_pod(namespace, "blue", topologySpreadConstraints=[_spread("DoNotSchedule")])


def softly_spread_pod(namespace: str, _number: int) -> Document:
    """Return a pod that prefers the zone with the fewest of its kind."""
    return _colored_pod(namespace, "blue", topologySpreadConstraints=[_spread("ScheduleAnyway")])


def node_pod(namespace: str, _number: int) -> Document:
    """Return a pod for the first node, as controllers of daemon sets create them, that requests nothing."""
    field = {"key": "metadata.name", "operator": "In", "values": [node_name(0)]}
    document = _pod(namespace, cpu="100m", affinity=_node_affinity({"matchFields": [field]}))
    del document["spec"]["containers"][0]["resources"]
    return document


def unimportant_pod(namespace: str, _number: int) -> Document:
    """Return a pod of which four fill a node, and that ends at once when it is evicted."""
    return _pod(namespace, cpu="900m", terminationGracePeriodSeconds=0)


def important_pod(namespace: str, _number: int) -> Document:
    """Return a pod that replaces others on a full node."""
    return _pod(namespace, cpu="3000m", priorityClassName=_HIGH)


def priority_class() -> Document:
    """Return the class of important pods."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": _HIGH},
        "value": 10,
    }


def _pod(namespace: str, *, cpu: str, **spec: object) -> Document:
    requests = {"cpu": cpu, "memory": "500Mi"}
    container = {
        "name": "pause",
        "image": "registry.k8s.io/pause:3.10.1",
        "ports": [{"containerPort": 80}],
        "resources": {"requests": requests, "limits": requests},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "pod-", "namespace": namespace},
        "spec": {"containers": [container], **spec},
    }


def _colored_pod(namespace: str, color: str, **spec: object) -> Document:
    document = _pod(namespace, cpu="100m", **spec)
    document["metadata"]["labels"] = {_COLOR: color}
    return document


def _term(color: str, key: str) -> Document:
    """Return a term for pods of a color, also those that were there before the measurement."""
    return {"topologyKey": key, "labelSelector": {"matchLabels": {_COLOR: color}}, "namespaces": ["init", "test"]}


def _required(term: Document) -> Document:
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def _node_affinity(term: Document) -> Document:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def _spread(otherwise: str) -> Document:
    return {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": otherwise,
        "labelSelector": {"matchLabels": {_COLOR: "blue"}},
    }
