"""Pods and the classes of runtimes that they name."""

from typing import Any

import pytest

from drachma.server.admission import runtimeclass
from tests.unit.server.client import Client

PODS = "/api/v1/namespaces/default/pods"
CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
SCHEDULING: dict[str, Any] = {
    "nodeSelector": {"kata": "yes"},
    "tolerations": [{"key": "kata", "operator": "Exists", "effect": "NoSchedule"}],
}


def pod(**spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "registry.example/pause:3.10"}]
    return {"metadata": {"name": "p"}, "spec": {"containers": containers, "runtimeClassName": "kata", **spec}}


async def make_class(server: Client, **content: Any) -> None:
    made = await server.call("POST", CLASSES, {"metadata": {"name": "kata"}, "handler": "kata", **content})
    assert made.code == 201, made.body


def detail(answer: Any) -> str:
    assert answer.code == 403, answer.body
    return str(answer.body["message"].partition(" is forbidden: ")[2])


async def test_a_class_must_exist(server: Client) -> None:
    assert detail(await server.call("POST", PODS, pod())) == 'pod rejected: RuntimeClass "kata" not found'


async def test_a_pod_gets_what_its_class_says(server: Client) -> None:
    await make_class(server, overhead={"podFixed": {"cpu": "250m"}}, scheduling=SCHEDULING)
    own = {"key": "own", "operator": "Exists"}
    made = await server.call("POST", PODS, pod(nodeSelector={"own": "1"}, tolerations=[own]))
    assert made.code == 201, made.body
    spec = made.body["spec"]
    assert (spec["overhead"], spec["nodeSelector"]) == ({"cpu": "250m"}, {"own": "1", "kata": "yes"})
    assert spec["tolerations"][0] == own
    assert spec["tolerations"][-1] == SCHEDULING["tolerations"][0]


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({"overhead": {"cpu": "0.25"}}, "", id="the-same-written-otherwise"),
        pytest.param(
            {"overhead": {"cpu": "1"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
            id="more",
        ),
        pytest.param(
            {"nodeSelector": {"kata": "no"}},
            "conflict: runtimeClass.scheduling.nodeSelector[kata] = yes; pod.spec.nodeSelector[kata] = no",
            id="elsewhere",
        ),
    ],
)
async def test_what_a_pod_says_itself(server: Client, spec: dict[str, Any], want: str) -> None:
    await make_class(server, overhead={"podFixed": {"cpu": "250m"}}, scheduling=SCHEDULING)
    answer = await server.call("POST", PODS, pod(**spec))
    assert answer.code == 201 if not want else detail(answer) == want


@pytest.mark.parametrize("name", ["kata", None])
async def test_nobody_makes_an_overhead_up(server: Client, name: str | None) -> None:
    await make_class(server)
    answer = await server.call("POST", PODS, pod(runtimeClassName=name, overhead={"cpu": "1"}))
    assert detail(answer) == "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


ALL: dict[str, Any] = {"operator": "Exists"}
ONE: dict[str, Any] = {"key": "a", "operator": "Exists"}
EQUAL: dict[str, Any] = {"key": "a", "operator": "Equal", "value": "b"}
SOON: dict[str, Any] = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
LATE: dict[str, Any] = {**SOON, "tolerationSeconds": 50}


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param([ONE, ONE], [ONE], id="twice"),
        pytest.param([ONE, ALL], [ALL], id="all-after-one"),
        pytest.param([ALL, ONE], [ALL], id="all-before-one"),
        pytest.param([EQUAL, ONE], [ONE], id="any-value"),
        pytest.param([SOON, LATE], [LATE], id="longer"),
        pytest.param([LATE, SOON], [LATE], id="shorter-after"),
        pytest.param([EQUAL, {**EQUAL, "value": "c"}], [EQUAL, {**EQUAL, "value": "c"}], id="both"),
        pytest.param([{**EQUAL, "effect": "NoSchedule"}, EQUAL], [EQUAL], id="any-effect"),
    ],
)
def test_tolerations_are_merged(given: list[dict[str, Any]], want: list[dict[str, Any]]) -> None:
    assert runtimeclass.merged(given) == want
