"""The components of a control plane beside its API server, and how each is built: controllers, a scheduler.

:mod:`drachma.process.embedded` runs several of them in one process, :mod:`drachma.process.standalone` one on its own.
"""

from __future__ import annotations

import asyncio
import pathlib
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from drachma.controllers import descriptors
from drachma.runtime import Surroundings, controller
from drachma.scheduler import Scheduler, Settings
from drachma.scheduler.recording import Recorder, RecordFile, recordfile

MANAGER: Final = "system:kube-controller-manager"
"""Who watches for all controllers of a process."""

SCHEDULER: Final = "system:kube-scheduler"

Run: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""Runs a component until it is cancelled; its informers run already."""


class RecordingTo(NamedTuple):
    """Where a scheduler records its decisions, and how much."""

    path: pathlib.Path
    most_bytes: int = recordfile.DEFAULT_BYTES

    @classmethod
    def of(cls, path: pathlib.Path | None, *, mebibytes: int) -> RecordingTo | None:
        """What options say: nothing is recorded without a path."""
        return None if path is None else cls(path, mebibytes * 2**20)


Component: TypeAlias = Callable[[Surroundings], Run]
"""Builds a component on informers that need not run yet, and returns how to run it."""


def controllers(surroundings: Surroundings, chosen: tuple[descriptors.Descriptor, ...] | None = None) -> Run:
    """Controllers, all of a cluster unless some are chosen."""
    makes = chosen if chosen is not None else descriptors.chosen(gates=surroundings.gates)
    built = [
        (own, descriptor.make(own))
        for descriptor in makes
        if descriptor.is_possible(surroundings)
        for own in [surroundings.acting_as(descriptor.user)]
    ]

    async def run() -> None:
        async with asyncio.TaskGroup() as group:
            for own, controllers in _by_surroundings(built):
                group.create_task(controller.run_all(own, controllers))

    return run


def _by_surroundings(
    built: list[tuple[Surroundings, controller.Controller]],
) -> Iterator[tuple[Surroundings, list[controller.Controller]]]:
    """Controllers with the surroundings that they have in common, whose recorders are run once."""
    for own in {id(own): own for own, _ in built}.values():
        yield own, [each for other, each in built if other is own]


def scheduler(
    surroundings: Surroundings, settings: Settings | None = None, recording_to: RecordingTo | None = None
) -> Run:
    """A scheduler, for the pods that name none unless settings say otherwise.

    Without settings it is one of drachma's own control plane, in which nobody waits for volumes. InvalidValueError
    where its decisions are to be recorded and the file cannot be opened.
    """
    chosen = settings or Settings(gates=surroundings.gates, has_volume_controllers=False)
    recorder = None
    if recording_to is not None:
        file = RecordFile(recording_to.path, most_bytes=recording_to.most_bytes)
        recorder = Recorder(file, chosen=chosen, time=surroundings.clock)
    return Scheduler(surroundings.acting_as(SCHEDULER), chosen=chosen, recorder=recorder).run


ALL: Final[tuple[Component, ...]] = (controllers, scheduler)
