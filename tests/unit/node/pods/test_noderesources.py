"""Resources of a node: neighbours that count for admission, and bounds and notices behind their gates."""

import pytest

from drachma.api import gates as feature
from drachma.api.pod import Container, Pod
from drachma.node.pods.noderesources import NodeResources
from drachma.testing import node, pod

RESOURCES = feature.Gate.NODE_ALLOCATABLE_RESOURCES.value
QUALITY = feature.Gate.NODE_ALLOCATABLE_QOS.value
NODE = node("n", allocatable={"cpu": "4", "memory": "8Gi", "pods": "2"}).build()


def _resources(*running: Pod, **settings: bool) -> NodeResources:
    gates = feature.ALL.switched({RESOURCES: False, QUALITY: False} | settings)
    return NodeResources(NODE, gates=gates, running_pods=lambda: running)


def _pod(name: str, *, cpu: str = "3") -> Pod:
    return pod(name).container("c", requests={"cpu": cpu}).uid(name).build()


def test_a_pod_is_not_its_own_neighbour() -> None:
    subject = _pod("a")
    assert _resources(subject).admit(subject).is_admitted


def test_other_running_pods_take_room() -> None:
    verdict = _resources(_pod("b")).admit(_pod("a"))
    assert (verdict.is_admitted, verdict.reason) == (False, "OutOfcpu")


def test_admission_follows_the_registered_node() -> None:
    resources = _resources(_pod("b"))
    resources.update(node("n", allocatable={"cpu": "8", "memory": "8Gi", "pods": "2"}).build())
    assert resources.admit(_pod("a")).is_admitted


@pytest.mark.parametrize(
    ("settings", "want_features", "has_bounds"),
    [
        pytest.param({}, [], False, id="no-gate"),
        pytest.param({RESOURCES: True}, [RESOURCES], False, id="resources"),
        pytest.param({RESOURCES: True, QUALITY: True}, [RESOURCES, QUALITY], True, id="quality-of-service"),
    ],
)
def test_gates_decide_features_and_bounds(
    settings: dict[str, bool], want_features: list[str], has_bounds: bool
) -> None:
    resources, subject = _resources(**settings), _pod("a")
    assert resources.declared_features == want_features
    assert (resources.bounds(subject, subject.spec.containers[0]) is not None) == has_bounds


def test_ephemeral_containers_have_no_bounds() -> None:
    resources = _resources(**{RESOURCES: True, QUALITY: True})
    assert resources.bounds(_pod("a"), Container(name="debugger")) is None


def test_there_is_no_notice_if_claims_change_nothing() -> None:
    assert _resources(**{RESOURCES: True, QUALITY: True}).quality_notice(_pod("a")) == ""
