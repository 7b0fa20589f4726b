"""Setups of simulated pods: nothing is made for them, and an event warns that a simulated driver does nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from drachma.api.pod import Pod
from drachma.claims import driverpods
from drachma.node.pods import services

REASON: Final = "SimulatedDriver"
"""Reason of the event on the pod of a driver whose containers are simulated."""

_MESSAGE: Final = (
    "the containers of this driver are simulated, so it publishes no devices and prepares none: "
    "start the nodes with --profile for simulated devices of its vendor, or with --runtime process or podman to run it"
)


class SimulatedSetups(services.NoSetups):
    """Setups of a node whose containers are simulated."""

    def __init__(self, record: Callable[[Pod, str, str], None]) -> None:
        """``record`` records a warning about a pod, with a reason and a message."""
        self._record: Final = record

    async def begin(self, pod: Pod) -> None:
        """Record a warning if the pod is one of a driver."""
        if driverpods.is_driver(pod.spec.volumes):
            self._record(pod, REASON, _MESSAGE)
