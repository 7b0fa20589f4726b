"""Gangs: pods that get their nodes together or not at all, their members, and the number of pods needed.

A pod names its gang in one of three ways, the first of these that it uses:

- ``spec.schedulingGroup`` names a PodGroup of ``scheduling.k8s.io``, whose policy has the number of pods; a group
  with another policy is a gang of one pod. PodGroups may be parts of a CompositePodGroup, which is then the gang,
- Kueue's label ``kueue.x-k8s.io/pod-group-name``, with Kueue's annotation for the number,
- the label :data:`LABEL`, with the annotation :data:`SIZE`.

Waiting pods and pods on nodes are both members. Informers put objects in. The plugin GangScheduling, the scheduler and
simulations ask. Without the feature, there are no objects here.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from drachma.api import compositepodgroup, meta, pod, podgroup
from drachma.claims import podstate
from drachma.runtime import cache
from drachma.scheduler.snapshot import agreements
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
    COMPOSITE = "compositePodGroup"
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
    """Number of pods that must have a node at once, or of children whose pods must."""
    members: Mapping[str, cache.Key]
    """Pods by uid, waiting or on nodes."""
    done: int = 0
    """Number of further pods that have succeeded, which need no node any more."""
    priority: int | None = None
    """Priority of the PodGroup; None for a gang without one."""
    group_uid: str | None = None
    """Uid of the PodGroup; None for a gang without one."""
    preemption_policy: str | None = None
    """Policy that the pods must have too; None if they decide."""
    topology: tuple[str, ...] = ()
    """Labels of nodes; all pods go to nodes that have the same values of them."""
    children: tuple[Gang, ...] = ()
    """Groups of a CompositePodGroup, in the order of their names."""
    agreement: agreements.Agreement = agreements.NONE
    """Constraints on the devices of all pods."""

    @property
    def is_group(self) -> bool:
        """True for a PodGroup or a CompositePodGroup."""
        return self.key.source in (Source.POD_GROUP, Source.COMPOSITE)

    @property
    def leaves(self) -> tuple[Gang, ...]:
        """PodGroups of the gang, or the gang itself."""
        return tuple(leaf for child in self.children for leaf in child.leaves) if self.children else (self,)


class Unit(NamedTuple):
    """Pods of a PodGroup that are evicted together or not at all."""

    key: GangKey
    members: Sequence[str]
    """Uids of the pods; some may have no node."""


class Undefined(NamedTuple):
    """Gang that is not defined. Its pods wait until it is."""

    problem: str
    is_silent: bool = False
    """True if pods are not told that they wait, as upstream does for PodGroups."""


class _Member(NamedTuple):
    key: cache.Key
    size: int
    has_succeeded: bool = False


_DEEPEST: Final = 4
"""Number of CompositePodGroups inside each other that are followed."""

_SIZES: Final = {Source.KUEUE: KUEUE_SIZE, Source.LABEL: SIZE}


class Gangs:
    """All gangs of a cluster."""

    def __init__(self, parent: Gangs | None = None, *, has_composites: bool = False) -> None:
        """With a ``parent`` this is a fork of it. Without composites, parents of PodGroups are ignored."""
        self._has_composites: Final = has_composites
        if parent is None:
            self._groups = forkmap.ForkMap[cache.Key, podgroup.PodGroup]()
            self._composites = forkmap.ForkMap[cache.Key, compositepodgroup.CompositePodGroup]()
            self._members = forkmap.ForkMap[GangKey, dict[str, _Member]](copy=dict)
        else:
            self._groups = parent._groups.fork()
            self._composites = parent._composites.fork()
            self._members = parent._members.fork()

    def fork(self) -> Gangs:
        """Return a copy that can be changed separately; a new instance if there are no gangs."""
        is_used = self._groups or self._members or self._composites
        return Gangs(self if is_used else None, has_composites=self._has_composites)

    # Updates

    def put_group(self, new: podgroup.PodGroup) -> None:
        """Add or update a group."""
        self._groups[cache.key_of(new)] = new

    def remove_group(self, deleted: podgroup.PodGroup) -> None:
        """Remove a group."""
        self._groups.pop(cache.key_of(deleted), None)

    def put_composite(self, new: compositepodgroup.CompositePodGroup) -> None:
        """Add or update a composite group."""
        self._composites[cache.key_of(new)] = new

    def remove_composite(self, deleted: compositepodgroup.CompositePodGroup) -> None:
        """Remove a composite group."""
        self._composites.pop(cache.key_of(deleted), None)

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
        if key.source is Source.POD_GROUP:
            return self._group_gang(key)
        members = self._members.get(key, {})
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
        living, done = self._living(key)
        return Gang(key, size, living, done)

    def _living(self, key: GangKey) -> tuple[Mapping[str, cache.Key], int]:
        """Return the pods of a gang that have not succeeded, and the number of the others."""
        members = self._members.get(key, {})
        living = {uid: each.key for uid, each in members.items() if not each.has_succeeded}
        return living, len(members) - len(living)

    def _group_gang(self, key: GangKey) -> Gang | Undefined:
        """Return the gang of a PodGroup: the outermost CompositePodGroup that it is part of, or itself."""
        group = self._groups.get(cache.Key(key.namespace, key.name))
        if group is None:
            return Undefined(
                f'waiting for pods\'s pod group "{key.name}" to appear in scheduling queue', is_silent=True
            )
        parent = group.spec.parent_composite_pod_group_name if self._has_composites else None
        if not parent:
            return self._leaf(group)
        root: compositepodgroup.CompositePodGroup | None = None
        for _ in range(_DEEPEST):
            if not parent:
                break
            root = self._composites.get(cache.Key(key.namespace, parent))
            if root is None:
                problem = f'waiting for pods\'s composite pod group "{parent}" to appear in scheduling queue'
                return Undefined(problem, is_silent=True)
            parent = root.spec.parent_composite_pod_group_name
        assert root is not None, "a group with a parent has a root"
        return self._composite(root, _DEEPEST)

    def _leaf(self, group: podgroup.PodGroup) -> Gang:
        spec, metadata = group.spec, group.metadata
        key = GangKey(metadata.namespace, Source.POD_GROUP, metadata.name)
        living, done = self._living(key)
        size = 1 if spec.scheduling_policy.gang is None else spec.scheduling_policy.gang.min_count
        return Gang(
            key,
            size,
            living,
            done,
            spec.priority or 0,
            metadata.uid,
            spec.preemption_policy,
            _topology(spec),
            agreement=agreements.read(metadata.annotations),
        )

    def _composite(self, composite: compositepodgroup.CompositePodGroup, depth: int) -> Gang:
        spec, metadata = composite.spec, composite.metadata
        leaves = [
            self._leaf(each)
            for each in self._groups.values()
            if each.metadata.namespace == metadata.namespace
            and each.spec.parent_composite_pod_group_name == metadata.name
        ]
        inner = [
            self._composite(each, depth - 1)
            for each in self._composites.values()
            if depth > 1
            and each.metadata.namespace == metadata.namespace
            and each.spec.parent_composite_pod_group_name == metadata.name
        ]
        children = tuple(sorted((*leaves, *inner), key=lambda child: child.key.name))
        members = {uid: key for child in children for uid, key in child.members.items()}
        size = 1 if spec.scheduling_policy.gang is None else spec.scheduling_policy.gang.min_group_count
        return Gang(
            GangKey(metadata.namespace, Source.COMPOSITE, metadata.name),
            size,
            members,
            0,
            spec.priority or 0,
            metadata.uid,
            spec.preemption_policy,
            _topology(spec),
            children,
        )

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
    policy = gang.preemption_policy
    whose = "" if policy is None else " as the pod group's preemption policy"
    scheduler = ""
    for each in pods if gang.priority is not None else ():
        scheduler = scheduler or each.spec.scheduler_name
        if each.spec.scheduler_name != scheduler:
            return (
                "all pods in a single pod group should have the same .spec.schedulerName set, "
                f'got: "{each.spec.scheduler_name}" and "{scheduler}"'
            )
        priority = each.spec.priority or 0
        if priority != gang.priority:
            return (
                "all pods in a single pod group should have the same priority as the pod group's priority, "
                f"got {priority} and {gang.priority}"
            )
        own = each.spec.preemption_policy or "PreemptLowerPriority"
        policy = policy or own
        if own != policy:
            return (
                f"all pods in a single pod group should have the same preemption policy{whose}, got {own} and {policy}"
            )
    return ""


def _topology(spec: podgroup.PodGroupSpec | compositepodgroup.CompositePodGroupSpec) -> tuple[str, ...]:
    constraints = spec.scheduling_constraints
    return () if constraints is None else tuple(each.key for each in constraints.topology)


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
