"""Evictions of pods that have a disruption budget."""

from typing import Any

import pytest

from tests.unit.server import client
from tests.unit.server.client import PODS, Client

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
MERGE = "application/merge-patch+json"
SELECTOR = {"matchLabels": {"a": "b"}}
COUNTS = {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}
NONE_LEFT = {**COUNTS, "disruptionsAllowed": 0, "currentHealthy": 1}
VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."


async def _pod(server: Client, name: str = "p", *, phase: str = "Running", ready: str = "True") -> None:
    given = client.pod(name)
    given["metadata"]["labels"] = {"a": "b"}
    await server.call("POST", PODS, given)
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}
    answer = await server.call("PATCH", f"{PODS}/{name}/status", {"status": status}, content_type=MERGE)
    assert answer.code == 200


async def _budget(server: Client, status: dict[str, Any], *, name: str = "b", **spec: Any) -> None:
    budget = {"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": SELECTOR, **spec}}
    assert (await server.call("POST", BUDGETS, budget)).code == 201
    answer = await server.call("PATCH", f"{BUDGETS}/{name}/status", {"status": status}, content_type=MERGE)
    assert answer.code == 200


async def _evict(server: Client, name: str = "p", **delete_options: Any) -> client.Answer:
    eviction = {"metadata": {"name": name}, "deleteOptions": {"gracePeriodSeconds": 0, **delete_options}}
    return await server.call("POST", f"{PODS}/{name}/eviction", eviction)


def _condition(reason: str, message: str) -> list[dict[str, Any]]:
    since = "2026-01-01T00:00:00Z"
    fields = {"reason": reason, "message": message, "lastTransitionTime": since}
    return [{"type": "DisruptionAllowed", "status": "False", **fields}]


@pytest.mark.parametrize(
    ("status", "cause", "retry_after"),
    [
        pytest.param({}, "is still being processed by the server.", 10, id="not-looked-at-yet"),
        pytest.param(NONE_LEFT, "needs 1 healthy pods and has 1 currently", None, id="too-few"),
        pytest.param(
            {**NONE_LEFT, "currentHealthy": 2}, "does not allow evicting pods currently", None, id="without-a-reason"
        ),
        pytest.param(
            {**NONE_LEFT, "conditions": _condition("SyncFailed", "boo")},
            "does not allow evicting pods currently because it failed sync: boo",
            None,
            id="failed-sync",
        ),
        pytest.param(
            {**NONE_LEFT, "currentHealthy": 2, "conditions": _condition("InsufficientPods", "boo")},
            "does not allow evicting pods currently (InsufficientPods): boo",
            None,
            id="another-reason",
        ),
    ],
)
async def test_what_a_budget_refuses(
    server: Client, status: dict[str, Any], cause: str, retry_after: int | None
) -> None:
    await _pod(server)
    await _budget(server, status)
    refused = await _evict(server)
    assert (refused.code, refused.body["reason"], refused.body["message"]) == (429, "TooManyRequests", VIOLATES)
    details = {"causes": [{"reason": "DisruptionBudget", "message": f"The disruption budget b {cause}"}]}
    assert refused.body["details"] == (
        details if retry_after is None else {**details, "retryAfterSeconds": retry_after}
    )
    pod = (await server.call("GET", f"{PODS}/p")).body
    assert [each["type"] for each in pod["status"]["conditions"]] == ["Ready"]


async def test_too_many_evictions_that_nobody_saw(server: Client) -> None:
    await _pod(server)
    moment = "2026-01-01T00:00:00Z"
    await _budget(server, {**COUNTS, "disruptedPods": {f"p{number}": moment for number in range(2001)}})
    refused = await _evict(server)
    assert refused.code == 403
    assert refused.body["message"] == (
        'poddisruptionbudget.policy "b" is forbidden: DisruptedPods map too big - too many evictions not confirmed by '
        "PDB controller"
    )


async def test_several_budgets(server: Client) -> None:
    await _pod(server)
    await _budget(server, COUNTS)
    await _budget(server, COUNTS, name="other")
    refused = await _evict(server)
    assert (refused.code, refused.body["message"]) == (
        500,
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
    )


async def test_the_pod_goes_and_the_budget_is_charged(server: Client) -> None:
    await _pod(server)
    await _pod(server, "q")
    await _budget(server, COUNTS)
    before = server.store.revision
    assert (await _evict(server)).code == 201
    assert server.store.revision == before + 3
    assert (await server.call("GET", f"{PODS}/p")).code == 404
    budget = (await server.call("GET", f"{BUDGETS}/b")).body
    status = budget["status"]
    assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (0, ["p"])
    (condition,) = status["conditions"]
    assert (condition["type"], condition["status"]) == ("DisruptionAllowed", "False")
    assert (condition["reason"], condition["observedGeneration"]) == ("InsufficientPods", 1)
    assert "kube-apiserver" in {each["manager"] for each in budget["metadata"]["managedFields"]}
    assert (await _evict(server, "q")).code == 429


async def test_a_dry_run_charges_nothing(server: Client) -> None:
    await _pod(server)
    await _budget(server, COUNTS)
    before = server.store.revision
    assert (await _evict(server, dryRun=["All"])).code == 201
    assert server.store.revision == before


async def test_an_eviction_that_is_refused_later_charges_nothing(server: Client) -> None:
    await _pod(server)
    await _budget(server, COUNTS)
    assert (await _evict(server, preconditions={"uid": "another"})).code == 409
    assert (await server.call("GET", f"{BUDGETS}/b")).body["status"] == COUNTS


@pytest.mark.parametrize("phase", [pytest.param(phase, id=phase) for phase in ("Pending", "Succeeded", "Failed")])
async def test_pods_that_nobody_would_miss(server: Client, phase: str) -> None:
    await _pod(server, phase=phase)
    await _budget(server, NONE_LEFT)
    assert (await _evict(server)).code == 201
    assert (await server.call("GET", f"{BUDGETS}/b")).body["status"] == NONE_LEFT


@pytest.mark.parametrize(
    ("policy", "status", "code"),
    [
        pytest.param("IfHealthyBudget", NONE_LEFT, 201, id="enough-others-are-healthy"),
        pytest.param("IfHealthyBudget", {**NONE_LEFT, "currentHealthy": 0}, 429, id="too-few-others-are-healthy"),
        pytest.param("IfHealthyBudget", {**NONE_LEFT, "desiredHealthy": 0}, 429, id="none-are-wanted"),
        pytest.param("AlwaysAllow", {**NONE_LEFT, "currentHealthy": 0}, 201, id="always"),
    ],
)
async def test_pods_that_are_not_ready(server: Client, policy: str, status: dict[str, Any], code: int) -> None:
    await _pod(server, ready="False")
    await _budget(server, status, unhealthyPodEvictionPolicy=policy)
    assert (await _evict(server)).code == code
    assert (await server.call("GET", f"{BUDGETS}/b")).body["status"] == status


@pytest.mark.parametrize(
    "selector",
    [pytest.param(None, id="no-selector"), pytest.param({"matchLabels": {"a": "c"}}, id="selector-of-others")],
)
async def test_pods_without_a_budget(server: Client, selector: dict[str, Any] | None) -> None:
    await _pod(server)
    await _budget(server, NONE_LEFT, selector=selector)
    assert (await _evict(server)).code == 201
