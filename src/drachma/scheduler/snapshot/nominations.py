"""Nominations: pods for which others were evicted, and the nodes that are kept for them until they can be bound."""

from __future__ import annotations

from typing import Final

from drachma.scheduler import podinfo


class Nominations:
    """Which pod waits for which node."""

    def __init__(self) -> None:
        self._node_of: Final[dict[str, str]] = {}
        self._by_node: Final[dict[str, dict[str, podinfo.PodInfo]]] = {}
        self._own: Final[dict[str, str]] = {}

    def keep(self, info: podinfo.PodInfo, node: str) -> None:
        """Keep a node for a pod, because others were evicted from it here."""
        self.put(info, node)
        self._own[info.uid] = node

    def kept(self, uid: str) -> str:
        """The node that is kept for a pod because of what was done here, not because its status says so."""
        return self._own.get(uid, "")

    def put(self, info: podinfo.PodInfo, node: str) -> None:
        """Keep a node for a pod, or no node if it is empty."""
        own = self._own.get(info.uid)
        self.remove(info.uid)
        if own is not None and own == node:
            self._own[info.uid] = own
        if node:
            self._node_of[info.uid] = node
            self._by_node.setdefault(node, {})[info.uid] = info

    def remove(self, uid: str) -> None:
        """Keep no node for a pod any more."""
        self._own.pop(uid, None)
        node = self._node_of.pop(uid, None)
        if node is not None:
            waiting = self._by_node[node]
            del waiting[uid]
            if not waiting:
                del self._by_node[node]

    def nodes(self) -> list[str]:
        """All nodes that are kept for somebody."""
        return list(self._by_node)

    def node_of(self, uid: str) -> str:
        """The node that is kept for a pod."""
        return self._node_of.get(uid, "")

    def ahead_of(self, info: podinfo.PodInfo, node: str) -> list[podinfo.PodInfo]:
        """The pods that a node is kept for and that a pod must give way to."""
        return [
            other
            for other in self._by_node.get(node, {}).values()
            if other.priority >= info.priority and other.uid != info.uid
        ]

    def behind(self, info: podinfo.PodInfo, node: str) -> list[podinfo.PodInfo]:
        """The pods that a node is kept for and that must give way to a pod."""
        return [other for other in self._by_node.get(node, {}).values() if other.priority < info.priority]
