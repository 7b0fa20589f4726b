"""What can help a pod that waits for devices: claims, classes, slices, nodes, and its own claims being made."""

from __future__ import annotations

from typing import Final

from drachma.api import pod, resourceclaim
from drachma.claims import podclaims, reservation
from drachma.scheduler.framework import hints, verdict
from drachma.scheduler.plugins.dynamicresources import verdicts
from drachma.scheduler.snapshot import Snapshot

Claim = resourceclaim.ResourceClaim


def pre_enqueue(waiting: pod.Pod, snapshot: Snapshot) -> verdict.Rejection | None:
    """Why the pod does not even come into the queue: a claim of it is not there."""
    if not waiting.spec.resource_claims:
        return None
    try:
        podclaims.resolve(waiting, snapshot.claims)
    except podclaims.MissingError as error:
        return verdicts.rejection(str(error))
    return None


class QueueingHints:
    """The tests of changes."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot: Final = snapshot

    def all(self) -> tuple[hints.Hint, ...]:
        """All hints of the plugin."""
        action, resource = hints.Action, hints.Resource
        node_actions = action.ADD | action.UPDATE_NODE_LABEL | action.UPDATE_NODE_ALLOCATABLE
        return (
            hints.Hint(resource.NODE, node_actions, hints.always),
            hints.Hint(resource.RESOURCE_CLAIM, action.ADD | action.UPDATE | action.DELETE, self._claim_helps),
            hints.Hint(resource.TARGET_POD, action.UPDATE_POD_GENERATED_CLAIM, self._own_update_helps),
            hints.Hint(resource.DEVICE_CLASS, action.ADD | action.UPDATE, hints.always),
            hints.Hint(resource.RESOURCE_SLICE, action.ADD | action.UPDATE, hints.always),
            # Differs from upstream, where such a pod waits for minutes: devices that stand for cpu or memory can
            # have been too much for a node together with its pods.
            hints.Hint(resource.ASSIGNED_POD, action.DELETE | action.UPDATE_POD_SCALE_DOWN, self._room_helps),
        )

    def _room_helps(self, _waiting: pod.Pod, _old: pod.Pod, _new: pod.Pod | None) -> bool:
        return self._snapshot.devices.has_mappings

    def _claim_helps(self, waiting: pod.Pod, old: Claim | None, new: Claim | None) -> bool:
        if new is None:
            return old is not None and old.status.allocation is not None
        try:
            used = podclaims.resolve(waiting, self._snapshot.claims)
        except podclaims.MissingError:
            return False
        if reservation.frees_devices(old, new):
            return True
        if all(entry.claim.metadata.uid != new.metadata.uid for entry in used):
            return False
        return old is None or old.status != new.status

    def _own_update_helps(self, _waiting: pod.Pod, _old: pod.Pod, new: pod.Pod) -> bool:
        return pre_enqueue(new, self._snapshot) is None
