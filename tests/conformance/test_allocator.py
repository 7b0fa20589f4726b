"""The allocator gives the answers of kube-scheduler's allocator, case by case, down to error messages."""

from __future__ import annotations

from typing import Any

import pytest

from drachma import allocator, errors
from drachma.allocator import allocated, selectors
from drachma.api import codec, deviceclass, meta, resourceclaim, resourceslice
from drachma.values import quantity
from tests.conformance import vectors

_SHARE_ID = "any"
_NAMED = vectors.lines("allocator.jsonl")
_RANDOM = vectors.lines("allocator-random.jsonl")
_BATCH = 100


def _decode(kind: str, documents: list[dict[str, Any]] | None) -> list[meta.Object]:
    return [codec.decode({"apiVersion": "resource.k8s.io/v1", "kind": kind, **entry}) for entry in documents or []]


def _of_test_lister(_name: str) -> str:
    # What the lister says that the cases were recorded with.
    return ' "not found" not found'


def _state(case: dict[str, Any], features: allocator.Features) -> allocator.AllocatedState:
    state = allocator.AllocatedState(consumable_capacity=features.consumable_capacity)
    for entry in case.get("allocatedDevices") or []:
        state.hold(allocated.Holding(allocator.DeviceID(**entry)))
    for text in case.get("allocatedSharedDeviceIDs") or []:
        driver, pool, device, share = text.split("/")
        state.hold(allocated.Holding(allocator.DeviceID(driver, pool, device), share))
    for entry in case.get("allocatedCapacity") or []:
        consumed = {name: quantity.Quantity.parse(amount) for name, amount in entry["consumed"].items()}
        device = allocator.DeviceID(entry["driver"], entry["pool"], entry["device"])
        state.hold(allocated.Holding(device, consumed=consumed))
    return state


def answer(case: dict[str, Any]) -> dict[str, Any]:
    """The answer to a case, in the form in which it was recorded."""
    features = allocator.Features.of_gates(case["features"])
    slices = [
        entry
        for entry in _decode("ResourceSlice", case.get("slices"))
        if isinstance(entry, resourceslice.ResourceSlice)
    ]
    classes = [
        entry for entry in _decode("DeviceClass", case.get("classes")) if isinstance(entry, deviceclass.DeviceClass)
    ]
    claims = [
        entry
        for entry in _decode("ResourceClaim", case.get("claims"))
        if isinstance(entry, resourceclaim.ResourceClaim)
    ]
    node = case["node"]
    built = allocator.Allocator(
        allocator.Catalog(slices),
        classes=allocator.Classes(classes, missing=_of_test_lister),
        allocated=_state(case, features),
        compiler=selectors.SelectorCompiler(features),
        features=features,
        share_ids=lambda: _SHARE_ID,
    )
    target = allocator.Node(
        node["metadata"]["name"],
        node["metadata"].get("labels", {}),
        tuple(node.get("status", {}).get("declaredFeatures", ())),
    )
    try:
        outcome = built.allocate(target, claims)
    except errors.AllocationError as error:
        return {"error": str(error)}
    match outcome:
        case allocator.Allocated(results):
            return {"results": [_plain(entry) for entry in results]}
        case allocator.DoesNotFit():
            return {}
        case allocator.GaveUp(reason):
            return {"gaveUp": reason}


def _plain(result: resourceclaim.AllocationResult) -> dict[str, Any]:
    carrier = resourceclaim.ResourceClaim(status=resourceclaim.ResourceClaimStatus(allocation=result))
    found: dict[str, Any] = codec.encode(carrier)["status"]["allocation"]
    return found


def _recorded(case: dict[str, Any]) -> dict[str, Any]:
    recorded: dict[str, Any] = {key: case[key] for key in ("results", "error") if key in case}
    for result in recorded.get("results", ()):
        for device in result["devices"].get("results", ()):
            if "shareID" in device:
                device["shareID"] = _SHARE_ID
    return recorded


def _restore(case: dict[str, Any]) -> dict[str, Any]:
    """Put back what recording lost: JSON leaves an empty list out, and the case is about one."""
    if case["name"] == "list-attributes-distinct-constaint-with-empty-or-unknown-type":
        case["slices"][0]["spec"]["devices"][0]["attributes"]["driverVersion"]["versions"] = []
    return case


@pytest.mark.parametrize("case", [pytest.param(_restore(case), id=case["name"]) for case in _NAMED])
def test_named_case(case: dict[str, Any]) -> None:
    assert answer(case) == _recorded(case)


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(_RANDOM[start : start + _BATCH], id=f"{_RANDOM[start]['name']}-and-following")
        for start in range(0, len(_RANDOM), _BATCH)
    ],
)
def test_random_cases(cases: list[dict[str, Any]]) -> None:
    different = {case["name"]: (answer(case), _recorded(case)) for case in cases if answer(case) != _recorded(case)}
    assert different == {}
