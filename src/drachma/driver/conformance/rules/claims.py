"""Claims that are prepared and undone."""

from __future__ import annotations

import uuid
from typing import Final

from drachma.driver.conformance import acts
from drachma.driver.conformance import stage as stages
from drachma.driver.conformance.check import GRPC, Check, FailureError, SkipError
from drachma.driver.conformance.stage import Stage
from drachma.nodewire.rpc import services


async def _prepare(stage: Stage) -> None:
    (device,) = await acts.some_devices(stage)
    async with acts.claim_of(stage, device) as claim:
        answer = await acts.prepared(stage, claim)
        own = [(pool, name) for pool, name, _, _ in answer.devices]
        if own != [(device.pool, device.device.name)]:
            raise FailureError(f"allocated is {device.pool}/{device.device.name}, prepared is {own}")
        acts.check_resolvable(stage, answer)


async def _subrequest(stage: Stage) -> None:
    async with acts.claim_of(stage, is_subrequest=True) as claim:
        answer = await acts.prepared(stage, claim)
        requests = {request for _, _, names, _ in answer.devices for request in names}
        if requests - {stages.REQUEST}:
            raise FailureError(
                f"the device is for requests {sorted(requests)}; "
                f"containers name {stages.REQUEST!r} and would not get it"
            )


async def _prepare_again(stage: Stage) -> None:
    async with acts.claim_of(stage) as claim:
        first = await acts.prepared(stage, claim)
        second = await acts.prepared(stage, claim)
        acts.check_same(first, second, "the second time")
        acts.check_resolvable(stage, second)


async def _both_versions(stage: Stage) -> None:
    if len(stage.dra_services()) < len(services.DRA):
        raise SkipError(f"the driver has {', '.join(service.advertised for service in stage.dra_services())} only")
    async with acts.claim_of(stage) as claim:
        first = await acts.prepared(stage, claim, version=0)
        acts.check_same(first, await acts.prepared(stage, claim, version=1), "in the other version")


async def _several_claims(stage: Stage) -> None:
    devices = await acts.some_devices(stage, 2)
    if len(devices) == 1 and not devices[0].device.allow_multiple_allocations:
        raise SkipError("the driver has one device only, which two claims cannot have")
    async with acts.claim_of(stage, devices[0]) as first, acts.claim_of(stage, devices[-1]) as second:
        answers = await stage.prepare(first, second)
        uids = {first.metadata.uid, second.metadata.uid}
        if set(answers) != uids:
            raise FailureError(f"asked for {len(uids)} claims, the driver answers for {len(answers)}")
        for answer in answers.values():
            if answer.error:
                raise FailureError(f"NodePrepareResources fails: {answer.error}")
            acts.check_resolvable(stage, answer)


async def _unprepare(stage: Stage) -> None:
    async with acts.claim_of(stage) as claim:
        answer = await acts.prepared(stage, claim)
        await acts.unprepared(stage, stages.reference(claim))
        remaining_ids = set(answer.cdi_ids) - set(stage.unresolved(answer.cdi_ids))
        if remaining_ids:
            raise FailureError(f"CDI devices {', '.join(sorted(remaining_ids))} are still there")


async def _unprepare_again(stage: Stage) -> None:
    async with acts.claim_of(stage) as claim:
        await acts.prepared(stage, claim)
        for _ in range(2):
            await acts.unprepared(stage, stages.reference(claim))


async def _unprepare_gone(stage: Stage) -> None:
    claim = await stage.claim(*await acts.some_devices(stage))
    await acts.prepared(stage, claim)
    await stage.remove(claim)
    await acts.unprepared(stage, stages.reference(claim))


async def _unprepare_unknown(stage: Stage) -> None:
    await acts.unprepared(stage, {"namespace": "default", "name": "never-seen", "uid": str(uuid.uuid4())})


CHECKS: Final = (
    Check(
        "prepare",
        "the allocated devices are prepared, and their CDI devices can be found",
        f"{GRPC}, NodePrepareResources",
        _prepare,
    ),
    Check(
        "prepare-subrequest",
        "request names are those of requests, without subrequests",
        "KEP-4816",
        _subrequest,
    ),
    Check(
        "prepare-again",
        "preparing is idempotent",
        f"{GRPC}, NodePrepareResources",
        _prepare_again,
    ),
    Check(
        "versions",
        "all versions of the service give the same answer",
        GRPC,
        _both_versions,
    ),
    Check(
        "prepare-several",
        "every claim of a call is answered",
        f"{GRPC}, NodePrepareResources",
        _several_claims,
    ),
    Check(
        "unprepare",
        "nothing of a claim is left",
        f"{GRPC}, NodeUnprepareResources",
        _unprepare,
    ),
    Check(
        "unprepare-again",
        "undoing is idempotent",
        f"{GRPC}, NodeUnprepareResources",
        _unprepare_again,
    ),
    Check(
        "unprepare-gone",
        "a claim is undone though its object is gone",
        f"{GRPC}, NodeUnprepareResources",
        _unprepare_gone,
    ),
    Check(
        "unprepare-unknown",
        "there is nothing to undo of a claim that was never prepared",
        f"{GRPC}, NodeUnprepareResources",
        _unprepare_unknown,
    ),
)
