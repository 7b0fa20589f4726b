"""The other kinds: their defaults and the rules that components rely on."""

from typing import Any

import pytest

from tests.unit.server.client import Client

MERGE = "application/merge-patch+json"
BASE = "/api/v1/namespaces/default"
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


async def test_every_cluster_has_its_namespaces(server: Client) -> None:
    listed = (await server.call("GET", "/api/v1/namespaces")).body["items"]
    assert [each["metadata"]["name"] for each in listed] == ["default", "kube-node-lease", "kube-public", "kube-system"]
    assert listed[0]["spec"] == {"finalizers": ["kubernetes"]}
    assert listed[0]["status"] == {"phase": "Active"}
    assert listed[0]["metadata"]["labels"] == {"kubernetes.io/metadata.name": "default"}


NO_NODE_INFO = dict.fromkeys(
    ("architecture", "bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "kubeletVersion",
     "machineID", "operatingSystem", "osImage", "systemUUID"),
    "",
)  # fmt: skip


@pytest.mark.parametrize(
    ("path", "given", "want"),
    [
        pytest.param(
            f"{BASE}/secrets", {"stringData": {"a": "b"}}, {"type": "Opaque", "data": {"a": "Yg=="}}, id="secret"
        ),
        pytest.param(
            "/api/v1/nodes",
            {"status": {"capacity": {"cpu": "8"}}},
            {
                "status": {
                    "capacity": {"cpu": "8"},
                    "allocatable": {"cpu": "8"},
                    "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
                    "nodeInfo": NO_NODE_INFO,
                }
            },
            id="a-node-brings-its-status",
        ),
        pytest.param(
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            {"value": 5},
            {"value": 5, "preemptionPolicy": "PreemptLowerPriority"},
            id="priority-class",
        ),
        pytest.param(f"{BASE}/configmaps", {"data": {"k": "v"}}, {"data": {"k": "v"}}, id="config-map"),
        pytest.param(
            f"{BASE}/resourcequotas",
            {"spec": {"hard": {"pods": "2"}}, "status": {"used": {}}},
            {"spec": {"hard": {"pods": "2"}}, "status": {}},
            id="a-quota-does-not-bring-its-status",
        ),
    ],
)
async def test_defaults(server: Client, path: str, given: dict[str, Any], want: dict[str, Any]) -> None:
    answer = await server.call("POST", path, {"metadata": {"name": "x"}, **given})
    assert answer.code == 201, answer.body
    assert {field: answer.body[field] for field in want} == want


async def test_a_job_ties_its_pods_to_itself(server: Client) -> None:
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}  # type: ignore[dict-item]
    job = {"metadata": {"name": "j"}, "spec": {"template": template}}
    made = (await server.call("POST", "/apis/batch/v1/namespaces/default/jobs", job)).body
    uid = made["metadata"]["uid"]
    spec = made["spec"]
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert spec["template"]["metadata"]["labels"] == {
        "a": "b",
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "j",
        "controller-uid": uid,
        "job-name": "j",
    }
    wanted = {"completions": 1, "parallelism": 1, "backoffLimit": 6, "suspend": False, "completionMode": "NonIndexed"}
    assert {field: spec[field] for field in wanted} == wanted
    assert made["metadata"]["labels"] == spec["template"]["metadata"]["labels"]
    path = "/apis/batch/v1/namespaces/default/jobs/j"
    fixed = await server.call("PATCH", path, {"spec": {"completions": 5}}, content_type=MERGE)
    assert "spec.completions: Invalid value: 5: field is immutable" in fixed.body["message"]
    held = await server.call("PATCH", path, {"spec": {"suspend": True}}, content_type=MERGE)
    assert (held.code, held.body["metadata"]["generation"]) == (200, 2)


async def test_a_job_must_end(server: Client) -> None:
    job = {"metadata": {"name": "j"}, "spec": {"template": TEMPLATE}}
    answer = await server.call("POST", "/apis/batch/v1/namespaces/default/jobs", job)
    want = 'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'
    assert want in answer.body["message"]


@pytest.mark.parametrize("plural", ["deployments", "replicasets"])
async def test_a_selector_must_choose_its_own_pods(server: Client, plural: str) -> None:
    path = f"/apis/apps/v1/namespaces/default/{plural}"
    none = await server.call("POST", path, {"metadata": {"name": "d"}, "spec": {"template": TEMPLATE}})
    assert "spec.selector: Required value" in none.body["message"]
    spec = {"selector": {"matchLabels": {"a": "c"}}, "template": TEMPLATE}
    other = await server.call("POST", path, {"metadata": {"name": "d"}, "spec": spec})
    assert "`selector` does not match template `labels`" in other.body["message"]
    good = await server.call(
        "POST", path, {"metadata": {"name": "d"}, "spec": {**spec, "selector": {"matchLabels": {"a": "b"}}}}
    )
    assert (good.code, good.body["spec"]["replicas"]) == (201, 1)


@pytest.mark.parametrize(
    ("path", "given", "message"),
    [
        pytest.param("/api/v1/namespaces", {"metadata": {"name": "a.b"}}, "must not contain dots", id="namespace"),
        pytest.param(
            f"{BASE}/configmaps", {"metadata": {"name": "m"}, "data": {"a/b": "c"}}, "a valid config key", id="key"
        ),
        pytest.param(f"{BASE}/configmaps", {"metadata": {"name": "M"}}, "a lowercase RFC 1123 subdomain", id="name"),
        pytest.param(
            f"{BASE}/events",
            {"metadata": {"name": "e"}, "involvedObject": {"namespace": "other"}},
            "does not match event.namespace",
            id="event-of-another-namespace",
        ),
        pytest.param(
            "/api/v1/nodes",
            {"metadata": {"name": "n"}, "spec": {"taints": [{"key": "a", "effect": "Never"}]}},
            'metadata.taints[0].effect: Unsupported value: "Never"',
            id="taint",
        ),
        pytest.param(
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            {"metadata": {"name": "p"}, "value": 2_000_000_000},
            "maximum allowed value of a user defined priority is 1000000000",
            id="priority",
        ),
        pytest.param(
            "/apis/coordination.k8s.io/v1/namespaces/default/leases",
            {"metadata": {"name": "l"}, "spec": {"leaseDurationSeconds": 0}},
            "must be greater than 0",
            id="lease",
        ),
    ],
)
async def test_refused(server: Client, path: str, given: dict[str, Any], message: str) -> None:
    answer = await server.call("POST", path, given)
    assert answer.code == 422
    assert message in answer.body["message"]


async def test_an_immutable_config_map(server: Client) -> None:
    path = f"{BASE}/configmaps"
    await server.call("POST", path, {"metadata": {"name": "m"}, "data": {"a": "1"}, "immutable": True})
    answer = await server.call("PATCH", f"{path}/m", {"data": {"a": "2"}}, content_type=MERGE)
    assert "data: Forbidden: field is immutable when `immutable` is set" in answer.body["message"]


async def test_unknown_fields_are_dropped_with_a_warning(server: Client) -> None:
    given = {"metadata": {"name": "n"}, "spec": {"fromTheFuture": {"a": [1]}}}
    made = await server.call("POST", "/api/v1/nodes", given)
    assert made.header("warning") == '299 - "unknown field \\"spec.fromTheFuture\\""'
    assert (await server.call("GET", "/api/v1/nodes/n")).body["spec"] == {}


async def test_nulls_are_not_kept(server: Client) -> None:
    given = {"metadata": {"name": "n", "labels": None}, "spec": {"podCIDR": None, "taints": None}}
    made = (await server.call("POST", "/api/v1/nodes", given)).body
    assert made["spec"] == {}


async def test_a_namespace_keeps_its_label(server: Client) -> None:
    await server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
    answer = await server.call("PATCH", "/api/v1/namespaces/n", {"metadata": {"labels": None}}, content_type=MERGE)
    assert answer.body["metadata"]["labels"] == {"kubernetes.io/metadata.name": "n"}
