"""Gangs: pods that get their nodes together or not at all, who belongs to which, and how many it takes.

A pod says which gang it belongs to in one of three ways, the first of these that it uses:

- ``spec.schedulingGroup`` names a PodGroup of ``scheduling.k8s.io``, whose policy says how many pods it takes; pods of
  a group with another policy are pods like any others,
- Kueue's label ``kueue.x-k8s.io/pod-group-name``, with Kueue's annotation for the number,
- the label :data:`LABEL`, with the annotation :data:`SIZE`.

Pods that wait and pods on nodes are both members. Informers put objects in; the plugin GangScheduling, the scheduler
and simulations ask. Without gangs nobody puts anything in here.
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
"""On a pod: the name of its gang, within the namespace."""

SIZE: Final = "drachma.dev/gang-size"
"""An annotation of such a pod: how many pods have to get a node at once."""

KUEUE_LABEL: Final = "kueue.x-k8s.io/pod-group-name"
KUEUE_SIZE: Final = "kueue.x-k8s.io/pod-group-total-count"


class Source(enum.Enum):
    """How pods say that they belong together."""

    POD_GROUP = "podGroup"
    KUEUE = KUEUE_LABEL
    LABEL = LABEL


class GangKey(NamedTuple):
    """Which gang."""

    namespace: str
    source: Source
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Gang(NamedTuple):
    """A gang as it is at the moment."""

    key: GangKey
    size: int
    """How many pods have to have a node at once."""
    members: Mapping[str, cache.Key]
    """Its pods by uid, waiting or on nodes."""
    done: int = 0
    """How many more have had their node, and have succeeded there: nobody waits for them."""
    priority: int | None = None
    """That of the object that says what the gang is, where there is one."""


class Unit(NamedTuple):
    """Pods of a PodGroup that are evicted together or not at all."""

    key: GangKey
    members: Sequence[str]
    """Their uids; some may have no node."""


class Undefined(NamedTuple):
    """Nobody can tell what the gang of a pod is; the pod waits until somebody can."""

    problem: str


class _Member(NamedTuple):
    key: cache.Key
    size: int
    has_succeeded: bool = False


_SIZES: Final = {Source.KUEUE: KUEUE_SIZE, Source.LABEL: SIZE}


class Gangs:
    """All gangs of a cluster."""

    def __init__(self, parent: Gangs | None = None) -> None:
        """``parent`` is what this is a fork of."""
        if parent is None:
            self._groups = forkmap.ForkMap[cache.Key, podgroup.PodGroup]()
            self._members = forkmap.ForkMap[GangKey, dict[str, _Member]](copy=dict)
        else:
            self._groups = parent._groups.fork()
            self._members = parent._members.fork()

    def fork(self) -> Gangs:
        """The same, to be changed apart; where there are no gangs, that is no more than another beginning."""
        return Gangs(self) if self._groups or self._members else Gangs()

    # What informers tell

    def put_group(self, new: podgroup.PodGroup) -> None:
        """Take in a group, new or changed."""
        self._groups[cache.key_of(new)] = new

    def remove_group(self, gone: podgroup.PodGroup) -> None:
        """Forget a group."""
        self._groups.pop(cache.key_of(gone), None)

    def put_pod(self, new: pod.Pod) -> None:
        """Take in a pod, with a node or without; one that has failed, or will not start, is no member."""
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

    def remove_pod(self, gone: pod.Pod) -> None:
        """Forget a pod."""
        key = key_of(gone)
        if key is None or gone.metadata.uid not in self._members.get(key, {}):
            return
        members = self._members.mutable(key)
        del members[gone.metadata.uid]
        if not members:
            del self._members[key]

    # What is asked

    def of(self, member: pod.Pod) -> Gang | Undefined | None:
        """The gang of a pod; None for one that belongs to none."""
        key = key_of(member)
        if key is None:
            return None
        members = self._members.get(key, {})
        priority: int | None = None
        if key.source is Source.POD_GROUP:
            group = self._groups.get(cache.Key(key.namespace, key.name))
            if group is None:
                return Undefined(f'waiting for pods\'s pod group "{key.name}" to appear in scheduling queue')
            policy = group.spec.scheduling_policy.gang
            if policy is None:
                return None
            size, priority = policy.min_count, group.spec.priority or 0
        else:
            annotation = _SIZES[key.source]
            if not _size(member.metadata, key.source):
                said = member.metadata.annotations.get(annotation)
                value = "missing" if said is None else f'"{said}"'
                return Undefined(
                    f"label {key.source.value}: {key.name}: annotation {annotation}: {value}: "
                    "expected the number of pods of the gang, 1 or more"
                )
            # Where members do not agree, all wait for the most that anybody asks for.
            size = max([_size(member.metadata, key.source), *(each.size for each in members.values())])
        living = {uid: each.key for uid, each in members.items() if not each.has_succeeded}
        return Gang(key, size, living, len(members) - len(living), priority)

    def group(self, key: GangKey) -> podgroup.PodGroup | None:
        """The object that says what a gang is, where there is one."""
        return self._groups.get(cache.Key(key.namespace, key.name)) if key.source is Source.POD_GROUP else None

    # What preemption asks

    def group_of(self, member: pod.Pod) -> podgroup.PodGroup | None:
        """The PodGroup that a pod belongs to, whatever its policy."""
        key = key_of(member) if self._groups else None
        return None if key is None else self.group(key)

    def priority_of(self, member: pod.Pod) -> int:
        """How important a pod is: as its PodGroup where it belongs to one."""
        group = self.group_of(member)
        return (member.spec.priority if group is None else group.spec.priority) or 0

    def disrupted_with(self, member: pod.Pod) -> Unit | None:
        """Those that a pod is evicted with, itself among them; None for one that is evicted by itself."""
        group = self.group_of(member)
        if group is None or group.spec.disruption_mode is None or group.spec.disruption_mode.all is None:
            return None
        key = key_of(member)
        assert key is not None, "whoever belongs to a group says so"
        return Unit(key, [uid for uid, each in self._members.get(key, {}).items() if not each.has_succeeded])


def disagreement(gang: Gang, pods: Iterable[pod.Pod]) -> str:
    """What keeps pods from being scheduled as one PodGroup, as upstream tells; empty where nothing does."""
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


def key_of(of: pod.Pod) -> GangKey | None:
    """Which gang a pod says it belongs to; a PodGroup's pods may still be pods like any others."""
    group, metadata = of.spec.scheduling_group, of.metadata
    if group is not None and group.pod_group_name:
        return GangKey(metadata.namespace, Source.POD_GROUP, group.pod_group_name)
    if metadata.labels:
        for source in (Source.KUEUE, Source.LABEL):
            name = metadata.labels.get(source.value)
            if name:
                return GangKey(metadata.namespace, source, name)
    return None


def _size(of: meta.ObjectMeta, source: Source) -> int:
    """How large a pod says that its gang is; 0 where it does not, or says what cannot be."""
    text = of.annotations.get(_SIZES[source], "") if source in _SIZES else ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
