"""Pods: what admission adds, binding, eviction, and what may change."""

from typing import Any

import pytest

from tests.unit.server import client
from tests.unit.server.client import PODS, Client

MERGE = "application/merge-patch+json"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


def _binding(**metadata: Any) -> dict[str, Any]:
    return {"kind": "Binding", "metadata": {"name": "p", **metadata}, "target": {"kind": "Node", "name": "n1"}}


async def test_what_a_new_pod_gets(server: Client) -> None:
    given = client.pod()
    given["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1", "memory": "1Gi"}}
    given["spec"]["tolerations"] = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]
    given["status"] = {"phase": "Running"}
    made = (await server.call("POST", PODS, given)).body
    assert made["status"] == {"phase": "Pending", "qosClass": "Guaranteed"}
    assert made["metadata"]["generation"] == 1
    spec = made["spec"]
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    wanted = {
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
        "enableServiceLinks": True,
        "securityContext": {},
    }
    assert {field: spec[field] for field in wanted} == wanted
    assert [each["key"] for each in spec["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]
    owned = str(made["metadata"]["managedFields"])
    assert "f:schedulerName" in owned
    assert "f:priority" not in owned


@pytest.mark.parametrize(
    ("resources", "want"),
    [
        pytest.param({}, "BestEffort", id="nothing"),
        pytest.param({"requests": {"cpu": "1"}}, "Burstable", id="a-request"),
        pytest.param({"limits": {"cpu": "1"}}, "Burstable", id="one-limit"),
        pytest.param({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable", id="less"),
        pytest.param(
            {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}},
            "Guaranteed",
            id="same-amounts-in-other-words",
        ),
    ],
)
async def test_quality_of_service(server: Client, resources: dict[str, Any], want: str) -> None:
    given = client.pod()
    given["spec"]["containers"][0]["resources"] = resources
    assert (await server.call("POST", PODS, given)).body["status"]["qosClass"] == want


async def test_priority_comes_from_the_class(server: Client) -> None:
    await server.call("POST", CLASSES, {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"})
    await server.call("POST", CLASSES, {"metadata": {"name": "usual"}, "value": 10, "globalDefault": True})
    given = client.pod()
    given["spec"]["priorityClassName"] = "high"
    spec = (await server.call("POST", PODS, given)).body["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")
    spec = (await server.call("POST", PODS, client.pod("q"))).body["spec"]
    assert (spec["priority"], spec["priorityClassName"]) == (10, "usual")
    unknown = client.pod("r")
    unknown["spec"]["priorityClassName"] = "nope"
    refused = await server.call("POST", PODS, unknown)
    assert refused.body["message"] == 'pods "r" is forbidden: no PriorityClass with name nope was found'
    forged = client.pod("s")
    forged["spec"]["priority"] = 99
    assert (await server.call("POST", PODS, forged)).code == 403


async def test_gates_hold_a_pod(server: Client) -> None:
    given = client.pod()
    given["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    made = (await server.call("POST", PODS, given)).body
    assert made["status"]["conditions"][0]["reason"] == "SchedulingGated"
    refused = await server.call("POST", f"{PODS}/p/binding", _binding())
    assert refused.body["message"].endswith("pod p has non-empty .spec.schedulingGates")
    opened = await server.call("PATCH", f"{PODS}/p", {"spec": {"schedulingGates": None}}, content_type=MERGE)
    assert opened.code == 200
    assert (await server.call("POST", f"{PODS}/p/binding", _binding())).code == 201


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"containers": []}, "spec.containers: Required value", id="no-containers"),
        pytest.param(
            {"containers": [{"name": "a", "image": "i"}, {"name": "a", "image": "i"}]},
            'spec.containers[1].name: Duplicate value: "a"',
            id="same-name-twice",
        ),
        pytest.param({"containers": [{"name": "a"}]}, "spec.containers[0].image: Required value", id="no-image"),
        pytest.param(
            {"restartPolicy": "Sometimes"},
            'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
            id="unknown-restart-policy",
        ),
        pytest.param(
            {"containers": [{"name": "a", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}]},
            "must be one of the names in pod.spec.resourceClaims",
            id="unknown-claim",
        ),
    ],
)
async def test_refused(server: Client, change: dict[str, Any], message: str) -> None:
    given = client.pod()
    given["spec"].update(change)
    answer = await server.call("POST", PODS, given)
    assert answer.code == 422
    assert message in answer.body["message"]


async def test_binding(server: Client) -> None:
    made = (await server.call("POST", PODS, client.pod())).body
    stale = await server.call("POST", f"{PODS}/p/binding", _binding(resourceVersion="1"))
    other = await server.call("POST", f"{PODS}/p/binding", _binding(uid="other"))
    assert (stale.code, other.code) == (409, 409)
    good = _binding(uid=made["metadata"]["uid"], annotations={"a": "b"}, labels={"zone": "z"})
    bound = await server.call("POST", f"{PODS}/p/binding", good)
    assert bound.body == {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    pod = (await server.call("GET", f"{PODS}/p")).body
    assert pod["spec"]["nodeName"] == "n1"
    assert pod["metadata"]["annotations"] == {"a": "b"}
    assert pod["metadata"]["labels"] == {"zone": "z"}
    assert pod["status"]["conditions"] == [
        {
            "lastProbeTime": None,
            "lastTransitionTime": "2026-01-02T03:04:05Z",
            "type": "PodScheduled",
            "status": "True",
        }
    ]
    again = await server.call("POST", f"{PODS}/p/binding", _binding())
    assert again.code == 409
    assert again.body["message"] == (
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1"'
    )


async def test_binding_refused(server: Client) -> None:
    await server.call("POST", PODS, client.pod())
    named = await server.call("POST", f"{PODS}/p/binding", {**_binding(), "metadata": {"name": "q"}})
    assert named.body["message"] == "name in URL does not match name in Binding object"
    nowhere = await server.call("POST", f"{PODS}/p/binding", {**_binding(), "target": {}})
    assert "target.name: Required value" in nowhere.body["message"]
    missing = await server.call("POST", f"{PODS}/none/binding", {**_binding(), "metadata": {"name": "none"}})
    assert missing.code == 404
    dry = await server.call("POST", f"{PODS}/p/binding?dryRun=All", _binding())
    assert dry.code == 201
    assert "nodeName" not in (await server.call("GET", f"{PODS}/p")).body["spec"]


async def test_eviction(server: Client) -> None:
    await server.call("POST", PODS, client.pod())
    await server.call("POST", f"{PODS}/p/binding", _binding())
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    assert (await server.call("POST", f"{PODS}/p/eviction", eviction)).code == 201
    pod = (await server.call("GET", f"{PODS}/p")).body
    assert "deletionTimestamp" in pod["metadata"]
    assert {each["type"] for each in pod["status"]["conditions"]} == {"PodScheduled", "DisruptionTarget"}
    now = {**eviction, "apiVersion": "policy/v1beta1", "deleteOptions": {"gracePeriodSeconds": 0}}
    assert (await server.call("POST", f"{PODS}/p/eviction", now)).code == 201
    assert (await server.call("GET", f"{PODS}/p")).code == 404


async def test_what_may_change(server: Client) -> None:
    given = client.pod()
    given["spec"]["tolerations"] = [{"key": "k", "operator": "Exists"}]
    made = (await server.call("POST", PODS, given)).body
    image = {"spec": {"containers": [{"name": "main", "image": "other:2"}]}}
    changed = await server.call("PATCH", f"{PODS}/p", image, content_type="application/strategic-merge-patch+json")
    assert (changed.code, changed.body["metadata"]["generation"]) == (200, 2)
    refused = await server.call("PATCH", f"{PODS}/p", {"spec": {"nodeName": "n"}}, content_type=MERGE)
    assert refused.code == 422
    assert refused.body["message"].startswith(
        'Pod "p" is invalid: spec: Forbidden: pod updates may not change fields other than'
    )
    fewer = {**made, "spec": {**made["spec"], "tolerations": []}}
    del fewer["metadata"]["resourceVersion"]
    fewer["spec"]["containers"][0]["image"] = "other:2"
    answer = await server.call("PUT", f"{PODS}/p", fewer)
    assert "existing toleration can not be modified except its tolerationSeconds" in answer.body["message"]


async def test_status_keeps_what_old_clients_do_not_know(server: Client) -> None:
    given = client.pod()
    given["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    await server.call("POST", PODS, given)
    statuses = [{"name": "gpu", "resourceClaimName": "p-gpu-x"}]
    await server.call("PATCH", f"{PODS}/p/status", {"status": {"resourceClaimStatuses": statuses}}, content_type=MERGE)
    pod = (await server.call("GET", f"{PODS}/p")).body
    pod["status"] = {"phase": "Running"}
    pod["spec"]["nodeName"] = "forged"
    after = (await server.call("PUT", f"{PODS}/p/status", pod)).body
    assert after["status"] == {
        "phase": "Running",
        "qosClass": "BestEffort",
        "resourceClaimStatuses": statuses,
    }
    assert "nodeName" not in after["spec"]


async def test_a_patch_of_status_leaves_nulls_that_it_does_not_touch(server: Client) -> None:
    await server.call("POST", PODS, client.pod())
    assert (await server.call("POST", f"{PODS}/p/binding", _binding())).code == 201
    (bound,) = (await server.call("GET", f"{PODS}/p")).body["status"]["conditions"]
    patch = {"metadata": {"labels": {"a": "b"}}}
    headers = {"content-type": "application/merge-patch+json"}
    patched = await server.call("PATCH", f"{PODS}/p/status", patch, headers=headers)
    assert bound["lastProbeTime"] is None
    assert patched.body["status"]["conditions"] == [bound]


async def test_status_of_node_allocatable_claims_follows_the_rules_on_its_type(server: Client) -> None:
    given = client.pod()
    given["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "c"}]
    await server.call("POST", PODS, given)
    statuses = {"resourceClaimName": "c", "containers": ["main"], "mapping": [{"name": "cpu", "quantity": "1"}] * 2}
    patch = {"status": {"nodeAllocatableResourceClaimStatuses": [statuses]}}
    refused = await server.call("PATCH", f"{PODS}/p/status", patch, content_type=MERGE)
    (cause,) = refused.body["details"]["causes"]
    field = "status.nodeAllocatableResourceClaimStatuses[0].mapping[1]"
    assert (refused.code, cause["field"], cause["reason"]) == (422, field, "FieldValueDuplicate")


async def test_containers_for_debugging_are_added_and_stay(server: Client) -> None:
    await server.call("POST", PODS, client.pod())
    path = f"{PODS}/p/ephemeralcontainers"
    patch = {"metadata": {"labels": {"a": "b"}}, "spec": {"ephemeralContainers": [{"name": "debug", "image": "i"}]}}
    added = await server.call("PATCH", path, patch, content_type="application/strategic-merge-patch+json")
    assert (added.code, added.body["metadata"]["generation"]) == (200, 2)
    assert [each["name"] for each in added.body["spec"]["ephemeralContainers"]] == ["debug"]
    assert [each["name"] for each in added.body["spec"]["containers"]] == ["main"]
    removed = await server.call(
        "PATCH", path, {"spec": {"ephemeralContainers": None}}, content_type="application/merge-patch+json"
    )
    assert removed.code == 422
    assert 'existing ephemeral containers "debug" may not be removed' in removed.body["message"]


async def test_the_containers_of_a_pod_do_not_change_with_those_for_debugging(server: Client) -> None:
    await server.call("POST", PODS, client.pod())
    changed = {"spec": {"containers": [{"name": "main", "image": "other"}]}}
    answer = await server.call(
        "PATCH", f"{PODS}/p/ephemeralcontainers", changed, content_type="application/strategic-merge-patch+json"
    )
    assert answer.body["metadata"]["generation"] == 1
    assert answer.body["spec"]["containers"][0]["image"] == "registry.example/pause:3.10"
