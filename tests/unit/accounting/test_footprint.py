"""Effects of allocated devices on a node's own resources."""

from collections.abc import Mapping
from typing import Any

import pytest

from drachma import errors
from drachma.accounting import footprint, policies
from drachma.api import nodeallocatable, resourceclaim, resourceslice
from drachma.testing import pod as a_pod
from drachma.values import quantity


def amount(text: str) -> quantity.Quantity:
    return quantity.Quantity.parse(text)


def device(**resources: nodeallocatable.NodeAllocatableResource) -> resourceslice.Device:
    return resourceslice.Device(name="a", node_allocatable_resources=resources)


def per_unit(key: str, multiplier: str | None = None) -> nodeallocatable.NodeAllocatableResource:
    mapping = nodeallocatable.NodeAllocatableMapping(
        capacity_key=key, capacity_multiplier=None if multiplier is None else amount(multiplier)
    )
    return nodeallocatable.NodeAllocatableResource(mapping=mapping)


def per_device(text: str, **fields: Any) -> nodeallocatable.NodeAllocatableResource:
    mapping = nodeallocatable.NodeAllocatableMapping(device_multiplier=amount(text))
    return nodeallocatable.NodeAllocatableResource(mapping=mapping, **fields)


def overhead(pod: str | None, container: str | None) -> nodeallocatable.NodeAllocatableResource:
    return nodeallocatable.NodeAllocatableResource(
        overhead=nodeallocatable.NodeAllocatableOverhead(
            per_pod=None if pod is None else amount(pod), per_container=None if container is None else amount(container)
        )
    )


def allocation(devices: int = 1, consumed: Mapping[str, str] | None = None) -> resourceclaim.AllocationResult:
    result = resourceclaim.DeviceRequestAllocationResult(
        request="r",
        driver="d",
        pool="p",
        device="a",
        consumed_capacity={key: amount(text) for key, text in (consumed or {}).items()},
    )
    results = resourceclaim.DeviceAllocationResult(results=(result,) * devices)
    return resourceclaim.AllocationResult(devices=results)


@pytest.mark.parametrize(
    ("published", "allocated", "want"),
    [
        pytest.param(device(), allocation(), footprint.NOTHING, id="nothing"),
        pytest.param(
            device(cpu=per_device("2")), allocation(3), footprint.Footprint((("cpu", amount("6")),)), id="per-device"
        ),
        pytest.param(
            device(memory=per_unit("bytes")),
            allocation(consumed={"bytes": "3Gi"}),
            footprint.Footprint((("memory", amount("3Gi")),)),
            id="per-unit-of-a-capacity",
        ),
        pytest.param(
            device(cpu=per_unit("cores", "1500m")),
            allocation(consumed={"cores": "3"}),
            footprint.Footprint((("cpu", amount("4500m")),)),
            id="multiplied",
        ),
        pytest.param(
            device(memory=per_unit("bytes")),
            allocation(consumed={"other": "3Gi"}),
            footprint.NOTHING,
            id="a-capacity-that-was-not-consumed",
        ),
        pytest.param(
            device(cpu=overhead("1", None), memory=overhead("1Gi", "2Gi")),
            allocation(2),
            footprint.Footprint((), (("cpu", (amount("2"), None)), ("memory", (amount("2Gi"), amount("4Gi"))))),
            id="overhead",
        ),
        pytest.param(device(cpu=overhead(None, None)), allocation(), footprint.NOTHING, id="overhead-of-nothing"),
    ],
)
def test_what_an_allocation_means(
    published: resourceslice.Device, allocated: resourceclaim.AllocationResult, want: footprint.Footprint
) -> None:
    assert footprint.of(allocated, lambda _: published, claim="default/c") == want


def test_devices_that_are_not_published_any_more_mean_nothing() -> None:
    assert footprint.of(allocation(), lambda _: None, claim="default/c") == footprint.NOTHING
    assert not footprint.has_mapping(allocation(), lambda _: None)


def test_a_mapped_capacity_must_have_been_consumed() -> None:
    published = device(memory=per_unit("bytes"))
    with pytest.raises(errors.AllocationError) as caught:
        footprint.of(allocation(), lambda _: published, claim="default/c")
    want = (
        "claim default/c, device a: ConsumedCapacity is nil, but Capacity key 'bytes' is set in "
        "NodeAllocatableResources for resource memory"
    )
    assert str(caught.value) == want


@pytest.mark.parametrize(
    ("published", "want"),
    [
        pytest.param(device(cpu=per_device("1")), True, id="is-such-a-resource"),
        pytest.param(device(cpu=overhead("1", None)), False, id="only-needs-some"),
    ],
)
def test_has_mapping(published: resourceslice.Device, want: bool) -> None:
    assert footprint.has_mapping(allocation(), lambda _: published) is want


@pytest.mark.parametrize(
    ("product", "want"),
    [
        pytest.param(("2", "1"), "2", id="by-one"),
        pytest.param(("1Gi", "2"), "2Gi", id="keeps-the-format"),
        pytest.param(("1", "1n"), "1n", id="a-billionth"),
        pytest.param(("1m", "1m"), "1u", id="below-a-thousandth"),
        pytest.param(("1n", "100m"), "1n", id="rounded-up"),
    ],
)
def test_products_are_exact_or_rounded_up(product: tuple[str, str], want: str) -> None:
    assert str(footprint.product(amount(product[0]), amount(product[1]))) == want


def test_shares_have_the_policy_that_is_looked_up() -> None:
    published = device(cpu=per_device("2", accounting_policy="Max"))
    shares = footprint.of(
        allocation(2),
        lambda _: published,
        claim="default/c",
        policy_of=lambda result, resource, stated: policies.policy(stated, None, subject=f"{result.device} {resource}"),
    )
    assert shares.shares == (("d", "cpu", policies.Policy.MAX, amount("4")),)


def test_a_mapping_without_a_policy_is_a_problem() -> None:
    published = device(cpu=per_device("2"))
    meant = footprint.of(allocation(), lambda _: published, claim="default/c", policy_of=lambda *_: "no policy")
    assert (meant.problem, meant.shares) == ("claim default/c, no policy", ())


def test_statuses_name_the_containers_that_use_a_claim() -> None:
    user = a_pod("p").claim("x", claim="c").container("a", claims=("x",)).container("b").build()
    mark = footprint.Footprint((("cpu", amount("2")),))
    statuses = footprint.statuses(user, {"c": ("x", mark), "d": ("y", footprint.NOTHING), "e": ("", mark)})
    assert [(each.resource_claim_name, tuple(each.containers)) for each in statuses] == [("c", ("a",)), ("e", ())]
    assert statuses[0].mapped() == {"cpu": amount("2")}
