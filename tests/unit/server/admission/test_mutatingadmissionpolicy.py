"""Mutating admission policies, asked by a whole server."""

from typing import Any

import pytest

from tests.unit.server import client
from tests.unit.server.admission.policies import CONFIG_MAPS, config_map, register, rule


async def _policy(server: client.Client, *mutations: str, name: str = "p", **spec: Any) -> None:
    whole = {
        "matchConstraints": {"resourceRules": [rule("configmaps", operations=["CREATE", "UPDATE"])]},
        "reinvocationPolicy": "Never",
        "mutations": [_mutation(text) for text in mutations],
        **spec,
    }
    await register(server, "mutatingadmissionpolicies", "MutatingAdmissionPolicy", name, spec=whole)
    binding = {"policyName": name}
    await register(server, "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", name, spec=binding)


def _mutation(text: str) -> dict[str, Any]:
    if text.startswith("["):
        return {"patchType": "JSONPatch", "jsonPatch": {"expression": text}}
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}


@pytest.mark.parametrize(
    ("mutations", "want"),
    [
        pytest.param(["Object{data: {'a': '1'}}"], {"k": "v", "a": "1"}, id="apply"),
        pytest.param(
            ["[JSONPatch{op: 'add', path: '/data/a', value: object.data.k}]"], {"k": "v", "a": "v"}, id="json-patch"
        ),
        pytest.param(
            ["Object{data: {'a': '1'}}", "[JSONPatch{op: 'copy', from: '/data/a', path: '/data/b'}]"],
            {"k": "v", "a": "1", "b": "1"},
            id="one-after-the-other",
        ),
        pytest.param(
            [
                (
                    "[JSONPatch{op: 'test', path: '/data/k', value: 'w'}, "
                    "JSONPatch{op: 'add', path: '/data/a', value: '1'}]"
                )
            ],
            {"k": "v"},
            id="test-does-not-hold",
        ),
    ],
)
async def test_mutation(server: client.Client, mutations: list[str], want: dict[str, str]) -> None:
    await _policy(server, *mutations)
    assert (await server.call("POST", CONFIG_MAPS, config_map(k="v"))).body["data"] == want


@pytest.mark.parametrize(
    ("mutation", "want"),
    [
        pytest.param(
            "Object{data: {'a': object.nope}}",
            "expression 'Object{data: {'a': object.nope}}' resulted in error: no such key: nope",
            id="expression-fails",
        ),
        pytest.param(
            "Object{nope: 'x'}",
            "error applying patch: failed to convert patch object to typed object: .nope: field not declared in schema",
            id="no-such-field",
        ),
        pytest.param(
            "Object{metadata: Object.wrong{name: 'x'}}",
            'type mismatch: unexpected type name "Object.wrong", expected "Object.metadata", '
            "which matches field name path from root Object type",
            id="wrong-type",
        ),
        pytest.param(
            "Object{metadata: Object.metadata{ownerReferences: [Object.metadata.ownerReferences{uid: 'u', "
            "name: 'n', kind: 'k', apiVersion: 'v'}]}}",
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: "
            ".metadata.ownerReferences[0]",
            id="atomic",
        ),
        pytest.param(
            "[JSONPatch{op: 'remove', path: '/nope/x'}]",
            'JSON Patch: remove operation does not apply: doc is missing path: "/nope/x": missing value',
            id="patch-does-not-apply",
        ),
    ],
)
@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_failure(server: client.Client, mutation: str, want: str, policy: str) -> None:
    await _policy(server, mutation, failurePolicy=policy)
    answer = await server.call("POST", CONFIG_MAPS, config_map(k="v"))
    if policy == "Ignore":
        assert answer.code == 201
        return
    message = f"policy 'p' with binding 'p' denied request: {want}"
    assert (answer.code, answer.body["reason"], answer.body["message"]) == (403, "Invalid", message)
    assert answer.body["details"]["causes"] == [{"message": message}]


async def test_policies_follow_each_other_by_name(server: client.Client) -> None:
    await _policy(server, "Object{data: {'b': 'seen ' + object.data.a}}", name="b")
    await _policy(server, "Object{data: {'a': '1'}}", name="a")
    assert (await server.call("POST", CONFIG_MAPS, config_map(k="v"))).body["data"] == {
        "k": "v",
        "a": "1",
        "b": "seen 1",
    }


@pytest.mark.parametrize(("policy", "want"), [("Never", None), ("IfNeeded", "yes")])
async def test_reinvocation(server: client.Client, policy: str, want: str | None) -> None:
    """The first looks again, because the second changed something."""
    seen = "'late' in object.data ? Object{data: {'saw': 'yes'}} : Object{}"
    await _policy(server, seen, name="a", reinvocationPolicy=policy)
    await _policy(server, "Object{data: {'late': '1'}}", name="b")
    answer = await server.call("POST", CONFIG_MAPS, config_map(k="v"))
    assert answer.body["data"].get("saw") == want


async def test_conditions(server: client.Client) -> None:
    condition = {"name": "x", "expression": "object.metadata.name.startsWith('x')"}
    await _policy(server, "Object{data: {'a': '1'}}", matchConditions=[condition])
    assert (await server.call("POST", CONFIG_MAPS, config_map("y", k="v"))).body["data"] == {"k": "v"}
    assert (await server.call("POST", CONFIG_MAPS, config_map("x", k="v"))).body["data"] == {"k": "v", "a": "1"}


async def test_changes_are_validated(server: client.Client) -> None:
    await _policy(server, "Object{metadata: Object.metadata{labels: {'a': '!'}}}")
    answer = await server.call("POST", CONFIG_MAPS, config_map(k="v"))
    assert answer.code == 422
    assert "metadata.labels: Invalid value" in answer.body["message"]


async def test_another_version(server: client.Client) -> None:
    rules = [rule("resourceclaims", groups=("resource.k8s.io",), apiVersions=["v1beta1"], operations=["CREATE"])]
    text = "[JSONPatch{op: 'replace', path: '/spec/devices/requests/0/deviceClassName', value: 'other'}]"
    await _policy(server, text, matchConstraints={"resourceRules": rules})
    answer = await server.call("POST", client.CLAIMS, client.claim())
    assert answer.body["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "other"
