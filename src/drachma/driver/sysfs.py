"""Standard attributes of PCI devices, read from the kernel's sysfs (KEP-4381, ResourceSlice).

Drivers of different vendors publish them under the same names, so that a claim can ask for a GPU and a network card of
one PCIe root or of one NUMA node.
"""

from __future__ import annotations

import pathlib
import re
from typing import Final

from drachma import errors
from drachma.driver.devices import AttributeValue

PCIE_ROOT: Final = "resource.kubernetes.io/pcieRoot"
PCI_BUS_ID: Final = "resource.kubernetes.io/pciBusID"
NUMA_NODE: Final = "resource.kubernetes.io/numaNode"

SYSFS: Final = pathlib.Path("/sys")

_BUS_ID: Final = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_ROOT: Final = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")


def pci_attributes(bus_id: str, *, sysfs: pathlib.Path = SYSFS) -> dict[str, AttributeValue]:
    """Return the standard attributes of a PCI device: its address, its PCIe root, and its NUMA node.

    The NUMA node is absent on machines that do not tell it.

    Raises:
        errors.DriverError: the address is malformed, there is no such device, or it is not below a PCIe root.
    """
    if not _BUS_ID.fullmatch(bus_id):
        raise errors.DriverError(f"PCI address {bus_id!r}: expected the form 0000:00:01.0")
    try:
        path = (sysfs / "bus" / "pci" / "devices" / bus_id).resolve(strict=True)
    except OSError as error:
        raise errors.DriverError(f"PCI address {bus_id}: {error.strerror} in {sysfs}") from error
    attributes: dict[str, AttributeValue] = {PCI_BUS_ID: bus_id, PCIE_ROOT: _pcie_root(bus_id, path, sysfs)}
    numa_node = _numa_node(path)
    return attributes if numa_node is None else {**attributes, NUMA_NODE: numa_node}


def _pcie_root(bus_id: str, path: pathlib.Path, sysfs: pathlib.Path) -> str:
    """Return the first directory below ``devices`` in the real path of a device."""
    try:
        root = path.relative_to(sysfs.resolve() / "devices").parts[0]
    except ValueError:
        root = ""
    if not _ROOT.fullmatch(root):
        raise errors.DriverError(f"PCI address {bus_id}: {path} is not below a PCIe root")
    return root


def _numa_node(path: pathlib.Path) -> int | None:
    try:
        number = int((path / "numa_node").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    # The kernel says -1 where it does not know.
    return number if number >= 0 else None
