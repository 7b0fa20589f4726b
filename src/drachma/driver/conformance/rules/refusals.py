"""Claims that must not be prepared."""

from __future__ import annotations

import contextlib
import itertools
import uuid
from collections.abc import Iterator
from typing import Final

from drachma.api import resourceslice
from drachma.driver.conformance import acts
from drachma.driver.conformance import stage as stages
from drachma.driver.conformance.check import GRPC, KEP, Check, FailureError, SkipError
from drachma.driver.conformance.stage import CallError, PublishedDevice, Stage


async def _unknown_claim(stage: Stage) -> None:
    reference = {"namespace": "default", "name": "never-seen", "uid": str(uuid.uuid4())}
    await acts.check_refused(stage, reference, "a claim that does not exist")


async def _other_uid(stage: Stage) -> None:
    async with acts.claim_of(stage) as claim:
        await acts.check_refused(stage, {**stages.reference(claim), "uid": str(uuid.uuid4())}, "a claim of another uid")


async def _not_allocated(stage: Stage) -> None:
    async with acts.claim_of(stage, is_allocated=False) as claim:
        await acts.check_refused(stage, stages.reference(claim), "a claim that is not allocated")


async def _unknown_claim_status(stage: Stage) -> None:
    reference = {"namespace": "default", "name": "never-seen", "uid": str(uuid.uuid4())}
    try:
        await stage.prepare_references(reference)
    except CallError as error:
        if "code = NotFound" not in str(error):
            raise FailureError(f"the call ends with {error}; the code should be NotFound") from error


async def _unpublished_device(stage: Stage) -> None:
    (published,) = await acts.some_devices(stage)
    names = {each.device.name for each in await stage.devices()}
    name = next(name for name in _names() if name not in names)
    absent = PublishedDevice(published.pool, resourceslice.Device(name=name))
    async with acts.claim_of(stage, absent) as claim:
        await acts.check_refused(stage, stages.reference(claim), f"device {name}, which is not published,")


def _names() -> Iterator[str]:
    """Yield names of devices that a driver hardly has."""
    return (f"drachma-check-{number}" for number in itertools.count())


async def _device_in_use(stage: Stage) -> None:
    devices = [each for each in await acts.some_devices(stage, None) if not each.device.allow_multiple_allocations]
    if not devices:
        raise SkipError("all devices of the driver can be shared")
    async with acts.claim_of(stage, devices[0]) as first, acts.claim_of(stage, devices[0]) as second:
        await acts.prepared(stage, first)
        await acts.check_refused(stage, stages.reference(second), "a device that another claim has exclusively")
        await acts.unprepared(stage, stages.reference(first))
        await acts.prepared(stage, second)


async def _admin_parameters(stage: Stage) -> None:
    if stage.admin_parameters is None:
        raise SkipError("--admin-parameters does not say which parameters only administrators may set")
    async with acts.claim_of(stage, parameters=stage.admin_parameters, source="FromClass") as claim:
        await acts.prepared(stage, claim)
    async with acts.claim_of(stage, parameters=stage.admin_parameters) as claim:
        await acts.check_refused(stage, stages.reference(claim), "a claim with parameters for administrators")


async def _invalid_parameters(stage: Stage) -> None:
    parameters = {"apiVersion": "invalid.drachma.dev/v1", "kind": "Nonsense", "drachmaDriverCheck": [1, {"two": None}]}
    async with acts.claim_of(stage, parameters=parameters) as claim:
        await acts.check_refused(stage, stages.reference(claim), "a claim with parameters that make no sense")


async def _bad_beside_good(stage: Stage) -> None:
    async with acts.claim_of(stage) as claim:
        references = [stages.reference(claim), {"namespace": "default", "name": "never-seen", "uid": str(uuid.uuid4())}]
        with contextlib.suppress(CallError):
            await stage.prepare_references(*references)
        await acts.prepared(stage, claim)


CHECKS: Final = (
    Check(
        "unknown-claim",
        "a claim that does not exist is not prepared",
        f"{GRPC}, NodePrepareResources",
        _unknown_claim,
    ),
    Check(
        "unknown-claim-status",
        "a call for a claim that does not exist ends with NOT_FOUND",
        f"{KEP}, NodePrepareResource errors",
        _unknown_claim_status,
        is_must=False,
    ),
    Check(
        "unpublished-device",
        "a device that the driver does not publish is not prepared",
        f"{KEP}, ResourceSlice",
        _unpublished_device,
    ),
    Check(
        "device-in-use",
        "a device that another claim has exclusively is not prepared, and is when it is free",
        f"{KEP}, ResourceSlice",
        _device_in_use,
        is_must=False,
    ),
    Check(
        "admin-parameters",
        "parameters for administrators are taken from classes, and refused in claims",
        f"{KEP}, opaque configuration",
        _admin_parameters,
    ),
    Check(
        "other-uid",
        "a claim that was replaced by another one of its name is not prepared",
        f"{GRPC}, NodePrepareResources",
        _other_uid,
    ),
    Check(
        "not-allocated",
        "a claim without an allocation is not prepared",
        f"{GRPC}, NodePrepareResources",
        _not_allocated,
    ),
    Check(
        "invalid-parameters",
        "parameters that make no sense are refused",
        f"{KEP}, opaque configuration",
        _invalid_parameters,
        is_must=False,
    ),
    Check(
        "bad-beside-good",
        "a claim can be prepared after a call that also named an invalid claim",
        f"{GRPC}, NodePrepareResources",
        _bad_beside_good,
    ),
)
