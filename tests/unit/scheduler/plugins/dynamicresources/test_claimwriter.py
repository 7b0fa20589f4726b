"""Writes of claims whose answer is lost, or that the server stores only in part."""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from drachma import errors
from drachma.api import resourceclaim
from drachma.claims import wellknown
from drachma.client import patches
from drachma.scheduler.plugins.dynamicresources import claimwriter
from drachma.testing import claim, pod
from drachma.testing.manualclock import ManualClock
from drachma.values import quantity

Claim = resourceclaim.ResourceClaim

ALLOCATION = resourceclaim.AllocationResult(
    devices=resourceclaim.DeviceAllocationResult(
        results=(resourceclaim.DeviceRequestAllocationResult(request="r", driver="d", pool="n", device="gpu-0"),)
    )
)
CONSUMER = pod("p").uid("pod-uid").build()


class _Server:
    """Server that performs some writes without an answer, and cannot be read for a while after that."""

    def __init__(self, *failures: tuple[Exception, bool]) -> None:
        built = claim("c").uid("claim-uid").request("r", device_class="x").build()
        metadata = structs.replace(built.metadata, finalizers=(wellknown.CLAIM_FINALIZER,), resource_version="1")
        self.stored: Claim = structs.replace(built, metadata=metadata)
        self.writes = self.reads = 0
        self._failures = list(failures)
        self._unreadable = 0

    async def get(self, *_: Any, **__: Any) -> Claim:
        self.reads += 1
        if self._unreadable:
            self._unreadable -= 1
            raise errors.UnreachableError("no connection")
        return self.stored

    async def patch(self, *_: Any, **__: Any) -> Claim:
        failure, is_done = self._failures.pop(0) if self._failures else (None, True)
        if is_done:
            self.writes += 1
            self._write()
        if failure is not None:
            self._unreadable = 2
            raise failure
        return self.stored

    def _write(self) -> None:
        consumer = resourceclaim.ResourceClaimConsumerReference(resource="pods", name="p", uid="pod-uid")
        status = structs.replace(self.stored.status, allocation=ALLOCATION, reserved_for=(consumer,))
        metadata = structs.replace(self.stored.metadata, resource_version=str(self.writes + 1))
        self.stored = structs.replace(self.stored, metadata=metadata, status=status)


class _QuickClock(ManualClock):
    """Clock on which all waiting ends at once."""

    async def sleep(self, seconds: float) -> None:
        del seconds


async def _reserve(server: _Server) -> Claim:
    client: Any = server
    writer = claimwriter.ClaimWriter(client, clock=_QuickClock(), rng=random.Random(1), with_timestamps=False)
    return await writer.reserve(server.stored, CONSUMER, allocation=ALLOCATION)


UNANSWERED: list[Any] = [
    pytest.param(lambda: errors.UnreachableError("broken off"), id="connection-broken-off"),
    pytest.param(lambda: errors.ServerFaultError({"message": "timed out", "code": 504}), id="server-timed-out"),
]


@pytest.mark.parametrize("make_failure", UNANSWERED)
async def test_a_write_that_was_done_without_an_answer_counts(make_failure: Callable[[], Exception]) -> None:
    server = _Server((make_failure(), True))
    assert (await _reserve(server)).status.allocation == ALLOCATION
    assert server.writes == 1


@pytest.mark.parametrize("make_failure", UNANSWERED)
async def test_a_write_that_was_not_done_fails_once_that_is_known(make_failure: Callable[[], Exception]) -> None:
    server = _Server((make_failure(), False))
    with pytest.raises(claimwriter.ClaimError, match="add allocation and reservation to claim default/c"):
        await _reserve(server)
    assert server.reads == 3


async def test_devices_that_another_write_gave_to_the_claim_are_not_its_own() -> None:
    server = _Server((errors.UnreachableError("broken off"), False))
    other = structs.replace(ALLOCATION, devices=structs.replace(ALLOCATION.devices, results=()))
    taken = structs.replace(server.stored, status=structs.replace(server.stored.status, allocation=other))
    client: Any = server
    writer = claimwriter.ClaimWriter(client, clock=_QuickClock(), rng=random.Random(1), with_timestamps=False)
    before, server.stored = server.stored, taken
    with pytest.raises(claimwriter.ClaimError, match="broken off"):
        await writer.reserve(before, CONSUMER, allocation=ALLOCATION)


class _ServerWithoutGates(_Server):
    """Server that stores allocations without the fields of features that are off."""

    async def patch(self, *_: Any, patch: patches.Patch, **__: Any) -> Claim:
        if json.loads(patch.data)["status"]["allocation"] is None:
            self.stored = structs.replace(self.stored, status=resourceclaim.ResourceClaimStatus())
            return self.stored
        return await super().patch()


async def test_an_allocation_that_is_stored_without_fields_is_withdrawn() -> None:
    server = _ServerWithoutGates()
    (result,) = ALLOCATION.devices.results
    shared = structs.replace(result, share_id="s", consumed_capacity={"memory": quantity.Quantity.parse("1Gi")})
    allocation = structs.replace(ALLOCATION, devices=structs.replace(ALLOCATION.devices, results=(shared,)))
    client: Any = server
    writer = claimwriter.ClaimWriter(client, clock=_QuickClock(), rng=random.Random(1), with_timestamps=False)
    with pytest.raises(claimwriter.ClaimError, match="without consumedCapacity, shareID; the feature gates"):
        await writer.reserve(server.stored, CONSUMER, allocation=allocation)
    assert server.stored.status.allocation is None
