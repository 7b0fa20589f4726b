"""Rules of v1alpha2: what is refused, where, and in which words. One good object of each kind is the base of all."""

from typing import Any

import pytest

from drachma.api import codec
from drachma.validation import writes
from tests.unit.validation.v1alpha2.objects import CONTEXT, DRIVER, GOOD, OF_1_30, changed, read, written


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
            (
                'parametersRef.namespace: Invalid value: "A": a lowercase RFC 1123 label must consist of lower '
                "case alphanumeric characters or '-', and must start and end with an alphanumeric character "
                "(e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            ),
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
            "ResourceClaim",
            "spec/resourceClassName",
            "",
            (
                'spec.resourceClassName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower '
                "case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character "
                "(e.g. 'example.com', regex used for validation is "
                "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ),
            id="claim-class",
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
            "spec.metadata.name: Forbidden: cannot be set",
            id="template-metadata",
        ),
        pytest.param(
            "ResourceClaimTemplate",
            "spec/spec/resourceClassName",
            ...,
            (
                'spec.spec.resourceClassName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of '
                "lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
                "character (e.g. 'example.com', regex used for validation is "
                "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ),
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
            (
                "requests[0].namedResourcesWithAttributes.required[0].selector: Invalid value: "
                '"attributes.string[\\"a\\"] == 5": compilation failed: ERROR: <input>:1:24: found no matching '
                "overload for '_==_' applied to '(string, int)'\n | attributes.string[\"a\"] == 5\n | "
                ".......................^"
            ),
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
            (
                'spec.namedResourcesWithAttributes[0].name: Invalid value: "GPU/0": a lowercase RFC 1123 '
                "subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
                "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
                "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ),
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
            (
                'spec.namedResourcesWithAttributes[0].attributes[0].name: Invalid value: "a_b": an RFC 1123 '
                "subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an "
                "alphanumeric character (e.g. 'Example.com', regex used for validation is "
                "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ),
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
            (
                'namedResources.instances[0].name: Invalid value: "A": a lowercase RFC 1123 subdomain must '
                "consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
                "alphanumeric character (e.g. 'example.com', regex used for validation is "
                "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ),
            id="instance-name",
        ),
    ],
)
def test_refused(kind: str, path: str, value: Any, want: str) -> None:
    verdict = writes.create(read(kind, changed(kind, path, value)), CONTEXT)
    found = list(map(str, verdict.errors))
    assert want in found


@pytest.mark.parametrize("kind", ["NodeResourceSlice", "ResourceSlice"])
def test_a_slice_of_an_unknown_model_is_taken(kind: str) -> None:
    path = "spec/namedResourcesWithAttributes" if kind == "NodeResourceSlice" else "namedResources"
    assert not writes.create(read(kind, changed(kind, path, ...)), CONTEXT).errors


@pytest.mark.parametrize(
    ("kind", "path", "value", "want"),
    [
        pytest.param(
            "ResourceClaim",
            "spec/resourceClassName",
            "other",
            (
                "spec: Invalid value: "
                '{"ResourceClassName":"other","ParametersRef":{"APIGroup":"dra.example.com","Kind":"CardParameters"'
                ',"Name":"my-parameters","UID":""},"AllocationMode":"Immediate"}: field is immutable'
            ),
            id="claim",
        ),
        pytest.param(
            "ResourceClaimTemplate",
            "spec/spec/resourceClassName",
            "other",
            (
                "spec: Invalid value: "
                '{"metadata":{"labels":{"a":"b"}},"spec":{"resourceClassName":"other","parametersRef":{"apiGroup":"'
                'dra.example.com","kind":"CardParameters","name":"my-parameters"},"allocationMode":"WaitForFirstCon'
                'sumer"}}: field is immutable'
            ),
            id="template",
        ),
        pytest.param(
            "NodeResourceSlice",
            "spec/nodeName",
            "w",
            'spec.nodeName: Invalid value: "w": field is immutable',
            id="slice-node",
        ),
        pytest.param(
            "NodeResourceSlice",
            "spec/driverName",
            "w",
            'spec.driverName: Invalid value: "w": field is immutable',
            id="slice-driver",
        ),
        pytest.param(
            "ResourceSlice",
            "nodeName",
            "w",
            'nodeName: Invalid value: "w": field is immutable',
            id="slice-node-of-1-30",
        ),
        pytest.param(
            "ResourceSlice",
            "driverName",
            "w",
            'driverName: Invalid value: "w": field is immutable',
            id="slice-driver-of-1-30",
        ),
    ],
)
def test_immutable(kind: str, path: str, value: Any, want: str) -> None:
    verdict = writes.update(read(kind, changed(kind, path, value)), read(kind, GOOD[kind]), CONTEXT)
    [error] = map(str, verdict.errors)
    assert error == want


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
