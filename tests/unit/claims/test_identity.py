"""Identities, and their form in messages."""

from drachma.api import meta, resourceclaim
from drachma.claims import identity
from drachma.testing import claim

_RESULT = resourceclaim.DeviceRequestAllocationResult(driver="d", pool="p", device="a", share_id="s")


def test_a_device_is_known_by_driver_pool_and_name() -> None:
    device = identity.device_of(_RESULT)
    assert device == identity.DeviceID("d", "p", "a")
    assert (str(device), str(device.pool_id)) == ("d/p/a", "d/p")


def test_a_result_and_a_status_of_one_share_are_of_one_identity() -> None:
    status = resourceclaim.AllocatedDeviceStatus(driver="d", pool="p", device="a", share_id="s")
    assert identity.share_of(_RESULT) == identity.share_of(status) == identity.SharedDeviceID("d", "p", "a", "s")


def test_a_device_that_is_not_shared_has_an_empty_share() -> None:
    whole = resourceclaim.AllocatedDeviceStatus(driver="d", pool="p", device="a")
    assert identity.share_of(whole).share_id == ""


def test_pools_of_an_allocation() -> None:
    allocated = claim("c").allocated(("r", "d", "p", "x"), ("r", "d", "p", "y"), ("r", "d", "q", "x")).build()
    assert identity.pools_of(allocated.status.allocation) == {identity.PoolID("d", "p"), identity.PoolID("d", "q")}
    assert identity.pools_of(None) == set()


def test_labels() -> None:
    assert identity.label(meta.ObjectMeta(namespace="n", name="x")) == "n/x"
    assert identity.label(meta.ObjectMeta(name="x")) == "x"
