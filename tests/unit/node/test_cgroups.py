"""Cgroups and who dies first, where recordings do not reach."""

from typing import Any

import pytest

from drachma.api import codec, pod
from drachma.node import cgroups

GIB = 2**30


def _pod(*containers: dict[str, Any], **spec: Any) -> pod.Pod:
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": containers, **spec},
    }
    decoded = codec.decode(document)
    assert isinstance(decoded, pod.Pod)
    return decoded


def _container(name: str = "c", **resources: Any) -> dict[str, Any]:
    return {"name": name, "image": "i", "resources": resources}


def test_a_limit_of_one_container_does_not_limit_the_pod() -> None:
    limited = _container("a", limits={"cpu": "1", "memory": "1Gi"}, requests={"cpu": "1"})
    cgroup = cgroups.of_pod(_pod(limited, _container("b")), with_claims=True)
    assert (cgroup.cpu_shares, cgroup.cpu_quota, cgroup.memory) == (1024, None, None)


def test_the_smallest_and_the_largest_share() -> None:
    small = _pod(_container(requests={"cpu": "1m"}))
    large = _pod(_container(requests={"cpu": "1000"}))
    assert cgroups.of_pod(small, with_claims=True).cpu_shares == 2
    assert cgroups.of_pod(large, with_claims=True).cpu_shares == 262_144


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({}, 500, id="half-of-all-memory"),
        pytest.param({"priorityClassName": "system-node-critical", "priority": 2_000_001_000}, -997, id="critical"),
        pytest.param({"priorityClassName": "system-node-critical", "priority": 1}, 500, id="only-named-so"),
    ],
)
def test_who_dies_first(spec: dict[str, Any], want: int) -> None:
    of = _pod(_container(requests={"memory": "4Gi"}), **spec)
    assert cgroups.oom_score(of, of.spec.containers[0], memory=8 * GIB, with_claims=True) == want


def test_a_sidecar_outlives_the_containers_that_need_it() -> None:
    sidecar = {**_container("s", requests={"memory": "1Gi"}), "restartPolicy": "Always"}
    of = _pod(_container(requests={"memory": "4Gi"}), initContainers=[sidecar])
    assert cgroups.oom_score(of, of.spec.init_containers[0], memory=8 * GIB, with_claims=True) == 500
