"""Room on a node: cpu, memory and huge pages that the devices of claims may still use there (KEP-5517).

Upstream chooses devices first, and then checks that the node has what they need. With a room, the search goes on to
other devices and alternatives while the node has too little for the first ones. The caller knows what devices need;
the search only subtracts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from drachma.api import resourceslice
from drachma.values import quantity

Needs = Callable[[int, resourceslice.Device, Mapping[str, quantity.Quantity]], Mapping[str, int]]
"""Function that returns the amounts (in billionths, by resource) that a device needs of the node.

Its arguments are the number of the claim, the device, and the capacity that the request consumes of it.
"""


class NodeRoom(NamedTuple):
    """Amounts left on a node, and the function that computes the needs of devices."""

    left: tuple[tuple[str, int], ...]
    """Resources with the amounts left of them, in billionths."""
    needs: Needs
