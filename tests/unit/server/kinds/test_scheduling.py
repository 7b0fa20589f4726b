"""Pod groups and workloads, as objects."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from drachma.api import gates
from tests.unit.server import client
from tests.unit.server.client import Client

GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
WORKLOADS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/workloads"
MERGE = "application/merge-patch+json"
GANG = {"gang": {"minCount": 2}}
GATES = gates.ALL.switched({gates.Gate.WORKLOAD_RESOURCE_CLAIMS: True, gates.Gate.COMPOSITE_POD_GROUP: True})


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Client]:
    started = await client.start(gates=GATES)
    yield started
    await started.app.close()
    await started.store.close()


def a_group(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": GANG, **spec}}


def a_workload(*templates: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "w"}, "spec": {"podGroupTemplates": list(templates), **spec}}


def template(name: str = "t", **more: Any) -> dict[str, Any]:
    return {"name": name, "schedulingPolicy": GANG, **more}


def problem(answer: Any) -> str:
    assert answer.code == 422, answer.body
    return str(answer.body["message"].partition(" is invalid: ")[2])


async def test_a_group_gets_what_it_leaves_out(server: Client) -> None:
    created = await server.call("POST", GROUPS, a_group(preemptionPolicy="Never", schedulingConstraints={}))
    assert created.code == 201, created.body
    assert created.body["spec"] == {"schedulingPolicy": GANG, "disruptionMode": {"single": {}}, "priority": 0}
    older = await server.call("GET", GROUPS.replace("v1beta1", "v1alpha3") + "/g")
    assert (older.body["apiVersion"], older.body["spec"]) == ("scheduling.k8s.io/v1alpha3", created.body["spec"])


async def test_a_group_has_the_priority_of_its_class(server: Client) -> None:
    value = {"metadata": {"name": "high"}, "value": 7}
    await server.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", value)
    created = await server.call("POST", GROUPS, a_group(priorityClassName="high"))
    assert created.body["spec"]["priority"] == 7
    refusal = await server.call("POST", GROUPS, a_group(priorityClassName="high", priority=3))
    want = "priority set in the pod group (3) must match the priority computed (7) based on the priority class set"
    assert refusal.body["message"].endswith(f"{want} in the spec")
    assert (await server.call("POST", GROUPS, a_group(priorityClassName="none"))).code == 403


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param(
            {"schedulingPolicy": {}},
            'spec.schedulingPolicy: Invalid value: "": must specify one of: `basic`, `gang`',
            id="no-policy",
        ),
        pytest.param(
            {"schedulingPolicy": {**GANG, "basic": {}}},
            'spec.schedulingPolicy: Invalid value: "{basic, gang}": must specify exactly one of: `basic`, `gang`',
            id="two-policies",
        ),
        pytest.param(
            {"schedulingPolicy": {"gang": {}}},
            "spec.schedulingPolicy.gang.minCount: Required value",
            id="a-gang-of-none",
        ),
        pytest.param(
            {"resourceClaims": [{"name": "c", "resourceClaimName": "x"}, {"name": "c", "resourceClaimName": "x"}]},
            'spec.resourceClaims[1]: Duplicate value: {"name":"c","resourceClaimName":"x"}',
            id="a-claim-twice",
        ),
        pytest.param(
            {"workloadRef": {"workloadName": "w"}}, "spec.workloadRef.templateName: Required value", id="half"
        ),
    ],
)
async def test_groups_that_are_refused(server: Client, spec: dict[str, Any], want: str) -> None:
    assert problem(await server.call("POST", GROUPS, a_group(**spec))) == want


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({"schedulingPolicy": {"gang": {"minCount": 5}}}, "", id="more-pods"),
        pytest.param(
            {"schedulingPolicy": {"gang": None, "basic": {}}},
            "[spec.schedulingPolicy.basic: Invalid value: null: field is immutable, "
            "spec.schedulingPolicy.gang: Invalid value: null: field cannot be cleared once set]",
            id="another-policy",
        ),
        pytest.param({"priority": 5}, "spec.priority: Invalid value: null: field is immutable", id="priority"),
    ],
)
async def test_what_of_a_group_may_change(server: Client, spec: dict[str, Any], want: str) -> None:
    await server.call("POST", GROUPS, a_group())
    changed = await server.call("PATCH", f"{GROUPS}/g", {"spec": spec}, content_type=MERGE)
    assert changed.code == 200 if not want else problem(changed) == want


async def test_claims_of_a_status_are_those_of_the_group(server: Client) -> None:
    await server.call("POST", GROUPS, a_group(resourceClaims=[{"name": "c", "resourceClaimTemplateName": "x"}]))
    for name, code in (("c", 200), ("d", 422)):
        status = {"status": {"resourceClaimStatuses": [{"name": name, "resourceClaimName": "made"}]}}
        assert (await server.call("PATCH", f"{GROUPS}/g/status", status, content_type=MERGE)).code == code


@pytest.mark.parametrize(
    ("made", "want"),
    [
        pytest.param(a_workload(template()), "", id="one"),
        pytest.param(
            a_workload(),
            'spec: Invalid value: "": must specify one of: `podGroupTemplates`, `compositePodGroupTemplates`',
            id="none",
        ),
        pytest.param(
            a_workload(template(priority=1), template("u", priority=2)),
            "spec: Invalid value: null: detected multiple priority configurations",
            id="priorities",
        ),
        pytest.param(
            a_workload(*(template(f"t{number}") for number in range(9))),
            "spec.podGroupTemplates: Too many: 9: must have at most 8 items",
            id="too-many",
        ),
    ],
)
async def test_workloads(server: Client, made: dict[str, Any], want: str) -> None:
    answer = await server.call("POST", WORKLOADS, made)
    assert answer.code == 201 if not want else problem(answer) == want


async def test_a_workload_keeps_its_templates(server: Client) -> None:
    await server.call("POST", WORKLOADS, a_workload(template(), template("u")))
    fewer = {"spec": {"podGroupTemplates": [template()]}}
    refusal = await server.call("PATCH", f"{WORKLOADS}/w", fewer, content_type=MERGE)
    assert problem(refusal) == "spec.podGroupTemplates: Forbidden: item may not be removed"
    more = {"spec": {"podGroupTemplates": [template(), template("u"), template("v")]}}
    refusal = await server.call("PATCH", f"{WORKLOADS}/w", more, content_type=MERGE)
    assert problem(refusal) == "spec.podGroupTemplates[2]: Forbidden: item may not be added"
