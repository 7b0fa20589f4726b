"""Every field of the kinds of v1alpha2 is read, kept and written back, and refuses what is not of its type.

``CASES`` has each field under its Go type and name, with a value; a field without a case fails the last test.
"""

import typing
from typing import Any, NamedTuple

import msgspec
import pytest

from drachma import errors
from drachma.api import codec, meta
from drachma.api.v1alpha2 import parameters, resourceclaim, resourceclaimtemplate, resourceclass, resourceslice

KINDS: tuple[type[meta.Object], ...] = (
    resourceclass.ResourceClass,
    resourceclaim.ResourceClaim,
    resourceclaimtemplate.ResourceClaimTemplate,
    parameters.ResourceClaimParameters,
    parameters.ResourceClassParameters,
    resourceslice.NodeResourceSlice,
    resourceslice.ResourceSlice,
)
PACKAGE = "drachma.api.v1alpha2"


class Field(NamedTuple):
    """A field of a kind, with its path, a valid value and an invalid one."""

    kind: str
    path: str
    value: Any
    wrong: Any


NODES = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "cards", "operator": "Exists"}]}]}
USER = {"resource": "pods", "name": "p", "uid": "u"}
ANYTHING: Any = ...
"""No value is wrong: what is in there is the vendor's business."""

_CLASS, _CLAIM, _TEMPLATE = "ResourceClass", "ResourceClaim", "ResourceClaimTemplate"
_CLAIM_PARAMETERS, _CLASS_PARAMETERS = "ResourceClaimParameters", "ResourceClassParameters"
_NODE_SLICE, _SLICE = "NodeResourceSlice", "ResourceSlice"
_HANDLE = "status.allocation.resourceHandles[0]"
_DATA = f"{_HANDLE}.structuredData"
_RESOURCE = "spec.namedResourcesWithAttributes[0]"
_ATTRIBUTE = f"{_RESOURCE}.attributes[0]"
_INSTANCE = "namedResources.instances[0]"
_OLD_ATTRIBUTE = f"{_INSTANCE}.attributes[0]"

CASES: dict[str, Field] = {
    "ResourceClass.driverName": Field(_CLASS, "driverName", "cards.dra.example.com", 5),
    "ResourceClass.parametersRef": Field(_CLASS, "parametersRef", {"kind": "K", "name": "n"}, "n"),
    "ResourceClass.suitableNodes": Field(_CLASS, "suitableNodes", NODES, []),
    "ResourceClass.structuredParameters": Field(_CLASS, "structuredParameters", True, "true"),
    "ResourceClassParametersReference.apiGroup": Field(_CLASS, "parametersRef.apiGroup", "dra.example.com", 1),
    "ResourceClassParametersReference.kind": Field(_CLASS, "parametersRef.kind", "CardClassParameters", 1),
    "ResourceClassParametersReference.name": Field(_CLASS, "parametersRef.name", "gpu-parameters", 1),
    "ResourceClassParametersReference.namespace": Field(_CLASS, "parametersRef.namespace", "default", 1),
    "ResourceClassParametersReference.uid": Field(_CLASS_PARAMETERS, "generatedFrom.uid", "foobar-uid", 1),
    "ResourceClaim.spec": Field(_CLAIM, "spec", {"resourceClassName": "cards"}, []),
    "ResourceClaim.status": Field(_CLAIM, "status", {"driverName": "d"}, []),
    "ResourceClaimSpec.resourceClassName": Field(_CLAIM, "spec.resourceClassName", "cards", 1),
    "ResourceClaimSpec.parametersRef": Field(_CLAIM, "spec.parametersRef", {"kind": "K", "name": "n"}, "n"),
    "ResourceClaimSpec.allocationMode": Field(_CLAIM, "spec.allocationMode", "Immediate", True),
    "ResourceClaimParametersReference.apiGroup": Field(_CLAIM, "spec.parametersRef.apiGroup", "dra.example.com", 1),
    "ResourceClaimParametersReference.kind": Field(_CLAIM, "spec.parametersRef.kind", "CardParameters", 1),
    "ResourceClaimParametersReference.name": Field(_CLAIM, "spec.parametersRef.name", "my-parameters", 1),
    "ResourceClaimParametersReference.uid": Field(_CLAIM_PARAMETERS, "generatedFrom.uid", "foobar-uid", 1),
    "ResourceClaimStatus.driverName": Field(_CLAIM, "status.driverName", "cards.dra.example.com", 1),
    "ResourceClaimStatus.allocation": Field(_CLAIM, "status.allocation", {"shareable": True}, []),
    "ResourceClaimStatus.reservedFor": Field(_CLAIM, "status.reservedFor", [USER], USER),
    "ResourceClaimStatus.deallocationRequested": Field(_CLAIM, "status.deallocationRequested", True, "true"),
    "AllocationResult.resourceHandles": Field(_CLAIM, "status.allocation.resourceHandles", [{"data": "x"}], {}),
    "AllocationResult.availableOnNodes": Field(_CLAIM, "status.allocation.availableOnNodes", NODES, []),
    "AllocationResult.shareable": Field(_CLAIM, "status.allocation.shareable", True, "true"),
    "ResourceHandle.driverName": Field(_CLAIM, f"{_HANDLE}.driverName", "cards.dra.example.com", 1),
    "ResourceHandle.data": Field(_CLAIM, f"{_HANDLE}.data", "opaque", {}),
    "ResourceHandle.structuredData": Field(_CLAIM, _DATA, {"nodeName": "worker-1"}, "worker-1"),
    "StructuredResourceHandle.vendorClassParameters": Field(
        _CLAIM, f"{_DATA}.vendorClassParameters", {"kind": "CardClassParameters", "deep": [{"a": None}]}, ANYTHING
    ),
    "StructuredResourceHandle.vendorClaimParameters": Field(
        _CLAIM, f"{_DATA}.vendorClaimParameters", {"spec": {"sharing": {"strategy": "TimeSliced"}}}, ANYTHING
    ),
    "StructuredResourceHandle.nodeName": Field(_CLAIM, f"{_DATA}.nodeName", "worker-1", 1),
    "StructuredResourceHandle.namedResourcesWithAttributes": Field(
        _CLAIM, f"{_DATA}.namedResourcesWithAttributes", {"resources": ["gpu-1"]}, []
    ),
    "StructuredResourceHandle.results": Field(_CLAIM, f"{_DATA}.results", [{"namedResources": {"name": "gpu-1"}}], {}),
    "NamedResourcesWithAttributesResult.resources": Field(
        _CLAIM, f"{_DATA}.namedResourcesWithAttributes.resources", ["gpu-1", "a/b"], "gpu-1"
    ),
    "DriverAllocationResult.vendorRequestParameters": Field(
        _CLAIM, f"{_DATA}.results[0].vendorRequestParameters", {"b": 2}, ANYTHING
    ),
    "DriverAllocationResult.namedResources": Field(
        _CLAIM, f"{_DATA}.results[0].namedResources", {"name": "gpu-1"}, "gpu-1"
    ),
    "NamedResourcesAllocationResult.name": Field(_CLAIM, f"{_DATA}.results[0].namedResources.name", "gpu-1", 1),
    "ResourceClaimTemplate.spec": Field(_TEMPLATE, "spec", {"spec": {"resourceClassName": "cards"}}, []),
    "ResourceClaimTemplateSpec.metadata": Field(_TEMPLATE, "spec.metadata", {"labels": {"a": "b"}}, []),
    "ResourceClaimTemplateSpec.spec": Field(_TEMPLATE, "spec.spec", {"resourceClassName": "cards"}, []),
    "ResourceClaimParameters.generatedFrom": Field(_CLAIM_PARAMETERS, "generatedFrom", {"kind": "K", "name": "n"}, "n"),
    "ResourceClaimParameters.shareable": Field(_CLAIM_PARAMETERS, "shareable", True, "true"),
    "ResourceClaimParameters.vendorParameters": Field(
        _CLAIM_PARAMETERS, "vendorParameters", {"kind": "CardParameters", "spec": {"count": 2}}, ANYTHING
    ),
    "ResourceClaimParameters.requests": Field(_CLAIM_PARAMETERS, "requests", [{"driverName": "d"}], {}),
    "ResourceClaimParameters.driverRequests": Field(_CLAIM_PARAMETERS, "driverRequests", [{"driverName": "d"}], {}),
    "ResourceRequest.driverName": Field(_CLAIM_PARAMETERS, "requests[0].driverName", "cards.dra.example.com", 1),
    "ResourceRequest.namedResourcesWithAttributes": Field(
        _CLAIM_PARAMETERS, "requests[0].namedResourcesWithAttributes", {"selector": "true"}, "true"
    ),
    "NamedResourcesWithAttributesRequest.required": Field(
        _CLAIM_PARAMETERS, "requests[0].namedResourcesWithAttributes.required", [{"selector": "true"}], {}
    ),
    "NamedResourcesWithAttributesRequest.selector": Field(
        _CLAIM_PARAMETERS, "requests[0].namedResourcesWithAttributes.selector", "true", True
    ),
    "NamedResourcesRequest.selector": Field(
        _CLAIM_PARAMETERS, "requests[0].namedResourcesWithAttributes.required[0].selector", "true", True
    ),
    "DriverRequests.driverName": Field(_CLAIM_PARAMETERS, "driverRequests[0].driverName", "d", 1),
    "DriverRequests.vendorParameters": Field(
        _CLAIM_PARAMETERS, "driverRequests[0].vendorParameters", {"a": 1}, ANYTHING
    ),
    "DriverRequests.requests": Field(
        _CLAIM_PARAMETERS, "driverRequests[0].requests", [{"namedResources": {"selector": "true"}}], {}
    ),
    "DriverResourceRequest.vendorParameters": Field(
        _CLAIM_PARAMETERS, "driverRequests[0].requests[0].vendorParameters", {"b": 2}, ANYTHING
    ),
    "DriverResourceRequest.namedResources": Field(
        _CLAIM_PARAMETERS, "driverRequests[0].requests[0].namedResources", {"selector": "true"}, "true"
    ),
    "ResourceClassParameters.generatedFrom": Field(_CLASS_PARAMETERS, "generatedFrom", {"kind": "K", "name": "n"}, "n"),
    "ResourceClassParameters.vendorParameters": Field(
        _CLASS_PARAMETERS, "vendorParameters", [{"driverName": "d", "parameters": {"a": 1}}], ANYTHING
    ),
    "ResourceClassParameters.filters": Field(_CLASS_PARAMETERS, "filters", [{"driverName": "d"}], {}),
    "ResourceFilter.driverName": Field(_CLASS_PARAMETERS, "filters[0].driverName", "cards.dra.example.com", 1),
    "ResourceFilter.namedResourcesWithAttributes": Field(
        _CLASS_PARAMETERS, "filters[0].namedResourcesWithAttributes", {"selector": "true"}, "true"
    ),
    "ResourceFilter.namedResources": Field(
        _CLASS_PARAMETERS, "filters[0].namedResources", {"selector": "true"}, "true"
    ),
    "NamedResourcesFilter.selector": Field(
        _CLASS_PARAMETERS, "filters[0].namedResourcesWithAttributes.selector", "true", True
    ),
    "NodeResourceSlice.spec": Field(_NODE_SLICE, "spec", {"nodeName": "worker-1", "driverName": "d"}, []),
    "NodeResourceSliceSpec.nodeName": Field(_NODE_SLICE, "spec.nodeName", "worker-1", 1),
    "NodeResourceSliceSpec.driverName": Field(_NODE_SLICE, "spec.driverName", "cards.dra.example.com", 1),
    "NodeResourceSliceSpec.namedResourcesWithAttributes": Field(
        _NODE_SLICE, "spec.namedResourcesWithAttributes", [{"name": "gpu-0"}], {}
    ),
    "NamedResource.name": Field(_NODE_SLICE, f"{_RESOURCE}.name", "gpu-0", 0),
    "NamedResource.attributes": Field(_NODE_SLICE, f"{_RESOURCE}.attributes", [{"name": "ecc", "bool": True}], {}),
    "Attribute.name": Field(_NODE_SLICE, f"{_ATTRIBUTE}.name", "UUID", 1),
    "Attribute.quantity": Field(_NODE_SLICE, f"{_ATTRIBUTE}.quantity", "16Gi", "much"),
    "Attribute.bool": Field(_NODE_SLICE, f"{_ATTRIBUTE}.bool", False, "false"),
    "Attribute.int": Field(_NODE_SLICE, f"{_ATTRIBUTE}.int", 2**63 - 1, 2**63),
    "Attribute.intSlice": Field(_NODE_SLICE, f"{_ATTRIBUTE}.intSlice", [1, -2], {"ints": [1]}),
    "Attribute.string": Field(_NODE_SLICE, f"{_ATTRIBUTE}.string", "", 1),
    "Attribute.stringSlice": Field(_NODE_SLICE, f"{_ATTRIBUTE}.stringSlice", ["a"], {"strings": ["a"]}),
    "Attribute.version": Field(_NODE_SLICE, f"{_ATTRIBUTE}.version", "v1.2", 1.2),
    "ResourceSlice.nodeName": Field(_SLICE, "nodeName", "worker-1", 1),
    "ResourceSlice.driverName": Field(_SLICE, "driverName", "cards.dra.example.com", 1),
    "ResourceSlice.namedResources": Field(_SLICE, "namedResources", {"instances": [{"name": "gpu-0"}]}, []),
    "NamedResourcesResources.instances": Field(_SLICE, "namedResources.instances", [{"name": "gpu-0"}], {}),
    "NamedResourcesInstance.name": Field(_SLICE, f"{_INSTANCE}.name", "gpu-0", 0),
    "NamedResourcesInstance.attributes": Field(_SLICE, f"{_INSTANCE}.attributes", [{"name": "ecc", "bool": True}], {}),
    "NamedResourcesAttribute.name": Field(_SLICE, f"{_OLD_ATTRIBUTE}.name", "UUID", 1),
    "NamedResourcesAttribute.quantity": Field(_SLICE, f"{_OLD_ATTRIBUTE}.quantity", "16Gi", "much"),
    "NamedResourcesAttribute.bool": Field(_SLICE, f"{_OLD_ATTRIBUTE}.bool", False, "false"),
    "NamedResourcesAttribute.int": Field(_SLICE, f"{_OLD_ATTRIBUTE}.int", -(2**63), "1"),
    "NamedResourcesAttribute.intSlice": Field(_SLICE, f"{_OLD_ATTRIBUTE}.intSlice", {"ints": [1]}, [1]),
    "NamedResourcesAttribute.string": Field(_SLICE, f"{_OLD_ATTRIBUTE}.string", "", 1),
    "NamedResourcesAttribute.stringSlice": Field(_SLICE, f"{_OLD_ATTRIBUTE}.stringSlice", {"strings": ["a"]}, ["a"]),
    "NamedResourcesAttribute.version": Field(_SLICE, f"{_OLD_ATTRIBUTE}.version", "1.2.3", 1),
    "NamedResourcesIntSlice.ints": Field(_SLICE, f"{_OLD_ATTRIBUTE}.intSlice.ints", [1, 2], 1),
    "NamedResourcesStringSlice.strings": Field(_SLICE, f"{_OLD_ATTRIBUTE}.stringSlice.strings", ["a"], "a"),
}
FIELDS = [pytest.param(field, id=name) for name, field in CASES.items()]


def document(field: Field, value: Any) -> dict[str, Any]:
    """An object of the field's kind in which nothing is set but the field."""
    content: Any = value
    for part in reversed(field.path.split(".")):
        name, _, index = part.partition("[")
        content = {name: [content] if index else content}
    head = {"apiVersion": "resource.k8s.io/v1alpha2", "kind": field.kind, "metadata": {"name": "o"}}
    return {**head, **content}


def at(found: Any, path: str) -> Any:
    for part in path.split("."):
        name, _, index = part.partition("[")
        found = found[name][0] if index else found[name]
    return found


@pytest.mark.parametrize("field", FIELDS)
def test_it_is_read_and_written_back(field: Field) -> None:
    given = document(field, field.value)
    assert codec.unknown_fields(given) == ()
    assert at(codec.encode(codec.decode(given)), field.path) == field.value


@pytest.mark.parametrize(
    "field", [pytest.param(field, id=name) for name, field in CASES.items() if field.wrong is not ANYTHING]
)
def test_it_refuses_what_is_not_of_its_type(field: Field) -> None:
    with pytest.raises(errors.DecodeError) as refusal:
        codec.decode(document(field, field.wrong))
    assert f"{field.kind} o: {field.path}: " in str(refusal.value)


def test_every_field_has_a_case() -> None:
    names = {
        f"{shape.__name__}.{field.encode_name}"
        for shape in shapes()
        for field in msgspec.structs.fields(shape)
        if not (shape in KINDS and field.name == "metadata")
    }
    assert names - CASES.keys() == set(), "fields without a case"
    assert CASES.keys() - names == set(), "cases of fields that are not there"


def shapes() -> set[type[msgspec.Struct]]:
    """All structs of the package that objects of its kinds are made of."""
    result: set[type[msgspec.Struct]] = set()

    def visit(part: Any) -> None:
        if isinstance(part, type) and issubclass(part, msgspec.Struct):
            if part in result or not part.__module__.startswith(PACKAGE):
                return
            result.add(part)
            for field in msgspec.structs.fields(part):
                visit(field.type)
        for inner in typing.get_args(part):
            visit(inner)

    for kind in KINDS:
        visit(kind)
    return result
