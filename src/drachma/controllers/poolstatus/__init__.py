"""The controller of ResourcePoolStatusRequests: reports the status of device pools on request."""

from drachma.controllers.poolstatus.poolstatuscontroller import ResourcePoolStatusController

__all__ = ["ResourcePoolStatusController"]
