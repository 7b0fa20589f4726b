"""Kueue's recorded counting of devices."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import pytest

from drachma.api import codec, deviceclass, hooks, meta, resourceclaim, resourceslice
from drachma.queueing.configuration import configuration
from drachma.queueing.devices import charges as devicecharges
from drachma.queueing.devices import counting as devicecounting
from drachma.queueing.devices import extendedresources
from drachma.queueing.devices import mappings as devicemappings
from drachma.queueing.devices import objects as deviceobjects
from drachma.queueing.devices import requests as devicerequests
from drachma.queueing.devices import selectors as deviceselectors
from drachma.queueing.workloads import requests
from drachma.validation.path import Path
from drachma.values import quantity
from tests.conformance import kueueforms, vectors

_ResultT = TypeVar("_ResultT")


@vectors.each("kueue-dra-random")
def test_kueue_dra_random(case: vectors.Line) -> None:
    gates = kueueforms.switched(case)
    workload = kueueforms.read_workload(case["input"]["workload"])
    answer = case["answer"]

    counted = devicerequests.count(workload, _objects(case), _mappings(case), gates=gates)

    if isinstance(counted, devicerequests.Refusal):
        assert counted.stage == answer.get("stage")
        assert kueueforms.errors(counted.problems) == kueueforms.recorded_errors(answer.get("errors"))
        assert counted.is_retried == answer["retry"]
        if "CEL" not in counted.message:
            assert counted.message == answer["message"]
        return
    assert kueueforms.texts(counted.charges) == answer.get("perPodRequests")
    assert {name: sorted(of) for name, of in counted.replaced.items()} == answer.get("replacedExtendedResources", {})
    total = requests.total(workload, counting=requests.Counting(gates=gates), devices=counted)
    assert {each.name: {"count": each.count, "requests": dict(each.requests)} for each in total} == answer[
        "totalRequests"
    ]


@vectors.each("kueue-dra")
def test_kueue_dra(case: vectors.Line) -> None:
    _REPLAYS[case["kind"]](case)


def _mappings(case: vectors.Line) -> devicemappings.DeviceMappings:
    mappings = kueueforms.read_mappings(case["input"].get("deviceClassMappings", []))
    return devicemappings.DeviceMappings.of(mappings)


def _objects(case: vectors.Line) -> deviceobjects.DeviceObjects:
    documents = [*case["input"].get("objects", []), *case["input"].get("deviceClasses", [])]
    return deviceobjects.DeviceObjects.of(kueueforms.read_objects(documents))


def _claims(case: vectors.Line) -> None:
    workload = kueueforms.read_workload(case["input"]["workload"])
    charges = _attempt(
        lambda: devicecounting.per_pod(workload, _objects(case), _mappings(case), gates=kueueforms.switched(case))
    )
    if isinstance(charges, deviceselectors.Problem):
        assert kueueforms.errors(charges.problems) == kueueforms.recorded_errors(case["answer"].get("errors"))
    else:
        assert kueueforms.texts(charges) == case["answer"].get("perPodRequests", {})


def _attempt(call: Callable[[], _ResultT]) -> _ResultT | deviceselectors.Problem:
    try:
        return call()
    except deviceselectors.Problem as problem:
        return problem


def _count(case: vectors.Line) -> None:
    spec = msgspec.convert(case["input"]["spec"], resourceclaim.ResourceClaimSpec, dec_hook=hooks.decode)

    assert devicecounting.count(spec) == case["answer"]["counts"]


def _devices(case: vectors.Line) -> list[resourceslice.Device]:
    documents = case["input"].get("matchedDevices", [])
    return [msgspec.convert(each, resourceslice.Device, dec_hook=hooks.decode) for each in documents]


def _counters(case: vectors.Line) -> None:
    recorded = case["input"]
    source = configuration.CounterSource(name=recorded["counter"]["name"], driver=recorded["counter"]["driver"])
    charge = devicemappings.CounterCharge(recorded["resource"], source)

    amount = devicecharges.counter_charge(charge, _devices(case), recorded["count"])

    charges = {} if amount is None else {charge.resource: str(amount)}
    assert charges == (case["answer"].get("charges") or {})


def _capacity(case: vectors.Line) -> None:
    recorded = case["input"]
    source = configuration.CapacitySource(name=recorded["capacityName"], driver=recorded["driver"])
    text = recorded.get("explicitRequest")
    explicit = quantity.Quantity.parse(text) if text else None
    amount = _attempt(
        lambda: devicecharges.capacity_charge(
            source, _devices(case), recorded["count"], explicit=explicit, at=Path("test")
        )
    )
    if isinstance(amount, deviceselectors.Problem):
        assert kueueforms.errors(amount.problems) == kueueforms.recorded_errors(case["answer"].get("errors"))
    else:
        assert str(amount) == case["answer"]["charge"]


def _round(case: vectors.Line) -> None:
    recorded = dict(case["input"])
    value = quantity.Quantity.parse(recorded.pop("value"))
    policy: dict[str, Any]
    if recorded.pop("policy") == "validRange":
        policy = {"validRange": {name: text for name, text in recorded.items() if text}}
    else:
        policy = {"validValues": recorded["validValues"]}
    policy_view = msgspec.convert(policy, resourceslice.CapacityRequestPolicy, dec_hook=hooks.decode)
    if "error" in case["answer"]:
        with pytest.raises(ValueError, match="exceeds") as refusal:
            devicecharges.rounded(value, policy_view)
        assert str(refusal.value) == case["answer"]["error"]
    else:
        assert str(devicecharges.rounded(value, policy_view)) == case["answer"]["value"]


def _pools(case: vectors.Line) -> None:
    slices = [codec.decode(each) for each in case["input"].get("slices", [])]
    driver = case["input"]["driver"]
    published = [
        each for each in slices if isinstance(each, resourceslice.ResourceSlice) and each.spec.driver == driver
    ]

    pools = deviceobjects.pools(published)

    assert {
        name: {"complete": pool.is_complete, "generation": pool.generation, "slices": len(pool.slices)}
        for name, pool in pools.items()
    } == (case["answer"].get("pools") or {})


def _extended(case: vectors.Line) -> None:
    workload = kueueforms.read_workload(case["input"]["workload"])
    gates = kueueforms.switched(case)
    replacement = _attempt(lambda: extendedresources.replace(workload, _objects(case), _mappings(case), gates=gates))
    if isinstance(replacement, deviceselectors.Problem):
        assert kueueforms.errors(replacement.problems) == kueueforms.recorded_errors(case["answer"].get("errors"))
        return
    assert kueueforms.texts(replacement.charges) == case["answer"].get("perPodRequests", {})
    replaced = {name: sorted(of) for name, of in replacement.replaced.items()}
    assert replaced == case["answer"].get("replacedExtendedResources", {})


def _select_class(case: vectors.Line) -> None:
    classes = [codec.decode(each) for each in case["input"]["deviceClasses"]]
    rivals = [each for each in classes if isinstance(each, deviceclass.DeviceClass)]

    assert deviceobjects.select_class(rivals).metadata.name == case["answer"]["selected"]


def _extended_name(case: vectors.Line) -> None:
    assert extendedresources.is_extended(case["input"]["resource"]) == case["answer"]["isExtended"]


def _needs(case: vectors.Line) -> None:
    workload = kueueforms.read_workload(case["input"]["workload"])
    classes = [
        deviceclass.DeviceClass(
            metadata=meta.ObjectMeta(name=name),
            spec=deviceclass.DeviceClassSpec(extended_resource_name=resource),
        )
        for resource, name in case["input"].get("extendedResources", {}).items()
    ]
    objects = deviceobjects.DeviceObjects.of(classes)

    needs = devicerequests.are_needed(workload, objects, gates=kueueforms.switched(case))

    assert needs == case["answer"]["needsDRA"]


def _mapper(case: vectors.Line) -> None:
    mappings = _mappings(case)
    for name, lookup in case["answer"]["lookups"].items():
        assert mappings.resources.get(name, "") == lookup["resource"]
        assert (name in mappings.resources) == lookup["found"]


_REPLAYS = {
    "claims": _claims,
    "count": _count,
    "counters": _counters,
    "capacity": _capacity,
    "round": _round,
    "pools": _pools,
    "extended": _extended,
    "selectclass": _select_class,
    "extname": _extended_name,
    "needs": _needs,
    "mapper": _mapper,
}
