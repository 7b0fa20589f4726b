"""Definitions that are cheap to write and expensive to serve."""

from typing import Any

from tests.unit.server.client import Client
from tests.unit.server.kinds.apiextensions import widgets
from tests.unit.server.kinds.apiextensions.widgets import DEFINITIONS


def _defined(spec: dict[str, Any]) -> dict[str, Any]:
    return widgets.definition(widgets.version(spec=spec))


def _ruled(*written: str, **more: Any) -> dict[str, Any]:
    return {"x-kubernetes-validations": [{"rule": rule} for rule in written], **more}


async def test_a_costly_rule_is_refused(server: Client) -> None:
    lists = {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}
    costly = _ruled("self.all(x, x.all(y, self.exists(z, z.exists(q, q.contains(y)))))", **lists)
    refusal = await server.call("POST", DEFINITIONS, _defined(widgets.fields(a=costly)))
    assert refusal.code == 422
    messages = [cause["message"] for cause in refusal.body["details"]["causes"]]
    assert messages[0].startswith("Forbidden: estimated rule cost exceeds budget by factor of more than 100x")
    assert messages[1].startswith("Forbidden: contributed to estimated rule cost total exceeding cost limit")
    assert (await server.call("GET", widgets.path())).code == 404


async def test_many_rules_that_are_costly_together_are_refused(server: Client) -> None:
    one = _ruled(
        "self.all(x, x.contains('a'))", type="array", maxItems=1000, items={"type": "string", "maxLength": 9000}
    )
    spec = widgets.fields(**{f"f{number}": one for number in range(40)})
    refusal = await server.call("POST", DEFINITIONS, _defined(spec))
    assert refusal.code == 422
    last = refusal.body["details"]["causes"][-1]
    assert last["field"] == "spec.validation.openAPIV3Schema"
    assert "estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor" in last["message"]


async def test_more_rules_than_others_can_wait_for_are_refused(server: Client) -> None:
    spec = widgets.fields(a=_ruled(*(f"self != 'x{number}'" for number in range(2001)), type="string", maxLength=9))
    refusal = await server.call("POST", DEFINITIONS, _defined(spec))
    assert refusal.code == 422
    assert "must have at most 2000 rules in x-kubernetes-validations, has 2001" in refusal.body["message"]


async def test_deep_schemas_are_refused(server: Client) -> None:
    nested: dict[str, Any] = {"type": "object"}
    for _ in range(70):
        nested = widgets.fields(x=nested)
    refusal = await server.call("POST", DEFINITIONS, _defined(nested))
    assert refusal.code == 422
    assert "schemas may not be nested more than 64 levels deep" in refusal.body["message"]


async def test_patterns_take_linear_time(server: Client) -> None:
    created = await server.call(
        "POST", DEFINITIONS, _defined(widgets.fields(a={"type": "string", "pattern": "^(a+)+$"}))
    )
    assert created.code == 201
    refusal = await server.call("POST", widgets.path(), widgets.widget(a="a" * 100_000 + "b"))
    assert (refusal.code, refusal.body["details"]["causes"][0]["field"]) == (422, "spec.a")


async def test_built_in_kinds_are_not_replaced(server: Client) -> None:
    taken = widgets.definition()
    taken["metadata"] = {
        "name": "resourceclaims.resource.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
    }
    taken["spec"] |= {"group": "resource.k8s.io", "names": {"plural": "resourceclaims", "kind": "ResourceClaim"}}
    assert (await server.call("POST", DEFINITIONS, taken)).code == 201
    claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    created = await server.call("POST", claims, {"metadata": {"name": "c"}, "spec": {"anything": 1}})
    assert "anything" not in created.body["spec"], "what a claim is, is not for definitions to say"
    assert (await server.call("GET", "/apis/resource.k8s.io/v1")).code == 200
