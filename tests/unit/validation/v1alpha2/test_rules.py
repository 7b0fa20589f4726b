"""Rules of v1alpha2: what is refused, where, and in which words. One good object of each kind is the base of all."""

import copy
import datetime as dt
from typing import Any

import pytest

from drachma.api import codec, defaults
from drachma.validation import writes
from drachma.validation.context import Context

NOW = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
CONTEXT = Context(now=NOW)
DRIVER = "cards.dra.example.com"
REFERENCE = {"apiGroup": "dra.example.com", "kind": "CardParameters", "name": "my-parameters"}
NODES = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["worker-1"]}]}]}
CONSUMER = {"resource": "pods", "name": "p", "uid": "u"}
SELECTOR = 'attributes["runtimeVersion"] >= "v12.0.0" && attributes["memory"] >= "32Gi"'
GOOD: dict[str, dict[str, Any]] = {
    "ResourceClass": {
        "driverName": DRIVER,
        "structuredParameters": True,
        "parametersRef": {**REFERENCE, "namespace": "n"},
        "suitableNodes": NODES,
    },
    "ResourceClaim": {
        "spec": {"resourceClassName": "cards", "parametersRef": REFERENCE, "allocationMode": "Immediate"}
    },
    "ResourceClaimTemplate": {
        "spec": {"metadata": {"labels": {"a": "b"}}, "spec": {"resourceClassName": "cards", "parametersRef": REFERENCE}}
    },
    "ResourceClaimParameters": {
        "generatedFrom": {**REFERENCE, "uid": "foobar-uid"},
        "shareable": True,
        "vendorParameters": {"kind": "CardParameters"},
        "requests": [
            {
                "driverName": DRIVER,
                "namedResourcesWithAttributes": {"required": [{"selector": SELECTOR}]},
            }
        ],
    },
    "ResourceClassParameters": {
        "generatedFrom": {**REFERENCE, "uid": "foobar-uid"},
        "vendorParameters": {"kind": "CardClassParameters"},
        "filters": [
            {
                "driverName": DRIVER,
                "namedResourcesWithAttributes": {"selector": 'attributes["memory"] <= "16Gi"'},
            }
        ],
    },
    "NodeResourceSlice": {
        "spec": {
            "nodeName": "worker-1",
            "driverName": DRIVER,
            "namedResourcesWithAttributes": [
                {
                    "name": "gpu-0",
                    "attributes": [
                        {"name": "UUID", "string": "GPU-ceea231c"},
                        {"name": "driverVersion", "version": "v1.2"},
                        {"name": "memory", "quantity": "16Gi"},
                        {"name": "ecc", "bool": False},
                        {"name": "cores", "int": 0},
                        {"name": "lanes", "intSlice": [1, 2]},
                        {"name": "modes", "stringSlice": ["a"]},
                    ],
                }
            ],
        }
    },
    "ResourceSlice": {
        "nodeName": "worker-1",
        "driverName": DRIVER,
        "namedResources": {
            "instances": [{"name": "gpu-0", "attributes": [{"name": "lanes", "intSlice": {"ints": [1, 2]}}]}]
        },
    },
}
OF_1_30: dict[str, dict[str, Any]] = {
    "ResourceClaimParameters": {
        "driverRequests": [
            {
                "driverName": DRIVER,
                "vendorParameters": {"a": 1},
                "requests": [{"vendorParameters": {"b": 2}, "namedResources": {"selector": 'attributes.bool["ecc"]'}}],
            }
        ]
    },
    "ResourceClassParameters": {
        "vendorParameters": [{"driverName": DRIVER, "parameters": {"a": 1}}],
        "filters": [{"driverName": DRIVER, "namedResources": {"selector": "true"}}],
    },
}
ALLOCATION: dict[str, Any] = {
    "resourceHandles": [
        {
            "driverName": DRIVER,
            "structuredData": {
                "vendorClassParameters": {"a": 1},
                "vendorClaimParameters": {"b": 2},
                "nodeName": "worker-1",
                "namedResourcesWithAttributes": {"resources": ["gpu-1"]},
            },
        }
    ],
    "availableOnNodes": NODES,
    "shareable": True,
}


def written(kind: str, content: dict[str, Any]) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "o", "uid": "u", "resourceVersion": "1"}
    if kind in ("ResourceClaim", "ResourceClaimTemplate", "ResourceClaimParameters"):
        metadata["namespace"] = "n"
    return {
        "apiVersion": "resource.k8s.io/v1alpha2",
        "kind": kind,
        "metadata": metadata,
        **copy.deepcopy(content),
    }


def read(kind: str, content: dict[str, Any]) -> Any:
    return defaults.apply(codec.decode(written(kind, content)), now=NOW)


def changed(kind: str, path: str, value: Any) -> dict[str, Any]:
    """A good object with another value under a path; ``...`` takes it away."""
    document: Any = copy.deepcopy(GOOD[kind])
    *above, last = [int(part) if part.isdigit() else part for part in path.split("/")]
    place = document
    for part in above:
        place = place[part]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return dict(document)


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind) for kind in GOOD])
def test_good_objects_are_taken_and_written_back_as_they_came(kind: str) -> None:
    verdict = writes.create(read(kind, GOOD[kind]), CONTEXT)
    assert list(map(str, verdict.errors)) == []
    assert codec.unknown_fields(written(kind, GOOD[kind])) == ()
    shown = codec.encode(codec.decode(written(kind, GOOD[kind])))
    assert shown == written(kind, GOOD[kind])


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind) for kind in OF_1_30])
def test_the_spelling_of_1_30(kind: str) -> None:
    assert not writes.create(read(kind, OF_1_30[kind]), CONTEXT).errors
    assert codec.unknown_fields(written(kind, OF_1_30[kind])) == ()
    assert codec.encode(codec.decode(written(kind, OF_1_30[kind]))) == written(kind, OF_1_30[kind])


def test_claims_wait_for_their_first_consumer_by_default() -> None:
    made = read("ResourceClaim", {"spec": {"resourceClassName": "cards"}})
    assert made.spec.allocation_mode == "WaitForFirstConsumer"
    template = read("ResourceClaimTemplate", GOOD["ResourceClaimTemplate"])
    assert template.spec.spec.allocation_mode == "WaitForFirstConsumer"


RESOURCES = "spec/namedResourcesWithAttributes"
ATTRIBUTES = f"{RESOURCES}/0/attributes"
ATTRIBUTES_AT = "spec.namedResourcesWithAttributes[0].attributes"


@pytest.mark.parametrize(
    ("kind", "path", "value", "want"),
    [
        pytest.param("ResourceClass", "driverName", "", "driverName: Required value", id="class-driver"),
        pytest.param("ResourceClass", "parametersRef/kind", "", "parametersRef.kind: Required value", id="class-kind"),
        pytest.param("ResourceClass", "parametersRef/name", ..., "parametersRef.name: Required value", id="class-name"),
        pytest.param(
            "ResourceClass",
            "parametersRef/namespace",
            "A",
            'parametersRef.namespace: Invalid value: "A": a lowercase RFC 1123 label must',
            id="class-namespace",
        ),
        pytest.param(
            "ResourceClass",
            "suitableNodes/nodeSelectorTerms",
            [],
            "suitableNodes.nodeSelectorTerms: Required value: must have at least one node selector term",
            id="class-nodes",
        ),
        pytest.param(
            "ResourceClaim", "spec/resourceClassName", "", 'spec.resourceClassName: Invalid value: ""', id="claim-class"
        ),
        pytest.param(
            "ResourceClaim", "spec/parametersRef", {}, "spec.parametersRef.kind: Required value", id="claim-reference"
        ),
        pytest.param(
            "ResourceClaim",
            "spec/allocationMode",
            "Later",
            'spec.allocationMode: Unsupported value: "Later": supported values: "Immediate", "WaitForFirstConsumer"',
            id="claim-mode",
        ),
        pytest.param(
            "ResourceClaimTemplate",
            "spec/metadata",
            {"name": "x"},
            "spec.metadata.name: Forbidden",
            id="template-metadata",
        ),
        pytest.param(
            "ResourceClaimTemplate",
            "spec/spec/resourceClassName",
            ...,
            'spec.spec.resourceClassName: Invalid value: ""',
            id="template-class",
        ),
        pytest.param(
            "ResourceClaimParameters", "generatedFrom/kind", "", "generatedFrom.kind: Required value", id="source"
        ),
        pytest.param(
            "ResourceClaimParameters",
            "requests/0/driverName",
            ...,
            "requests[0].driverName: Required value",
            id="request-driver",
        ),
        pytest.param(
            "ResourceClaimParameters",
            "requests/0/namedResourcesWithAttributes",
            ...,
            "requests[0]: Required value: exactly one structured model field must be set",
            id="request-without-a-model",
        ),
        pytest.param(
            "ResourceClaimParameters",
            "requests/0/namedResourcesWithAttributes/selector",
            "true",
            'requests[0].namedResourcesWithAttributes: Invalid value: ["required","selector"]: '
            "exactly one field must be set, not several",
            id="request-in-two-forms",
        ),
        pytest.param(
            "ResourceClaimParameters",
            "requests/0/namedResourcesWithAttributes/required/0/selector",
            "",
            "requests[0].namedResourcesWithAttributes.required[0].selector: Required value",
            id="request-without-a-selector",
        ),
        pytest.param(
            "ResourceClaimParameters",
            "requests/0/namedResourcesWithAttributes/required/0/selector",
            'attributes.string["a"] == 5',
            "requests[0].namedResourcesWithAttributes.required[0].selector: Invalid value: "
            '"attributes.string[\\"a\\"] == 5": compilation failed: ERROR: <input>:1:24: found no matching overload',
            id="selector-of-wrong-types",
        ),
        pytest.param(
            "ResourceClaimParameters",
            "requests/0/namedResourcesWithAttributes/required/0/selector",
            '[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, attributes.stringslice["x"].all(c, '
            'attributes.stringslice["y"].all(d, c.contains(d)))))',
            "requests[0].namedResourcesWithAttributes.required[0].selector: Forbidden: too complex, exceeds cost limit",
            id="selector-that-costs-too-much",
        ),
        pytest.param(
            "ResourceClaimParameters",
            "requests/0/namedResourcesWithAttributes/required/0/selector",
            f'attributes["a"] == "{"x" * 10240}"',
            "requests[0].namedResourcesWithAttributes.required[0].selector: Too long: may not be more than 10240 bytes",
            id="selector-that-is-too-long",
        ),
        pytest.param(
            "ResourceClaimParameters",
            "driverRequests",
            OF_1_30["ResourceClaimParameters"]["driverRequests"],
            'requests: Invalid value: ["driverRequests","requests"]: exactly one field must be set, not several',
            id="two-spellings",
        ),
        pytest.param(
            "ResourceClaimParameters",
            "driverRequests",
            [{"driverName": DRIVER}],
            "driverRequests[0].requests: Required value: empty entries with no requests are not allowed",
            id="driver-without-requests",
        ),
        pytest.param(
            "ResourceClaimParameters",
            "driverRequests",
            [{"driverName": DRIVER, "requests": [{}]}] * 2,
            f'driverRequests[1].driverName: Duplicate value: "{DRIVER}"',
            id="driver-twice",
        ),
        pytest.param(
            "ResourceClaimParameters",
            "driverRequests",
            [{"driverName": DRIVER, "requests": [{}]}],
            "driverRequests[0].requests[0]: Required value: exactly one structured model field must be set",
            id="driver-request-without-a-model",
        ),
        pytest.param(
            "ResourceClassParameters",
            "filters/0/namedResources",
            {"selector": "true"},
            'filters[0]: Invalid value: ["namedResources","namedResourcesWithAttributes"]: '
            "exactly one field must be set, not several",
            id="filter-with-two-models",
        ),
        pytest.param(
            "ResourceClassParameters",
            "filters/0/namedResourcesWithAttributes",
            ...,
            "filters[0]: Required value: exactly one structured model field must be set",
            id="filter-without-a-model",
        ),
        pytest.param(
            "ResourceClassParameters",
            "filters",
            [{"driverName": DRIVER, "namedResources": {"selector": "true"}}] * 2,
            f'filters[1].driverName: Duplicate value: "{DRIVER}"',
            id="filters-of-one-driver",
        ),
        pytest.param(
            "ResourceClassParameters",
            "vendorParameters",
            [{"driverName": DRIVER}, {"driverName": DRIVER}],
            f'vendorParameters[1].driverName: Duplicate value: "{DRIVER}"',
            id="vendor-parameters-of-one-driver",
        ),
        pytest.param("NodeResourceSlice", "spec/nodeName", "", "spec.nodeName: Required value", id="slice-node"),
        pytest.param("NodeResourceSlice", "spec/driverName", "", "spec.driverName: Required value", id="slice-driver"),
        pytest.param(
            "NodeResourceSlice",
            f"{RESOURCES}/0/name",
            "GPU/0",
            'spec.namedResourcesWithAttributes[0].name: Invalid value: "GPU/0": a lowercase RFC 1123 subdomain must',
            id="resource-name",
        ),
        pytest.param(
            "NodeResourceSlice",
            RESOURCES,
            [{"name": "a"}, {"name": "a"}],
            'spec.namedResourcesWithAttributes[1].name: Duplicate value: "a"',
            id="resource-twice",
        ),
        pytest.param(
            "NodeResourceSlice",
            f"{ATTRIBUTES}/0",
            {"name": "a"},
            f"{ATTRIBUTES_AT}[0]: Required value: exactly one value must be set",
            id="attribute-without-a-value",
        ),
        pytest.param(
            "NodeResourceSlice",
            f"{ATTRIBUTES}/0",
            {"name": "a", "int": 1, "bool": True},
            f'{ATTRIBUTES_AT}[0]: Invalid value: ["bool","int"]: exactly one field must be set, not several',
            id="attribute-with-two-values",
        ),
        pytest.param(
            "NodeResourceSlice",
            f"{ATTRIBUTES}/0/name",
            "a_b",
            f'{ATTRIBUTES_AT}[0].name: Invalid value: "a_b"',
            id="attribute-name",
        ),
        pytest.param(
            "NodeResourceSlice",
            f"{ATTRIBUTES}/0/name",
            "numa.k8s.io",
            f"{ATTRIBUTES_AT}[0].name: Forbidden: names that end in .k8s.io are reserved for Kubernetes",
            id="reserved-name",
        ),
        pytest.param(
            "NodeResourceSlice",
            f"{ATTRIBUTES}/1/name",
            "UUID",
            f'{ATTRIBUTES_AT}[1].name: Duplicate value: "UUID"',
            id="attribute-twice",
        ),
        pytest.param(
            "NodeResourceSlice",
            f"{ATTRIBUTES}/1/version",
            "new",
            f'{ATTRIBUTES_AT}[1].version: Invalid value: "new": must be a string compatible with semver.org spec 2.0.0',
            id="no-version",
        ),
        pytest.param("ResourceSlice", "driverName", "", "driverName: Required value", id="slice-driver-of-1-30"),
        pytest.param(
            "ResourceSlice",
            "namedResources/instances/0/name",
            "A",
            'namedResources.instances[0].name: Invalid value: "A"',
            id="instance-name",
        ),
    ],
)
def test_refused(kind: str, path: str, value: Any, want: str) -> None:
    verdict = writes.create(read(kind, changed(kind, path, value)), CONTEXT)
    found = list(map(str, verdict.errors))
    assert any(each.startswith(want) for each in found), found


@pytest.mark.parametrize("kind", ["NodeResourceSlice", "ResourceSlice"])
def test_a_slice_of_an_unknown_model_is_taken(kind: str) -> None:
    path = "spec/namedResourcesWithAttributes" if kind == "NodeResourceSlice" else "namedResources"
    assert not writes.create(read(kind, changed(kind, path, ...)), CONTEXT).errors


@pytest.mark.parametrize(
    ("kind", "path", "value", "want"),
    [
        pytest.param("ResourceClaim", "spec/resourceClassName", "other", "spec: Invalid value: ", id="claim"),
        pytest.param(
            "ResourceClaimTemplate", "spec/spec/resourceClassName", "other", "spec: Invalid value: ", id="template"
        ),
        pytest.param("NodeResourceSlice", "spec/nodeName", "w", 'spec.nodeName: Invalid value: "w": ', id="slice-node"),
        pytest.param(
            "NodeResourceSlice", "spec/driverName", "w", "spec.driverName: Invalid value: ", id="slice-driver"
        ),
        pytest.param("ResourceSlice", "nodeName", "w", 'nodeName: Invalid value: "w": ', id="slice-node-of-1-30"),
        pytest.param("ResourceSlice", "driverName", "w", "driverName: Invalid value: ", id="slice-driver-of-1-30"),
    ],
)
def test_immutable(kind: str, path: str, value: Any, want: str) -> None:
    verdict = writes.update(read(kind, changed(kind, path, value)), read(kind, GOOD[kind]), CONTEXT)
    [error] = map(str, verdict.errors)
    assert error.startswith(want)
    assert error.endswith("field is immutable")


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        pytest.param("ResourceClass", "driverName", "other.example.com", id="class"),
        pytest.param("ResourceClaimParameters", "shareable", False, id="claim-parameters"),
        pytest.param("ResourceClassParameters", "filters", [], id="class-parameters"),
        pytest.param("NodeResourceSlice", RESOURCES, [], id="slice"),
    ],
)
def test_mutable(kind: str, path: str, value: Any) -> None:
    verdict = writes.update(read(kind, changed(kind, path, value)), read(kind, GOOD[kind]), CONTEXT)
    assert not verdict.errors


STATUS = {"driverName": DRIVER, "allocation": ALLOCATION}


def claim(status: dict[str, Any]) -> Any:
    return read("ResourceClaim", {**GOOD["ResourceClaim"], "status": status})


def exclusive() -> dict[str, Any]:
    return {**ALLOCATION, "shareable": False}


def with_handle(**fields: Any) -> dict[str, Any]:
    return {**STATUS, "allocation": {"resourceHandles": [{"driverName": DRIVER, **fields}]}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({}, STATUS, id="allocate"),
        pytest.param(STATUS, {**STATUS, "reservedFor": [CONSUMER]}, id="reserve"),
        pytest.param(STATUS, {**STATUS, "deallocationRequested": True}, id="request-deallocation"),
        pytest.param({**STATUS, "deallocationRequested": True}, {}, id="deallocate"),
        pytest.param({}, with_handle(data="x" * 16384), id="opaque-data"),
        pytest.param(
            {}, with_handle(structuredData={"results": [{"namedResources": {"name": "gpu-1"}}]}), id="results-of-1-30"
        ),
    ],
)
def test_status(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert [*map(str, writes.update_status(claim(after), claim(before), CONTEXT).errors)] == []


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [
        pytest.param(
            {},
            {"allocation": ALLOCATION},
            "status.driverName: Required value: must be specified when `allocation` is set",
            id="driver",
        ),
        pytest.param(
            {},
            {"reservedFor": [CONSUMER]},
            "status.reservedFor: Forbidden: may not be specified when `allocated` is not set",
            id="reserved-without-allocation",
        ),
        pytest.param(
            {},
            {**STATUS, "allocation": exclusive(), "reservedFor": [CONSUMER, {**CONSUMER, "uid": "v"}]},
            "status.reservedFor: Forbidden: may not be reserved more than once",
            id="exclusive",
        ),
        pytest.param(
            {**STATUS, "deallocationRequested": True},
            {**STATUS, "deallocationRequested": True, "reservedFor": [CONSUMER]},
            "status.reservedFor: Forbidden: new entries may not be added while `deallocationRequested` or "
            "`deletionTimestamp` are set",
            id="reserved-while-going",
        ),
        pytest.param(
            STATUS,
            {**STATUS, "allocation": exclusive()},
            "status.allocation: Invalid value: ",
            id="another-allocation",
        ),
        pytest.param(
            STATUS,
            {**STATUS, "deallocationRequested": True, "reservedFor": [CONSUMER]},
            "status.deallocationRequested: Forbidden: deallocation cannot be requested while `reservedFor` is set",
            id="deallocation-of-what-is-used",
        ),
        pytest.param(
            STATUS,
            {"deallocationRequested": True},
            "status: Forbidden: `allocation` must be set when `deallocationRequested` is set",
            id="deallocation-of-nothing",
        ),
        pytest.param(
            {**STATUS, "deallocationRequested": True},
            STATUS,
            "status.deallocationRequested: Forbidden: may not be cleared when `allocation` is set",
            id="deallocation-taken-back",
        ),
        pytest.param(
            {},
            with_handle(data="x" * 16385),
            "status.allocation.resourceHandles[0].data: Too long: may not be more than 16384 bytes",
            id="too-much-data",
        ),
        pytest.param(
            {},
            with_handle(data="x", structuredData={"results": []}),
            "status.allocation.resourceHandles[0]: Invalid value: null: data and structuredData are mutually exclusive",
            id="two-kinds-of-data",
        ),
        pytest.param(
            {},
            with_handle(structuredData={"results": [{}]}),
            "status.allocation.resourceHandles[0].structuredData.results[0]: Required value: "
            "exactly one structured model field must be set",
            id="result-without-a-model",
        ),
        pytest.param(
            {},
            with_handle(
                structuredData={
                    "results": [{"namedResources": {"name": "a"}}],
                    "namedResourcesWithAttributes": {"resources": ["a"]},
                }
            ),
            "status.allocation.resourceHandles[0].structuredData: Invalid value: "
            '["namedResourcesWithAttributes","results"]: exactly one field must be set, not several',
            id="results-in-two-spellings",
        ),
        pytest.param(
            {},
            with_handle(structuredData={"namedResourcesWithAttributes": {"resources": ["a/B"]}}),
            "status.allocation.resourceHandles[0].structuredData.namedResourcesWithAttributes.resources[0]: "
            'Invalid value: "a/B"',
            id="result-name",
        ),
        pytest.param(
            {},
            {**STATUS, "allocation": {"resourceHandles": [{"driverName": DRIVER}] * 33}},
            "status.allocation.resourceHandles: Too many: 33: must have at most 32 items",
            id="too-many-handles",
        ),
        pytest.param(
            {},
            {**STATUS, "reservedFor": [{**CONSUMER, "uid": str(number)} for number in range(33)]},
            "status.reservedFor: Too many: 33: must have at most 32 items",
            id="too-many-consumers",
        ),
        pytest.param(
            {}, {**STATUS, "reservedFor": [{}]}, "status.reservedFor[0].resource: Required value", id="consumer"
        ),
        pytest.param(
            {},
            {**STATUS, "reservedFor": [CONSUMER, CONSUMER]},
            'status.reservedFor[1]: Duplicate value: "u"',
            id="consumer-twice",
        ),
    ],
)
def test_refused_status(before: dict[str, Any], after: dict[str, Any], want: str) -> None:
    found = [*map(str, writes.update_status(claim(after), claim(before), CONTEXT).errors)]
    assert any(each.startswith(want) for each in found), found


def test_status_and_spec_are_written_apart() -> None:
    made = writes.create(claim(STATUS), CONTEXT).object
    assert made.status.allocation is None
    stated = read("ResourceClaim", {"spec": {"resourceClassName": "other"}, "status": STATUS})
    kept = writes.update_status(stated, claim({}), CONTEXT).object
    assert kept.spec.resource_class_name == "cards"
    assert writes.update(claim({}), claim(STATUS), CONTEXT).object.status.allocation is not None
