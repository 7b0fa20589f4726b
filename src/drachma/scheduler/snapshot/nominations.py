"""Nominations: pods for which others were evicted, and the nodes that are kept for them until they can be bound."""

from __future__ import annotations

from collections.abc import Iterator

from drachma.scheduler.snapshot import podinfo
from drachma.values import forkmap

_Pods = dict[str, podinfo.PodInfo]


class Nominations:
    """Which pod waits for which node."""

    def __init__(self, parent: Nominations | None = None) -> None:
        """``parent`` is what this is a fork of."""
        if parent is None:
            self._node_of = forkmap.ForkMap[str, str]()
            self._by_node = forkmap.ForkMap[str, _Pods](copy=dict)
        else:
            self._node_of = parent._node_of.fork()
            self._by_node = parent._by_node.fork()

    def fork(self) -> Nominations:
        """The same nominations, to be changed apart."""
        return Nominations(self)

    def __iter__(self) -> Iterator[tuple[podinfo.PodInfo, str]]:
        """The pods that wait, each with its node."""
        for node, waiting in self._by_node.items():
            for info in waiting.values():
                yield info, node

    def put(self, info: podinfo.PodInfo, node: str) -> None:
        """Keep a node for a pod, or no node if it is empty."""
        self.remove(info.uid)
        if node:
            self._node_of[info.uid] = node
            if node not in self._by_node:
                self._by_node[node] = {}
            self._by_node.mutable(node)[info.uid] = info

    def remove(self, uid: str) -> None:
        """Keep no node for a pod any more."""
        node = self._node_of.pop(uid, None)
        if node is not None:
            waiting = self._by_node.mutable(node)
            del waiting[uid]
            if not waiting:
                del self._by_node[node]

    def node_of(self, uid: str) -> str:
        """The node that is kept for a pod."""
        return self._node_of.get(uid, "")

    def ahead_of(self, info: podinfo.PodInfo) -> Iterator[tuple[str, list[podinfo.PodInfo]]]:
        """The nodes that are kept for pods that a pod must give way to, with these pods."""
        for node, waiting in self._by_node.items():
            ahead = [other for other in waiting.values() if other.priority >= info.priority and other.uid != info.uid]
            if ahead:
                yield node, ahead

    def behind(self, info: podinfo.PodInfo, node: str) -> list[podinfo.PodInfo]:
        """The pods that a node is kept for and that must give way to a pod."""
        return [other for other in self._by_node.get(node, {}).values() if other.priority < info.priority]
