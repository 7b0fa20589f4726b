"""Runs controllers side by side in one process, with the recorders of their events."""

import asyncio
import logging
from collections.abc import Iterable

from drachma.controllers import environment
from drachma.runtime import controller

_log = logging.getLogger(__name__)


async def run(surroundings: environment.Environment, controllers: Iterable[controller.Controller]) -> None:
    """Runs until cancelled. The informers run already, or nothing begins; one that fails for good ends them all."""
    await surroundings.informers.wait_synced()
    async with asyncio.TaskGroup() as group:
        for component, recorder in surroundings.recorders.items():
            group.create_task(recorder.run(), name=f"events of {component}")
        for each in controllers:
            _log.info("%s controller starts", each.name)
            group.create_task(each.run(), name=f"{each.name} controller")
