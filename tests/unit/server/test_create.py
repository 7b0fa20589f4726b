"""Creating objects: names, namespaces, system fields, strictness, dry run."""

from typing import Any

import pytest

from tests.unit.server import client
from tests.unit.server.client import CLAIMS, PODS, Client


async def test_the_server_fills_in_system_fields(server: Client) -> None:
    given = client.claim(uid="mine", creationTimestamp="2001-01-01T00:00:00Z", selfLink="/x", resourceVersion="9")
    answer = await server.call("POST", CLAIMS, given, headers={"user-agent": "tester/1.0 (linux)"})
    metadata = answer.body["metadata"]
    assert answer.code == 201
    assert metadata["creationTimestamp"] == "2026-01-02T03:04:05Z"
    assert metadata["uid"] != "mine"
    assert metadata["resourceVersion"] == str(server.store.revision)
    assert metadata["namespace"] == "default"
    assert "selfLink" not in metadata
    assert [entry["manager"] for entry in metadata["managedFields"]] == ["tester"]


async def test_generated_names_are_tried_again(server: Client) -> None:
    names = set()
    for _ in range(30):
        given = client.claim()
        given["metadata"] = {"generateName": "gen-"}
        names.add((await server.call("POST", CLAIMS, given)).body["metadata"]["name"])
    assert len(names) == 30
    assert all(name.startswith("gen-") and len(name) == 9 for name in names)


@pytest.mark.parametrize(
    ("path", "body", "code", "message"),
    [
        pytest.param(
            CLAIMS.replace("default", "nowhere"),
            client.claim(),
            404,
            'namespaces "nowhere" not found',
            id="missing-namespace",
        ),
        pytest.param(
            CLAIMS,
            client.claim(namespace="other"),
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
            id="another-namespace",
        ),
        pytest.param(
            CLAIMS,
            {**client.claim(), "apiVersion": "resource.k8s.io/v1beta2"},
            400,
            "the API version in the data (resource.k8s.io/v1beta2) does not match the expected API version "
            "(resource.k8s.io/v1)",
            id="another-version",
        ),
        pytest.param(
            CLAIMS,
            {"kind": "Nonsense"},
            400,
            'Nonsense in version "v1" cannot be handled as a ResourceClaim: no kind "Nonsense" is registered for '
            'version "resource.k8s.io/v1" in scheme "pkg/api/legacyscheme/scheme.go:30"',
            id="unknown-kind",
        ),
        pytest.param(
            CLAIMS,
            "[]",
            400,
            "the object provided is unrecognized (must be of type ResourceClaim): couldn't get version/kind; "
            "json parse error: json: cannot unmarshal array into Go value of type "
            r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } '
            "(5b5d)",
            id="a-list",
        ),
        pytest.param(
            f"{CLAIMS}?dryRun=Sometimes",
            client.claim(),
            422,
            'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Sometimes"]: '
            'supported values: "All"',
            id="bad-options",
        ),
    ],
)
async def test_refused(server: Client, path: str, body: Any, code: int, message: str) -> None:
    answer = await server.call("POST", path, body)
    assert (answer.code, answer.body["message"]) == (code, message)


async def test_no_new_content_in_a_namespace_that_ends(server: Client) -> None:
    await server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "going"}})
    await server.call("DELETE", "/api/v1/namespaces/going")
    answer = await server.call("POST", CLAIMS.replace("default", "going"), client.claim())
    assert answer.code == 403
    assert answer.body["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": "namespace going is being terminated",
            "field": "metadata.namespace",
        }
    ]


@pytest.mark.parametrize(
    ("mode", "code", "warnings"),
    [
        pytest.param("Strict", 400, [], id="strict"),
        pytest.param(
            "Warn", 201, ['299 - "unknown field \\"spec.bogus\\""', '299 - "duplicate field \\"kind\\""'], id="warn"
        ),
        pytest.param("Ignore", 201, [], id="ignore"),
        pytest.param(
            "", 201, ['299 - "unknown field \\"spec.bogus\\""', '299 - "duplicate field \\"kind\\""'], id="default"
        ),
    ],
)
async def test_field_validation(server: Client, mode: str, code: int, warnings: list[str]) -> None:
    body = '{"kind":"ResourceClaim","kind":"ResourceClaim","metadata":{"name":"c"},"spec":{"bogus":1,"devices":{}}}'
    answer = await server.call("POST", f"{CLAIMS}?fieldValidation={mode}", body)
    assert answer.code == code
    assert [value for key, value in answer.headers if key == "Warning"] == warnings
    if code == 400:
        assert answer.body["message"].endswith(
            'strict decoding error: unknown field "spec.bogus", duplicate field "kind"'
        )
    else:
        assert "bogus" not in answer.body["spec"]


async def test_unknown_fields_are_dropped(server: Client) -> None:
    """Of kinds of all groups, at any depth."""
    maps = "/api/v1/namespaces/default/configmaps"
    document = {"metadata": {"name": "m", "later": 1}, "later": {"x": 1}, "data": {"k": "v"}}
    created = await server.call("POST", maps, document)
    assert [value for key, value in created.headers if key == "Warning"] == [
        '299 - "unknown field \\"metadata.later\\""',
        '299 - "unknown field \\"later\\""',
    ]
    stored = (await server.call("GET", f"{maps}/m")).body
    assert "later" not in stored
    assert "later" not in stored["metadata"]
    assert stored["data"] == {"k": "v"}
    role = {"metadata": {"name": "r"}, "rules": [{"verbs": ["get"], "nonResourceURLs": ["/a"], "later": ["b"]}]}
    created = await server.call("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
    assert created.body["rules"] == [{"verbs": ["get"], "nonResourceURLs": ["/a"]}]


async def test_a_policy_without_a_default_is_written_with_null(server: Client) -> None:
    """Go's field is a pointer that is not omitted."""
    capacity = {"m": {"value": "1", "requestPolicy": {}}}
    spec = {
        "driver": "d.example.com",
        "nodeName": "n",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "x", "allowMultipleAllocations": True, "capacity": capacity}],
    }
    created = await server.call("POST", client.SLICES, {"metadata": {"name": "s"}, "spec": spec})
    assert created.body["spec"]["devices"][0]["capacity"] == {"m": {"value": "1", "requestPolicy": {"default": None}}}


@pytest.mark.parametrize(
    ("failure_policy", "want_replacement", "want_policy"),
    [
        pytest.param(None, "TerminatingOrFailed", None, id="none"),
        pytest.param({"rules": []}, "Failed", {"rules": None}, id="empty"),
        pytest.param(
            {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
            "Failed",
            {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]},
            id="condition",
        ),
    ],
)
async def test_defaults_of_failure_policies(
    server: Client, failure_policy: Any, want_replacement: str, want_policy: Any
) -> None:
    template = {"spec": {**client.pod()["spec"], "restartPolicy": "Never"}}
    spec = (
        {"template": template} if failure_policy is None else {"template": template, "podFailurePolicy": failure_policy}
    )
    job = {"metadata": {"name": "j"}, "spec": spec}
    created = (await server.call("POST", "/apis/batch/v1/namespaces/default/jobs", job)).body["spec"]
    assert (created["podReplacementPolicy"], created.get("podFailurePolicy")) == (want_replacement, want_policy)


async def test_a_projection_may_have_an_empty_source(server: Client) -> None:
    pod = client.pod()
    pod["spec"]["volumes"] = [{"name": "v", "projected": {"sources": [{}]}}]
    created = await server.call("POST", "/api/v1/namespaces/default/pods", pod)
    assert created.body["spec"]["volumes"][0]["projected"]["sources"] == [{}]


async def test_dry_run_changes_nothing_and_finds_what_is_taken(server: Client) -> None:
    revision = server.store.revision
    assert (await server.call("POST", f"{CLAIMS}?dryRun=All", client.claim())).code == 201
    assert server.store.revision == revision
    await server.call("POST", CLAIMS, client.claim())
    assert (await server.call("POST", f"{CLAIMS}?dryRun=All", client.claim())).code == 409


async def test_yaml_in_and_out(server: Client) -> None:
    body = (
        "metadata:\n  name: y\nspec:\n  devices:\n    requests:\n    - name: r\n      exactly: {deviceClassName: c}\n"
    )
    answer = await server.call(
        "POST", CLAIMS, body, content_type="application/yaml", headers={"accept": "application/yaml"}
    )
    assert answer.code == 201
    assert answer.header("content-type") == "application/yaml"
    assert "allocationMode: ExactCount" in answer.body


async def test_owners_given_twice_are_merged(server: Client) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    answer = await server.call("POST", CLAIMS, client.claim(ownerReferences=[owner, dict(owner)]))
    assert answer.body["metadata"]["ownerReferences"] == [owner]
    assert "duplicate UID(s) observed: u" in (answer.header("warning") or "")


async def test_a_body_that_is_too_large(server: Client) -> None:
    answer = await server.call("POST", CLAIMS, client.claim(annotations={"a": "x" * 3_200_000}))
    assert (answer.code, answer.body["message"]) == (413, "Request entity too large: limit is 3145728")


async def test_unknown_media_type(server: Client) -> None:
    answer = await server.call("POST", PODS, client.pod(), content_type="application/cbor")
    assert answer.code == 415
    assert answer.body["reason"] == "UnsupportedMediaType"


async def test_versions_are_one_object(server: Client) -> None:
    old = "/apis/resource.k8s.io/v1beta1/namespaces/default/resourceclaims"
    request = {"name": "gpu", "deviceClassName": "gpu.example.com"}
    given = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}
    made = await server.call("POST", old, given)
    assert made.body["spec"]["devices"]["requests"][0]["count"] == 1
    read = (await server.call("GET", f"{CLAIMS}/c")).body
    assert read["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "gpu.example.com"
    listed = (await server.call("GET", old)).body
    assert listed["apiVersion"] == "resource.k8s.io/v1beta1"
    assert listed["items"][0]["spec"]["devices"]["requests"] == [
        {**request, "allocationMode": "ExactCount", "count": 1}
    ]
    fields = read["metadata"]["managedFields"][0]
    assert fields["apiVersion"] == "resource.k8s.io/v1beta1"
    assert "f:exactly" not in str(fields["fieldsV1"])
