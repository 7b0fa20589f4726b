"""Cycle states: one attempt to schedule one pod, and what plugins leave in it for their later extension points.

A plugin makes a :class:`Key` for each thing that it leaves. What it leaves before filtering must follow from the pod,
its claims and classes: nodes and the pods on them are read from the snapshot when they are filtered, since dry runs
change them in a fork in between.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from drachma.scheduler.snapshot import Snapshot, podinfo

ValueT = TypeVar("ValueT")


class Key(Generic[ValueT]):
    """Under which a plugin leaves something; the same only for itself."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class CycleState:
    """A pod, the cluster that it is to be placed in, and what plugins found out so far."""

    __slots__ = ("_values", "pod", "skipped", "snapshot")

    def __init__(self, info: podinfo.PodInfo, snapshot: Snapshot) -> None:
        self.pod = info
        self.snapshot = snapshot
        self.skipped: list[str] = []
        """Plugins that have nothing to filter for the pod."""
        self._values: dict[Key[Any], Any] = {}

    def write(self, key: Key[ValueT], value: ValueT) -> None:
        """Leave something."""
        self._values[key] = value

    def read(self, key: Key[ValueT]) -> ValueT:
        """What was left; KeyError if nothing was."""
        value: ValueT = self._values[key]
        return value

    def find(self, key: Key[ValueT]) -> ValueT | None:
        """What was left, if anything."""
        return self._values.get(key)

    def on(self, snapshot: Snapshot) -> CycleState:
        """The same attempt on another snapshot; what is left there is not left here."""
        other = CycleState(self.pod, snapshot)
        other.skipped = self.skipped
        other._values = dict(self._values)
        return other
