"""Operations on a driver that several rules share, each with a check of its result."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from drachma import errors
from drachma.api import resourceclaim, resourceslice
from drachma.driver.conformance import stage as stages
from drachma.driver.conformance.check import FailureError, SkipError
from drachma.driver.conformance.stage import Answer, CallError, PublishedDevice, Stage
from drachma.nodewire.cdi import names as cdi_names


def pools(slices: Sequence[resourceslice.ResourceSlice]) -> dict[str, list[resourceslice.ResourceSlice]]:
    by_pool: dict[str, list[resourceslice.ResourceSlice]] = {}
    for each in slices:
        by_pool.setdefault(each.spec.pool.name, []).append(each)
    return by_pool


async def published(stage: Stage) -> list[resourceslice.ResourceSlice]:
    """Return the driver's slices, once all pools are complete; where they never are, that is waited for only once."""
    if not stage.publishes:
        raise SkipError("the driver publishes no complete pools")

    async def look() -> list[resourceslice.ResourceSlice]:
        slices = await stage.slices()
        return slices if slices and not any(map(incomplete, pools(slices).values())) else []

    try:
        answer: list[resourceslice.ResourceSlice] = await stage.await_condition(
            look, lambda: "no complete pools appear"
        )
    except errors.DriverError:
        stage.publishes = False
        raise
    return answer


def incomplete(slices: Sequence[resourceslice.ResourceSlice]) -> str:
    newest = max(each.spec.pool.generation for each in slices)
    current = [each for each in slices if each.spec.pool.generation == newest]
    name = current[0].spec.pool.name
    wrong = {each.spec.pool.resource_slice_count for each in current} - {len(current)}
    if wrong:
        return f"pool {name}: {len(current)} slices of generation {newest}, and they say {sorted(wrong)}"
    if len(current) != len(slices):
        return f"pool {name}: slices of generation {newest}, and {len(slices) - len(current)} older ones"
    return ""


async def some_devices(stage: Stage, count: int | None = 1) -> list[PublishedDevice]:
    """Return published devices, at most ``count``."""
    await published(stage)
    devices = await stage.devices()
    if not devices:
        raise SkipError("the driver publishes no devices")
    return devices[:count]


@contextlib.asynccontextmanager
async def claim_of(
    stage: Stage, *devices: PublishedDevice, **settings: Any
) -> AsyncIterator[resourceclaim.ResourceClaim]:
    """Return a claim that is undone and removed in the end, whatever came of it."""
    claim = await stage.claim(*(devices or await some_devices(stage)), **settings)
    try:
        yield claim
    finally:
        with contextlib.suppress(CallError):
            await stage.unprepare(stages.reference(claim))
        await stage.remove(claim)


async def prepared(stage: Stage, claim: resourceclaim.ResourceClaim, *, version: int = 0) -> Answer:
    """Prepare a valid claim, and return the driver's answer."""
    answers = await stage.prepare(claim, version=version)
    uid = claim.metadata.uid
    if set(answers) != {uid}:
        raise FailureError(f"asked for claim {uid}, the driver answers for {sorted(answers) or 'none'}")
    if answers[uid].error:
        raise FailureError(f"NodePrepareResources fails: {answers[uid].error}")
    return answers[uid]


async def unprepared(stage: Stage, reference: dict[str, str]) -> None:
    answers = await stage.unprepare(reference)
    if set(answers) != {reference["uid"]}:
        raise FailureError(f"asked for claim {reference['uid']}, the driver answers for {sorted(answers) or 'none'}")
    if answers[reference["uid"]].error:
        raise FailureError(f"NodeUnprepareResources fails: {answers[reference['uid']].error}")


def check_resolvable(stage: Stage, answer: Answer) -> None:
    for each in answer.cdi_ids:
        if not cdi_names.is_qualified(each):
            raise FailureError(f"CDI device {each!r} is no qualified name")
    if unresolved_ids := stage.unresolved(answer.cdi_ids):
        raise FailureError(f"no valid file in {stage.cdi} has CDI devices {', '.join(unresolved_ids)}")


def check_same(first: Answer, second: Answer, when: str) -> None:
    if first.devices != second.devices:
        raise FailureError(f"{when} the answer is another one: {second.devices} after {first.devices}")


async def refusal(stage: Stage, reference: dict[str, str]) -> str:
    """Return the reason why a claim is not prepared; empty if it is."""
    try:
        answers = await stage.prepare_references(reference)
    except CallError as error:
        return str(error)
    answer = answers.get(reference["uid"])
    return "no answer" if answer is None else answer.error


async def check_refused(stage: Stage, reference: dict[str, str], what: str) -> None:
    """Asks for something that must not be prepared."""
    if not await refusal(stage, reference):
        raise FailureError(f"{what} is prepared")


def need_restart(stage: Stage) -> None:
    if not stage.subject.can_restart:
        raise SkipError("the driver was not started here, and cannot be restarted")
