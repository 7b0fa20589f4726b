"""The components of a control plane beside its API server, and how each is built: controllers, a scheduler.

:mod:`drachma.process.embedded` runs several of them in one process, :mod:`drachma.process.standalone` one on its own.
"""

from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias

from drachma.controllers import descriptors
from drachma.node import agent, hardware
from drachma.node.runtimes import simulated as runtime
from drachma.runtime import Surroundings, controller
from drachma.scheduler import Scheduler, Settings

Run: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""Runs a component until it is cancelled; its informers run already."""

Component: TypeAlias = Callable[[Surroundings], Run]
"""Builds a component on informers that need not run yet, and returns how to run it."""


def controllers(surroundings: Surroundings, chosen: tuple[descriptors.Descriptor, ...] | None = None) -> Run:
    """Controllers, all of a cluster unless some are chosen."""
    makes = chosen if chosen is not None else descriptors.chosen(gates=surroundings.gates)
    built = [descriptor.make(surroundings) for descriptor in makes if descriptor.is_possible(surroundings)]
    return lambda: controller.run_all(surroundings, built)


def scheduler(surroundings: Surroundings, settings: Settings | None = None) -> Run:
    """A scheduler, for the pods that name none unless settings say otherwise."""
    return Scheduler(surroundings, chosen=settings).run


def agents(surroundings: Surroundings, simulated: hardware.Hardware) -> Run:
    """The agents of simulated machines, with the recorders of their events."""
    built = agent.Agents(surroundings, simulated, runtime.SimulatedRuntime(surroundings.clock))
    return lambda: controller.run_all(surroundings, [built])


ALL: Final[tuple[Component, ...]] = (controllers, scheduler)
