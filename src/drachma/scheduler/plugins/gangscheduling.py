"""GangScheduling: a pod of a gang is not tried before enough pods of the gang exist.

This plugin says when to try a gang. The scheduling cycle places the pods together
(:mod:`drachma.scheduler.cycle.gangsearch`). A gang that did not fit depends on everything that any of its pods needs,
so any change that makes room wakes it.
"""

from __future__ import annotations

from typing import Final

from drachma.api import pod, podgroup, resourceclaim
from drachma.claims import reservation
from drachma.runtime import cache
from drachma.scheduler.framework import hints, verdict
from drachma.scheduler.snapshot import Snapshot, gangs

Claim = resourceclaim.ResourceClaim


class GangScheduling:
    """The plugin."""

    name: Final = hints.GANG_SCHEDULING

    def pre_enqueue(self, waiting_pod: pod.Pod, snapshot: Snapshot) -> verdict.Rejection | None:
        """Return a rejection if the gang of the pod is not defined, or if too few of its pods exist."""
        gang = snapshot.gangs.of(waiting_pod)
        match gang:
            case None:
                return None
            case gangs.Undefined(problem=problem):
                return verdict.Rejection(self.name, (problem,))
            case gangs.Gang():
                if len(gang.members) + gang.done >= gang.size:
                    return None
                return verdict.Rejection(
                    self.name, ("waiting for minCount pods from a gang to appear in scheduling queue",)
                )

    def hints(self, _snapshot: Snapshot) -> tuple[hints.Hint, ...]:
        """Return the changes that can help."""
        return _HINTS


def _member_helps(waiting_pod: pod.Pod, _old: object, new: pod.Pod) -> bool:
    return gangs.key_of(waiting_pod) == gangs.key_of(new)


def _group_helps(waiting_pod: pod.Pod, _old: podgroup.PodGroup | None, new: podgroup.PodGroup) -> bool:
    key = gangs.key_of(waiting_pod)
    return (
        key is not None
        and key.source is gangs.Source.POD_GROUP
        and cache.Key(key.namespace, key.name) == cache.key_of(new)
    )


def _claim_helps(_waiting: pod.Pod, old: Claim | None, new: Claim | None) -> bool:
    return reservation.frees_devices(old, new)


_A, _R = hints.Action, hints.Resource
_ROOM: Final = _A.ADD | _A.UPDATE_NODE_ALLOCATABLE | _A.UPDATE_NODE_LABEL | _A.UPDATE_NODE_TAINT
_HINTS: Final = (
    hints.Hint(_R.UNSCHEDULED_POD, _A.ADD, _member_helps),
    hints.Hint(_R.ASSIGNED_POD, _A.ADD, _member_helps),
    hints.Hint(_R.POD_GROUP, _A.ADD | _A.UPDATE, _group_helps),
    hints.Hint(_R.NODE, _ROOM, hints.always),
    hints.Hint(_R.ASSIGNED_POD, _A.DELETE | _A.UPDATE_POD_SCALE_DOWN, hints.always),
    hints.Hint(_R.RESOURCE_CLAIM, _A.UPDATE | _A.DELETE, _claim_helps),
    hints.Hint(_R.RESOURCE_SLICE, _A.ADD | _A.UPDATE, hints.always),
    hints.Hint(_R.DEVICE_CLASS, _A.ADD | _A.UPDATE, hints.always),
)
