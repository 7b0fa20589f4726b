"""Addresses of the pods of one node, as their statuses show them.

Simulated pods have an address each, as if there were a pod network. Pods that really run share the address of their
machine.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any, Final

from drachma.api.pod import Pod
from drachma.claims import podstate

_MOST: Final = 254


class PodAddresses:
    """Addresses of the pods of a node: ``10.A.B.1`` and so on, where the node's own address ends in ``A.B``."""

    def __init__(self, host: str, *, common: str = "") -> None:
        """``host`` is empty for a node without an address. ``common`` is the address of all pods, if they share one."""
        self._host: Final = host
        self._common: Final = common
        self._prefix: Final = ".".join(("10", *host.split(".")[-2:]))
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
        address = self._common or self.address(pod)
        fields = {"podIP": address, "podIPs": _only(address)} if address else {}
        return {"hostIP": self._host, "hostIPs": _only(self._host), **fields}

    def address(self, pod: Pod) -> str:
        """Return the address of a simulated pod, which keeps it; empty if all addresses are taken."""
        uid = pod.metadata.uid
        if uid not in self._numbers:
            numbers = set(self._numbers.values())
            previous = self._number(pod.status.pod_ip)
            free = (number for number in (previous, *range(1, _MOST + 1)) if number and number not in numbers)
            self._numbers[uid] = next(free, 0)
        number = self._numbers[uid]
        return f"{self._prefix}.{number}" if number else ""

    def release(self, uid: str) -> None:
        """Free the address of a pod that is gone."""
        self._numbers.pop(uid, None)

    def _number(self, address: str) -> int:
        prefix, _, number = address.rpartition(".")
        return int(number) if prefix == self._prefix and number.isdecimal() else 0


def _age(pod: Pod) -> tuple[dt.datetime, str]:
    since = pod.status.start_time or pod.metadata.creation_timestamp or dt.datetime.max.replace(tzinfo=dt.UTC)
    return since, pod.metadata.uid


def _only(address: str) -> list[dict[str, str]]:
    """Return a list of one address for a patch. Without the directive, an older address would stay in the list."""
    return [{"$patch": "replace"}, {"ip": address}]
