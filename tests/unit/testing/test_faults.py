"""Devices that go wrong in a cluster under test, and what becomes of the pods that want them."""

import pytest

from drachma import errors, testing
from drachma.testing.faults import DeviceFaults
from tests.unit.testing.test_clusters import _wants


async def test_a_device_that_is_gone_is_given_to_nobody() -> None:
    async with testing.cluster() as c:
        fault = DeviceFaults(c, "gpu-0", node="node-0")
        await fault.vanish()
        await c.apply(_wants(1))
        assert (await c.pod("train").running()).devices == ("gpu.simulation.drachma.dev/node-0/gpu-1",)
        await fault.reappear()
        with pytest.raises(errors.InvalidValueError, match="has not vanished"):
            await fault.reappear()


async def test_a_pod_has_to_leave_a_device_that_falls_ill() -> None:
    async with testing.cluster() as c:
        await c.apply(_wants(1))
        await c.pod("train").running()
        await DeviceFaults(c, "gpu-0", node="node-0").fall_ill()
        await c.pod("train").gone()


async def test_a_device_that_flaps_ends_well() -> None:
    async with testing.cluster() as c:
        await DeviceFaults(c, "gpu-0", node="node-0").flap(3)
        await c.apply(_wants(8))
        assert len((await c.pod("train").running()).devices) == 8


async def test_a_device_that_is_not_there() -> None:
    async with testing.cluster() as c:
        with pytest.raises(errors.InvalidValueError, match="device 'gpu-99' on node-0: there is none"):
            await DeviceFaults(c, "gpu-99", node="node-0").vanish()
