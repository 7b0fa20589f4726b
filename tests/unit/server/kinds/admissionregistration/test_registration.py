"""Defaults, columns and validation of policies, bindings and webhooks."""

from typing import Any

import pytest

from tests.unit.server import client

_RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
_GROUP = "admissionregistration.k8s.io"


def _object(kind: str, **content: Any) -> dict[str, Any]:
    return {"apiVersion": f"{_GROUP}/v1", "kind": kind, "metadata": {"name": "x"}, **content}


def _path(plural: str, version: str = "v1") -> str:
    return f"/apis/{_GROUP}/{version}/{plural}"


_POLICY = _object(
    "ValidatingAdmissionPolicy",
    spec={"matchConstraints": {"resourceRules": [_RULE]}, "validations": [{"expression": "true"}]},
)
_WEBHOOKS = _object(
    "MutatingWebhookConfiguration",
    webhooks=[
        {
            "name": "a.example.com",
            "clientConfig": {"service": {"name": "s", "namespace": "n"}},
            "rules": [_RULE],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
    ],
)


async def test_policy_gets_defaults(server: client.Client) -> None:
    answer = await server.call("POST", _path("validatingadmissionpolicies"), _POLICY)
    assert answer.code == 201
    constraints = answer.body["spec"]["matchConstraints"]
    assert constraints["matchPolicy"] == "Equivalent"
    assert constraints["namespaceSelector"] == constraints["objectSelector"] == {}
    assert constraints["resourceRules"][0]["scope"] == "*"
    assert answer.body["spec"]["failurePolicy"] == "Fail"
    assert answer.body["metadata"]["generation"] == 1
    assert answer.body["status"] == {}


async def test_a_webhook_has_to_state_side_effects(server: client.Client) -> None:
    (webhook,) = _WEBHOOKS["webhooks"]
    silent = {field: value for field, value in webhook.items() if field != "sideEffects"}
    answer = await server.call("POST", _path("mutatingwebhookconfigurations"), {**_WEBHOOKS, "webhooks": [silent]})
    assert [cause["message"] for cause in answer.body["details"]["causes"]] == [
        "Required value: must specify one of None, NoneOnDryRun"
    ]


async def test_webhooks_get_defaults(server: client.Client) -> None:
    answer = await server.call("POST", _path("mutatingwebhookconfigurations"), _WEBHOOKS)
    assert answer.code == 201
    (webhook,) = answer.body["webhooks"]
    assert webhook["clientConfig"]["service"]["port"] == 443
    assert webhook["timeoutSeconds"] == 10
    assert webhook["reinvocationPolicy"] == "Never"
    assert (webhook["failurePolicy"], webhook["matchPolicy"]) == ("Fail", "Equivalent")


async def test_generation_counts_changes_of_webhooks(server: client.Client) -> None:
    path = _path("mutatingwebhookconfigurations")
    created = (await server.call("POST", path, _WEBHOOKS)).body
    same = await server.call("PUT", f"{path}/x", {**created, "metadata": {**created["metadata"], "labels": {"a": "b"}}})
    assert same.body["metadata"]["generation"] == 1
    fewer = await server.call("PUT", f"{path}/x", {**same.body, "webhooks": []})
    assert fewer.body["metadata"]["generation"] == 2


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_mutating_policies_have_two_versions(server: client.Client, version: str) -> None:
    policy = _object(
        "MutatingAdmissionPolicy",
        spec={
            "matchConstraints": {"resourceRules": [_RULE]},
            "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}],
        },
    )
    body = {**policy, "apiVersion": f"{_GROUP}/{version}"}
    answer = await server.call("POST", _path("mutatingadmissionpolicies", version), body)
    assert (answer.code, answer.body["apiVersion"]) == (201, f"{_GROUP}/{version}")
    want = f"is deprecated in v1.37+, unavailable in v1.40+; use {_GROUP}/v1 MutatingAdmissionPolicy"
    assert answer.header("warning") == (
        None if version == "v1" else f'299 - "{_GROUP}/v1beta1 MutatingAdmissionPolicy {want}"'
    )


async def test_status_is_written_apart(server: client.Client) -> None:
    path = _path("validatingadmissionpolicies")
    await server.call("POST", path, _POLICY)
    patch = {"status": {"observedGeneration": 1}, "spec": {"failurePolicy": "Ignore"}}
    answer = await server.call("PATCH", f"{path}/x/status", patch, content_type="application/merge-patch+json")
    assert answer.body["status"] == {"observedGeneration": 1}
    assert answer.body["spec"]["failurePolicy"] == "Fail"


async def test_columns(server: client.Client) -> None:
    await server.call("POST", _path("validatingadmissionpolicies"), _POLICY)
    binding = _object(
        "ValidatingAdmissionPolicyBinding",
        spec={
            "policyName": "p",
            "validationActions": ["Deny"],
            "paramRef": {"name": "n", "parameterNotFoundAction": "Deny"},
        },
    )
    await server.call("POST", _path("validatingadmissionpolicybindings"), binding)
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    rows = (await server.call("GET", _path("validatingadmissionpolicies"), headers=accept)).body["rows"]
    assert rows[0]["cells"][:3] == ["x", 1, "<unset>"]
    rows = (await server.call("GET", _path("validatingadmissionpolicybindings"), headers=accept)).body["rows"]
    assert rows[0]["cells"][:3] == ["x", "p", "*/n"]
