"""VolumeZone: pods go to the zones and regions of their volumes, as labels of volumes say."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final

from drachma.api import persistentvolume, persistentvolumeclaim, pod, storageclass
from drachma.claims import volumeclaims
from drachma.runtime import cache
from drachma.scheduler.framework import cyclestate, hints, plugin, verdict
from drachma.scheduler.framework.plugin import Filtered, PreFilterResult
from drachma.scheduler.snapshot import Snapshot, nodeinfo
from drachma.scheduler.snapshot import volumes as snapshotvolumes

Claim = persistentvolumeclaim.PersistentVolumeClaim
Volume = persistentvolume.PersistentVolume
Places = frozenset[tuple[str, frozenset[str]]]
"""Labels of zones and regions, each with the suitable values."""

_NAME: Final = "VolumeZone"
_ELSEWHERE: Final = verdict.Rejection(_NAME, ("node(s) had no available volume zone",))
_SEVERAL: Final = "__"
"""Separator between the zones of a volume that is in several."""

_LABELS: Final[Mapping[str, str]] = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Labels for the place of a volume or node, each with its current name."""

_PLACES: Final = cyclestate.Key[Places]("zones of the pod's volumes")


class VolumeZone:
    """The plugin."""

    name: Final = _NAME

    def __init__(self, *, has_controllers: bool) -> None:
        """``has_controllers`` says that controllers bind volumes to claims. Otherwise no pod waits for that."""
        self._has_controllers: Final = has_controllers

    def pre_filter(self, cycle: cyclestate.CycleState) -> PreFilterResult | verdict.Rejection:
        """Find the zones of all volumes. Skip the filter if they are in none."""
        own, snapshot_volumes = cycle.pod.pod, cycle.snapshot.volumes
        places: set[tuple[str, frozenset[str]]] = set()
        for volume in own.spec.volumes:
            if volume.persistent_volume_claim is None:
                continue
            name = volume.persistent_volume_claim.claim_name
            claim = snapshot_volumes.claims.get(cache.Key(own.metadata.namespace, name))
            if claim is None:
                return verdict.Rejection(_NAME, (f'persistentvolumeclaim "{name}" not found',))
            if claim.spec.volume_name:
                bound = snapshot_volumes.volumes.get(claim.spec.volume_name)
                if bound is None:
                    return verdict.Rejection(_NAME, (f'persistentvolume "{claim.spec.volume_name}" not found',))
                places |= _places(bound)
            elif self._has_controllers and (problem := _unbound(claim, snapshot_volumes)):
                return verdict.Rejection(_NAME, (problem,))
        if not places:
            return plugin.SKIP
        cycle.write(_PLACES, frozenset(places))
        return plugin.ALL_NODES

    def filter(self, cycle: cyclestate.CycleState, alive: int) -> Filtered:
        """Return the nodes in the zones of all volumes, and those that are in no zone at all."""
        places = cycle.read(_PLACES)
        question = functools.partial(_is_in, places)
        classes = cycle.snapshot.nodes.properties.classes((_NAME, places), question, among=alive)
        return plugin.split(alive, classes.get(True, 0), rejection=_ELSEWHERE)

    def hints(self, _snapshot: Snapshot) -> tuple[hints.Hint, ...]:
        """Return the changes that can help."""
        return _HINTS


def _unbound(claim: Claim, snapshot_volumes: snapshotvolumes.Volumes) -> str:
    """Return why a claim without a volume keeps its pod waiting; empty if it gets one with the pod."""
    name = persistentvolumeclaim.class_of(claim)
    if not name:
        return "PersistentVolumeClaim had no pv name and storageClass name"
    storage_class = snapshot_volumes.classes.get(name)
    if storage_class is None:
        return f'storageclass.storage.k8s.io "{name}" not found'
    if storage_class.volume_binding_mode is None:
        return f'VolumeBindingMode not set for StorageClass "{name}"'
    return (
        ""
        if storage_class.volume_binding_mode == storageclass.WAIT_FOR_FIRST_CONSUMER
        else "PersistentVolume had no name"
    )


def _places(volume: Volume) -> Places:
    labels = volume.metadata.labels
    zones = {key: frozenset(labels[key].split(_SEVERAL)) for key in _LABELS if key in labels}
    # A label with an empty zone has no meaning.
    return frozenset((key, values) for key, values in zones.items() if "" not in values)


def _is_in(places: Places, info: nodeinfo.NodeInfo) -> bool:
    labels = info.node.metadata.labels
    if not any(key in labels for key in _LABELS):
        return True
    return all(labels.get(key, labels.get(_LABELS[key])) in values for key, values in places)


def _claim_helps(waiting_pod: pod.Pod, _old: Claim | None, new: Claim) -> bool:
    is_named = volumeclaims.names(waiting_pod).get(new.metadata.name) is False
    return new.metadata.namespace == waiting_pod.metadata.namespace and is_named


def _volume_helps(_waiting: pod.Pod, old: Volume | None, new: Volume) -> bool:
    return old is None or _places(old) != _places(new)


def _class_helps(_waiting: pod.Pod, _old: None, new: storageclass.StorageClass) -> bool:
    return new.volume_binding_mode == storageclass.WAIT_FOR_FIRST_CONSUMER


_HINTS: Final = (
    hints.Hint(hints.Resource.STORAGE_CLASS, hints.Action.ADD, _class_helps),
    hints.Hint(hints.Resource.NODE, hints.Action.ADD | hints.Action.UPDATE_NODE_LABEL, hints.always),
    hints.Hint(hints.Resource.PERSISTENT_VOLUME_CLAIM, hints.Action.ADD | hints.Action.UPDATE, _claim_helps),
    hints.Hint(hints.Resource.PERSISTENT_VOLUME, hints.Action.ADD | hints.Action.UPDATE, _volume_helps),
)
