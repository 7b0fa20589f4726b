"""Explanations of workloads that find no places on a topology."""

from datetime import UTC, datetime

from drachma.api import codec, meta
from drachma.queueing import explanation
from drachma.queueing.component import resources
from drachma.queueing.kinds import decoding
from drachma.simulate.queueingstate import QueueingState

_NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def _kueue(target: object, name: str, spec: dict[str, object], namespace: str = "") -> meta.Object:
    document = {"metadata": {"name": name, "namespace": namespace}, "spec": spec}
    return decoding.decode(document, target.model)  # type: ignore[attr-defined, no-any-return]


def _objects() -> list[meta.Object]:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "a", "labels": {"rack": "r", "kubernetes.io/hostname": "a", "pool": "x"}},
        "status": {
            "allocatable": {"cpu": "2", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    quota = {"name": "racks", "resources": [{"name": "cpu", "nominalQuota": "10"}]}
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    pod_set = {
        "name": "main",
        "count": 3,
        "template": {"spec": {"containers": [container]}},
        "topologyRequest": {"required": "rack"},
    }
    return [
        codec.decode({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}),
        codec.decode(node),
        _kueue(
            resources.TOPOLOGIES,
            "racks",
            {"levels": [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]},
        ),
        _kueue(resources.FLAVORS, "racks", {"topologyName": "racks", "nodeLabels": {"pool": "x"}}),
        _kueue(
            resources.CLUSTER_QUEUES,
            "queue",
            {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}]},
        ),
        _kueue(resources.LOCAL_QUEUES, "jobs", {"clusterQueue": "queue"}, "ns"),
        _kueue(resources.WORKLOADS, "wl", {"queueName": "jobs", "podSets": [pod_set]}, "ns"),
    ]


def test_the_message_names_the_topology_and_the_pods_that_fit() -> None:
    (explained,) = QueueingState(_objects(), _NOW).explain("ns", "wl")
    assert explained.outcome is explanation.Outcome.DOES_NOT_FIT
    assert explained.message == (
        'couldn\'t assign flavors to pod set main: topology "racks" allows to fit only 2 out of 3 pod(s)'
    )


def test_a_pod_outside_of_topologies_counts() -> None:
    container = {"name": "c", "resources": {"requests": {"cpu": "2"}}}
    running = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "daemon", "namespace": "ns"},
        "spec": {"nodeName": "a", "containers": [container]},
        "status": {"phase": "Running"},
    }
    (explained,) = QueueingState([*_objects(), codec.decode(running)], _NOW).explain("ns", "wl")
    assert "doesn't allow to fit any of 3 pod(s)" in explained.message
