"""The accountant: effects of claims on a pod and its node, with and without accounting policies."""

from typing import Any

import pytest
from msgspec import structs

from drachma.accounting import accountant, ledger, policies
from drachma.api import deviceclass, gates, nodeallocatable, pod, resourceclaim, resourceslice
from drachma.testing import claim, device_class
from drachma.testing import pod as a_pod
from drachma.values import quantity

WITHOUT_POLICIES = gates.ALL.switched({gates.Gate.ACCOUNTING_POLICIES: False})
WITH_POLICIES = gates.ALL.switched({gates.Gate.ACCOUNTING_POLICIES: True})
OFF = gates.ALL.switched({gates.Gate.NODE_ALLOCATABLE_RESOURCES: False})


def amount(text: str) -> quantity.Quantity:
    return quantity.Quantity.parse(text)


def published(policy: str | None = None) -> resourceslice.Device:
    """Return a device that is four CPUs."""
    mapping = nodeallocatable.NodeAllocatableMapping(device_multiplier=amount("4"))
    resource = nodeallocatable.NodeAllocatableResource(mapping=mapping, accounting_policy=policy)
    return resourceslice.Device(name="dev", node_allocatable_resources={"cpu": resource})


RESULT = resourceclaim.DeviceRequestAllocationResult(request="r", driver="d", pool="p", device="dev")
ALLOCATION = resourceclaim.AllocationResult(devices=resourceclaim.DeviceAllocationResult(results=(RESULT,)))


def allocated(name: str = "c") -> resourceclaim.ResourceClaim:
    made = claim(name).request("r", device_class="cpus").build()
    return structs.replace(made, status=structs.replace(made.status, allocation=ALLOCATION))


class Inventory:
    """Lookup of devices, classes and claims."""

    def __init__(self, *, device: resourceslice.Device | None, class_policy: str | None = None) -> None:
        self._device = device
        self._class = device_class("cpus").build()
        if class_policy is not None:
            spec = structs.replace(
                self._class.spec, node_allocatable_resource_accounting_policies={"cpu": class_policy}
            )
            self._class = structs.replace(self._class, spec=spec)
        self._claims = {"c": allocated()}

    @property
    def classes(self) -> "_Classes":
        return _Classes(self._class)

    @property
    def claims(self) -> "_Claims":
        return _Claims(self._claims)

    def find(self, result: resourceclaim.DeviceRequestAllocationResult) -> resourceslice.Device | None:
        return self._device if result.device == "dev" else None


class _Classes:
    def __init__(self, only: deviceclass.DeviceClass) -> None:
        self._only = only

    def get(self, name: str) -> deviceclass.DeviceClass | None:
        return self._only if name == "cpus" else None


class _Claims:
    def __init__(self, by_name: dict[str, resourceclaim.ResourceClaim]) -> None:
        self._by_name = by_name

    def get(self, namespace: str, name: str) -> resourceclaim.ResourceClaim | None:
        return self._by_name.get(name)


def user(**requests: str) -> pod.Pod:
    """Return a pod with two containers that use the claim."""
    built = a_pod("p").claim("x", claim="c").container("a", requests=requests, claims=("x",))
    return built.container("b", claims=("x",)).build()


def books(enabled: gates.Gates = WITH_POLICIES, **inventory: Any) -> accountant.Accountant:
    return accountant.Accountant(Inventory(**{"device": published(), **inventory}), enabled)


def account(subject: accountant.Accountant, of: pod.Pod) -> accountant.Account:
    return subject.account(of, {"c": ("x", subject.claim_footprint(allocated(), ALLOCATION))})


def cpus(found: accountant.Account) -> dict[str, str]:
    """Return the additions of claims in the pod's status."""
    return {each.resource_claim_name: str(each.mapped().get("cpu", "")) for each in found.statuses}


def test_without_policies_a_claim_counts_once() -> None:
    settled = account(books(WITHOUT_POLICIES), user(cpu="1"))
    assert (cpus(settled), settled.settled, settled.problem) == ({"c": "4"}, None, "")


@pytest.mark.parametrize(
    ("policy", "want"),
    [
        pytest.param("AddPerClaim", {"c": "4"}, id="once"),
        pytest.param("AddPerReference", {"c": "8"}, id="for-each-container"),
        pytest.param("Max", {"c": "7"}, id="where-it-is-larger-than-the-request"),
        pytest.param("ConsumeFrom", {}, id="not-out-of-a-pool"),
    ],
)
@pytest.mark.parametrize("stated_by", ["device", "class"])
def test_policies(policy: str, want: dict[str, str], stated_by: str) -> None:
    subject = books(device=published(policy)) if stated_by == "device" else books(class_policy=policy)
    assert cpus(account(subject, user(cpu="1"))) == want


def test_pools_are_named_by_namespace() -> None:
    settled = account(books(device=published("ConsumeFrom")), user(cpu="1")).settled
    assert settled is not None
    assert settled.pools == (policies.PoolUse("default/c", held=(("cpu", 4000),), taken=(("cpu", 1000),)),)


def test_a_device_without_a_policy_cannot_be_accounted_for() -> None:
    found = account(books(), user())
    assert found.problem == (
        "claim default/c, device dev, resource cpu: neither the device nor its class has an accounting policy"
    )
    assert found.statuses == ()


@pytest.mark.parametrize(
    ("subject", "want"),
    [
        pytest.param(books(device=published("ConsumeFrom")), True, id="out-of-a-pool"),
        pytest.param(books(device=published("AddPerClaim")), True, id="added-once"),
        pytest.param(books(device=published("AddPerReference")), True, id="added-for-each-container"),
        pytest.param(books(device=published("Max")), False, id="larger-than-the-request"),
        pytest.param(books(WITHOUT_POLICIES, device=published("ConsumeFrom")), False, id="without-policies"),
        pytest.param(books(device=resourceslice.Device(name="dev")), False, id="no-resource-of-the-node"),
    ],
)
def test_claims_that_several_pods_may_use(subject: accountant.Accountant, want: bool) -> None:
    assert subject.may_be_shared(allocated(), ALLOCATION) is want


def bound() -> pod.Pod:
    """Return the pod on a node, with its status about claims."""
    made = user(cpu="1")
    statuses = account(books(WITHOUT_POLICIES), made).statuses
    return structs.replace(made, status=structs.replace(made.status, node_allocatable_resource_claim_statuses=statuses))


@pytest.mark.parametrize(
    ("subject", "want_cpu"),
    [
        pytest.param(books(WITHOUT_POLICIES), 5000, id="with-what-the-status-says"),
        pytest.param(books(OFF), 1000, id="the-feature-is-off"),
    ],
)
def test_what_a_pod_on_a_node_takes(subject: accountant.Accountant, want_cpu: int) -> None:
    assert dict(subject.demand(bound()).amounts)["cpu"] == want_cpu


def test_policies_of_pods_on_nodes_are_looked_up_again() -> None:
    """A pool is not stored in the API: after a restart it follows from the pod's claims."""
    demand = books(device=published("ConsumeFrom")).demand(user(cpu="1"))
    assert demand == ledger.demand(
        user(cpu="1"), settled=account(books(device=published("ConsumeFrom")), user(cpu="1")).settled
    )
    assert [use.claim for use in demand.pools] == ["default/c"]


def test_a_pod_whose_claim_is_gone_takes_what_it_requests() -> None:
    lost = a_pod("p").claim("x", claim="gone").container("a", requests={"cpu": "1"}, claims=("x",)).build()
    assert dict(books().demand(lost).amounts) == {"cpu": 1000}


def test_pods_with_equal_containers_have_one_demand() -> None:
    subject = accountant.Accountant(Inventory(device=published()), WITHOUT_POLICIES)
    first, second = (a_pod(name).container("c", requests={"cpu": "1"}).build() for name in ("a", "b"))
    larger = a_pod("c").container("c", requests={"cpu": "2"}).build()
    assert subject.demand(first) is subject.demand(second)
    assert subject.demand(larger) == ledger.demand(larger)
    assert subject.demand(first) == ledger.demand(first)
