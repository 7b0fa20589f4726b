"""Admission of pods: accounts, priorities, tolerations."""

from typing import Any

import pytest

from tests.unit.server import client
from tests.unit.server.client import PODS, Client

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
MIRROR = {"kubernetes.io/config.mirror": "x"}
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


def pod(name: str = "p", *, metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    made = client.pod(name)
    return {**made, "metadata": made["metadata"] if metadata is None else metadata, "spec": {**made["spec"], **spec}}


async def created(server: Client, body: dict[str, Any]) -> dict[str, Any]:
    answer = await server.call("POST", PODS, body)
    assert answer.code == 201, answer.body
    content: dict[str, Any] = answer.body
    return content


async def test_a_mirror_pod_has_no_account(server: Client) -> None:
    mirror = pod(metadata={"name": "p", "annotations": MIRROR}, nodeName="n")
    assert "serviceAccountName" not in (await created(server, mirror))["spec"]
    assert (await created(server, pod("q")))["spec"]["serviceAccountName"] == "default"
    assert (await created(server, pod("r", serviceAccountName="own")))["spec"]["serviceAccountName"] == "own"


@pytest.mark.parametrize(
    ("tolerations", "want"),
    [
        pytest.param([], [NOT_READY, UNREACHABLE], id="none"),
        pytest.param([{"key": NOT_READY, "operator": "Exists"}], [NOT_READY, UNREACHABLE], id="one-of-two"),
        pytest.param([{"operator": "Exists"}], [None], id="all-taints"),
        pytest.param(
            [{"key": NOT_READY, "operator": "Exists", "effect": "NoSchedule"}],
            [NOT_READY, NOT_READY, UNREACHABLE],
            id="another-effect",
        ),
    ],
)
async def test_tolerations(server: Client, tolerations: list[dict[str, Any]], want: list[str | None]) -> None:
    spec = (await created(server, pod(tolerations=tolerations)))["spec"]
    assert [each.get("key") for each in spec["tolerations"]] == want


@pytest.mark.parametrize("fields", [["priority", "preemptionPolicy"], ["tolerations"]], ids=["priority", "tolerations"])
async def test_an_update_may_leave_out_what_admission_set(server: Client, fields: list[str]) -> None:
    body = await created(server, pod())
    for field in fields:
        del body["spec"][field]
    server.clock.advance(60)
    answer = await server.call("PUT", f"{PODS}/p", body)
    assert answer.code == 200
    assert answer.body["metadata"]["resourceVersion"] == body["metadata"]["resourceVersion"]
    assert set(fields) <= answer.body["spec"].keys()


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        pytest.param(
            pod(priorityClassName="nope"),
            403,
            'pods "p" is forbidden: no PriorityClass with name nope was found',
            id="unknown-class",
        ),
        pytest.param(
            pod(metadata={"generateName": "g-"}, priorityClassName="nope"),
            403,
            'pods "g-" is forbidden: no PriorityClass with name nope was found',
            id="before-a-name-is-generated",
        ),
        pytest.param(
            pod(metadata={}, priorityClassName="nope"),
            403,
            'pods "Unknown" is forbidden: no PriorityClass with name nope was found',
            id="without-any-name",
        ),
        pytest.param(
            pod(priority=7),
            403,
            'pods "p" is forbidden: the integer value of priority (7) must not be provided in pod spec; priority '
            "admission controller computed 0 from the given PriorityClass name",
            id="a-priority-of-its-own",
        ),
        pytest.param(
            pod(preemptionPolicy="Never"),
            403,
            'pods "p" is forbidden: the string value of PreemptionPolicy (Never) must not be provided in pod spec; '
            "priority admission controller computed PreemptLowerPriority from the given PriorityClass name",
            id="a-policy-of-its-own",
        ),
        pytest.param(
            pod(runtimeClassName="nope", restartPolicy="Sometimes"),
            403,
            'pods "p" is forbidden: pod rejected: RuntimeClass "nope" not found',
            id="runtime-class-before-validation",
        ),
        pytest.param(
            pod(overhead={"cpu": "1"}),
            403,
            'pods "p" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead',
            id="overhead",
        ),
        pytest.param(
            pod(overhead={"cpu": "1"}, restartPolicy="Sometimes"),
            422,
            'Pod "p" is invalid: spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", '
            '"OnFailure", "Never"',
            id="overhead-after-validation",
        ),
    ],
)
async def test_refused(server: Client, body: dict[str, Any], code: int, message: str) -> None:
    before = server.store.revision
    answer = await server.call("POST", PODS, body)
    assert (answer.code, answer.body["message"]) == (code, message)
    assert server.store.revision == before


async def test_one_class_is_for_pods_that_name_none(server: Client) -> None:
    usual = {"metadata": {"name": "usual"}, "value": 10, "globalDefault": True}
    made = await server.call("POST", CLASSES, usual)
    assert made.code == 201
    assert (await server.call("PUT", f"{CLASSES}/usual", made.body)).code == 200
    await server.call("POST", CLASSES, {"metadata": {"name": "other"}, "value": 5})
    marked = {"metadata": {"name": "other"}, "value": 5, "globalDefault": True}
    for method, path, body in (
        ("POST", CLASSES, {**usual, "metadata": {"name": "third"}}),
        ("PUT", f"{CLASSES}/other", marked),
    ):
        refused = await server.call(method, path, body)
        assert refused.code == 403
        assert refused.body["message"].endswith(
            "is forbidden: PriorityClass usual is already marked as default. Only one default can exist"
        )
    assert (await created(server, pod()))["spec"]["priority"] == 10
    await server.call("DELETE", f"{CLASSES}/usual")
    assert (await server.call("PUT", f"{CLASSES}/other", marked)).code == 200
    assert (await created(server, pod("q")))["spec"]["priority"] == 5


async def test_system_priority_classes_stay(server: client.Client) -> None:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical"
    answer = await server.call("DELETE", path)
    assert answer.code == 403
    assert answer.body["message"] == (
        'priorityclasses.scheduling.k8s.io "system-node-critical" is forbidden: '
        "this is a system priority class and cannot be deleted"
    )
