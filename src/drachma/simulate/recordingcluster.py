"""Cluster of a recording, advanced from one decision to the next.

All lines between two decisions are applied together: objects come after those that they refer to, and assumptions come
last.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from drachma import errors
from drachma.accounting import ledger
from drachma.api import codec, meta, pod
from drachma.runtime import cache
from drachma.scheduler.framework import profile
from drachma.scheduler.recording import recordlines
from drachma.scheduler.settings import Settings
from drachma.scheduler.snapshot import podinfo
from drachma.simulate.clusterstate import ClusterState
from drachma.simulate.simulation import Simulation


class _Name(NamedTuple):
    kind: str
    key: cache.Key


class RecordingCluster:
    """Cluster since one beginning."""

    def __init__(self, settings: Settings, plugins: profile.Profile) -> None:
        self.simulation: Final = Simulation(ClusterState(), settings=settings, profile=plugins)
        self._objects: Final[dict[_Name, meta.Object]] = {}

    def apply(self, lines: Iterable[recordlines.Line]) -> None:
        """Apply changes. Raises DecodeError with the name of an unreadable object."""
        changed: list[meta.Object] = []
        later_lines: list[recordlines.Line] = []
        for line in lines:
            match line:
                case recordlines.Object():
                    new = codec.decode_json(bytes(line.object))
                    self._drop(_name(new), unless=new.metadata.uid)
                    self._objects[_name(new)] = new
                    changed.append(new)
                case recordlines.Gone():
                    self._drop(_Name(line.kind, cache.Key(line.namespace, line.name)))
                case _:
                    later_lines.append(line)
        self.simulation.add(changed)
        for line in later_lines:
            self._apply(line)

    def _drop(self, name: _Name, *, unless: str = "") -> None:
        """Remove an object, unless it has the uid of its next state."""
        before = self._objects.get(name)
        if before is not None and (not unless or before.metadata.uid != unless):
            del self._objects[name]
            self.simulation.remove(before)

    def _apply(self, line: recordlines.Line) -> None:
        snapshot = self.simulation.snapshot
        match line:
            case recordlines.Assumed(demand=None):
                snapshot.nodes.forget(line.uid)
            case recordlines.Assumed() if line.demand is not None:
                snapshot.nodes.assume(ledger.Booking(decode_pod(line.pod), line.demand), line.node)
            case recordlines.InFlight() if line.owner is not None and line.allocation is not None:
                snapshot.claims.reserve(line.owner, line.allocation)
            case recordlines.InFlight():
                snapshot.claims.settle(line.uid)
            case recordlines.Promised(claim=""):
                snapshot.volumes.take_back(line.volume)
            case recordlines.Promised():
                snapshot.volumes.promise(line.volume, line.claim)
            case recordlines.Nominated(node=""):
                snapshot.nominations.remove(line.uid)
            case recordlines.Nominated():
                snapshot.nominations.put(podinfo.PodInfo(decode_pod(line.pod)), line.node)


def decode_pod(text: bytes) -> pod.Pod:
    """Return the pod of a line. Raises DecodeError for another kind."""
    decoded = codec.decode_json(bytes(text))
    if not isinstance(decoded, pod.Pod):
        raise errors.DecodeError(f"expected a Pod, found a {type(decoded).__name__}")
    return decoded


def _name(named_object: meta.Object) -> _Name:
    return _Name(type(named_object).__name__, cache.key_of(named_object))
