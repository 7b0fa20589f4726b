"""The addresses of pods whose containers are only imagined: each has one of its own, as if there were a network."""

from __future__ import annotations

from typing import Final

from drachma.api import pod

_MOST: Final = 254


class PodAddresses:
    """Those of one node: ``10.A.B.1`` and so on, where its own address ends in ``A.B``."""

    def __init__(self, host: str) -> None:
        self._prefix = ".".join(("10", *host.split(".")[-2:]))
        self._numbers: dict[str, int] = {}

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
