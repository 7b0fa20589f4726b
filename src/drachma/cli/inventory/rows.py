"""Rows of devices, pools, claims, nodes and pods: their cells and documents."""

from __future__ import annotations

import collections
import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from drachma.api import node, pod, resourceclaim, resourceslice
from drachma.claims import conditions, identity, podclaims, podstate
from drachma.cli.inventory import cluster as clusters
from drachma.cli.inventory import podqualities, table
from drachma.values import naturalorder

Cluster = clusters.Cluster


def _devices(cluster: Cluster, filter_: table.Filter, _: dt.datetime) -> Iterable[table.Row]:
    for each in (*sorted(cluster.devices, key=_device_key), *sorted(cluster.unpublished, key=_device_key)):
        uses = cluster.uses.get(each.id, [])
        if not filter_.has_device(each.id) or filter_.node not in ("", each.node):
            continue
        if filter_.device_class and not any(filter_.device_class in clusters.classes(use.claim) for use in uses):
            continue
        claims = [identity.label(use.claim.metadata) for use in uses]
        pods = sorted({name for use in uses for name in clusters.consumers(use.claim)})
        attributes = {name: _attribute(value) for name, value in sorted(each.device.attributes.items())}
        capacity = {name: str(value.value) for name, value in sorted(each.device.capacity.items())}
        taints = [f"{taint.key}={taint.value}:{taint.effect}" for taint in each.device.taints]
        state = _device_state(each, uses)
        yield table.Row(
            "/".join(each.id),
            {
                "DEVICE": each.device.name,
                "STATE": state,
                "POOL": each.pool.name,
                "DRIVER": each.pool.driver,
                "NODE": each.node,
                "CLAIM": table.join_names(claims),
                "POD": table.join_names(pods),
                "CAPACITY": table.join_names(f"{name}={value}" for name, value in capacity.items()),
                "TAINTS": table.join_names(taints),
                "ATTRIBUTES": table.join_names(f"{name}={value}" for name, value in attributes.items()),
            },
            {
                "name": each.device.name,
                "state": state,
                "pool": each.pool.name,
                "driver": each.pool.driver,
                "node": each.node,
                "claims": claims,
                "pods": pods,
                "capacity": capacity,
                "taints": taints,
                "attributes": attributes,
            },
        )


def _pools(cluster: Cluster, filter_: table.Filter, _: dt.datetime) -> Iterable[table.Row]:
    for each in sorted(cluster.pools, key=lambda pool: (pool.driver, naturalorder.key(pool.name))):
        devices = cluster.devices_by_pool.get((each.driver, each.name), [])
        if filter_.driver not in ("", each.driver) or filter_.pool not in ("", each.name):
            continue
        if filter_.node and not any(device.node == filter_.node for device in devices):
            continue
        free = sum(device.id not in cluster.uses for device in devices)
        yield table.Row(
            f"{each.driver}/{each.name}",
            {
                "POOL": each.name,
                "DRIVER": each.driver,
                "NODE": each.nodes,
                "DEVICES": str(len(devices)),
                "FREE": str(free),
                "SLICES": f"{len(each.slices)}/{each.expected}",
                "GENERATION": str(each.generation),
            },
            {
                "name": each.name,
                "driver": each.driver,
                "node": each.nodes,
                "devices": len(devices),
                "free": free,
                "slices": len(each.slices),
                "expectedSlices": each.expected,
                "generation": each.generation,
                "isComplete": each.is_complete,
            },
        )


def _claims(cluster: Cluster, filter_: table.Filter, now: dt.datetime) -> Iterable[table.Row]:
    for each in sorted(cluster.claims, key=table.sort_key):
        results = clusters.results(each)
        devices = [identity.DeviceID(result.driver, result.pool, result.device) for result in results]
        classes = sorted(clusters.classes(each))
        if filter_.device_class and filter_.device_class not in classes:
            continue
        if filter_.is_about_devices and not any(map(filter_.has_device, devices)):
            continue
        places = _nodes(cluster, devices)
        if filter_.node and filter_.node not in places:
            continue
        pods = clusters.consumers(each)
        state = _claim_state(each)
        yield table.Row(
            identity.label(each.metadata),
            {
                "NAMESPACE": each.metadata.namespace,
                "NAME": each.metadata.name,
                "STATE": state,
                "DEVICES": table.join_names(device.device for device in devices),
                "NODE": table.join_names(places),
                "PODS": table.join_names(pods),
                "AGE": table.age(each, now),
                "CLASSES": table.join_names(classes),
                "POOLS": table.join_names(sorted({f"{device.driver}/{device.pool}" for device in devices})),
            },
            {
                "namespace": each.metadata.namespace,
                "name": each.metadata.name,
                "state": state,
                "devices": [
                    {**device._asdict(), "request": result.request}
                    for device, result in zip(devices, results, strict=True)
                ],
                "nodes": places,
                "pods": pods,
                "classes": classes,
            },
        )


def _nodes_table(cluster: Cluster, filter_: table.Filter, now: dt.datetime) -> Iterable[table.Row]:
    pods_by_node = collections.Counter(each.spec.node_name for each in cluster.pods)
    short_names = _short_names(pool.driver for pool in cluster.pools)
    for each in sorted(cluster.nodes, key=table.sort_key):
        name = each.metadata.name
        if filter_.node not in ("", name):
            continue
        devices = [device for device in cluster.devices_by_node.get(name, ()) if filter_.has_device(device.id)]
        if filter_.is_about_devices and not devices:
            continue
        counts = _counts_by_driver(cluster, devices)
        pods = pods_by_node[name]
        allocatable = {key: str(value) for key, value in each.status.allocatable.items()}
        status = _node_status(each)
        yield table.Row(
            name,
            {
                "NAME": name,
                "STATUS": status,
                "PODS": f"{pods}/{allocatable.get('pods', '?')}",
                "FREE DEVICES": table.join_names(
                    f"{short_names[count.driver]}={count.free}/{count.devices}" for count in counts
                ),
                "AGE": table.age(each, now),
                "CPU": allocatable.get("cpu", table.NONE),
                "MEMORY": allocatable.get("memory", table.NONE),
                "DRIVERS": table.join_names(count.driver for count in counts),
            },
            {
                "name": name,
                "status": status,
                "pods": pods,
                "devices": len(devices),
                "free": sum(count.free for count in counts),
                "drivers": [count._asdict() for count in counts],
                "allocatable": allocatable,
            },
        )


def _pods(cluster: Cluster, filter_: table.Filter, now: dt.datetime) -> Iterable[table.Row]:
    claims = {identity.label(each.metadata): each for each in cluster.claims}
    qualities = podqualities.pod_qualities(cluster)
    for each in sorted(cluster.pods, key=table.sort_key):
        if filter_.node not in ("", each.spec.node_name):
            continue
        namespace = each.metadata.namespace
        names = [reference.name for _, reference in podclaims.named(each)]
        own = [claims[key] for name in names if name and (key := f"{namespace}/{name}") in claims]
        devices = [
            identity.DeviceID(result.driver, result.pool, result.device)
            for claim in own
            for result in clusters.results(claim)
        ]
        classes = {name for claim in own for name in clusters.classes(claim)}
        if filter_.device_class and filter_.device_class not in classes:
            continue
        if filter_.is_about_devices and not any(map(filter_.has_device, devices)):
            continue
        status, reason = _pod_status(each), _pod_reason(each)
        used = [claim.metadata.name for claim in own]
        yield table.Row(
            f"{namespace}/{each.metadata.name}",
            {
                "NAMESPACE": namespace,
                "NAME": each.metadata.name,
                "STATUS": status,
                "NODE": each.spec.node_name or table.NONE,
                "DEVICES": table.join_names(device.device for device in devices),
                "AGE": table.age(each, now),
                "REASON": reason or table.NONE,
                "CLAIMS": table.join_names(used),
                "DRIVERS": table.join_names(sorted({device.driver for device in devices})),
                **podqualities.cells(qualities.get(each.metadata.uid)),
            },
            {
                "namespace": namespace,
                "name": each.metadata.name,
                "status": status,
                "reason": reason,
                "node": each.spec.node_name,
                "claims": used,
                "devices": [device._asdict() for device in devices],
                **podqualities.document(qualities.get(each.metadata.uid)),
            },
        )


_FILTERS: Final = frozenset({"node", "driver", "pool", "device_class"})

TABLES: Final[Mapping[str, table.Table]] = {
    "devices": table.Table(
        ("DEVICE", "STATE", "POOL", "DRIVER", "NODE", "CLAIM", "POD"),
        ("CAPACITY", "TAINTS", "ATTRIBUTES"),
        about=(resourceslice.ResourceSlice,),
        needs_also=(resourceclaim.ResourceClaim,),
        filters=_FILTERS,
        rows=_devices,
    ),
    "pools": table.Table(
        ("POOL", "DRIVER", "NODE", "DEVICES", "FREE", "SLICES"),
        ("GENERATION",),
        about=(resourceslice.ResourceSlice,),
        needs_also=(resourceclaim.ResourceClaim,),
        filters=_FILTERS,
        rows=_pools,
    ),
    "claims": table.Table(
        ("NAMESPACE", "NAME", "STATE", "DEVICES", "NODE", "PODS", "AGE"),
        ("CLASSES", "POOLS"),
        about=(resourceclaim.ResourceClaim,),
        needs_also=(resourceslice.ResourceSlice,),
        filters=_FILTERS,
        rows=_claims,
    ),
    "nodes": table.Table(
        ("NAME", "STATUS", "PODS", "FREE DEVICES", "AGE"),
        ("CPU", "MEMORY", "DRIVERS"),
        about=(node.Node,),
        needs_also=(pod.Pod, resourceslice.ResourceSlice, resourceclaim.ResourceClaim),
        filters=_FILTERS,
        rows=_nodes_table,
    ),
    "pods": table.Table(
        ("NAMESPACE", "NAME", "STATUS", "NODE", "DEVICES", "AGE", "REASON"),
        ("CLAIMS", "DRIVERS", *podqualities.COLUMNS),
        about=(pod.Pod,),
        needs_also=(resourceclaim.ResourceClaim,),
        filters=_FILTERS,
        rows=_pods,
        wide_needs=(node.Node,),
    ),
}
"""Tables of devices, pools, claims, nodes and pods."""


def _nodes(cluster: Cluster, devices: Iterable[identity.DeviceID]) -> list[str]:
    places = cluster.nodes_by_device
    return sorted({places[device] for device in devices if device in places})


def _device_state(device: clusters.Device, uses: list[clusters.Use]) -> str:
    """Return the state of a device; two claims that cannot have it at once make it overallocated."""
    if not device.pool.slices:
        return "unpublished"
    if len(uses) < 2:
        return "allocated" if uses else "free"
    # Few devices have two claims, and the rules take a tenth of a second to import.
    from drachma.nodewire import deviceuse

    parts = [use for each in uses for use in deviceuse.claim_uses(each.claim) if use.device == device.device.name]
    own = [use for use in parts if (use.driver, use.pool) == (device.pool.driver, device.pool.name)]
    if any(first.excludes(second) for number, first in enumerate(own) for second in own[:number]):
        return "overallocated"
    return "allocated"


def _claim_state(claim: resourceclaim.ResourceClaim) -> str:
    """Return the state of a claim, as kubectl shows it."""
    states = []
    if claim.metadata.deletion_timestamp is not None:
        states.append("deleted")
    if claim.status.allocation is not None:
        states.append("allocated")
    if claim.status.reserved_for:
        states.append("reserved")
    return ",".join(states) or "pending"


def _node_status(each: node.Node) -> str:
    ready = conditions.find(each.status.conditions, "Ready")
    words = ["Ready" if ready is not None and ready.status == "True" else "Unknown" if ready is None else "NotReady"]
    if each.spec.unschedulable:
        words.append("SchedulingDisabled")
    return ",".join(words)


def _pod_status(each: pod.Pod) -> str:
    """Return the state of a pod, as kubectl shows it."""
    if each.metadata.deletion_timestamp is not None:
        return "Terminating"
    held = podstate.held_container(each)
    return each.status.reason or (held.reason if held is not None else each.status.phase or "Pending")


def _pod_reason(each: pod.Pod) -> str:
    """Return why a pod does not run: the message of the scheduler, of its node, of a container, or of its end."""
    held = podstate.held_container(each)
    if held is not None and held.message:
        return held.message
    for kind in ("PodScheduled", *(("Initialized", "Ready") if each.status.phase in ("", "Pending") else ())):
        condition = conditions.find(each.status.conditions, kind)
        if condition is not None and condition.status != "True":
            return condition.message or condition.reason
    return podstate.failure(each) or each.status.message or ""


class _DriverCount(NamedTuple):
    """Devices of one driver on a node."""

    driver: str
    devices: int
    free: int


def _counts_by_driver(cluster: Cluster, devices: Iterable[clusters.Device]) -> list[_DriverCount]:
    by_driver: dict[str, list[clusters.Device]] = {}
    for each in devices:
        by_driver.setdefault(each.pool.driver, []).append(each)
    return [
        _DriverCount(driver, len(own), sum(each.id not in cluster.uses for each in own))
        for driver, own in sorted(by_driver.items())
    ]


def _short_names(drivers: Iterable[str]) -> dict[str, str]:
    """Return the first part of each driver's name, or the whole name if two drivers share the first part."""
    names = set(drivers)
    firsts = collections.Counter(name.partition(".")[0] for name in names)
    return {name: first if firsts[first := name.partition(".")[0]] == 1 else name for name in names}


def _device_key(device: clusters.Device) -> tuple[str, naturalorder.Key, naturalorder.Key]:
    return device.pool.driver, naturalorder.key(device.pool.name), naturalorder.key(device.device.name)


def _attribute(attribute: resourceslice.DeviceAttribute) -> str:
    for value in (attribute.string_value, attribute.int_value, attribute.version_value):
        if value is not None:
            return str(value)
    if attribute.bool_value is not None:
        return str(attribute.bool_value).lower()
    return "|".join(
        map(str, (*attribute.string_values, *attribute.int_values, *attribute.bool_values, *attribute.version_values))
    )
