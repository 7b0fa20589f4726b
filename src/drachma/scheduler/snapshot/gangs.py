"""Gangs: pods that get their nodes together or not at all, their members, and the number of pods needed.

A pod names its gang in one of three ways, the first of these that it uses:

- ``spec.schedulingGroup`` names a PodGroup of ``scheduling.k8s.io``, whose policy has the number of pods; pods of a
  group with another policy are ordinary pods,
- Kueue's label ``kueue.x-k8s.io/pod-group-name``, with Kueue's annotation for the number,
- the label :data:`LABEL`, with the annotation :data:`SIZE`.

Waiting pods and pods on nodes are both members. Informers put objects in. The plugin GangScheduling, the scheduler and
simulations ask. Without the feature, there are no objects here.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from drachma.api import meta, pod, podgroup
from drachma.claims import podstate
from drachma.runtime import cache
from drachma.values import forkmap

LABEL: Final = "drachma.dev/gang"
"""Label of a pod: the name of its gang within the namespace."""

SIZE: Final = "drachma.dev/gang-size"
"""Annotation of such a pod: the number of pods that must get a node at once."""

KUEUE_LABEL: Final = "kueue.x-k8s.io/pod-group-name"
KUEUE_SIZE: Final = "kueue.x-k8s.io/pod-group-total-count"


class Source(enum.Enum):
    """Way in which a pod names its gang."""

    POD_GROUP = "podGroup"
    KUEUE = KUEUE_LABEL
    LABEL = LABEL


class GangKey(NamedTuple):
    """Identity of a gang."""

    namespace: str
    source: Source
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Gang(NamedTuple):
    """Current state of a gang."""

    key: GangKey
    size: int
    """Number of pods that must have a node at once."""
    members: Mapping[str, cache.Key]
    """Pods by uid, waiting or on nodes."""
    done: int = 0
    """Number of further pods that have succeeded, which need no node any more."""
    priority: int | None = None
    """Priority of the PodGroup; None for a gang without one."""
    group_uid: str | None = None
    """Uid of the PodGroup; None for a gang without one."""


class Unit(NamedTuple):
    """Pods of a PodGroup that are evicted together or not at all."""

    key: GangKey
    members: Sequence[str]
    """Uids of the pods; some may have no node."""


class Undefined(NamedTuple):
    """Gang that is not defined. Its pods wait until it is."""

    problem: str


class _Member(NamedTuple):
    key: cache.Key
    size: int
    has_succeeded: bool = False


_SIZES: Final = {Source.KUEUE: KUEUE_SIZE, Source.LABEL: SIZE}


class Gangs:
    """All gangs of a cluster."""

    def __init__(self, parent: Gangs | None = None) -> None:
        """With a ``parent`` this is a fork of it."""
        if parent is None:
            self._groups = forkmap.ForkMap[cache.Key, podgroup.PodGroup]()
            self._members = forkmap.ForkMap[GangKey, dict[str, _Member]](copy=dict)
        else:
            self._groups = parent._groups.fork()
            self._members = parent._members.fork()

    def fork(self) -> Gangs:
        """Return a copy that can be changed separately; a new instance if there are no gangs."""
        return Gangs(self) if self._groups or self._members else Gangs()

    # Updates

    def put_group(self, new: podgroup.PodGroup) -> None:
        """Add or update a group."""
        self._groups[cache.key_of(new)] = new

    def remove_group(self, deleted: podgroup.PodGroup) -> None:
        """Remove a group."""
        self._groups.pop(cache.key_of(deleted), None)

    def put_pod(self, new: pod.Pod) -> None:
        """Add or update a pod, with a node or without. A pod that has failed or will not start is no member."""
        key = key_of(new)
        if key is None:
            return
        has_succeeded = new.status.phase == "Succeeded"
        if podstate.is_done(new) and not has_succeeded:
            self.remove_pod(new)
            return
        if key not in self._members:
            self._members[key] = {}
        member = _Member(cache.key_of(new), _size(new.metadata, key.source), has_succeeded)
        self._members.mutable(key)[new.metadata.uid] = member

    def remove_pod(self, deleted: pod.Pod) -> None:
        """Remove a pod."""
        key = key_of(deleted)
        if key is None or deleted.metadata.uid not in self._members.get(key, {}):
            return
        members = self._members.mutable(key)
        del members[deleted.metadata.uid]
        if not members:
            del self._members[key]

    # Queries

    def of(self, member: pod.Pod) -> Gang | Undefined | None:
        """Return the gang of a pod, or None for a pod without a gang."""
        key = key_of(member)
        if key is None:
            return None
        members = self._members.get(key, {})
        priority: int | None = None
        group_uid: str | None = None
        if key.source is Source.POD_GROUP:
            group = self._groups.get(cache.Key(key.namespace, key.name))
            if group is None:
                return Undefined(f'waiting for pods\'s pod group "{key.name}" to appear in scheduling queue')
            policy = group.spec.scheduling_policy.gang
            if policy is None:
                return None
            size, priority, group_uid = policy.min_count, group.spec.priority or 0, group.metadata.uid
        else:
            annotation = _SIZES[key.source]
            if not _size(member.metadata, key.source):
                text = member.metadata.annotations.get(annotation)
                value = "missing" if text is None else f'"{text}"'
                return Undefined(
                    f"label {key.source.value}: {key.name}: annotation {annotation}: {value}: "
                    "expected the number of pods of the gang, 1 or more"
                )
            # If members disagree, the gang has the largest size.
            size = max([_size(member.metadata, key.source), *(each.size for each in members.values())])
        living = {uid: each.key for uid, each in members.items() if not each.has_succeeded}
        return Gang(key, size, living, len(members) - len(living), priority, group_uid)

    def group(self, key: GangKey) -> podgroup.PodGroup | None:
        """Return the PodGroup of a gang, or None."""
        return self._groups.get(cache.Key(key.namespace, key.name)) if key.source is Source.POD_GROUP else None

    def member_uids(self, member: pod.Pod) -> Sequence[str]:
        """Return the uids of all pods that name the same gang or group as a pod, including itself."""
        key = key_of(member)
        return () if key is None else tuple(self._members.get(key, ()))

    # Queries of preemption

    def group_of(self, member: pod.Pod) -> podgroup.PodGroup | None:
        """Return the PodGroup of a pod with any policy, or None."""
        key = key_of(member) if self._groups else None
        return None if key is None else self.group(key)

    def priority_of(self, member: pod.Pod) -> int:
        """Return the priority of a pod: the one of its PodGroup if it has one."""
        group = self.group_of(member)
        return (member.spec.priority if group is None else group.spec.priority) or 0

    def disrupted_with(self, member: pod.Pod) -> Unit | None:
        """Return the pods that are evicted together with a pod, including itself, or None if it is evicted alone."""
        group = self.group_of(member)
        if group is None or group.spec.disruption_mode is None or group.spec.disruption_mode.all is None:
            return None
        key = key_of(member)
        assert key is not None, "a pod of a group names it"
        return Unit(key, [uid for uid, each in self._members.get(key, {}).items() if not each.has_succeeded])


def disagreement(gang: Gang, pods: Iterable[pod.Pod]) -> str:
    """Return why pods cannot be scheduled as one PodGroup, in upstream's words, or an empty text."""
    policy: str | None = None
    for each in pods if gang.priority is not None else ():
        priority = each.spec.priority or 0
        if priority != gang.priority:
            return (
                "all pods in a single pod group should have the same priority as the pod group's priority, "
                f"got {priority} and {gang.priority}"
            )
        own = each.spec.preemption_policy or "PreemptLowerPriority"
        policy = policy or own
        if own != policy:
            return f"all pods in a single pod group should have the same preemption policy, got {own} and {policy}"
    return ""


def key_of(member: pod.Pod) -> GangKey | None:
    """Return the gang that a pod names, or None. Pods of a PodGroup may still be ordinary pods."""
    group, metadata = member.spec.scheduling_group, member.metadata
    if group is not None and group.pod_group_name:
        return GangKey(metadata.namespace, Source.POD_GROUP, group.pod_group_name)
    if metadata.labels:
        for source in (Source.KUEUE, Source.LABEL):
            name = metadata.labels.get(source.value)
            if name:
                return GangKey(metadata.namespace, source, name)
    return None


def _size(metadata: meta.ObjectMeta, source: Source) -> int:
    """Return the gang size in a pod's annotation; 0 if it is absent or malformed."""
    text = metadata.annotations.get(_SIZES[source], "") if source in _SIZES else ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
