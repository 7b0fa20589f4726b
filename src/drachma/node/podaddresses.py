"""The addresses of pods whose containers are only imagined: each has one of its own, as if there were a network."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Final

from drachma.api import pod
from drachma.claims import podstate

_MOST: Final = 254


class PodAddresses:
    """Those of one node: ``10.A.B.1`` and so on, where its own address ends in ``A.B``."""

    def __init__(self, host: str) -> None:
        self._prefix = ".".join(("10", *host.split(".")[-2:]))
        self._numbers: dict[str, int] = {}

    def recall(self, pods: Iterable[pod.Pod]) -> None:
        """Take note of the addresses that pods of this node have from before, ahead of all new ones.

        Of pods that have one address by a fault, the one that began first keeps it.
        """
        for each in sorted(pods, key=_age):
            number = self._number(each.status.pod_ip)
            if number and not podstate.has_ended(each) and number not in self._numbers.values():
                self._numbers[each.metadata.uid] = number

    def of(self, owner: pod.Pod) -> str:
        """The address of a pod, which it keeps; empty where all are taken."""
        uid = owner.metadata.uid
        if uid not in self._numbers:
            taken = set(self._numbers.values())
            before = self._number(owner.status.pod_ip)
            free = (number for number in (before, *range(1, _MOST + 1)) if number and number not in taken)
            self._numbers[uid] = next(free, 0)
        number = self._numbers[uid]
        return f"{self._prefix}.{number}" if number else ""

    def release(self, uid: str) -> None:
        """A pod is gone."""
        self._numbers.pop(uid, None)

    def _number(self, address: str) -> int:
        prefix, _, number = address.rpartition(".")
        return int(number) if prefix == self._prefix and number.isdecimal() else 0


def _age(of: pod.Pod) -> tuple[dt.datetime, str]:
    since = of.status.start_time or of.metadata.creation_timestamp or dt.datetime.max.replace(tzinfo=dt.UTC)
    return since, of.metadata.uid
