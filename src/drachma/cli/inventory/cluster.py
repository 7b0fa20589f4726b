"""Objects of a cluster that rows are made of, and their relations: devices, pools, claims, pods, queues."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from drachma.api import node, pod, resourceclaim, resourceslice
from drachma.claims import identity, reservation, standins

if TYPE_CHECKING:
    from drachma.cli.inventory import driverrows
    from drachma.queueing.kinds import clusterqueue, localqueue, workload

Claim = resourceclaim.ResourceClaim
Slice = resourceslice.ResourceSlice


class Pool(NamedTuple):
    """Newest generation of a pool: its driver and slices, and the number of slices that it should have."""

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
        """Node of the pool's devices, or a word for several."""
        places = sorted({_node_label(each) for each in self.slices})
        return places[0] if len(places) == 1 else "<several>"


class Device(NamedTuple):
    """A device with its pool and node."""

    pool: Pool
    device: resourceslice.Device
    node: str

    @property
    def id(self) -> identity.DeviceID:
        return identity.DeviceID(self.pool.driver, self.pool.name, self.device.name)


class Use(NamedTuple):
    """Allocation of a device to a claim."""

    claim: Claim
    result: resourceclaim.DeviceRequestAllocationResult


class Cluster(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Objects of a cluster at one moment."""

    nodes: Sequence[node.Node] = ()
    pods: Sequence[pod.Pod] = ()
    claims: Sequence[Claim] = ()
    slices: Sequence[Slice] = ()
    workloads: Sequence[workload.Workload] = ()
    cluster_queues: Sequence[clusterqueue.ClusterQueue] = ()
    local_queues: Sequence[localqueue.LocalQueue] = ()
    driver_pods: Sequence[driverrows.DriverPod] = ()

    @functools.cached_property
    def pools(self) -> list[Pool]:
        """All pools, by driver and name."""
        newest: dict[tuple[str, str], list[Slice]] = {}
        for each in self.slices:
            slices_of_pool = newest.setdefault((each.spec.driver, each.spec.pool.name), [])
            if slices_of_pool and slices_of_pool[0].spec.pool.generation < each.spec.pool.generation:
                slices_of_pool.clear()
            if not slices_of_pool or slices_of_pool[0].spec.pool.generation == each.spec.pool.generation:
                slices_of_pool.append(each)
        return [
            Pool(driver, name, slices[0].spec.pool.generation, slices[0].spec.pool.resource_slice_count, tuple(slices))
            for (driver, name), slices in newest.items()
        ]

    @functools.cached_property
    def devices(self) -> list[Device]:
        """All devices of the newest generations, pool by pool."""
        return [
            Device(pool, device, device.node_name or _node_label(each))
            for pool in self.pools
            for each in pool.slices
            for device in each.spec.devices
        ]

    @functools.cached_property
    def nodes_by_device(self) -> dict[identity.DeviceID, str]:
        """Node of each device, or the label of several nodes."""
        return {each.id: each.node for each in self.devices}

    @functools.cached_property
    def devices_by_node(self) -> dict[str, list[Device]]:
        """Devices of each node, or of the label of several nodes."""
        by_node: dict[str, list[Device]] = {}
        for each in self.devices:
            by_node.setdefault(each.node, []).append(each)
        return by_node

    @functools.cached_property
    def devices_by_pool(self) -> dict[tuple[str, str], list[Device]]:
        """Devices of each pool, by driver and name."""
        by_pool: dict[tuple[str, str], list[Device]] = {}
        for each in self.devices:
            by_pool.setdefault((each.pool.driver, each.pool.name), []).append(each)
        return by_pool

    @functools.cached_property
    def unpublished(self) -> list[Device]:
        """Devices that are allocated and in no slice of the newest generation of their pool, with the claim's node."""
        published = {each.id for each in self.devices}
        return [
            Device(
                Pool(driver=key.driver, name=key.pool, generation=0, expected=0, slices=()),
                resourceslice.Device(name=key.device),
                next(filter(None, (_allocated_node(use.claim) for use in uses)), "<none>"),
            )
            for key, uses in sorted(self.uses.items())
            if key not in published
        ]

    @functools.cached_property
    def uses(self) -> dict[identity.DeviceID, list[Use]]:
        """Allocations of each device."""
        by_device: dict[identity.DeviceID, list[Use]] = {}
        for claim in self.claims:
            for result in results(claim):
                device = identity.DeviceID(result.driver, result.pool, result.device)
                by_device.setdefault(device, []).append(Use(claim, result))
        return by_device


def results(claim: Claim) -> tuple[resourceclaim.DeviceRequestAllocationResult, ...]:
    """Return the devices of a claim."""
    return claim.status.allocation.devices.results if claim.status.allocation is not None else ()


def consumers(claim: Claim) -> list[str]:
    """Return the names of the pods and groups that a claim is reserved for."""
    return [f"podgroup/{each.name}" if reservation.is_group(each) else each.name for each in claim.status.reserved_for]


def classes(claim: Claim) -> set[str]:
    """Return the device classes that a claim requests."""
    names: set[str] = set()
    for request in claim.spec.devices.requests:
        parts: Iterable[resourceclaim.ExactDeviceRequest | resourceclaim.DeviceSubRequest] = (
            *((request.exactly,) if request.exactly is not None else ()),
            *request.first_available,
        )
        names |= {part.device_class_name for part in parts}
    return names


def _allocated_node(claim: Claim) -> str:
    return standins.node_of(claim.status.allocation) if claim.status.allocation is not None else ""


def _node_label(each: Slice) -> str:
    if each.spec.node_name:
        return each.spec.node_name
    return "<all>" if each.spec.all_nodes else "<some>"
