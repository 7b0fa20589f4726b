"""Questions about pools of devices (ResourcePoolStatusRequest), and their answers."""

from drachma.controllers.poolstatus.poolstatuscontroller import ResourcePoolStatusController

__all__ = ["ResourcePoolStatusController"]
