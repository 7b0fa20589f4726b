"""Nominations: pods for which other pods were evicted, and the nodes reserved for them until they are bound."""

from __future__ import annotations

from collections.abc import Iterator

from drachma.scheduler.snapshot import podinfo
from drachma.values import forkmap

_Pods = dict[str, podinfo.PodInfo]


class Nominations:
    """Nominated nodes of pods."""

    def __init__(self, parent: Nominations | None = None) -> None:
        """With a ``parent`` this is a fork of it."""
        if parent is None:
            self._node_of = forkmap.ForkMap[str, str]()
            self._by_node = forkmap.ForkMap[str, _Pods](copy=dict)
        else:
            self._node_of = parent._node_of.fork()
            self._by_node = parent._by_node.fork()

    def fork(self) -> Nominations:
        """Return a copy that can be changed separately."""
        return Nominations(self)

    def __iter__(self) -> Iterator[tuple[podinfo.PodInfo, str]]:
        """Yield the nominated pods, each with its node."""
        for node, nominees in self._by_node.items():
            for info in nominees.values():
                yield info, node

    def put(self, info: podinfo.PodInfo, node: str) -> None:
        """Nominate a node for a pod, or none if the name is empty."""
        self.remove(info.uid)
        if node:
            self._node_of[info.uid] = node
            if node not in self._by_node:
                self._by_node[node] = {}
            self._by_node.mutable(node)[info.uid] = info

    def remove(self, uid: str) -> None:
        """End the nomination of a pod."""
        node = self._node_of.pop(uid, None)
        if node is not None:
            nominees = self._by_node.mutable(node)
            del nominees[uid]
            if not nominees:
                del self._by_node[node]

    def node_of(self, uid: str) -> str:
        """Return the node nominated for a pod, or an empty name."""
        return self._node_of.get(uid, "")

    def ahead_of(self, info: podinfo.PodInfo) -> Iterator[tuple[str, list[podinfo.PodInfo]]]:
        """Yield the nodes nominated for more important pods, with these pods."""
        for node, nominees in self._by_node.items():
            ahead = _ahead_of(info, nominees)
            if ahead:
                yield node, ahead

    def ahead_on(self, info: podinfo.PodInfo, node: str) -> list[podinfo.PodInfo]:
        """Return the more important pods nominated for a node."""
        nominees = self._by_node.get(node)
        return [] if nominees is None else _ahead_of(info, nominees)

    def behind(self, info: podinfo.PodInfo, node: str) -> list[podinfo.PodInfo]:
        """Return the less important pods nominated for a node."""
        return [nominee for nominee in self._by_node.get(node, {}).values() if nominee.priority < info.priority]


def _ahead_of(info: podinfo.PodInfo, nominees: _Pods) -> list[podinfo.PodInfo]:
    return [each for each in nominees.values() if each.priority >= info.priority and each.uid != info.uid]
