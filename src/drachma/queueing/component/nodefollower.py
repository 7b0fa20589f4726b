"""Nodes and pods for the admitter: it follows them from the moment the first Topology exists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from drachma.api import node, pod
from drachma.queueing.admission.admitter import Admitter
from drachma.queueing.component.caches import Caches, key_of
from drachma.runtime.informer import Handler


class NodeFollower:
    """Reports nodes, and pods outside topology aware scheduling, to the current admitter."""

    def __init__(self, caches: Caches, *, admitter: Callable[[], Admitter], on_room: Callable[[], None]) -> None:
        """``on_room`` is called when a node may have room that it did not have before."""
        self._caches: Final = caches
        self._admitter: Final = admitter
        self._on_room: Final = on_room
        self._filled: Admitter | None = None
        """Admitter that has all nodes and pods."""
        caches.nodes.add_handler(Handler.on_write(self._set_node, deleted=self._remove_node))
        caches.pods.add_handler(Handler.on_write(self._set_pod, deleted=self._remove_pod))

    def fill(self) -> None:
        """Report everything to an admitter that is new, or whose first Topology has appeared."""
        admitter = self._admitter()
        if self._filled is admitter or not len(self._caches.topologies.cache):
            return
        self._filled = admitter
        for each_node in self._caches.nodes.cache:
            admitter.set_node(each_node)
        for each_pod in self._caches.pods.cache:
            admitter.set_pod(key_of(each_pod), each_pod)

    @property
    def _is_active(self) -> bool:
        return self._filled is self._admitter()

    def _set_node(self, new: node.Node) -> None:
        if self._is_active and self._admitter().set_node(new):
            self._on_room()

    def _remove_node(self, old: node.Node) -> None:
        if self._is_active:
            self._admitter().remove_node(old.metadata.name)

    def _set_pod(self, new: pod.Pod) -> None:
        if self._is_active and self._admitter().set_pod(key_of(new), new):
            self._on_room()

    def _remove_pod(self, old: pod.Pod) -> None:
        if self._is_active and self._admitter().remove_pod(key_of(old)):
            self._on_room()
