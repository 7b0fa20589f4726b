"""GangScheduling: a pod of a gang is not tried before enough pods of the gang exist.

This plugin says when to try a gang. The scheduling cycle places the pods together
(:mod:`drachma.scheduler.cycle.gangsearch`). A gang that did not fit depends on everything that any of its pods needs,
so any change that makes room wakes it.
"""

from __future__ import annotations

import functools
from typing import Final

from drachma.api import pod, podgroup, resourceclaim
from drachma.claims import reservation
from drachma.scheduler.framework import hints, verdict
from drachma.scheduler.snapshot import Snapshot, changes, gangs

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
                if _is_large_enough(gang):
                    return None
                return verdict.Rejection(
                    self.name, ("waiting for minCount pods from a gang to appear in scheduling queue",)
                )

    def hints(self, snapshot: Snapshot) -> tuple[hints.Hint, ...]:
        """Return the changes that can help."""
        member_helps = functools.partial(_member_helps, snapshot)
        group_helps = functools.partial(_group_helps, snapshot)
        return (
            hints.Hint(_R.UNSCHEDULED_POD, _A.ADD, member_helps),
            hints.Hint(_R.ASSIGNED_POD, _A.ADD, member_helps),
            hints.Hint(_R.POD_GROUP, _A.ADD | _A.UPDATE, group_helps),
            *_ROOM_HINTS,
        )


def _is_large_enough(gang: gangs.Gang) -> bool:
    """Return True if a gang has enough pods, or a composite enough groups that have."""
    if gang.children:
        return sum(map(_is_large_enough, gang.children)) >= gang.size
    return len(gang.members) + gang.done >= gang.size


def _member_helps(snapshot: Snapshot, waiting_pod: pod.Pod, _old: object, new: pod.Pod) -> bool:
    key, new_key = gangs.key_of(waiting_pod), gangs.key_of(new)
    if key == new_key or key is None or new_key is None or key.source is not gangs.Source.POD_GROUP:
        return key == new_key
    gang = snapshot.gangs.of(waiting_pod)
    return isinstance(gang, gangs.Gang) and any(leaf.key == new_key for leaf in gang.leaves)


def _group_helps(snapshot: Snapshot, waiting_pod: pod.Pod, _old: object, new: changes.Group) -> bool:
    key = gangs.key_of(waiting_pod)
    if key is None or key.source is not gangs.Source.POD_GROUP or key.namespace != new.metadata.namespace:
        return False
    if isinstance(new, podgroup.PodGroup) and key.name == new.metadata.name:
        return True
    gang = snapshot.gangs.of(waiting_pod)
    return isinstance(gang, gangs.Gang) and bool(gang.children)


def _claim_helps(_waiting: pod.Pod, old: Claim | None, new: Claim | None) -> bool:
    return reservation.frees_devices(old, new)


_A, _R = hints.Action, hints.Resource
_ROOM: Final = _A.ADD | _A.UPDATE_NODE_ALLOCATABLE | _A.UPDATE_NODE_LABEL | _A.UPDATE_NODE_TAINT
_ROOM_HINTS: Final = (
    hints.Hint(_R.NODE, _ROOM, hints.always),
    hints.Hint(_R.ASSIGNED_POD, _A.DELETE | _A.UPDATE_POD_SCALE_DOWN, hints.always),
    hints.Hint(_R.RESOURCE_CLAIM, _A.UPDATE | _A.DELETE, _claim_helps),
    hints.Hint(_R.RESOURCE_SLICE, _A.ADD | _A.UPDATE, hints.always),
    hints.Hint(_R.DEVICE_CLASS, _A.ADD | _A.UPDATE, hints.always),
)
