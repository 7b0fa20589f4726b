"""Addresses of the pods of one node, as their statuses show them.

Simulated pods have an address of each IP family of the cluster, as if there were a pod network. Pods that really run
share the address of their machine.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from drachma.api.pod import Pod
from drachma.claims import podstate

IPV4: Final = "IPv4"
_MOST: Final = 254


class PodAddresses:
    """Addresses of the pods of a node: ``10.A.B.1`` and so on, where the node's own address ends in ``A.B``.

    Addresses of IPv6 are ``fd00:10:A:B::1`` and so on.
    """

    def __init__(self, host: str, *, common: str = "", families: Sequence[str] = (IPV4,)) -> None:
        """``host`` is empty for a node without an address. ``common`` is the address of all pods, if they share one.

        Simulated pods have an address of each family, the primary one first.
        """
        self._host: Final = host
        self._common: Final = common
        self._prefix: Final = ".".join(("10", *host.split(".")[-2:]))
        self._network: Final = f"fd00:{self._prefix.replace('.', ':')}::"
        self._families: Final = tuple(families)
        self._numbers: Final[dict[str, int]] = {}

    def recall(self, pods: Iterable[Pod]) -> None:
        """Reserve the addresses that pods of this node have from before, ahead of all new ones.

        If several pods have the same address by mistake, the oldest pod keeps it.
        """
        for each in sorted(pods, key=_age):
            number = self._number(each.status.pod_ip)
            if number and not podstate.has_ended(each) and number not in self._numbers.values():
                self._numbers[each.metadata.uid] = number

    def status(self, pod: Pod) -> Mapping[str, Any]:
        """Return the addresses of the node and a pod, as fields of the pod's status; none without an address."""
        if not self._host:
            return {}
        addresses = (self._common,) if self._common else self.addresses(pod)
        fields = {"podIP": addresses[0], "podIPs": _only(*addresses)} if addresses else {}
        return {"hostIP": self._host, "hostIPs": _only(self._host), **fields}

    def addresses(self, pod: Pod) -> tuple[str, ...]:
        """Return the addresses of a simulated pod, which keeps them; none if all addresses are taken."""
        uid = pod.metadata.uid
        if uid not in self._numbers:
            numbers = set(self._numbers.values())
            previous = self._number(pod.status.pod_ip)
            free = (number for number in (previous, *range(1, _MOST + 1)) if number and number not in numbers)
            self._numbers[uid] = next(free, 0)
        number = self._numbers[uid]
        return tuple(self._address(family, number) for family in self._families) if number else ()

    def release(self, uid: str) -> None:
        """Free the address of a pod that is gone."""
        self._numbers.pop(uid, None)

    def _address(self, family: str, number: int) -> str:
        if family == IPV4:
            return f"{self._prefix}.{number}"
        return str(ipaddress.IPv6Address(self._network) + number)

    def _number(self, address: str) -> int:
        """Return the number of a pod by its address, or 0 for an address that is not of this node."""
        if ":" in address and self._host:
            number = int(ipaddress.IPv6Address(address)) - int(ipaddress.IPv6Address(self._network))
            return number if 0 < number <= _MOST else 0
        prefix, _, text = address.rpartition(".")
        return int(text) if prefix == self._prefix and text.isdecimal() else 0


def _age(pod: Pod) -> tuple[dt.datetime, str]:
    since = pod.status.start_time or pod.metadata.creation_timestamp or dt.datetime.max.replace(tzinfo=dt.UTC)
    return since, pod.metadata.uid


def _only(*addresses: str) -> list[dict[str, str]]:
    """Return a list of addresses for a patch. Without the directive, older addresses would stay in the list."""
    return [{"$patch": "replace"}, *({"ip": each} for each in addresses)]
