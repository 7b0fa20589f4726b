"""The plugin: claims with volumes restrict nodes, and claims that wait for a pod get volumes on its node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from drachma import errors
from drachma.api import persistentvolume, persistentvolumeclaim, pod, storageclass
from drachma.claims import volumeclaims
from drachma.scheduler.framework import bindingwork, cyclestate, handle, hints, nodeselectors, plugin, verdict
from drachma.scheduler.framework.plugin import Filtered, PreFilterResult
from drachma.scheduler.plugins.volumebinding import podvolumes, volumematching, volumework
from drachma.scheduler.snapshot import Snapshot, assignment, nodeclass
from drachma.scheduler.snapshot import nodes as snapshotnodes

Claim = persistentvolumeclaim.PersistentVolumeClaim
Volume = persistentvolume.PersistentVolume

_NAME: Final = "VolumeBinding"
_ELSEWHERE: Final = verdict.Rejection(_NAME, ("node(s) didn't match PersistentVolume's node affinity",))
_NO_VOLUME: Final = verdict.Rejection(_NAME, ("node(s) didn't find available persistent volumes to bind",))
_GONE: Final = verdict.Rejection(_NAME, ("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",))

_CLAIMS: Final = cyclestate.Key[podvolumes.PodVolumes]("volume claims of the pod")
_MATCHED: Final = cyclestate.Key[volumematching.Matched]("volumes on the node that was chosen")


class VolumeBinding:
    """The plugin."""

    name: Final = _NAME

    def __init__(self, *, binding_seconds: float, has_controllers: bool) -> None:
        """``has_controllers`` says that controllers bind volumes to claims. Otherwise no pod waits for that."""
        self._seconds: Final = binding_seconds
        self._has_controllers: Final = has_controllers

    def pre_filter(self, cycle: cyclestate.CycleState) -> PreFilterResult | verdict.Rejection:
        """Sort the pod's volume claims. Skip the filter if it has none."""
        if not cycle.pod.pod.spec.volumes:
            return plugin.SKIP
        volumes = podvolumes.read(cycle.pod.pod, cycle.snapshot.volumes, are_bound_by_controllers=self._has_controllers)
        if volumes is None:
            return plugin.SKIP
        if isinstance(volumes, str):
            return verdict.Rejection(_NAME, (volumes,))
        cycle.write(_CLAIMS, volumes)
        return plugin.ALL_NODES

    def filter(self, cycle: cyclestate.CycleState, alive: int) -> Filtered:
        """Return the nodes on which all volumes can be used, and all claims without a volume get one."""
        claims, snapshot = cycle.read(_CLAIMS), cycle.snapshot
        rejections: list[tuple[verdict.Rejection, int]] = []
        usable = alive
        for claim in claims.bound:
            volume = snapshot.volumes.volumes.get(claim.spec.volume_name)
            if volume is None:
                return 0, [*rejections, (_GONE, usable)] if usable else rejections
            usable, more = plugin.split(usable, _usable_on(volume, snapshot.nodes, among=usable), rejection=_ELSEWHERE)
            rejections += more
        if claims.delayed and usable:
            usable, more = plugin.split(usable, _matching_nodes(claims.delayed, usable, snapshot), rejection=_NO_VOLUME)
            rejections += more
        return usable, rejections

    def reserve(self, cycle: cyclestate.CycleState, planned: assignment.Assignment) -> assignment.Assignment:
        """Choose the volumes on the node."""
        claims = cycle.find(_CLAIMS)
        info = cycle.snapshot.nodes.find(planned.node)
        if claims is None or not claims.delayed or info is None:
            return planned
        candidates = _candidates(claims.delayed, info.bit, cycle.snapshot)
        matched = volumematching.match(
            claims.delayed, candidates.get(info.slot, _nothing(claims.delayed)), info, classes=_classes(cycle.snapshot)
        )
        if matched is None:
            raise verdict.AbortError(f'no pod volume found for node "{info.name}"')
        cycle.write(_MATCHED, matched)
        promised = tuple((volume.metadata.name, claim.metadata.uid) for volume, claim in matched.volumes)
        return planned._replace(volumes=promised)

    def pre_bind(
        self, cycle: cyclestate.CycleState, planned: assignment.Assignment, *, handle: handle.Handle
    ) -> bindingwork.BindingWork | None:
        """Return the work that binds volumes to claims that waited for the pod, or None."""
        matched = cycle.find(_MATCHED)
        if matched is None:
            return None
        return volumework.VolumeWork(
            matched, node=planned.node, snapshot_volumes=cycle.snapshot.volumes, handle=handle, seconds=self._seconds
        )

    def hints(self, _snapshot: Snapshot) -> tuple[hints.Hint, ...]:
        """Return the changes that can help."""
        return _HINTS


def _usable_on(volume: Volume, nodes: snapshotnodes.Nodes, *, among: int) -> int:
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return among
    try:
        return nodeselectors.matching_nodes(affinity.required, nodes, among=among)
    except errors.InvalidValueError:
        return 0


def _matching_nodes(claims: Sequence[Claim], alive: int, snapshot: Snapshot) -> int:
    """Return the nodes on which every claim gets a volume."""
    candidates = _candidates(claims, alive, snapshot)
    classes, nothing = _classes(snapshot), _nothing(claims)
    matching = 0
    for slot in nodeclass.slots(alive):
        info = snapshot.nodes.at(slot)
        if volumematching.match(claims, candidates.get(slot, nothing), info, classes=classes) is not None:
            matching |= info.bit
    return matching


def _candidates(claims: Sequence[Claim], alive: int, snapshot: Snapshot) -> dict[int, dict[str, list[Volume]]]:
    """Return the volumes that suit a claim and can be used on a node, by slot and claim uid."""
    by_node: dict[int, dict[str, list[Volume]]] = {}
    for claim in claims:
        for volume in snapshot.volumes.available_to(claim):
            if volumeclaims.suits(volume, claim):
                for slot in nodeclass.slots(_usable_on(volume, snapshot.nodes, among=alive)):
                    by_node.setdefault(slot, _nothing(claims))[claim.metadata.uid].append(volume)
    return by_node


def _nothing(claims: Sequence[Claim]) -> dict[str, list[Volume]]:
    return {claim.metadata.uid: [] for claim in claims}


def _classes(snapshot: Snapshot) -> dict[str, storageclass.StorageClass]:
    return snapshot.volumes.classes


def _claim_helps(waiting_pod: pod.Pod, _old: Claim | None, new: Claim) -> bool:
    return new.metadata.namespace == waiting_pod.metadata.namespace and new.metadata.name in volumeclaims.names(
        waiting_pod
    )


def _class_helps(_waiting: pod.Pod, old: storageclass.StorageClass | None, new: storageclass.StorageClass) -> bool:
    return old is None or old.allowed_topologies != new.allowed_topologies


_CHANGES: Final = hints.Action.ADD | hints.Action.UPDATE
_HINTS: Final = (
    hints.Hint(hints.Resource.STORAGE_CLASS, _CHANGES, _class_helps),
    hints.Hint(hints.Resource.PERSISTENT_VOLUME_CLAIM, _CHANGES, _claim_helps),
    hints.Hint(hints.Resource.PERSISTENT_VOLUME, _CHANGES, hints.always),
    hints.Hint(hints.Resource.NODE, hints.Action.ADD | hints.Action.UPDATE_NODE_LABEL, hints.always),
)
