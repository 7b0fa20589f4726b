"""Device taint eviction: pods leave devices that have a NoExecute taint that they do not tolerate."""

from drachma.controllers.devicetaints.evictioncontroller import DeviceTaintEviction

__all__ = ["DeviceTaintEviction"]
