"""Rules about concurrent calls."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from drachma.driver.conformance import acts
from drachma.driver.conformance import stage as stages
from drachma.driver.conformance.check import Check, FailureError
from drachma.driver.conformance.stage import Stage

_AT_ONCE: Final = 4


async def _same_claim_at_once(stage: Stage) -> None:
    async with acts.claim_of(stage) as claim:
        answers = await asyncio.gather(*(acts.prepared(stage, claim) for _ in range(_AT_ONCE)))
        for answer in answers[1:]:
            acts.check_same(answers[0], answer, "asked several times at once,")
        acts.check_resolvable(stage, answers[0])


async def _claims_at_once(stage: Stage) -> None:
    devices = await acts.some_devices(stage, _AT_ONCE)
    async with contextlib.AsyncExitStack() as stack:
        claims = [await stack.enter_async_context(acts.claim_of(stage, device)) for device in devices]
        answers = await asyncio.gather(*(acts.prepared(stage, claim) for claim in claims))
        for device, answer in zip(devices, answers, strict=True):
            if [name for _, name, _, _ in answer.devices] != [device.device.name]:
                raise FailureError(f"prepared at once, the claim of {device.device.name} got {answer.devices}")
            acts.check_resolvable(stage, answer)
        await asyncio.gather(*(acts.unprepared(stage, stages.reference(claim)) for claim in claims))


CHECKS: Final = (
    Check(
        "same-claim-at-once",
        "calls for one claim at the same time give one answer",
        "kubelet, retries after time is up",
        _same_claim_at_once,
    ),
    Check(
        "claims-at-once",
        "calls for several claims at the same time do not disturb each other",
        "kubelet, pods start in parallel",
        _claims_at_once,
    ),
)
