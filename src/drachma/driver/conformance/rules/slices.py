"""Rules about published slices."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from drachma import errors
from drachma.api import resourceslice
from drachma.client import Change, Selection
from drachma.driver.conformance import acts
from drachma.driver.conformance.check import KEP, Check, FailureError
from drachma.driver.conformance.stage import Stage


async def _slices(stage: Stage) -> None:
    try:
        slices = await acts.published(stage)
    except errors.DriverError as error:
        problems = [problem for each in acts.pools(await stage.slices()).values() if (problem := acts.incomplete(each))]
        raise FailureError("; ".join(problems) or str(error)) from error
    for pool, own in acts.pools(slices).items():
        names: set[str] = set()
        for each in own:
            for device in each.spec.devices:
                if device.name in names:
                    raise FailureError(f"pool {pool}: device {device.name} is there twice")
                names.add(device.name)


async def _slice_owner(stage: Stage) -> None:
    for each in await acts.published(stage):
        if each.spec.node_name and not any(owner.kind == "Node" for owner in each.metadata.owner_references):
            raise FailureError(f"slice {each.metadata.name} is not owned by its node, and stays when the node is gone")


async def _stable_slices(stage: Stage) -> None:
    acts.need_restart(stage)
    before = await acts.published(stage)
    selection = Selection(fields=f"spec.driver={stage.info.name}")
    since = (await stage.client.list(resourceslice.ResourceSlice, selection)).resource_version
    await stage.restart(kills=True)
    await stage.restart(kills=False)
    after = await acts.published(stage)
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


CHECKS: Final = (
    Check(
        "slices",
        "pools are complete: as many slices of the newest generation as they say, none older, no device twice",
        f"{KEP}, ResourceSlice",
        _slices,
    ),
    Check(
        "slices-owned",
        "slices of a node are owned by it",
        f"{KEP}, ResourceSlice",
        _slice_owner,
        is_must=False,
    ),
    Check(
        "slices-stable",
        "restarts with the same devices change nothing that others see",
        f"{KEP}, ResourceSlice",
        _stable_slices,
    ),
)
