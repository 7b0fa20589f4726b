"""Where the API server differs from upstream on purpose (docs/differences.md)."""

import json
from typing import Any

import pytest

from drachma.process import conversionwebhook
from drachma.server import status
from drachma.server.kinds.kueue import versionforms
from tests.unit.server import client
from tests.unit.server.client import PODS, Client
from tests.unit.server.decoding.protobuf import test_decoding as protobuf
from tests.unit.server.kinds.apiextensions import widgets

MAPS = "/api/v1/namespaces/default/configmaps"


async def test_the_collection_of_bindings_is_not_served(server: Client) -> None:
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    assert (await server.call("POST", PODS, client.pod())).code == 201
    assert (await server.call("POST", "/api/v1/namespaces/default/bindings", binding)).code == 404
    assert (await server.call("POST", f"{PODS}/p/binding", binding)).code == 201


async def test_a_watch_of_a_whole_version_leads_nowhere(server: Client) -> None:
    assert (await server.call("GET", "/apis/resource.k8s.io/v1/watch")).code == 404


async def test_privileged_containers_are_allowed(server: Client) -> None:
    document = client.pod()
    document["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    assert (await server.call("POST", PODS, document)).code == 201


async def test_a_pod_that_is_deleted_without_grace_goes_in_one_step(server: Client) -> None:
    created = await server.call("POST", PODS, client.pod())
    version = created.body["metadata"]["resourceVersion"]
    await server.call("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})
    async with server.watch(f"{PODS}?watch=1&resourceVersion={version}") as stream:
        event = await stream.event()
    assert event["type"] == "DELETED"
    assert "deletionTimestamp" in event["object"]["metadata"]


@pytest.mark.parametrize(("count", "want"), [(2000, 201), (2001, 422)])
async def test_a_schema_has_a_limited_number_of_rules(server: Client, count: int, want: int) -> None:
    rules = [{"rule": "self.a > 0"}] * count
    spec: dict[str, Any] = {**widgets.fields(a={"type": "integer"}), "x-kubernetes-validations": rules}
    created = await server.call("POST", widgets.DEFINITIONS, widgets.definition(widgets.version(spec=spec)))
    assert created.code == want, str(created.body)[:500]


async def test_kinds_of_pod_groups_are_served_without_their_gate(server: Client) -> None:
    for plural in ("podgroups", "workloads"):
        listed = await server.call("GET", f"/apis/scheduling.k8s.io/v1beta1/namespaces/default/{plural}")
        assert listed.code == 200


async def test_serverside_apply_works_on_the_scale_of_custom_resources(server: Client) -> None:
    scale = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}
    version = widgets.version(spec=widgets.fields(n={"type": "integer"}), subresources={"status": {}, "scale": scale})
    await server.call("POST", widgets.DEFINITIONS, widgets.definition(version))
    await server.call("POST", widgets.path(), widgets.widget(n=1))
    document = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "w"}, "spec": {"replicas": 3}}
    path = f"{widgets.path()}/w/scale?fieldManager=me&force=true"
    applied = await server.call("PATCH", path, document, content_type=widgets.APPLY)
    assert (applied.code, applied.body["spec"]["replicas"]) == (200, 3)


async def test_opaque_parameters_with_blanks_are_the_same_after_a_patch(server: Client) -> None:
    parameters = {"apiVersion": "x/v1", "kind": "K", "a": 1}
    config = {"opaque": {"driver": "gpu.example.com", "parameters": parameters}}
    document = client.claim()
    document["spec"] = {
        "devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}], "config": [config]}
    }
    body = json.dumps(document, indent=2).encode()
    assert (await server.send("POST", client.CLAIMS, body)).code == 201
    labels = {"metadata": {"labels": {"a": "b"}}}
    assert (await server.call("PATCH", f"{client.CLAIMS}/c", labels, content_type=widgets.MERGE)).code == 200


async def test_a_message_that_is_not_shown_is_not_evaluated(server: Client) -> None:
    expensive = "'x'.matches('x') ? [1, 2, 3].map(i, string(i)).join(object.nope) : ''"
    policy = {
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
                ]
            },
            "validations": [{"expression": "true", "messageExpression": expensive}],
            "auditAnnotations": [],
        },
    }
    registration = "/apis/admissionregistration.k8s.io/v1"
    assert (await server.call("POST", f"{registration}/validatingadmissionpolicies", policy)).code == 201
    binding = {"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}
    await server.call("POST", f"{registration}/validatingadmissionpolicybindings", binding)
    assert (await server.call("POST", MAPS, {"metadata": {"name": "m"}})).code == 201


async def test_details_of_storage_systems_are_not_validated(server: Client) -> None:
    """Upstream refuses an iSCSI volume with a logical unit beyond 255."""
    source = {"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2016-04.test:t", "lun": 256}
    document = client.pod()
    document["spec"]["volumes"] = [{"name": "v", "iscsi": source}]
    assert (await server.call("POST", PODS, document)).code == 201


async def test_a_definition_in_protobuf_with_lists_is_refused(server: Client) -> None:
    """JSONSchemaProps.items is a union, which upstream reads and drachma does not."""
    items = protobuf.field(1, protobuf.field(5, "string"))
    schema = protobuf.field(5, "array") + protobuf.field(24, items)
    served = protobuf.field(1, "v1") + protobuf.field(4, protobuf.field(1, schema))
    message = protobuf.field(2, protobuf.field(7, served))
    body = protobuf.envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", message)
    answer = await server.send("POST", widgets.DEFINITIONS, body, content_type="application/vnd.kubernetes.protobuf")
    assert answer.code == 400, answer.body


async def test_an_address_that_a_service_gave_up_stays_until_it_is_assigned_again(server: Client) -> None:
    services = "/api/v1/namespaces/default/services"
    created = await server.call("POST", services, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    address = f"/apis/networking.k8s.io/v1/ipaddresses/{created.body['spec']['clusterIP']}"
    patch = {"spec": {"type": "ExternalName", "externalName": "a.example"}}
    await server.call("PATCH", f"{services}/s", patch, content_type=widgets.MERGE)
    assert (await server.call("GET", address)).code == 200
    again = {
        "metadata": {"name": "t"},
        "spec": {"ports": [{"port": 80}], "clusterIP": created.body["spec"]["clusterIP"]},
    }
    assert (await server.call("POST", services, again)).code == 201
    assert (await server.call("GET", address)).body["spec"]["parentRef"]["name"] == "t"
    assert (await server.call("GET", "/apis/networking.k8s.io/v1/servicecidrs")).code == 404


async def test_an_apply_through_one_group_of_events_ends_the_entry_of_the_other(server: Client) -> None:
    event = {
        "metadata": {"name": "e", "namespace": "default"},
        "eventTime": "2026-01-02T03:04:05.000000Z",
        "reportingController": "example.com/a",
        "reportingInstance": "i",
        "action": "a",
        "reason": "r",
        "type": "Normal",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
    }
    await server.call("POST", "/apis/events.k8s.io/v1/namespaces/default/events?fieldManager=first", event)
    labels = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "labels": {"a": "b"}}}
    path = "/api/v1/namespaces/default/events/e?fieldManager=second&force=true"
    applied = await server.call("PATCH", path, labels, content_type=widgets.APPLY)
    assert [each["manager"] for each in applied.body["metadata"]["managedFields"]] == ["second"]


async def test_quotas_are_evaluated_in_the_order_of_their_names(server: Client) -> None:
    quotas, hard = "/api/v1/namespaces/default/resourcequotas", {"count/configmaps": "0"}
    for name in ("b", "a", "c"):
        created = await server.call("POST", quotas, {"metadata": {"name": name}, "spec": {"hard": hard}})
        counted = {**created.body, "status": {"hard": hard, "used": hard}}
        await server.call("PUT", f"{quotas}/{name}/status", counted)
    refused = await server.call("POST", MAPS, {"metadata": {"name": "m"}})
    assert (refused.code, "exceeded quota: a," in refused.body["message"]) == (403, True)


async def test_errors_of_a_map_come_in_the_order_of_its_keys(server: Client) -> None:
    attributes = {name: {"string": "x" * 65} for name in ("b", "c", "a")}
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {
        "driver": "d.example.com",
        "nodeName": "n",
        "pool": pool,
        "devices": [{"name": "d", "attributes": attributes}],
    }
    refused = await server.call("POST", client.SLICES, {"metadata": {"name": "s"}, "spec": spec})
    fields = [each["field"] for each in refused.body["details"]["causes"]]
    assert fields == [f"spec.devices[0].attributes[{name}].string" for name in "abc"]


def _wide_workload(domains: int, *, value: str = "a", levels: int = 1, assignments: int = 1) -> dict[str, Any]:
    """Return a workload of v1beta2 with a compact assignment of many domains."""
    values = [{"universal": value}] * levels
    part = {"domainCount": domains, "valuesPerLevel": values, "podCounts": {"universal": 1}}
    assignment = {"levels": ["rack"] * levels, "slices": [part]}
    sets = [{"name": f"s{number}", "topologyAssignment": assignment} for number in range(assignments)]
    status = {"admission": {"clusterQueue": "q", "podSetAssignments": sets}}
    return {"apiVersion": versionforms.NEWER, "kind": "Workload", "metadata": {"name": "w"}, "status": status}


@pytest.mark.parametrize(
    "workload",
    [
        pytest.param(_wide_workload(10**12), id="many-domains"),
        pytest.param(_wide_workload(10_000, value="a" * 253, levels=16), id="long-values-at-many-levels"),
        pytest.param(_wide_workload(50_000, assignments=8), id="many-assignments"),
    ],
)
def test_an_assignment_that_is_too_large_has_no_form_in_v1beta1(workload: dict[str, Any]) -> None:
    forms = versionforms.VersionForms("Workload")
    with pytest.raises(status.StatusError, match="at most 6291456") as refused:
        forms.convert(workload, "kueue.x-k8s.io/v1beta1")
    assert refused.value.code == 413


def test_conversions_of_one_review_share_a_limit() -> None:
    workloads = [_wide_workload(2000, value="a" * 253, levels=10)] * 100
    request = {"uid": "u", "desiredAPIVersion": "kueue.x-k8s.io/v1beta1", "objects": workloads}
    answer = conversionwebhook.review({"kind": "ConversionReview", "request": request})["response"]
    assert answer["convertedObjects"] == []
    assert "at most 33554432" in answer["result"]["message"]


async def test_a_secret_that_is_replaced_unchanged_is_not_written_again(server: Client) -> None:
    secrets = "/api/v1/namespaces/default/secrets"
    created = (await server.call("POST", secrets, {"metadata": {"name": "s"}, "stringData": {"k": "v"}})).body
    replaced = (await server.call("PUT", f"{secrets}/s", created)).body
    assert replaced["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


async def test_an_explicit_empty_list_counts_as_absent(server: Client) -> None:
    quotas = "/api/v1/namespaces/default/resourcequotas"
    spec = {"hard": {"pods": "1"}, "scopes": ["NotTerminating"]}
    stored = (await server.call("POST", quotas, {"metadata": {"name": "q"}, "spec": spec})).body
    stored["spec"]["scopes"] = []
    refusal = await server.call("PUT", f"{quotas}/q", stored)
    assert refusal.body["details"]["causes"][0]["message"] == "Invalid value: null: field is immutable"
