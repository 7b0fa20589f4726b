"""Facts about a pod that scheduling reads, computed once per version of the pod."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from msgspec import structs

from drachma.accounting import ledger, resourcenames
from drachma.api import codec, pod
from drachma.claims import podstate, volumeclaims
from drachma.runtime import cache
from drachma.scheduler.snapshot import podaffinity


class PodInfo:
    """Pod that waits for a node."""

    __slots__ = ("_affinity", "_demand", "_extended", "key", "pod", "priority", "scheduler", "uid")

    def __init__(self, waiting_pod: pod.Pod) -> None:
        self.pod = waiting_pod
        self.uid = waiting_pod.metadata.uid
        self.key = cache.key_of(waiting_pod)
        self.priority = waiting_pod.spec.priority or 0
        self.scheduler = podstate.scheduler_name(waiting_pod)
        """Name of the scheduler that places the pod."""
        self._demand: ledger.Demand | None = None
        self._extended: tuple[str, ...] | None = None
        self._affinity: podaffinity.PodAffinity | None = (
            None if podaffinity.is_stated(waiting_pod) else podaffinity.NONE
        )

    @property
    def demand(self) -> ledger.Demand:
        """Demand of the pod on a node, without its claims."""
        if self._demand is None:
            self._demand = ledger.demand(self.pod)
        return self._demand

    @property
    def needs_devices(self) -> bool:
        """True if the pod has claims, or requests resources that devices may back."""
        return bool(self.pod.spec.resource_claims) or bool(self.extended_resources)

    @property
    def affinity(self) -> podaffinity.PodAffinity:
        """Rules about other pods. Raises InvalidValueError for a malformed selector."""
        if self._affinity is None:
            self._affinity = podaffinity.of(self.pod)
        return self._affinity

    @property
    def extended_resources(self) -> tuple[str, ...]:
        """Requested resources that a device class may back."""
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
"""Labels that number the pods of one template, and that no rule about pods uses."""


def shape(waiting_pod: pod.Pod) -> Hashable:
    """Return a key that is equal for pods that every node treats alike. Claims count by name or by template.

    Volumes that exist on any node, such as the token of a service account, have different names in every pod and are
    left out, like labels that only number pods.
    """
    labels = tuple(sorted(entry for entry in waiting_pod.metadata.labels.items() if entry[0] not in _NUMBERING))
    volumes = tuple(filter(is_choosy, waiting_pod.spec.volumes))
    return waiting_pod.metadata.namespace, labels, codec.encode_part(structs.replace(waiting_pod.spec, volumes=volumes))


def is_choosy(volume: pod.Volume) -> bool:
    """Return True if a volume may restrict the nodes of a pod."""
    return (
        volume.persistent_volume_claim is not None or volume.ephemeral is not None or volumeclaims.is_exclusive(volume)
    )


def is_local(waiting_pod: pod.Pod) -> bool:
    """Return True if the fit of a pod depends on one node only, and not on pods or volumes elsewhere."""
    spec = waiting_pod.spec
    has_rules = podaffinity.is_stated(waiting_pod) or spec.topology_spread_constraints
    return not has_rules and not any(map(is_choosy, spec.volumes))
