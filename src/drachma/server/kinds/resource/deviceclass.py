"""Device classes: kinds of devices that an administrator offers under a name."""

from typing import Final

from drachma.api import deviceclass
from drachma.server.kinds.resource import devicekind

KIND: Final = devicekind.of(deviceclass.DeviceClass)
