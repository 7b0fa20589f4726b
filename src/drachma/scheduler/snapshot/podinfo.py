"""What scheduling reads of a pod, worked out once per version of the pod."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from msgspec import structs

from drachma.accounting import ledger, resourcenames
from drachma.api import codec, pod
from drachma.claims import volumeclaims
from drachma.runtime import cache
from drachma.scheduler.snapshot import podaffinity


class PodInfo:
    """A pod that wants a node."""

    __slots__ = ("_affinity", "_demand", "_extended", "key", "pod", "priority", "uid")

    def __init__(self, waiting: pod.Pod) -> None:
        self.pod = waiting
        self.uid = waiting.metadata.uid
        self.key = cache.key_of(waiting)
        self.priority = waiting.spec.priority or 0
        self._demand: ledger.Demand | None = None
        self._extended: tuple[str, ...] | None = None
        self._affinity: podaffinity.PodAffinity | None = None if podaffinity.is_stated(waiting) else podaffinity.NONE

    @property
    def demand(self) -> ledger.Demand:
        """What it takes of a node, without what its claims will add."""
        if self._demand is None:
            self._demand = ledger.demand(self.pod)
        return self._demand

    @property
    def affinity(self) -> podaffinity.PodAffinity:
        """Its rules about other pods; raises InvalidValueError for a selector that is not well-formed."""
        if self._affinity is None:
            self._affinity = podaffinity.of(self.pod)
        return self._affinity

    @property
    def extended_resources(self) -> tuple[str, ...]:
        """The resources of its demand that a device class may stand behind."""
        if self._extended is None:
            self._extended = tuple(name for name, _ in self.demand.amounts if resourcenames.may_be_devices(name))
        return self._extended


_NUMBERING: Final = frozenset(
    {
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/job-completion-index",
        "kueue.x-k8s.io/pod-group-pod-index",
        "statefulset.kubernetes.io/pod-name",
    }
)
"""Labels that tell pods of one template apart, and that no rule about pods goes by."""


def shape(of: pod.Pod) -> Hashable:
    """What pods have alike that are alike to every node; claims by name are in the spec, others by their template.

    Volumes that any node has, such as that of an account's token, have names of their own in every pod: they are left
    out, as are labels that only number pods.
    """
    labels = tuple(sorted(entry for entry in of.metadata.labels.items() if entry[0] not in _NUMBERING))
    volumes = tuple(filter(is_choosy, of.spec.volumes))
    return of.metadata.namespace, labels, codec.encode_part(structs.replace(of.spec, volumes=volumes))


def is_choosy(volume: pod.Volume) -> bool:
    """Whether a volume may decide where a pod can go."""
    return (
        volume.persistent_volume_claim is not None or volume.ephemeral is not None or volumeclaims.is_exclusive(volume)
    )


def is_local(waiting: pod.Pod) -> bool:
    """Whether a pod goes by what is on a node alone, and not by what is elsewhere: other pods, or volumes."""
    spec = waiting.spec
    has_rules = podaffinity.is_stated(waiting) or spec.topology_spread_constraints
    return not has_rules and not any(map(is_choosy, spec.volumes))
