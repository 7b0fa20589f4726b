"""The objects that rows are made of, and how they belong together: devices, pools, claims, pods, queues."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from drachma.api import node, pod, resourceclaim, resourceslice
from drachma.claims import identity
from drachma.queueing.kinds import clusterqueue, localqueue, workload

Claim = resourceclaim.ResourceClaim
Slice = resourceslice.ResourceSlice


class Pool(NamedTuple):
    """A pool as its newest generation is: who has it, where, and of how many slices which are there."""

    driver: str
    name: str
    generation: int
    expected: int
    slices: tuple[Slice, ...]

    @property
    def is_complete(self) -> bool:
        return len(self.slices) == self.expected

    @property
    def nodes(self) -> str:
        """Where its devices can be used, in a word."""
        places = sorted({_place(each) for each in self.slices})
        return places[0] if len(places) == 1 else "<several>"


class Device(NamedTuple):
    """A device, and the pool that it is in."""

    pool: Pool
    device: resourceslice.Device
    node: str

    @property
    def id(self) -> identity.DeviceID:
        return identity.DeviceID(self.pool.driver, self.pool.name, self.device.name)


class Use(NamedTuple):
    """A claim that a device was allocated to, and for which request."""

    claim: Claim
    result: resourceclaim.DeviceRequestAllocationResult


class Cluster(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A cluster as it was at some moment."""

    nodes: Sequence[node.Node] = ()
    pods: Sequence[pod.Pod] = ()
    claims: Sequence[Claim] = ()
    slices: Sequence[Slice] = ()
    workloads: Sequence[workload.Workload] = ()
    cluster_queues: Sequence[clusterqueue.ClusterQueue] = ()
    local_queues: Sequence[localqueue.LocalQueue] = ()

    @functools.cached_property
    def pools(self) -> list[Pool]:
        """All pools, by driver and name."""
        newest: dict[tuple[str, str], list[Slice]] = {}
        for each in self.slices:
            known = newest.setdefault((each.spec.driver, each.spec.pool.name), [])
            if known and known[0].spec.pool.generation < each.spec.pool.generation:
                known.clear()
            if not known or known[0].spec.pool.generation == each.spec.pool.generation:
                known.append(each)
        return [
            Pool(driver, name, slices[0].spec.pool.generation, slices[0].spec.pool.resource_slice_count, tuple(slices))
            for (driver, name), slices in sorted(newest.items())
        ]

    @functools.cached_property
    def devices(self) -> list[Device]:
        """All devices of the newest generations, pool by pool."""
        return [
            Device(pool, device, device.node_name or _place(each))
            for pool in self.pools
            for each in pool.slices
            for device in each.spec.devices
        ]

    @functools.cached_property
    def uses(self) -> dict[identity.DeviceID, list[Use]]:
        """The claims that devices were allocated to."""
        found: dict[identity.DeviceID, list[Use]] = {}
        for claim in self.claims:
            for result in results(claim):
                device = identity.DeviceID(result.driver, result.pool, result.device)
                found.setdefault(device, []).append(Use(claim, result))
        return found


def results(of: Claim) -> tuple[resourceclaim.DeviceRequestAllocationResult, ...]:
    """The devices that a claim has."""
    return of.status.allocation.devices.results if of.status.allocation is not None else ()


def consumers(of: Claim) -> list[str]:
    """The names of the pods that may use a claim."""
    return [each.name for each in of.status.reserved_for]


def classes(of: Claim) -> set[str]:
    """The device classes that a claim asks for."""
    names: set[str] = set()
    for request in of.spec.devices.requests:
        parts: Iterable[resourceclaim.ExactDeviceRequest | resourceclaim.DeviceSubRequest] = (
            *((request.exactly,) if request.exactly is not None else ()),
            *request.first_available,
        )
        names |= {part.device_class_name for part in parts}
    return names


def _place(of: Slice) -> str:
    if of.spec.node_name:
        return of.spec.node_name
    return "<all>" if of.spec.all_nodes else "<some>"
