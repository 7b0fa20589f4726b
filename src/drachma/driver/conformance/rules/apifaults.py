"""Rules about a faulty API server: it refuses, is slow or away, and other clients write the driver's slices."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from msgspec import structs

from drachma.api import resourceslice
from drachma.driver.conformance import acts
from drachma.driver.conformance import stage as stages
from drachma.driver.conformance.apifaults import READS, WRITES, ApiFaults, Fault
from drachma.driver.conformance.check import GRPC, KEP, Check, FailureError, SkipError
from drachma.driver.conformance.stage import Stage

SLOW_SECONDS: Final = 1.0
"""Much longer than a request takes, and much shorter than a kubelet waits."""

_CLAIMS: Final = "resourceclaims"
_SLICES: Final = "resourceslices"
_REFUSALS: Final = 3


def _faults(stage: Stage) -> ApiFaults:
    if stage.faults is None:
        raise SkipError("the driver uses an API server of its own")
    return stage.faults


async def _claim_refused(stage: Stage) -> None:
    faults = _faults(stage)
    async with acts.claim_of(stage) as claim:
        for code in (HTTPStatus.FORBIDDEN, HTTPStatus.INTERNAL_SERVER_ERROR):
            with faults.injected(Fault(resource=_CLAIMS, methods=READS, code=code)) as injection:
                problem = await acts.refusal(stage, stages.reference(claim))
            if not injection.count:
                raise SkipError("the driver does not read the claim from the API server")
            if not problem:
                raise FailureError(f"a claim that the API server refuses to show with {code} is prepared")
        acts.check_resolvable(stage, await acts.prepared(stage, claim))


async def _claim_slow(stage: Stage) -> None:
    faults = _faults(stage)
    async with acts.claim_of(stage) as claim:
        with faults.injected(Fault(resource=_CLAIMS, methods=READS, seconds=SLOW_SECONDS)):
            acts.check_resolvable(stage, await acts.prepared(stage, claim))


async def _unprepare_alone(stage: Stage) -> None:
    faults = _faults(stage)
    async with acts.claim_of(stage) as claim:
        answer = await acts.prepared(stage, claim)
        with faults.injected(Fault(code=HTTPStatus.SERVICE_UNAVAILABLE)):
            await acts.unprepared(stage, stages.reference(claim))
        if len(stage.unresolved(answer.cdi_ids)) != len(answer.cdi_ids):
            raise FailureError("what was prepared is still there after NodeUnprepareResources")


async def _start_alone(stage: Stage) -> None:
    acts.need_restart(stage)
    faults = _faults(stage)
    before = _devices(await acts.published(stage))
    await stage.subject.kill()
    with faults.injected(Fault(code=HTTPStatus.SERVICE_UNAVAILABLE)) as injection:
        await stage.start()
        await stage.until(lambda: injection.count >= _REFUSALS, "the driver does not ask the API server again")
    await _await_devices(stage, before, "after the API server was away at its start")
    async with acts.claim_of(stage) as claim:
        await acts.prepared(stage, claim)


async def _slices_deleted(stage: Stage) -> None:
    slices = await acts.published(stage)
    before = _devices(slices)
    for each in slices:
        await stage.client.delete(resourceslice.ResourceSlice, each.metadata.name)
    await _await_devices(stage, before, "after another client deleted its slices")


async def _slices_conflict(stage: Stage) -> None:
    faults = _faults(stage)
    slices = await acts.published(stage)
    before = _devices(slices)
    changed = next((each for each in slices if each.spec.devices), None)
    if changed is None:
        raise SkipError("the driver publishes no devices")
    fault = Fault(resource=_SLICES, methods=WRITES, code=HTTPStatus.CONFLICT, times=_REFUSALS)
    with faults.injected(fault) as injection:
        spec = structs.replace(changed.spec, devices=changed.spec.devices[:-1])
        await stage.client.update(structs.replace(changed, spec=spec))
        await _await_devices(stage, before, f"after another client removed one and {_REFUSALS} writes of it failed")
    if not injection.is_over:
        raise FailureError(f"slices are as before, and the driver wrote only {injection.count} times that failed")


def _devices(slices: Sequence[resourceslice.ResourceSlice]) -> dict[str, set[str]]:
    """Return the names of devices, by pool."""
    return {
        pool: {device.name for each in own for device in each.spec.devices} for pool, own in acts.pools(slices).items()
    }


async def _await_devices(stage: Stage, before: dict[str, set[str]], when: str) -> None:
    """Returns once all pools are complete and have the devices that they had."""

    async def look() -> bool:
        slices = await stage.slices()
        is_complete = not any(map(acts.incomplete, acts.pools(slices).values()))
        return is_complete and _devices(slices) == before

    await stage.await_condition(look, lambda: f"the devices of the driver are not published again {when}")


CHECKS: Final = (
    Check(
        "claim-refused",
        "a claim that cannot be read is not prepared, and is as soon as it can",
        f"{GRPC}, NodePrepareResources",
        _claim_refused,
    ),
    Check(
        "claim-slow",
        "an API server that is slow delays a claim, and does not fail it",
        "kubelet, waits for 45 seconds",
        _claim_slow,
    ),
    Check(
        "unprepare-alone",
        "a claim is undone without the API server, which need not know it any more",
        f"{GRPC}, NodeUnprepareResources",
        _unprepare_alone,
    ),
    Check(
        "start-alone",
        "a driver outlives that the API server is away when it starts, as when a node boots",
        f"{KEP}, node reboot",
        _start_alone,
        is_must=False,
    ),
    Check(
        "slices-deleted",
        "deleted slices are published again, as kubelets delete the slices of a node when they start",
        "kubelet, slices of absent drivers",
        _slices_deleted,
    ),
    Check(
        "slices-conflict",
        "changed slices are repaired, also if writes fail at first",
        "ResourceSlice controller",
        _slices_conflict,
    ),
)
