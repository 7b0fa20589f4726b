"""Addresses of services inside of a cluster: which are free.

Nothing routes to them, so a range of its own choice is as good as any. An address is looked for from a place that
follows from the service's name, so that services that are made at the same time hardly ever find the same one.
"""

import hashlib
import ipaddress
from typing import Final

from drachma.server.surface.strategy import Lookup

RANGE: Final = ipaddress.ip_network("10.96.0.0/12")
"""What kubeadm gives to clusters."""

FIRST: Final = str(RANGE[1])
"""The address of the service ``kubernetes``."""

_FIRST_OFFSET: Final = 2


class Addresses:
    """The addresses of the services in a store."""

    def __init__(self, store: Lookup) -> None:
        self._store = store

    def free(self, name: str) -> str:
        """An address that no stored service has. Looks at all services."""
        taken = {record.value.get("spec", {}).get("clusterIP") for record in self._store.list("services", None).records}
        count = RANGE.num_addresses - _FIRST_OFFSET - 1
        start = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())
        offsets = ((start + step) % count + _FIRST_OFFSET for step in range(len(taken) + 1))
        return next(address for offset in offsets if (address := str(RANGE[offset])) not in taken)
