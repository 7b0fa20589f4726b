"""Resources of a node: neighbours that count for admission, and bounds and notices behind their gates."""

import pytest
from msgspec import structs

from drachma.api import gates as feature
from drachma.api import nodeallocatable
from drachma.api.pod import Container, Pod
from drachma.claims import podfeatures
from drachma.node.pods.noderesources import NodeResources
from drachma.testing import node, pod
from drachma.values import quantity

RESOURCES = feature.Gate.NODE_ALLOCATABLE_RESOURCES.value
QUALITY = feature.Gate.NODE_ALLOCATABLE_QOS.value
NODE = node("n", allocatable={"cpu": "4", "memory": "8Gi", "pods": "2"}).build()


def _resources(*running: Pod, **settings: bool) -> NodeResources:
    gates = feature.ALL.switched({RESOURCES: False, QUALITY: False} | settings)
    return NodeResources(NODE, gates=gates, running_pods=lambda: running)


def _pod(name: str, *, cpu: str = "3", claim: str = "") -> Pod:
    built = pod(name).container("c", requests={"cpu": cpu}).uid(name).build()
    return _claimed(built, claim) if claim else built


def _claimed(subject: Pod, cpu: str) -> Pod:
    """Return a pod with a claim for its container that stands for cpu."""
    mapping = nodeallocatable.NodeAllocatableMappedResource(name="cpu", amount=quantity.Quantity.parse(cpu))
    entry = nodeallocatable.NodeAllocatableResourceClaimStatus(
        resource_claim_name="claim", containers=("c",), mapping=(mapping,)
    )
    status = structs.replace(subject.status, node_allocatable_resource_claim_statuses=(entry,))
    return structs.replace(subject, status=status)


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
    ("settings", "want_features", "want_quality", "want_shares"),
    [
        pytest.param({}, [], "Burstable", (1024, 1024), id="no-gate"),
        pytest.param({RESOURCES: True}, [RESOURCES], "Burstable", (3072, 3072), id="resources"),
        pytest.param(
            {RESOURCES: True, QUALITY: True}, [RESOURCES, QUALITY], "Burstable", (3072, 3072), id="quality-of-service"
        ),
    ],
)
def test_gates_decide_features_and_bounds(
    settings: dict[str, bool], want_features: list[str], want_quality: str, want_shares: tuple[int, int]
) -> None:
    resources, subject = _resources(**settings), _pod("a", cpu="1", claim="2")
    assert resources.declared_features == [podfeatures.POD_LEVEL_RESIZE, *want_features]
    bounds = resources.bounds(subject, subject.spec.containers[0])
    assert bounds is not None, "requests and limits of the spec always count"
    assert (bounds.quality, (bounds.pod.cpu_shares, bounds.container.cpu_shares)) == (want_quality, want_shares)


def test_claims_widen_limits_and_set_none() -> None:
    resources = _resources(**{RESOURCES: True})
    (container,) = _pod("a", cpu="1").spec.containers
    both = structs.replace(container.resources, limits=container.resources.requests)
    spec = structs.replace(_pod("a").spec, containers=(structs.replace(container, resources=both),))
    limited = structs.replace(_pod("a"), spec=spec)
    bounds = resources.bounds(_claimed(limited, "2"), limited.spec.containers[0])
    assert bounds is not None
    assert (bounds.container.cpu_quota, bounds.pod.cpu_quota) == (300_000, 300_000)
    unlimited = _pod("a", cpu="1", claim="2")
    bounds = resources.bounds(unlimited, unlimited.spec.containers[0])
    assert bounds is not None
    assert bounds.container.cpu_quota is None


def test_a_node_made_by_hand_without_memory_bounds_nothing() -> None:
    resources = _resources(**{RESOURCES: True, QUALITY: True})
    resources.update(node("n", allocatable={"cpu": "4", "pods": "2"}).build())
    subject = _pod("a")
    assert resources.bounds(subject, subject.spec.containers[0]) is None
    assert resources.quality_notice(subject) == ""


def test_ephemeral_containers_have_no_bounds() -> None:
    resources = _resources(**{RESOURCES: True, QUALITY: True})
    assert resources.bounds(_pod("a"), Container(name="debugger")) is None


def test_there_is_no_notice_if_claims_change_nothing() -> None:
    assert _resources(**{RESOURCES: True, QUALITY: True}).quality_notice(_pod("a")) == ""
