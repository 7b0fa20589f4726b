"""Rules of v1alpha2 for the status of claims: what may become of it, and what is refused in which words."""

from typing import Any

import pytest
from msgspec import structs

from drachma.validation import writes
from tests.unit.validation.test_authorization import FakeAuthorizer
from tests.unit.validation.v1alpha2.objects import ALLOCATION, CONSUMER, CONTEXT, DRIVER, GOOD, read

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
            (
                "status.allocation: Invalid value: "
                '{"ResourceHandles":[{"DriverName":"cards.dra.example.com","Data":"","StructuredData":{"VendorClass'
                'Parameters":{"a":1},"VendorClaimParameters":{"b":2},"NodeName":"worker-1","NamedResourcesWithAttri'
                'butes":{"Resources":["gpu-1"]},"Results":null}}],"AvailableOnNodes":{"NodeSelectorTerms":[{"MatchE'
                'xpressions":null,"MatchFields":[{"Key":"metadata.name","Operator":"In","Values":["worker-1"]}]}]},'
                '"Shareable":false}: field is immutable'
            ),
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
            (
                "status.allocation.resourceHandles[0].structuredData.namedResourcesWithAttributes.resources[0]: "
                'Invalid value: "a/B": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric '
                "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
                "'example.com', regex used for validation is "
                "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ),
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
    assert want in found


def test_status_and_spec_are_written_apart() -> None:
    made = writes.create(claim(STATUS), CONTEXT).object
    assert made.status.allocation is None
    stated = read("ResourceClaim", {"spec": {"resourceClassName": "other"}, "status": STATUS})
    kept = writes.update_status(stated, claim({}), CONTEXT).object
    assert kept.spec.resource_class_name == "cards"
    assert writes.update(claim({}), claim(STATUS), CONTEXT).object.status.allocation is not None


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(STATUS, id="allocate"),
        pytest.param({**STATUS, "reservedFor": [CONSUMER]}, id="reserve"),
    ],
)
def test_an_allocation_takes_the_permission_that_it_takes_in_v1(after: dict[str, Any]) -> None:
    context = structs.replace(CONTEXT, authorizer=FakeAuthorizer())
    (error,) = writes.update_status(claim(after), claim({}), context).errors
    assert str(error) == (
        "status.allocation: Forbidden: changing status.allocation or status.reservedFor requires "
        'resource="resourceclaims/binding", verb="update" permission: no'
    )
    allowed = structs.replace(CONTEXT, authorizer=FakeAuthorizer(("update", "binding")))
    assert writes.update_status(claim(after), claim({}), allowed).errors == ()
