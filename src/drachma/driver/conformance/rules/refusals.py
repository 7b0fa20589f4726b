"""Claims that must not be prepared."""

from __future__ import annotations

import contextlib
import uuid
from typing import Final

from drachma.driver.conformance import acts
from drachma.driver.conformance import stage as stages
from drachma.driver.conformance.check import GRPC, KEP, Check
from drachma.driver.conformance.stage import CallError, Stage


async def _unknown_claim(stage: Stage) -> None:
    reference = {"namespace": "default", "name": "never-seen", "uid": str(uuid.uuid4())}
    await acts.check_refused(stage, reference, "a claim that does not exist")


async def _other_uid(stage: Stage) -> None:
    async with acts.claim_of(stage) as claim:
        await acts.check_refused(stage, {**stages.reference(claim), "uid": str(uuid.uuid4())}, "a claim of another uid")


async def _not_allocated(stage: Stage) -> None:
    async with acts.claim_of(stage, is_allocated=False) as claim:
        await acts.check_refused(stage, stages.reference(claim), "a claim that is not allocated")


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
