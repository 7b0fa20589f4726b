"""Kueue's kinds: both versions, conversion, and definitions of the same names."""

from typing import Any

import pytest

from drachma.server.kinds.kueue import queuekinds
from drachma.server.wire import app
from tests.unit.server import client

_KINDS = queuekinds.kinds()
_GROUP = "/apis/kueue.x-k8s.io"
_QUOTA = [{"name": "cpu", "nominalQuota": "4"}]
_GROUPS = [{"coveredResources": ["cpu"], "flavors": [{"name": "default", "resources": _QUOTA}]}]
_POD_SET = {"name": "main", "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}


async def _start() -> client.Client:
    return await client.start(additions=app.Additions(kinds=_KINDS))


def _object(version: str, kind: str, spec: Any, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"kueue.x-k8s.io/{version}",
        "kind": kind,
        "metadata": {"name": "x", **metadata},
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("place", "kind", "older", "newer"),
    [
        pytest.param(
            "clusterqueues",
            "ClusterQueue",
            {"cohort": "all", "admissionChecks": ["ready"], "resourceGroups": _GROUPS},
            {"cohortName": "all", "admissionChecksStrategy": {"admissionChecks": [{"name": "ready"}]}},
            id="names-and-checks",
        ),
        pytest.param(
            "clusterqueues",
            "ClusterQueue",
            {"flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}},
            {"flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "MayStopSearch"}},
            id="words-for-flavors",
        ),
        pytest.param(
            "namespaces/default/workloads",
            "Workload",
            {
                "podSets": [{**_POD_SET, "count": 2}],
                "priority": 5,
                "priorityClassName": "urgent",
                "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass",
            },
            {"priorityClassRef": {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "urgent"}},
            id="priority-class",
        ),
    ],
)
async def test_the_older_version_is_stored_as_the_newer(place: str, kind: str, older: Any, newer: Any) -> None:
    server = await _start()
    created = await server.call("POST", f"{_GROUP}/v1beta1/{place}", _object("v1beta1", kind, older))
    assert created.code == 201, created.body
    assert created.header("warning") == '299 - "This version is deprecated. Use v1beta2 instead."'

    stored_object = (await server.call("GET", f"{_GROUP}/v1beta2/{place}/x")).body["spec"]
    assert {name: stored_object[name] for name in newer} == newer
    again = (await server.call("GET", f"{_GROUP}/v1beta1/{place}/x")).body["spec"]
    assert set(again) >= set(older) - {"admissionChecks"}


async def test_topology_of_an_admission_has_another_form_in_each_version() -> None:
    server = await _start()
    place = f"{_GROUP}/v1beta1/namespaces/default/workloads"
    created = await server.call("POST", place, _object("v1beta1", "Workload", {"podSets": [{**_POD_SET, "count": 3}]}))
    domains = [{"values": ["block-a", "host-1"], "count": 1}, {"values": ["block-a", "host-20"], "count": 2}]
    assignment = {"name": "main", "topologyAssignment": {"levels": ["block", "host"], "domains": domains}}
    admission = {"clusterQueue": "q", "podSetAssignments": [assignment]}
    changed = await server.call("PUT", f"{place}/x/status", {**created.body, "status": {"admission": admission}})
    assert changed.code == 200, changed.body

    newer = (await server.call("GET", f"{_GROUP}/v1beta2/namespaces/default/workloads/x")).body["status"]
    (part,) = newer["admission"]["podSetAssignments"][0]["topologyAssignment"]["slices"]
    assert part == {
        "domainCount": 2,
        "podCounts": {"individual": [1, 2]},
        "valuesPerLevel": [{"universal": "block-a"}, {"individual": {"prefix": "host-", "roots": ["1", "20"]}}],
    }
    older = (await server.call("GET", f"{place}/x")).body["status"]
    assert older["admission"]["podSetAssignments"][0]["topologyAssignment"]["domains"] == domains


async def test_definitions_of_the_same_names_do_no_harm() -> None:
    server = await _start()
    await server.call("POST", f"{_GROUP}/v1beta2/cohorts", _object("v1beta2", "Cohort", {}))
    version = {"name": "v1beta2", "served": True, "storage": True}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "cohorts.kueue.x-k8s.io"},
        "spec": {
            "group": "kueue.x-k8s.io",
            "scope": "Cluster",
            "names": {"kind": "Cohort", "plural": "cohorts"},
            "versions": [{**version, "schema": schema}],
        },
    }
    created = await server.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    assert created.code == 201, created.body

    listed = await server.call("GET", f"{_GROUP}/v1beta1/cohorts")
    assert [each["metadata"]["name"] for each in listed.body["items"]] == ["x"]
    refusal = await server.call("POST", f"{_GROUP}/v1beta2/cohorts", _object("v1beta2", "Cohort", {"parentName": "No"}))
    assert refusal.code == 422


_TIME = "2026-01-01T00:00:00Z"
_RESERVED = {"type": "QuotaReserved", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": _TIME}
_ADMISSION = {"clusterQueue": "q", "podSetAssignments": [{"name": "main", "flavors": {"cpu": "f"}, "count": 1}]}


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"conditions": [_RESERVED], "admission": _ADMISSION}, id="admitted"),
        pytest.param({"conditions": [_RESERVED], "admission": {"podSetAssignments": [{}]}}, id="with-defaults"),
        pytest.param({"conditions": [_RESERVED, _RESERVED]}, id="repeated"),
        pytest.param({"conditions": [{**_RESERVED, "reason": "no reason"}]}, id="wrong-value"),
        pytest.param({"conditions": [_RESERVED], "admission": {"podSetAssignments": []}}, id="against-a-rule"),
        pytest.param({"conditions": [{**_RESERVED, "more": 1}], "other": {"a": 1}}, id="unknown-fields"),
        pytest.param({"conditions": 5}, id="wrong-type"),
        pytest.param({}, id="nothing"),
    ],
)
async def test_a_patched_status_is_what_an_update_leaves(status: Any) -> None:
    answers = []
    for verb in ("PUT", "PATCH"):
        server = await _start()
        place = f"{_GROUP}/v1beta2/namespaces/default/workloads"
        created = (await server.call("POST", place, _object("v1beta2", "Workload", {"podSets": [_POD_SET]}))).body
        is_patch = verb == "PATCH"
        body = {"status": status} if is_patch else {**created, "status": status}
        content_type = "application/merge-patch+json" if is_patch else "application/json"
        answer = await server.call(verb, f"{place}/x/status", body, content_type=content_type)
        answers.append((answer.code, answer.body, answer.header("warning")))
        stored_object = (await server.call("GET", f"{place}/x")).body
        answers.append((stored_object.get("status"), stored_object["metadata"]["managedFields"], stored_object["spec"]))
    put, after_put, patched, after_patch = answers
    assert after_patch == after_put
    assert (patched[0], patched[2]) == (put[0], put[2])
    if put[0] != 200:
        assert patched[1] == put[1]
