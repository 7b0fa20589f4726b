"""What is asked of a driver, one check after the other, each with its rule and where the rule comes from.

Checks leave nothing behind: each has claims of its own and undoes what it had prepared, so that one that fails does not
make others fail. What is between calls is where drivers break: processes that end, files that are lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pathlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import grpc
import grpc.aio

from drachma import errors
from drachma.api import resourceclaim, resourceslice
from drachma.client import Change, Selection
from drachma.driver.conformance import stage as stages
from drachma.driver.conformance.report import Outcome, Report, Result
from drachma.driver.conformance.stage import Answer, CallError, PublishedDevice, Stage
from drachma.nodewire.cdi import names as cdi_names
from drachma.nodewire.rpc import services
from drachma.validation import formats
from drachma.validation.path import Path

_log = logging.getLogger(__name__)

_HEALTH_SECONDS: Final = 35.0
_AT_ONCE: Final = 4
_GRPC: Final = "DRA gRPC API"
_KEP: Final = "KEP-4381"


class FailureError(Exception):
    """The driver breaks the rule."""


class SkipError(Exception):
    """The rule cannot be tried on this driver, or here."""


Act: TypeAlias = Callable[[Stage], Awaitable[None]]


class Check(NamedTuple):
    """A rule and how it is tried; one that drivers should keep to and need not gives warnings."""

    name: str
    rule: str
    source: str
    act: Act
    is_must: bool = True


async def run(stage: Stage, chosen: Sequence[Check]) -> Report:
    """Starts the driver and tries all rules on it; the driver has ended afterwards, if it was started here.

    Raises:
        errors.DriverError: the driver does not even start.
    """
    await stage.start()
    try:
        results = [await _tried(check, stage) for check in chosen]
    finally:
        await stage.subject.kill()
        await stage.clean_up()
    return Report(driver=stage.info.name, versions=stage.info.versions, results=tuple(results))


async def _tried(check: Check, stage: Stage) -> Result:
    begun = asyncio.get_running_loop().time()
    outcome, detail = Outcome.PASSED, ""
    try:
        await check.act(stage)
    except SkipError as skipped:
        outcome, detail = Outcome.SKIPPED, str(skipped)
    except (FailureError, CallError, errors.DrachmaError) as failure:
        outcome, detail = Outcome.FAILED if check.is_must else Outcome.WARNED, str(failure)
        await _revive(stage)
    return Result(
        name=check.name,
        rule=check.rule,
        source=check.source,
        outcome=outcome,
        detail=detail,
        seconds=asyncio.get_running_loop().time() - begun,
    )


async def _revive(stage: Stage) -> None:
    """A driver that a check has ended, or that ended by itself, is there again for the next one."""
    if stage.subject.can_restart:
        with contextlib.suppress(errors.DriverError):
            await stage.restart(kills=True)


# Registration


async def _registration(stage: Stage) -> None:
    info = stage.info
    if info.type != "DRAPlugin":
        raise FailureError(f"GetInfo says type {info.type!r}")
    for problem in formats.driver_name(info.name, Path("name")):
        raise FailureError(f"GetInfo says name {info.name!r}: {problem.body}")
    if not stage.dra_services():
        raise FailureError(f"GetInfo says versions {list(info.versions)}, and none of them is one of DRA")
    if not pathlib.Path(info.endpoint).is_absolute():
        raise FailureError(f"GetInfo says endpoint {info.endpoint!r}, which is no absolute path")
    try:
        await stage.notify(is_registered=True)
    except CallError as error:
        raise FailureError(f"NotifyRegistrationStatus(registered): {error}") from error


async def _refused_registration(stage: Stage) -> None:
    with contextlib.suppress(CallError):
        await stage.notify(is_registered=False, error="drachma driver check tries a refusal")
    await stage.register()
    await stage.notify(is_registered=True)


# Slices


def _pools(slices: Sequence[resourceslice.ResourceSlice]) -> dict[str, list[resourceslice.ResourceSlice]]:
    by_pool: dict[str, list[resourceslice.ResourceSlice]] = {}
    for each in slices:
        by_pool.setdefault(each.spec.pool.name, []).append(each)
    return by_pool


async def _published(stage: Stage) -> list[resourceslice.ResourceSlice]:
    """The driver's slices, once all pools are complete; where they never are, that is waited for only once."""
    if not stage.publishes:
        raise SkipError("the driver publishes no complete pools")

    async def look() -> list[resourceslice.ResourceSlice]:
        slices = await stage.slices()
        return slices if slices and not any(map(_incomplete, _pools(slices).values())) else []

    try:
        answer: list[resourceslice.ResourceSlice] = await stage.until_async(look, lambda: "no complete pools appear")
    except errors.DriverError:
        stage.publishes = False
        raise
    return answer


def _incomplete(slices: Sequence[resourceslice.ResourceSlice]) -> str:
    newest = max(each.spec.pool.generation for each in slices)
    current = [each for each in slices if each.spec.pool.generation == newest]
    name = current[0].spec.pool.name
    wrong = {each.spec.pool.resource_slice_count for each in current} - {len(current)}
    if wrong:
        return f"pool {name}: {len(current)} slices of generation {newest}, and they say {sorted(wrong)}"
    if len(current) != len(slices):
        return f"pool {name}: slices of generation {newest}, and {len(slices) - len(current)} older ones"
    return ""


async def _slices(stage: Stage) -> None:
    try:
        slices = await _published(stage)
    except errors.DriverError as error:
        problems = [problem for each in _pools(await stage.slices()).values() if (problem := _incomplete(each))]
        raise FailureError("; ".join(problems) or str(error)) from error
    for pool, own in _pools(slices).items():
        seen: set[str] = set()
        for each in own:
            for device in each.spec.devices:
                if device.name in seen:
                    raise FailureError(f"pool {pool}: device {device.name} is there twice")
                seen.add(device.name)


async def _slice_owner(stage: Stage) -> None:
    for each in await _published(stage):
        if each.spec.node_name and not any(owner.kind == "Node" for owner in each.metadata.owner_references):
            raise FailureError(f"slice {each.metadata.name} is not owned by its node, and stays when the node is gone")


async def _stable_slices(stage: Stage) -> None:
    _needs_restart(stage)
    before = await _published(stage)
    selection = Selection(fields=f"spec.driver={stage.info.name}")
    since = (await stage.client.list(resourceslice.ResourceSlice, selection)).resource_version
    await stage.restart(kills=True)
    await stage.restart(kills=False)
    after = await _published(stage)
    old = {each.metadata.uid: each.spec.pool.generation for each in before}
    new = {each.metadata.uid: each.spec.pool.generation for each in after}
    if old.keys() != new.keys():
        raise FailureError("after two restarts with the same devices there are other slices than before")
    if old != new:
        raise FailureError("after two restarts with the same devices the generation of pools is another one")
    async with stage.client.watch(
        resourceslice.ResourceSlice, selection, resource_version=since, timeout_seconds=1
    ) as watch:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                while events := await watch.batch():
                    for event in events:
                        if event.change is Change.DELETED:
                            name = event.object.metadata.name
                            raise FailureError(f"slice {name} was away for a moment during a restart")


# Claims


async def _devices(stage: Stage, count: int = 1) -> list[PublishedDevice]:
    await _published(stage)
    devices = await stage.devices()
    if not devices:
        raise SkipError("the driver publishes no devices")
    return devices[:count]


@contextlib.asynccontextmanager
async def _claim(
    stage: Stage, *devices: PublishedDevice, **settings: Any
) -> AsyncIterator[resourceclaim.ResourceClaim]:
    """A claim that is undone and removed in the end, whatever came of it."""
    claim = await stage.claim(*(devices or await _devices(stage)), **settings)
    try:
        yield claim
    finally:
        with contextlib.suppress(CallError):
            await stage.unprepare(stages.reference(claim))
        await stage.remove(claim)


async def _prepared(stage: Stage, claim: resourceclaim.ResourceClaim, *, version: int = 0) -> Answer:
    """What the driver answers for a claim that nothing is wrong with."""
    answers = await stage.prepare(claim, version=version)
    uid = claim.metadata.uid
    if set(answers) != {uid}:
        raise FailureError(f"asked for claim {uid}, the driver answers for {sorted(answers) or 'none'}")
    if answers[uid].error:
        raise FailureError(f"NodePrepareResources fails: {answers[uid].error}")
    return answers[uid]


async def _unprepared(stage: Stage, asked: dict[str, str]) -> None:
    answers = await stage.unprepare(asked)
    if set(answers) != {asked["uid"]}:
        raise FailureError(f"asked for claim {asked['uid']}, the driver answers for {sorted(answers) or 'none'}")
    if answers[asked["uid"]].error:
        raise FailureError(f"NodeUnprepareResources fails: {answers[asked['uid']].error}")


def _resolvable(stage: Stage, answer: Answer) -> None:
    for each in answer.cdi_ids:
        if not cdi_names.is_qualified(each):
            raise FailureError(f"CDI device {each!r} is no qualified name")
    if missing := stage.unresolved(answer.cdi_ids):
        raise FailureError(f"no valid file in {stage.cdi} has CDI devices {', '.join(missing)}")


async def _prepare(stage: Stage) -> None:
    (device,) = await _devices(stage)
    async with _claim(stage, device) as claim:
        answer = await _prepared(stage, claim)
        own = [(pool, name) for pool, name, _, _ in answer.devices]
        if own != [(device.pool, device.device.name)]:
            raise FailureError(f"allocated is {device.pool}/{device.device.name}, prepared is {own}")
        _resolvable(stage, answer)


async def _subrequest(stage: Stage) -> None:
    async with _claim(stage, is_subrequest=True) as claim:
        answer = await _prepared(stage, claim)
        requests = {request for _, _, names, _ in answer.devices for request in names}
        if requests - {stages.REQUEST}:
            raise FailureError(
                f"the device is for requests {sorted(requests)}; "
                f"containers name {stages.REQUEST!r} and would not get it"
            )


async def _prepare_again(stage: Stage) -> None:
    async with _claim(stage) as claim:
        first = await _prepared(stage, claim)
        second = await _prepared(stage, claim)
        _same(first, second, "the second time")
        _resolvable(stage, second)


def _same(first: Answer, second: Answer, when: str) -> None:
    if first.devices != second.devices:
        raise FailureError(f"{when} the answer is another one: {second.devices} after {first.devices}")


async def _both_versions(stage: Stage) -> None:
    if len(stage.dra_services()) < len(services.DRA):
        raise SkipError(f"the driver has {', '.join(service.advertised for service in stage.dra_services())} only")
    async with _claim(stage) as claim:
        first = await _prepared(stage, claim, version=0)
        _same(first, await _prepared(stage, claim, version=1), "in the other version")


async def _several_claims(stage: Stage) -> None:
    devices = await _devices(stage, 2)
    async with _claim(stage, devices[0]) as first, _claim(stage, devices[-1]) as second:
        answers = await stage.prepare(first, second)
        uids = {first.metadata.uid, second.metadata.uid}
        if set(answers) != uids:
            raise FailureError(f"asked for {len(uids)} claims, the driver answers for {len(answers)}")
        for answer in answers.values():
            if answer.error:
                raise FailureError(f"NodePrepareResources fails: {answer.error}")
            _resolvable(stage, answer)


async def _unprepare(stage: Stage) -> None:
    async with _claim(stage) as claim:
        answer = await _prepared(stage, claim)
        await _unprepared(stage, stages.reference(claim))
        left = set(answer.cdi_ids) - set(stage.unresolved(answer.cdi_ids))
        if left:
            raise FailureError(f"CDI devices {', '.join(sorted(left))} are still there")


async def _unprepare_again(stage: Stage) -> None:
    async with _claim(stage) as claim:
        await _prepared(stage, claim)
        for _ in range(2):
            await _unprepared(stage, stages.reference(claim))


async def _unprepare_gone(stage: Stage) -> None:
    claim = await stage.claim(*await _devices(stage))
    await _prepared(stage, claim)
    await stage.remove(claim)
    await _unprepared(stage, stages.reference(claim))


async def _unprepare_unknown(stage: Stage) -> None:
    await _unprepared(stage, {"namespace": "default", "name": "never-seen", "uid": str(uuid.uuid4())})


async def _refuses(stage: Stage, asked: dict[str, str], what: str) -> None:
    """Asks for something that must not be prepared."""
    try:
        answers = await stage.prepare_references(asked)
    except CallError:
        return
    answer = answers.get(asked["uid"])
    if answer is not None and not answer.error:
        raise FailureError(f"{what} is prepared: {answer.devices or 'without devices'}")


async def _unknown_claim(stage: Stage) -> None:
    asked = {"namespace": "default", "name": "never-seen", "uid": str(uuid.uuid4())}
    await _refuses(stage, asked, "a claim that does not exist")


async def _other_uid(stage: Stage) -> None:
    async with _claim(stage) as claim:
        await _refuses(stage, {**stages.reference(claim), "uid": str(uuid.uuid4())}, "a claim of another uid")


async def _not_allocated(stage: Stage) -> None:
    async with _claim(stage, is_allocated=False) as claim:
        await _refuses(stage, stages.reference(claim), "a claim that is not allocated")


async def _invalid_parameters(stage: Stage) -> None:
    parameters = {"apiVersion": "invalid.drachma.dev/v1", "kind": "Nonsense", "drachmaDriverCheck": [1, {"two": None}]}
    async with _claim(stage, parameters=parameters) as claim:
        await _refuses(stage, stages.reference(claim), "a claim with parameters that make no sense")


async def _bad_beside_good(stage: Stage) -> None:
    async with _claim(stage) as claim:
        asked = [stages.reference(claim), {"namespace": "default", "name": "never-seen", "uid": str(uuid.uuid4())}]
        with contextlib.suppress(CallError):
            await stage.prepare_references(*asked)
        await _prepared(stage, claim)


# What happens at once


async def _same_claim_at_once(stage: Stage) -> None:
    async with _claim(stage) as claim:
        answers = await asyncio.gather(*(_prepared(stage, claim) for _ in range(_AT_ONCE)))
        for answer in answers[1:]:
            _same(answers[0], answer, "asked several times at once,")
        _resolvable(stage, answers[0])


async def _claims_at_once(stage: Stage) -> None:
    devices = await _devices(stage, _AT_ONCE)
    async with contextlib.AsyncExitStack() as stack:
        claims = [await stack.enter_async_context(_claim(stage, device)) for device in devices]
        answers = await asyncio.gather(*(_prepared(stage, claim) for claim in claims))
        for device, answer in zip(devices, answers, strict=True):
            if [name for _, name, _, _ in answer.devices] != [device.device.name]:
                raise FailureError(f"prepared at once, the claim of {device.device.name} got {answer.devices}")
            _resolvable(stage, answer)
        await asyncio.gather(*(_unprepared(stage, stages.reference(claim)) for claim in claims))


# What happens in between


def _needs_restart(stage: Stage) -> None:
    if not stage.subject.can_restart:
        raise SkipError("the driver was not started here, and cannot be restarted")


async def _killed_after_prepare(stage: Stage) -> None:
    _needs_restart(stage)
    async with _claim(stage) as claim:
        first = await _prepared(stage, claim)
        await stage.restart(kills=True)
        second = await _prepared(stage, claim)
        _same(first, second, "after it was killed and restarted")
        _resolvable(stage, second)


async def _killed_before_unprepare(stage: Stage) -> None:
    _needs_restart(stage)
    async with _claim(stage) as claim:
        answer = await _prepared(stage, claim)
        await stage.restart(kills=True)
        await _unprepared(stage, stages.reference(claim))
        if len(stage.unresolved(answer.cdi_ids)) != len(answer.cdi_ids):
            raise FailureError("what was prepared before it was killed is still there after NodeUnprepareResources")


async def _killed_while_preparing(stage: Stage) -> None:
    _needs_restart(stage)
    async with _claim(stage) as claim:
        call = asyncio.create_task(stage.prepare(claim))
        await asyncio.sleep(0.001)
        await stage.subject.kill()
        with contextlib.suppress(CallError):
            await call
        await stage.start()
        _resolvable(stage, await _prepared(stage, claim))


async def _lost_files(stage: Stage) -> None:
    async with _claim(stage) as claim:
        first = await _prepared(stage, claim)
        stage.lose_files()
        second = await _prepared(stage, claim)
        _same(first, second, "after its CDI files were lost")
        _resolvable(stage, second)


async def _lost_directory(stage: Stage) -> None:
    async with _claim(stage) as claim:
        stage.lose_files()
        with contextlib.suppress(OSError):
            stage.cdi.rmdir()
        try:
            _resolvable(stage, await _prepared(stage, claim))
        finally:
            stage.cdi.mkdir(parents=True, exist_ok=True)


async def _stops(stage: Stage) -> None:
    _needs_restart(stage)
    sockets = [pathlib.Path(stage.info.endpoint)]
    if not await stage.subject.stop():
        raise FailureError("it does not end within a minute of SIGTERM")
    left = [str(path) for path in sockets if path.exists()]
    await stage.start()
    if left:
        raise FailureError(f"it leaves {', '.join(left)}")


# Health


async def _health(stage: Stage) -> None:
    if not any(service.advertised in stage.info.versions for service in services.HEALTH):
        raise SkipError("the driver does not offer it")
    known = {(each.pool, each.device.name) for each in await _devices(stage, 10_000)}
    async with stage.health() as reports:
        try:
            async with asyncio.timeout(_HEALTH_SECONDS):
                report = await anext(aiter(reports), None)
        except TimeoutError:
            raise FailureError(
                f"no report within {_HEALTH_SECONDS:.0f} s, after which devices count as unknown"
            ) from None
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                raise SkipError("the driver offers it and says that it is not supported") from None
            raise FailureError(services.problem(error)) from error
    if report is None:
        raise FailureError("the stream ends before the first report")
    strangers = {(each.device.pool_name, each.device.device_name) for each in report.devices} - known
    if strangers:
        shown = ", ".join(f"{pool}/{device}" for pool, device in sorted(strangers))
        raise FailureError(f"reports are about devices that are not published: {shown}")


ALL: Final[tuple[Check, ...]] = (
    Check(
        "registration",
        "GetInfo tells type, name, endpoint and versions; the answer to it is taken",
        "kubelet plugin registration",
        _registration,
    ),
    Check(
        "registration-refused",
        "a driver outlives that a node agent refuses it",
        "kubelet plugin registration",
        _refused_registration,
    ),
    Check(
        "slices",
        "pools are complete: as many slices of the newest generation as they say, none older, no device twice",
        f"{_KEP}, ResourceSlice",
        _slices,
    ),
    Check(
        "slices-owned",
        "slices of a node are owned by it",
        f"{_KEP}, ResourceSlice",
        _slice_owner,
        is_must=False,
    ),
    Check(
        "slices-stable",
        "restarts with the same devices change nothing that others see",
        f"{_KEP}, ResourceSlice",
        _stable_slices,
    ),
    Check(
        "prepare",
        "the allocated devices are prepared, and their CDI devices can be found",
        f"{_GRPC}, NodePrepareResources",
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
        f"{_GRPC}, NodePrepareResources",
        _prepare_again,
    ),
    Check(
        "versions",
        "all versions of the service give the same answer",
        _GRPC,
        _both_versions,
    ),
    Check(
        "prepare-several",
        "every claim of a call is answered",
        f"{_GRPC}, NodePrepareResources",
        _several_claims,
    ),
    Check(
        "unprepare",
        "nothing of a claim is left",
        f"{_GRPC}, NodeUnprepareResources",
        _unprepare,
    ),
    Check(
        "unprepare-again",
        "undoing is idempotent",
        f"{_GRPC}, NodeUnprepareResources",
        _unprepare_again,
    ),
    Check(
        "unprepare-gone",
        "a claim is undone though its object is gone",
        f"{_GRPC}, NodeUnprepareResources",
        _unprepare_gone,
    ),
    Check(
        "unprepare-unknown",
        "there is nothing to undo of a claim that was never prepared",
        f"{_GRPC}, NodeUnprepareResources",
        _unprepare_unknown,
    ),
    Check(
        "unknown-claim",
        "a claim that does not exist is not prepared",
        f"{_GRPC}, NodePrepareResources",
        _unknown_claim,
    ),
    Check(
        "other-uid",
        "a claim that was replaced by another one of its name is not prepared",
        f"{_GRPC}, NodePrepareResources",
        _other_uid,
    ),
    Check(
        "not-allocated",
        "a claim without an allocation is not prepared",
        f"{_GRPC}, NodePrepareResources",
        _not_allocated,
    ),
    Check(
        "invalid-parameters",
        "parameters that make no sense are refused",
        f"{_KEP}, opaque configuration",
        _invalid_parameters,
        is_must=False,
    ),
    Check(
        "bad-beside-good",
        "a claim can be prepared after it was asked for beside one that cannot",
        f"{_GRPC}, NodePrepareResources",
        _bad_beside_good,
    ),
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
    Check(
        "killed-after-prepare",
        "preparing is idempotent across restarts of the driver",
        f"{_GRPC}, NodePrepareResources",
        _killed_after_prepare,
    ),
    Check(
        "killed-before-unprepare",
        "what was prepared before a restart is undone after it",
        f"{_GRPC}, NodeUnprepareResources",
        _killed_before_unprepare,
    ),
    Check(
        "killed-while-preparing",
        "a driver that was killed halfway begins anew",
        f"{_GRPC}, NodePrepareResources",
        _killed_while_preparing,
    ),
    Check(
        "lost-files",
        "CDI files that are lost, as after a reboot, are written again",
        f"{_KEP}, node reboot",
        _lost_files,
    ),
    Check(
        "lost-directory",
        "the CDI directory need not be there",
        f"{_KEP}, node reboot",
        _lost_directory,
        is_must=False,
    ),
    Check(
        "health",
        "reports come within the time after which devices count as unknown, about published devices",
        "KEP-4680",
        _health,
    ),
    Check(
        "stop",
        "SIGTERM ends it, and its socket is removed",
        "kubeletplugin helper",
        _stops,
        is_must=False,
    ),
)


def chosen(names: Sequence[str]) -> tuple[Check, ...]:
    """The checks of these names, in the order in which they are tried.

    Raises:
        errors.InvalidValueError: there is no check of a name.
    """
    known = {check.name for check in ALL}
    for name in names:
        if name not in known:
            raise errors.InvalidValueError(f"rule {name!r}: there are {', '.join(check.name for check in ALL)}")
    return tuple(check for check in ALL if check.name in names)
