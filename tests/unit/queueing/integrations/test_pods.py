"""Queued pods: their roles, and the changes that start them."""

from typing import Any

import pytest

from drachma.queueing.integrations import pods
from drachma.queueing.workloads.podsetinfo import PodSetInfo

_CONTAINER = {"name": "c", "resources": {"requests": {"cpu": "1"}}}


def _spec(**fields: Any) -> dict[str, Any]:
    return {"containers": [_CONTAINER], **fields}


def test_the_hash_is_upstreams() -> None:
    assert pods.role_hash(_spec()) == "dc85db45"


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(_spec(restartPolicy="Never", schedulingGates=[{"name": "g"}]), id="fields that do not matter"),
        pytest.param({"containers": [{**_CONTAINER, "image": "other", "name": "other"}]}, id="name and image"),
        pytest.param({"containers": [{"resources": {"requests": {"cpu": "1000m"}}}]}, id="the same amount"),
    ],
)
def test_the_same_role(spec: dict[str, Any]) -> None:
    assert pods.role_hash(spec) == pods.role_hash(_spec())


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(_spec(nodeSelector={"a": "b"}), id="node selector"),
        pytest.param(_spec(tolerations=[{"key": "a"}]), id="tolerations"),
        pytest.param(_spec(priority=1), id="priority"),
        pytest.param(_spec(resourceClaims=[{"name": "a"}]), id="claims"),
        pytest.param(_spec(resources={"requests": {"cpu": "1"}}), id="resources of the pod"),
        pytest.param({"containers": [{**_CONTAINER, "ports": [{"containerPort": 80}]}]}, id="ports"),
    ],
)
def test_another_role(spec: dict[str, Any]) -> None:
    assert pods.role_hash(spec) != pods.role_hash(_spec())


def test_fields_are_taken_in_the_order_of_their_structs() -> None:
    one = {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}
    other = dict(reversed(one.items()))

    assert pods.role_hash(_spec(tolerations=[one])) == pods.role_hash(_spec(tolerations=[other]))


def test_an_annotation_names_the_role() -> None:
    assert pods.role({"metadata": {"annotations": {pods.ROLE: "worker"}}, "spec": _spec()}) == "worker"


def test_a_pod_that_starts_keeps_other_gates() -> None:
    gates = [{"name": pods.GATE}, {"name": "example.com/mine"}]
    pod = {"metadata": {"name": "a"}, "spec": {"schedulingGates": gates}, "status": {"phase": "Pending"}}

    started = pods.ungated(pod, PodSetInfo(node_selector={"pool": "fast"}))

    assert started["spec"] == {"nodeSelector": {"pool": "fast"}, "schedulingGates": [{"name": "example.com/mine"}]}
    assert started["status"] == pod["status"]
