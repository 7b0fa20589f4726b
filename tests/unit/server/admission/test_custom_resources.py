"""Policies about kinds that users define."""

from typing import Any

from tests.unit.server import client
from tests.unit.server.admission.policies import bind, register, rule, validating

_CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"size": {"type": "integer"}, "color": {"type": "string"}},
                            }
                        },
                    }
                },
            }
        ],
    },
}
_WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def _widget(name: str, size: int) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": size}}


async def _define(server: client.Client) -> None:
    answer = await server.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _CRD)
    assert answer.code == 201, answer.body


async def test_validating(server: client.Client) -> None:
    await validating(
        server,
        rules=[rule("widgets", groups=("example.com",))],
        validations=[{"expression": "object.spec.size < 10", "message": "too big"}],
    )
    await bind(server)
    await _define(server)
    assert (await server.call("POST", _WIDGETS, _widget("small", 1))).code == 201
    assert "too big" in (await server.call("POST", _WIDGETS, _widget("big", 10))).body["message"]


async def test_params_of_a_defined_kind(server: client.Client) -> None:
    await _define(server)
    await server.call("POST", _WIDGETS, _widget("limit", 5))
    await validating(
        server,
        paramKind={"apiVersion": "example.com/v1", "kind": "Widget"},
        validations=[{"expression": "size(object.data) < params.spec.size", "message": "too many"}],
    )
    await bind(server, paramRef={"name": "limit", "parameterNotFoundAction": "Deny"})
    path = "/api/v1/namespaces/default/configmaps"
    few = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "few"}, "data": {"a": "1"}}
    many = {**few, "metadata": {"name": "many"}, "data": dict.fromkeys("abcde", "1")}
    assert (await server.call("POST", path, few)).code == 201
    assert "too many" in (await server.call("POST", path, many)).body["message"]


async def test_mutating(server: client.Client) -> None:
    await _define(server)
    expression = "Object{spec: Object.spec{color: 'red'}}"
    spec = {
        "matchConstraints": {"resourceRules": [rule("widgets", groups=("example.com",), operations=["CREATE"])]},
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}],
    }
    await register(server, "mutatingadmissionpolicies", "MutatingAdmissionPolicy", "p", spec=spec)
    binding = {"policyName": "p"}
    await register(server, "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", "p", spec=binding)
    answer = await server.call("POST", _WIDGETS, _widget("w", 1))
    assert answer.body["spec"] == {"size": 1, "color": "red"}
