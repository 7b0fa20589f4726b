"""Cgroups and OOM scores, in cases without recordings."""

from typing import Any

import pytest

from drachma.api import codec, pod
from drachma.node.pods import cgroups, podresources

GIB = 2**30


def _pod(*containers: dict[str, Any], status: dict[str, Any] | None = None, **spec: Any) -> pod.Pod:
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": containers, **spec},
        "status": status or {},
    }
    decoded = codec.decode(document)
    assert isinstance(decoded, pod.Pod)
    return decoded


def _container(name: str = "c", **resources: Any) -> dict[str, Any]:
    return {"name": name, "image": "i", "resources": resources}


def test_a_limit_of_one_container_does_not_limit_the_pod() -> None:
    limited = _container("a", limits={"cpu": "1", "memory": "1Gi"}, requests={"cpu": "1"})
    cgroup = cgroups.pod_cgroup(_pod(limited, _container("b")), with_claims=True)
    assert (cgroup.cpu_shares, cgroup.cpu_quota, cgroup.memory) == (1024, None, None)


def test_the_smallest_and_the_largest_share() -> None:
    small = _pod(_container(requests={"cpu": "1m"}))
    large = _pod(_container(requests={"cpu": "1000"}))
    assert cgroups.pod_cgroup(small, with_claims=True).cpu_shares == 2
    assert cgroups.pod_cgroup(large, with_claims=True).cpu_shares == 262_144


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({}, 500, id="half-of-all-memory"),
        pytest.param({"priorityClassName": "system-node-critical", "priority": 2_000_001_000}, -997, id="critical"),
        pytest.param({"priorityClassName": "system-node-critical", "priority": 1}, 500, id="only-named-so"),
    ],
)
def test_who_dies_first(spec: dict[str, Any], want: int) -> None:
    built_pod = _pod(_container(requests={"memory": "4Gi"}), **spec)
    assert cgroups.oom_score(built_pod, built_pod.spec.containers[0], memory=8 * GIB, with_claims=True) == want


def _claiming_pod(*containers: dict[str, Any], **mapped: str) -> pod.Pod:
    """Return a pod whose first container has a claim with these node resources."""
    mapping = [{"name": name, "quantity": amount} for name, amount in mapped.items()]
    entry = {"resourceClaimName": "c", "containers": [containers[0]["name"]], "mapping": mapping}
    return _pod(*containers, status={"nodeAllocatableResourceClaimStatuses": [entry]})


@pytest.mark.parametrize(
    ("container", "mapped", "want"),
    [
        pytest.param({}, {"cpu": "2", "memory": "2Gi"}, "Guaranteed", id="all-of-it-is-a-claim"),
        pytest.param({}, {"cpu": "2"}, "Burstable", id="cpu-only"),
        pytest.param({"requests": {"cpu": "1"}}, {"cpu": "2", "memory": "2Gi"}, "Burstable", id="a-request-unlimited"),
        pytest.param(
            {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
            {"cpu": "2"},
            "Guaranteed",
            id="guaranteed-by-itself",
        ),
        pytest.param({}, {}, "BestEffort", id="nothing"),
    ],
)
def test_claims_count_for_quality_where_they_are_to(container: Any, mapped: dict[str, str], want: str) -> None:
    built_pod = _claiming_pod(_container(**container), **mapped)
    assert podresources.quality(built_pod, with_claims=True) == want
    assert podresources.quality(built_pod) == podresources.quality(_pod(_container(**container)))


def test_a_pod_that_claims_guarantee_is_limited_to_them() -> None:
    built_pod = _claiming_pod(_container(), cpu="2", memory="2Gi")
    cgroup = cgroups.pod_cgroup(built_pod, with_claims=True, in_quality=True)
    assert (cgroup.cpu_shares, cgroup.cpu_quota, cgroup.memory) == (2048, 200_000, 2 * GIB)
    assert (
        cgroups.oom_score(built_pod, built_pod.spec.containers[0], memory=8 * GIB, with_claims=True, in_quality=True)
        == -997
    )
    plain = cgroups.pod_cgroup(built_pod, with_claims=True)
    assert (plain.cpu_shares, plain.cpu_quota, plain.memory) == (2, None, None)


def test_a_container_beside_without_a_claim_keeps_the_pod_from_being_guaranteed() -> None:
    built_pod = _claiming_pod(_container("a"), _container("b"), cpu="2", memory="2Gi")
    assert podresources.quality(built_pod, with_claims=True) == "Burstable"
    cgroup = cgroups.pod_cgroup(built_pod, with_claims=True, in_quality=True)
    assert (cgroup.cpu_shares, cgroup.cpu_quota, cgroup.memory) == (2048, None, None)


def test_a_sidecar_outlives_the_containers_that_need_it() -> None:
    sidecar = {**_container("s", requests={"memory": "1Gi"}), "restartPolicy": "Always"}
    built_pod = _pod(_container(requests={"memory": "4Gi"}), initContainers=[sidecar])
    assert cgroups.oom_score(built_pod, built_pod.spec.init_containers[0], memory=8 * GIB, with_claims=True) == 500
