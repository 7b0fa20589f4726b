"""Rows of devices and of what has to do with them: what stands in which column, and the same as a document."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Final

from drachma.api import node, pod, resourceclaim, resourceslice
from drachma.claims import conditions, identity, podclaims
from drachma.cli.inventory import cluster as clusters
from drachma.cli.inventory import podqualities, table

Cluster = clusters.Cluster


def _devices(of: Cluster, wanted: table.Filter, _: dt.datetime) -> Iterable[table.Row]:
    for each in of.devices:
        uses = of.uses.get(each.id, [])
        if not wanted.has_device(each.id) or wanted.node not in ("", each.node):
            continue
        if wanted.device_class and not any(wanted.device_class in clusters.classes(use.claim) for use in uses):
            continue
        claims = [identity.label(use.claim.metadata) for use in uses]
        pods = sorted({name for use in uses for name in clusters.consumers(use.claim)})
        attributes = {name: _attribute(value) for name, value in sorted(each.device.attributes.items())}
        capacity = {name: str(value.value) for name, value in sorted(each.device.capacity.items())}
        taints = [f"{taint.key}={taint.value}:{taint.effect}" for taint in each.device.taints]
        yield table.Row(
            "/".join(each.id),
            {
                "DEVICE": each.device.name,
                "POOL": each.pool.name,
                "DRIVER": each.pool.driver,
                "NODE": each.node,
                "CLAIM": table.listed(claims),
                "POD": table.listed(pods),
                "CAPACITY": table.listed(f"{name}={value}" for name, value in capacity.items()),
                "TAINTS": table.listed(taints),
                "ATTRIBUTES": table.listed(f"{name}={value}" for name, value in attributes.items()),
            },
            {
                "name": each.device.name,
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


def _pools(of: Cluster, wanted: table.Filter, _: dt.datetime) -> Iterable[table.Row]:
    for each in of.pools:
        devices = [device for device in of.devices if device.pool is each]
        if wanted.driver not in ("", each.driver) or wanted.pool not in ("", each.name):
            continue
        if wanted.node and not any(device.node == wanted.node for device in devices):
            continue
        free = sum(device.id not in of.uses for device in devices)
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


def _claims(of: Cluster, wanted: table.Filter, now: dt.datetime) -> Iterable[table.Row]:
    for each in sorted(of.claims, key=table.place):
        results = clusters.results(each)
        devices = [identity.DeviceID(result.driver, result.pool, result.device) for result in results]
        classes = sorted(clusters.classes(each))
        if wanted.device_class and wanted.device_class not in classes:
            continue
        if wanted.is_about_devices and not any(map(wanted.has_device, devices)):
            continue
        places = _nodes(of, devices)
        if wanted.node and wanted.node not in places:
            continue
        pods = clusters.consumers(each)
        state = _claim_state(each)
        yield table.Row(
            identity.label(each.metadata),
            {
                "NAMESPACE": each.metadata.namespace,
                "NAME": each.metadata.name,
                "STATE": state,
                "DEVICES": table.listed(device.device for device in devices),
                "NODE": table.listed(places),
                "PODS": table.listed(pods),
                "AGE": table.age(each, now),
                "CLASSES": table.listed(classes),
                "POOLS": table.listed(sorted({f"{device.driver}/{device.pool}" for device in devices})),
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


def _nodes_table(of: Cluster, wanted: table.Filter, now: dt.datetime) -> Iterable[table.Row]:
    for each in sorted(of.nodes, key=table.place):
        name = each.metadata.name
        if wanted.node not in ("", name):
            continue
        devices = [device for device in of.devices if device.node == name and wanted.has_device(device.id)]
        if wanted.is_about_devices and not devices:
            continue
        free = sum(device.id not in of.uses for device in devices)
        pods = sum(each.spec.node_name == name for each in of.pods)
        drivers = sorted({device.pool.driver for device in devices})
        allocatable = {key: str(value) for key, value in each.status.allocatable.items()}
        status = _node_status(each)
        yield table.Row(
            name,
            {
                "NAME": name,
                "STATUS": status,
                "PODS": f"{pods}/{allocatable.get('pods', '?')}",
                "DEVICES": str(len(devices)),
                "FREE": str(free),
                "AGE": table.age(each, now),
                "CPU": allocatable.get("cpu", table.NONE),
                "MEMORY": allocatable.get("memory", table.NONE),
                "DRIVERS": table.listed(drivers),
            },
            {
                "name": name,
                "status": status,
                "pods": pods,
                "devices": len(devices),
                "free": free,
                "drivers": drivers,
                "allocatable": allocatable,
            },
        )


def _pods(of: Cluster, wanted: table.Filter, now: dt.datetime) -> Iterable[table.Row]:
    claims = {identity.label(each.metadata): each for each in of.claims}
    qualities = podqualities.of_cluster(of)
    for each in sorted(of.pods, key=table.place):
        if wanted.node not in ("", each.spec.node_name):
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
        if wanted.device_class and wanted.device_class not in classes:
            continue
        if wanted.is_about_devices and not any(map(wanted.has_device, devices)):
            continue
        status = _pod_status(each)
        used = [claim.metadata.name for claim in own]
        yield table.Row(
            f"{namespace}/{each.metadata.name}",
            {
                "NAMESPACE": namespace,
                "NAME": each.metadata.name,
                "STATUS": status,
                "NODE": each.spec.node_name or table.NONE,
                "DEVICES": table.listed(device.device for device in devices),
                "AGE": table.age(each, now),
                "CLAIMS": table.listed(used),
                "DRIVERS": table.listed(sorted({device.driver for device in devices})),
                **podqualities.cells(qualities.get(each.metadata.uid)),
            },
            {
                "namespace": namespace,
                "name": each.metadata.name,
                "status": status,
                "node": each.spec.node_name,
                "claims": used,
                "devices": [device._asdict() for device in devices],
                **podqualities.document(qualities.get(each.metadata.uid)),
            },
        )


_FILTERS: Final = frozenset({"node", "driver", "pool", "device_class"})

TABLES: Final[Mapping[str, table.Table]] = {
    "devices": table.Table(
        ("DEVICE", "POOL", "DRIVER", "NODE", "CLAIM", "POD"),
        ("CAPACITY", "TAINTS", "ATTRIBUTES"),
        about=(resourceslice.ResourceSlice,),
        beside=(resourceclaim.ResourceClaim,),
        filters=_FILTERS,
        rows=_devices,
    ),
    "pools": table.Table(
        ("POOL", "DRIVER", "NODE", "DEVICES", "FREE", "SLICES"),
        ("GENERATION",),
        about=(resourceslice.ResourceSlice,),
        beside=(resourceclaim.ResourceClaim,),
        filters=_FILTERS,
        rows=_pools,
    ),
    "claims": table.Table(
        ("NAMESPACE", "NAME", "STATE", "DEVICES", "NODE", "PODS", "AGE"),
        ("CLASSES", "POOLS"),
        about=(resourceclaim.ResourceClaim,),
        beside=(resourceslice.ResourceSlice,),
        filters=_FILTERS,
        rows=_claims,
    ),
    "nodes": table.Table(
        ("NAME", "STATUS", "PODS", "DEVICES", "FREE", "AGE"),
        ("CPU", "MEMORY", "DRIVERS"),
        about=(node.Node,),
        beside=(pod.Pod, resourceslice.ResourceSlice, resourceclaim.ResourceClaim),
        filters=_FILTERS,
        rows=_nodes_table,
    ),
    "pods": table.Table(
        ("NAMESPACE", "NAME", "STATUS", "NODE", "DEVICES", "AGE"),
        ("CLAIMS", "DRIVERS", *podqualities.COLUMNS),
        about=(pod.Pod,),
        beside=(resourceclaim.ResourceClaim,),
        filters=_FILTERS,
        rows=_pods,
        beside_wide=(node.Node,),
    ),
}
"""Tables of devices and what has to do with them."""


def _nodes(of: Cluster, devices: Iterable[identity.DeviceID]) -> list[str]:
    places = {each.id: each.node for each in of.devices}
    return sorted({places[device] for device in devices if device in places})


def _claim_state(of: resourceclaim.ResourceClaim) -> str:
    """As kubectl has it."""
    states = []
    if of.metadata.deletion_timestamp is not None:
        states.append("deleted")
    if of.status.allocation is not None:
        states.append("allocated")
    if of.status.reserved_for:
        states.append("reserved")
    return ",".join(states) or "pending"


def _node_status(of: node.Node) -> str:
    ready = conditions.find(of.status.conditions, "Ready")
    words = ["Ready" if ready is not None and ready.status == "True" else "Unknown" if ready is None else "NotReady"]
    if of.spec.unschedulable:
        words.append("SchedulingDisabled")
    return ",".join(words)


def _pod_status(of: pod.Pod) -> str:
    if of.metadata.deletion_timestamp is not None:
        return "Terminating"
    return of.status.reason or of.status.phase or "Pending"


def _attribute(of: resourceslice.DeviceAttribute) -> str:
    for value in (of.string_value, of.int_value, of.version_value):
        if value is not None:
            return str(value)
    if of.bool_value is not None:
        return str(of.bool_value).lower()
    return "|".join(map(str, (*of.string_values, *of.int_values, *of.bool_values, *of.version_values)))
