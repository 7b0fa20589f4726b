"""Disruption budgets, as clients see them."""

from typing import Any

from tests.unit.server.client import Client

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
ZEROS = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}


def _budget(**spec: Any) -> dict[str, Any]:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}, **spec}
    return {"metadata": {"name": "b"}, "spec": spec}


async def test_a_new_one_has_a_status_of_its_own(server: Client) -> None:
    created = await server.call("POST", BUDGETS, {**_budget(), "status": {"disruptionsAllowed": 3}})
    assert (created.code, created.body["status"], created.body["metadata"]["generation"]) == (201, ZEROS, 1)


async def test_generations_count_changes_of_the_spec(server: Client) -> None:
    created = (await server.call("POST", BUDGETS, _budget())).body
    created["spec"]["minAvailable"] = "50%"
    created["status"] = {**ZEROS, "disruptionsAllowed": 1}
    changed = await server.call("PUT", f"{BUDGETS}/b", created)
    assert (changed.body["metadata"]["generation"], changed.body["status"]) == (2, ZEROS)
    status = {**ZEROS, "disruptionsAllowed": 1, "disruptedPods": {"p": "2026-01-01T00:00:00Z"}}
    after = await server.call("PUT", f"{BUDGETS}/b/status", {**changed.body, "spec": {}, "status": status})
    assert (after.body["spec"], after.body["metadata"]["generation"]) == (changed.body["spec"], 2)
    assert after.body["status"] == status


async def test_an_update_names_the_version_it_changes(server: Client) -> None:
    await server.call("POST", BUDGETS, _budget())
    refusal = await server.call("PUT", f"{BUDGETS}/b", _budget(minAvailable=2))
    assert refusal.body["message"] == (
        'poddisruptionbudgets.policy "b" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified '
        "for an update"
    )


async def test_a_patch_replaces_the_selector(server: Client) -> None:
    await server.call("POST", BUDGETS, _budget())
    patch = {"spec": {"selector": {"matchLabels": {"c": "d"}}}}
    strategic = "application/strategic-merge-patch+json"
    changed = await server.call("PATCH", f"{BUDGETS}/b", patch, content_type=strategic)
    assert changed.body["spec"] == {"minAvailable": 1, "selector": {"matchLabels": {"c": "d"}}}


async def test_what_is_refused(server: Client) -> None:
    refusal = await server.call("POST", BUDGETS, _budget(maxUnavailable=1))
    assert refusal.code == 422
    assert refusal.body["message"].endswith("minAvailable and maxUnavailable cannot be both set")


async def test_columns(server: Client) -> None:
    await server.call("POST", BUDGETS, _budget())
    table = (await server.call("GET", BUDGETS, headers=TABLE)).body
    columns = [column["name"] for column in table["columnDefinitions"]]
    assert columns == ["Name", "Min Available", "Max Unavailable", "Allowed Disruptions", "Age"]
    assert [row["cells"][:4] for row in table["rows"]] == [["b", "1", "N/A", 0]]


async def test_metadata_is_validated_after_the_spec(server: Client) -> None:
    both = await server.call("POST", BUDGETS, {**_budget(maxUnavailable=1), "metadata": {}})
    assert [cause["field"] for cause in both.body["details"]["causes"]] == ["spec"]
    nameless = await server.call("POST", BUDGETS, {**_budget(), "metadata": {}})
    assert [cause["field"] for cause in nameless.body["details"]["causes"]] == ["metadata.name"]


async def test_finalizers_need_no_domain(server: Client) -> None:
    named = {"name": "b", "finalizers": ["mine"]}
    assert (await server.call("POST", BUDGETS, {**_budget(), "metadata": named})).code == 201
