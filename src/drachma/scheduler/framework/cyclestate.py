"""Cycle states: one attempt to schedule one pod, and the values that plugins keep for later extension points.

A plugin makes a :class:`Key` for each value. A value that is kept before Filter must follow from the pod, its claims
and classes only. Nodes and their pods must be read from the snapshot in Filter, since dry runs change them in a fork.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from drachma.scheduler.snapshot import Snapshot, podinfo

ValueT = TypeVar("ValueT")


class Key(Generic[ValueT]):
    """Key of a value; equal only to itself."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class CycleState:
    """A pod, the cluster to place it in, and the values of plugins."""

    __slots__ = ("_values", "pod", "skipped", "snapshot")

    def __init__(self, info: podinfo.PodInfo, snapshot: Snapshot) -> None:
        self.pod = info
        self.snapshot = snapshot
        self.skipped: list[str] = []
        """Plugins that have nothing to filter for the pod."""
        self._values: dict[Key[Any], Any] = {}

    def write(self, key: Key[ValueT], value: ValueT) -> None:
        """Keep a value."""
        self._values[key] = value

    def read(self, key: Key[ValueT]) -> ValueT:
        """Return a value. Raises KeyError if it was not kept."""
        value: ValueT = self._values[key]
        return value

    def find(self, key: Key[ValueT]) -> ValueT | None:
        """Return a value, or None if it was not kept."""
        return self._values.get(key)

    def on(self, snapshot: Snapshot) -> CycleState:
        """Return the same attempt on another snapshot. Values kept there do not show here."""
        copy = CycleState(self.pod, snapshot)
        copy.skipped = self.skipped
        copy._values = dict(self._values)
        return copy
