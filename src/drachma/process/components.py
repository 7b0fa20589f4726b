"""Components of a control plane next to its API server: controllers and a scheduler.

:mod:`drachma.process.embedded` runs several of them in one process, :mod:`drachma.process.standalone` a single one.
"""

from __future__ import annotations

import asyncio
import pathlib
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from drachma.controllers import descriptors
from drachma.runtime import Surroundings, controller
from drachma.scheduler import Settings
from drachma.scheduler.recording import Recorder, RecordFile, recordfile
from drachma.scheduler.scheduler import Scheduler

MANAGER: Final = "system:kube-controller-manager"
"""User whose watches all controllers of a process share."""

SCHEDULER: Final = "system:kube-scheduler"

Run: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""Runs a component until cancelled. Its informers are already running."""


class Replica(NamedTuple):
    """Process of a replicated component: the holder of the lease leads, and all replicas serve."""

    lead: Run
    serve: Run


class RecordingTo(NamedTuple):
    """File for a scheduler's recording, and its maximum size."""

    path: pathlib.Path
    most_bytes: int = recordfile.DEFAULT_BYTES

    @classmethod
    def of(cls, path: pathlib.Path | None, *, mebibytes: int) -> RecordingTo | None:
        """Return the recording that options configure, or None without a path."""
        return None if path is None else cls(path, mebibytes * 2**20)


Component: TypeAlias = Callable[[Surroundings], Run]
"""Builds a component on informers that need not run yet, and returns the function that runs it."""


def controllers(surroundings: Surroundings, selected: tuple[descriptors.Descriptor, ...] | None = None) -> Run:
    """Return the function that runs controllers, by default all of them."""
    makes = selected if selected is not None else descriptors.chosen(gates=surroundings.gates)
    built = [
        (own, descriptor.make(own))
        for descriptor in makes
        if descriptor.is_possible(surroundings)
        for own in [surroundings.acting_as(descriptor.user)]
    ]

    async def run() -> None:
        async with asyncio.TaskGroup() as group:
            for own, controllers in _group_by_surroundings(built):
                group.create_task(controller.run_all(own, controllers))

    return run


def _group_by_surroundings(
    built: list[tuple[Surroundings, controller.Controller]],
) -> Iterator[tuple[Surroundings, list[controller.Controller]]]:
    """Yield each surroundings with its controllers, so that their event recorder runs once."""
    for own in {id(own): own for own, _ in built}.values():
        yield own, [each for other, each in built if other is own]


def scheduler(
    surroundings: Surroundings, settings: Settings | None = None, recording_to: RecordingTo | None = None
) -> Run:
    """Return the function that runs a scheduler, by default for pods without a schedulerName.

    The default settings are for a control plane without volume controllers, in which no pod waits for volumes. Raises
    errors.InvalidValueError if the file of the recording cannot be opened.
    """
    own_settings = settings or Settings(gates=surroundings.gates, has_volume_controllers=False)
    recorder = None
    if recording_to is not None:
        file = RecordFile(recording_to.path, most_bytes=recording_to.most_bytes)
        recorder = Recorder(file, settings=own_settings, clock=surroundings.clock)
    return Scheduler(surroundings.acting_as(SCHEDULER), settings=own_settings, recorder=recorder).run


ALL: Final[tuple[Component, ...]] = (controllers, scheduler)
