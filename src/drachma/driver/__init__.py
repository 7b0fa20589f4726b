"""The SDK for drivers: a driver is a class with a name and three methods, and runs on any cluster.

==================== ============================================================================
driver, claim, edits what an author writes and is given
devices, partitions  what devices are described with; ``pool`` puts them together, ``sysfs`` reads attributes
opaqueconfig         parameters of classes and claims, in the driver's type; ``adminfields`` only classes may set
publishing           keeping slices as the driver wants them
plugin               the sockets on which node agents call it
preparing            what happens around ``prepare`` and ``unprepare``
webhook              checking parameters in claims and classes when they are written
parameters           resolving a vendor's own kinds for claims of the first alpha
instance             one running driver, made of these
program, manifests   ``main``: its command line, and what a cluster needs to run it
==================== ============================================================================

Node agents are kubelets or drachma's own. ``docs/writing-a-driver.md`` is the way in.
"""

from drachma.driver.adminfields import AdminOnly
from drachma.driver.claim import AllocatedDevice, Claim, ConfigSource, Parameters
from drachma.driver.devices import DeviceBuilder, device
from drachma.driver.driver import Driver
from drachma.driver.edits import DeviceMetadata, Edits, Prepared, edits
from drachma.driver.opaqueconfig import Config
from drachma.driver.partitions import Partitions, Profile, partitions
from drachma.driver.plugin.contract import ClaimReference, Health, Status
from drachma.driver.pool import Pool, pool
from drachma.driver.program import main
from drachma.driver.sysfs import pci_attributes
from drachma.errors import DeviceUnavailableError

__all__ = [
    "AdminOnly",
    "AllocatedDevice",
    "Claim",
    "ClaimReference",
    "Config",
    "ConfigSource",
    "DeviceBuilder",
    "DeviceMetadata",
    "DeviceUnavailableError",
    "Driver",
    "Edits",
    "Health",
    "Parameters",
    "Partitions",
    "Pool",
    "Prepared",
    "Profile",
    "Status",
    "device",
    "edits",
    "main",
    "partitions",
    "pci_attributes",
    "pool",
]
