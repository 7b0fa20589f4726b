"""Device rooms: how many pods of a kind find devices for their claims on a node.

Resources of nodes are numbers; devices are not. Whether claims fit depends on selectors, constraints between devices,
partitions and shared counters, so the allocator itself answers: it allocates the claims of all pods together. Claims of
pods that were placed on the node before and are not scheduled yet are allocated with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from msgspec import structs

from drachma import errors
from drachma.allocator import Allocated, AllocatedState, Allocator, Node
from drachma.api import meta, node, resourceclaim
from drachma.queueing.kinds import workload

Claims = tuple[resourceclaim.ResourceClaim, ...]
"""Claims of one pod."""
Expected = Sequence[tuple[Claims, int]]
"""Claims of pods that will run on a node, with the number of pods."""


class PodClaims(Protocol):
    """Claims that pods will have."""

    def claims(self, wl: workload.Workload, pod_set: workload.PodSet) -> Claims:
        """Return the claims that one pod of a set gets for itself from templates."""


class DeviceRoom(Protocol):
    """Room of nodes for pods with claims."""

    def count(self, at: node.Node, most: int, assumed: Expected) -> int:
        """Return the number of pods, up to ``most``, that find devices next to the assumed ones."""

    def takes_leader(self, at: node.Node, assumed: Expected) -> bool:
        """Return True if the leader finds devices."""

    def count_with_leader(self, at: node.Node, most: int, assumed: Expected) -> int:
        """Return the number of pods that find devices next to the leader."""


class DeviceInventory:
    """Devices of a cluster, the claims that use them, and the pods that are placed and will use more."""

    def __init__(
        self,
        allocator: Allocator,
        expected_pods: Mapping[str, Expected] | None = None,
        *,
        claim_source: PodClaims | None = None,
    ) -> None:
        """Keep an allocator, pods by node that have no devices yet, and the claims of pods."""
        self.claim_source: Final = claim_source
        self._allocator: Final = allocator
        self._expected: Final = expected_pods or {}
        self._empty: Final = allocator.sibling(
            allocated=AllocatedState(consumable_capacity=allocator.features.consumable_capacity)
        )
        self._copies: Final[dict[tuple[str, int, int], Claims]] = {}

    def room(self, pods: Claims, leader: Claims | None, *, ignores_usage: bool = False) -> DeviceRoom:
        """Return the room for pods with these claims, and for their leader.

        ``ignores_usage`` finds room as if no device were in use.
        """
        return _AllocatorRoom(self, pods, leader, ignores_usage=ignores_usage)

    def fits(self, at: node.Node, new_pods: Expected, *, ignores_usage: bool) -> bool:
        """Return True if the claims of all pods can be allocated on a node together."""
        expected_claims = () if ignores_usage else self._expected.get(at.metadata.name, ())
        claims = [
            claim
            for group, (one_pod, count) in enumerate((*expected_claims, *new_pods))
            for number in range(count)
            for claim in self._copy(one_pod, group, number)
        ]
        if not claims:
            return True
        allocator = self._empty if ignores_usage else self._allocator
        try:
            return isinstance(allocator.allocate(Node.of(at), claims), Allocated)
        except errors.AllocationError:
            return False

    def _copy(self, one_pod: Claims, group: int, number: int) -> Claims:
        """Return the claims of one of several equal pods."""
        key = (",".join(str(id(each.spec)) for each in one_pod), group, number)
        claims = self._copies.get(key)
        if claims is None:
            claims = self._copies[key] = tuple(
                structs.replace(
                    each,
                    metadata=meta.ObjectMeta(
                        name=f"{each.metadata.name}-{group}-{number}",
                        namespace=each.metadata.namespace,
                        uid=f"{each.metadata.name}/{group}/{number}",
                    ),
                )
                for each in one_pod
            )
        return claims


class _AllocatorRoom:
    def __init__(self, inventory: DeviceInventory, pods: Claims, leader: Claims | None, *, ignores_usage: bool) -> None:
        self._inventory: Final = inventory
        self._pods: Final = pods
        self._leader: Final = leader
        self._ignores_usage: Final = ignores_usage

    def count(self, at: node.Node, most: int, assumed: Expected) -> int:
        return self._most(at, most, assumed)

    def takes_leader(self, at: node.Node, assumed: Expected) -> bool:
        return self._leader is None or self._fits(at, [*assumed, (self._leader, 1)])

    def count_with_leader(self, at: node.Node, most: int, assumed: Expected) -> int:
        return self._most(at, most, assumed if self._leader is None else [*assumed, (self._leader, 1)])

    def _most(self, at: node.Node, most: int, assumed: Expected) -> int:
        """Return the largest number of pods that fits. If a number fits, all smaller ones do."""
        if not self._pods:
            return most
        least, beyond = 0, most + 1
        step = 1
        while least + step < beyond and self._fits(at, [*assumed, (self._pods, least + step)]):
            least += step
            step *= 2
        beyond = min(beyond, least + step)
        while beyond - least > 1:
            middle = (least + beyond) // 2
            if self._fits(at, [*assumed, (self._pods, middle)]):
                least = middle
            else:
                beyond = middle
        return least

    def _fits(self, at: node.Node, new_pods: Expected) -> bool:
        return self._inventory.fits(at, new_pods, ignores_usage=self._ignores_usage)
