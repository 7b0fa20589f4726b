"""Rules about interruptions between calls: processes that end, files that are lost."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from drachma.driver.conformance import acts
from drachma.driver.conformance import stage as stages
from drachma.driver.conformance.check import GRPC, KEP, Check, FailureError
from drachma.driver.conformance.stage import CallError, Stage


async def _killed_after_prepare(stage: Stage) -> None:
    acts.need_restart(stage)
    async with acts.claim_of(stage) as claim:
        first = await acts.prepared(stage, claim)
        await stage.restart(kills=True)
        second = await acts.prepared(stage, claim)
        acts.check_same(first, second, "after it was killed and restarted")
        acts.check_resolvable(stage, second)


async def _killed_before_unprepare(stage: Stage) -> None:
    acts.need_restart(stage)
    async with acts.claim_of(stage) as claim:
        answer = await acts.prepared(stage, claim)
        await stage.restart(kills=True)
        await acts.unprepared(stage, stages.reference(claim))
        if len(stage.unresolved(answer.cdi_ids)) != len(answer.cdi_ids):
            raise FailureError("what was prepared before it was killed is still there after NodeUnprepareResources")


async def _killed_while_preparing(stage: Stage) -> None:
    acts.need_restart(stage)
    async with acts.claim_of(stage) as claim:
        call = asyncio.create_task(stage.prepare(claim))
        await asyncio.sleep(0.001)
        await stage.subject.kill()
        with contextlib.suppress(CallError):
            await call
        await stage.start()
        acts.check_resolvable(stage, await acts.prepared(stage, claim))


async def _lost_files(stage: Stage) -> None:
    async with acts.claim_of(stage) as claim:
        first = await acts.prepared(stage, claim)
        stage.lose_files()
        second = await acts.prepared(stage, claim)
        acts.check_same(first, second, "after its CDI files were lost")
        acts.check_resolvable(stage, second)


async def _lost_directory(stage: Stage) -> None:
    async with acts.claim_of(stage) as claim:
        stage.lose_files()
        with contextlib.suppress(OSError):
            stage.cdi.rmdir()
        try:
            acts.check_resolvable(stage, await acts.prepared(stage, claim))
        finally:
            stage.cdi.mkdir(parents=True, exist_ok=True)


CHECKS: Final = (
    Check(
        "killed-after-prepare",
        "preparing is idempotent across restarts of the driver",
        f"{GRPC}, NodePrepareResources",
        _killed_after_prepare,
    ),
    Check(
        "killed-before-unprepare",
        "what was prepared before a restart is undone after it",
        f"{GRPC}, NodeUnprepareResources",
        _killed_before_unprepare,
    ),
    Check(
        "killed-while-preparing",
        "a driver that was killed halfway begins again",
        f"{GRPC}, NodePrepareResources",
        _killed_while_preparing,
    ),
    Check(
        "lost-files",
        "CDI files that are lost, as after a reboot, are written again",
        f"{KEP}, node reboot",
        _lost_files,
    ),
    Check(
        "lost-directory",
        "the CDI directory need not be there",
        f"{KEP}, node reboot",
        _lost_directory,
        is_must=False,
    ),
)
