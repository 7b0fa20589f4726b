"""Rows of drivers: their devices, and pods of drivers that publish none because their containers are simulated."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from drachma.api import meta, pod, resourceclaim, resourceslice
from drachma.api.node import SIMULATED_RUNTIME
from drachma.api.struct import ABSENT_TEXT, ABSENT_TUPLE, Struct
from drachma.claims import driverpods
from drachma.cli.inventory import table
from drachma.cli.inventory.cluster import Cluster, Pool
from drachma.client import target

_PUBLISHED: Final = "simulation.drachma.dev/published"
"""Annotation of the slices that simulated nodes publish."""


class _ContainerStatus(Struct, frozen=True, kw_only=True):
    container_id: str = msgspec.field(default=ABSENT_TEXT, name="containerID")


class _DriverPodStatus(Struct, frozen=True, kw_only=True):
    container_statuses: tuple[_ContainerStatus, ...] = ABSENT_TUPLE


class _DriverPodSpec(Struct, frozen=True, kw_only=True):
    node_name: str = ABSENT_TEXT
    volumes: tuple[pod.Volume, ...] = ABSENT_TUPLE


class DriverPod(meta.Object, frozen=True, kw_only=True):
    """View of a pod: its node and volumes, and the runtime of its containers."""

    spec: _DriverPodSpec = _DriverPodSpec()
    status: _DriverPodStatus = _DriverPodStatus()

    @property
    def is_simulated_driver(self) -> bool:
        """True if the pod is a driver's, and its containers are simulated."""
        return driverpods.is_driver(self.spec.volumes) and any(
            each.container_id.startswith(SIMULATED_RUNTIME) for each in self.status.container_statuses
        )


DRIVER_PODS: Final = target.view_of(target.of(pod.Pod), DriverPod)
"""Pods as rows of drivers read them."""


def _drivers(cluster: Cluster, filter_: table.Filter, _: dt.datetime) -> Iterable[table.Row]:
    by_driver: dict[str, list[Pool]] = {}
    for pool in cluster.pools:
        if filter_.driver in ("", pool.driver):
            by_driver.setdefault(pool.driver, []).append(pool)
    for driver, pools in sorted(by_driver.items()):
        devices = [each for pool in pools for each in cluster.devices_by_pool.get((pool.driver, pool.name), [])]
        nodes = {each.node for each in devices}
        if filter_.node and filter_.node not in nodes:
            continue
        claims = {use.claim.metadata.uid for each in devices for use in cluster.uses.get(each.id, ())}
        yield _row(
            driver,
            source=_source(pools),
            nodes=len(nodes),
            devices=len(devices),
            free=sum(each.id not in cluster.uses for each in devices),
            claims=len(claims),
        )
    yield from _simulated_pods(cluster, filter_)


def _source(pools: Iterable[Pool]) -> str:
    """Return whether simulated nodes or a driver's own program publish the slices of pools."""
    origins = {_PUBLISHED in each.metadata.annotations for pool in pools for each in pool.slices}
    return {frozenset({True}): "simulated", frozenset({False}): "driver"}.get(frozenset(origins), "both")


def _simulated_pods(cluster: Cluster, filter_: table.Filter) -> Iterable[table.Row]:
    """Yield one row for each owner of simulated driver pods: they publish nothing."""
    nodes_by_owner: dict[str, set[str]] = {}
    for each in cluster.driver_pods:
        if filter_.node in ("", each.spec.node_name) and each.is_simulated_driver:
            owners = [f"{owner.kind.lower()}/{owner.name}" for owner in each.metadata.owner_references]
            owner = owners[0] if owners else f"pod/{each.metadata.name}"
            nodes_by_owner.setdefault(f"{each.metadata.namespace}/{owner}", set()).add(each.spec.node_name)
    if filter_.driver:
        return
    for owner, nodes in sorted(nodes_by_owner.items()):
        yield _row(owner, source="simulated pods, no driver", nodes=len(nodes), devices=0, free=0, claims=0)


def _row(driver: str, *, source: str, nodes: int, devices: int, free: int, claims: int) -> table.Row:
    counts = {"nodes": nodes, "devices": devices, "free": free, "claims": claims}
    cells = {"DRIVER": driver, "SOURCE": source, **{name.upper(): str(count) for name, count in counts.items()}}
    return table.Row(driver, cells, {"name": driver, "source": source, **counts})


TABLES: Final[Mapping[str, table.Table]] = {
    "drivers": table.Table(
        ("DRIVER", "SOURCE", "NODES", "DEVICES", "FREE", "CLAIMS"),
        (),
        about=(resourceslice.ResourceSlice,),
        needs_also=(resourceclaim.ResourceClaim, DRIVER_PODS),
        filters=frozenset({"node", "driver"}),
        rows=_drivers,
    )
}
"""The table of drivers."""

FIELDS: Final[Mapping[target.Of[Any], str]] = {
    resourceslice.ResourceSlice: "slices",
    resourceclaim.ResourceClaim: "claims",
    DRIVER_PODS: "driver_pods",
}
"""Field of a Cluster that holds the objects of a kind."""
