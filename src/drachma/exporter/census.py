"""Census of a cluster: counts of devices by class, driver, node, state and taint, and of claims, pods and queues. Pure.

A metric has at most as many series as ``Limits`` allows: names beyond a limit are counted under ``other``, so that a
cluster with 5,000 nodes does not overload its monitoring.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from drachma import cel
from drachma.api.deviceclass import DeviceClass
from drachma.api.devicetaintrule import DeviceTaintRule
from drachma.api.resourceclaim import ResourceClaim
from drachma.api.resourceslice import Device, ResourceSlice
from drachma.claims import conditions, identity, taints
from drachma.doctor import selection
from drachma.exporter import capacitycensus, fragmentation, healthcensus, queuecensus, series
from drachma.exporter.healthcensus import PodView
from drachma.exporter.series import Metric
from drachma.queueing.kinds.clusterqueue import ClusterQueue

ALLOCATED: Final = "allocated"
FREE: Final = "free"
TAINTED: Final = "tainted"
"""State of a free device that no claim without a toleration gets."""
_PREVENTING: Final = (taints.NO_SCHEDULE, taints.NO_EXECUTE)

PENDING: Final = "pending"
RESERVED: Final = "reserved"
DELETING: Final = "deleting"

UNTRIED: Final = "not tried yet"

_COUNTED: Final = re.compile(r"^\d+/\d+ nodes are available: (?P<reasons>.*?)\.(?: |$)")
_NUMBER: Final = re.compile(r"^\d+ (?:node\(s\) )?")
_NAMES: Final = re.compile(r"\"[^\"]*\"|'[^']*'|\S*/\S+")
_LONGEST: Final = 80


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Greatest numbers of label values."""

    nodes: int = 500
    names: int = 100
    """For classes, drivers, taints, namespaces, reasons, counters, capacities and queues."""
    pod_claims: int = 1000
    """Claims of pods with series of their own; others have none."""


class Objects(msgspec.Struct, frozen=True, kw_only=True):
    """Objects of a cluster that are counted."""

    slices: Sequence[ResourceSlice] = ()
    claims: Sequence[ResourceClaim] = ()
    classes: Sequence[DeviceClass] = ()
    rules: Sequence[DeviceTaintRule] = ()
    pods: Sequence[PodView] = ()
    queues: Sequence[ClusterQueue] = ()


class _PublishedDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One device of the newest generation of its pool, with the taints of rules."""

    id: identity.DeviceID
    node: str
    state: str
    kind: bytes
    """Key that is equal for devices that selectors cannot distinguish."""
    device: Device


_DEVICES: Final = "Devices by driver, node and state; the node is empty for devices that several nodes can use."
_CLASS_DEVICES: Final = "Devices that the selectors of a class match, by state. A device may belong to several classes."


class Census:
    """Counts the objects of a cluster at one moment."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits: Final = limits or Limits()

    def metrics(self, objects: Objects, *, now: dt.datetime) -> list[Metric]:
        """Return all metrics. Selectors of classes are evaluated once for each kind of device."""
        devices = list(_published(objects))
        return [
            self._devices(devices),
            self._classes(devices, objects.classes),
            self._taints(devices),
            self._incomplete(objects.slices),
            self._unusable(devices, objects),
            healthcensus.health_metric(objects.pods, objects.claims, limit=self._limits.names),
            healthcensus.pod_claim_metric(objects.pods, limit=self._limits.pod_claims),
            *capacitycensus.metrics(_newest(objects.slices), objects.claims, limit=self._limits.names),
            *_claim_metrics(objects.claims, now=now, limit=self._limits.names),
            *_pending_pod_metrics(objects.pods, now=now, limit=self._limits.names),
            *queuecensus.metrics(objects.queues, limit=self._limits.names),
        ]

    def _devices(self, devices: Sequence[_PublishedDevice]) -> Metric:
        nodes = series.most_frequent((each.node for each in devices), self._limits.nodes)
        drivers = self._known(each.id.driver for each in devices)
        samples = series.tally(
            (series.bounded(each.id.driver, drivers), series.bounded(each.node, nodes), each.state) for each in devices
        )
        return Metric(name="drachma_devices", help=_DEVICES, labels=("driver", "node", "state"), samples=samples)

    def _classes(self, devices: Sequence[_PublishedDevice], classes: Sequence[DeviceClass]) -> Metric:
        by_kind: dict[bytes, list[_PublishedDevice]] = defaultdict(list)
        for each in devices:
            by_kind[each.kind].append(each)
        kinds = [(key, cel.Device.of(alike[0].device, alike[0].id.driver)) for key, alike in by_kind.items()]
        class_names = self._known(device_class.metadata.name for device_class in classes)
        samples: Counter[tuple[str, ...]] = Counter()
        for device_class in classes:
            name = series.bounded(device_class.metadata.name, class_names)
            matching, _ = selection.matching_devices(device_class.spec.selectors, [device for _, device in kinds])
            class_devices = {id(device) for device in matching}
            samples.update({(name, state): 0 for state in (ALLOCATED, FREE, TAINTED)})
            for key, device in kinds:
                if id(device) in class_devices:
                    samples.update((name, member.state) for member in by_kind[key])
        labels = ("device_class", "state")
        return Metric(name="drachma_device_class_devices", help=_CLASS_DEVICES, labels=labels, samples=dict(samples))

    def _taints(self, devices: Sequence[_PublishedDevice]) -> Metric:
        taints = [(each.id.driver, taint.key, taint.effect) for each in devices for taint in each.device.taints]
        drivers, keys = self._known(each[0] for each in taints), self._known(each[1] for each in taints)
        samples = series.tally((series.bounded(d, drivers), series.bounded(k, keys), effect) for d, k, effect in taints)
        return Metric(
            name="drachma_tainted_devices",
            help="Devices with a taint, from their driver or from a DeviceTaintRule.",
            labels=("driver", "key", "effect"),
            samples=samples,
        )

    def _incomplete(self, slices: Sequence[ResourceSlice]) -> Metric:
        drivers = self._known(each.spec.driver for each in slices)
        samples: dict[tuple[str, ...], float] = {(name,): 0 for name in drivers}
        for pool, current in _newest(slices):
            if len(current) < max(each.spec.pool.resource_slice_count for each in current):
                key = (series.bounded(pool.driver, drivers),)
                samples[key] = samples.get(key, 0) + 1
        return Metric(
            name="drachma_incomplete_pools",
            help="Pools with fewer slices than they announce; no device of them is allocated.",
            labels=("driver",),
            samples=samples,
        )

    def _unusable(self, devices: Sequence[_PublishedDevice], objects: Objects) -> Metric:
        free = [
            fragmentation.FreeDevice(each.id.driver, each.node, each.kind, each.device)
            for each in devices
            if each.state == FREE
        ]
        counts = fragmentation.unusable_devices(free, objects.claims, objects.classes)
        drivers = self._known(counts)
        samples: Counter[tuple[str, ...]] = Counter()
        for driver, count in counts.items():
            samples[series.bounded(driver, drivers),] += count
        return Metric(
            name="drachma_unusable_free_devices",
            help="Free devices that no claim of the shapes that exist in the cluster could use where they are.",
            labels=("driver",),
            samples=dict(samples),
        )

    def _known(self, values: Iterable[str]) -> frozenset[str]:
        return series.most_frequent(values, self._limits.names)


def _newest(slices: Iterable[ResourceSlice]) -> Iterator[tuple[identity.PoolID, list[ResourceSlice]]]:
    """Yield each pool with the slices of its newest generation."""
    pools: dict[identity.PoolID, list[ResourceSlice]] = defaultdict(list)
    for each in slices:
        pools[identity.PoolID(each.spec.driver, each.spec.pool.name)].append(each)
    for pool, members in pools.items():
        newest = max(each.spec.pool.generation for each in members)
        yield pool, [each for each in members if each.spec.pool.generation == newest]


def _published(objects: Objects) -> Iterator[_PublishedDevice]:
    allocated = {
        identity.device_of(result)
        for claim in objects.claims
        if claim.status.allocation is not None
        for result in claim.status.allocation.devices.results
        if not result.admin_access
    }
    key_of = _make_key()
    for pool, slices in _newest(objects.slices):
        for published in slices:
            spec = taints.apply_rules(published, objects.rules).spec
            for device in spec.devices:
                name = identity.DeviceID(pool.driver, pool.pool, device.name)
                is_tainted = any(each.effect in _PREVENTING for each in device.taints)
                yield _PublishedDevice(
                    id=name,
                    node=spec.node_name or device.node_name or "",
                    state=ALLOCATED if name in allocated else TAINTED if is_tainted else FREE,
                    kind=key_of(pool.driver, device),
                    device=device,
                )


def _make_key() -> Callable[[str, Device], bytes]:
    encode = msgspec.json.Encoder(enc_hook=str).encode

    def key(driver: str, device: Device) -> bytes:
        return encode((driver, device.attributes, device.capacity, device.allow_multiple_allocations))

    return key


def _claim_metrics(claims: Sequence[ResourceClaim], *, now: dt.datetime, limit: int) -> list[Metric]:
    """Return the metrics of claims; at most so many namespaces have their own series."""
    namespaces = series.most_frequent((each.metadata.namespace for each in claims), limit)
    counts = series.tally((series.bounded(each.metadata.namespace, namespaces), _claim_state(each)) for each in claims)
    pending_claims = [each for each in claims if _claim_state(each) == PENDING]
    return [
        Metric(
            name="drachma_resource_claims",
            help="Claims by state: pending, allocated without a consumer, reserved for a consumer, deleting.",
            labels=("namespace", "state"),
            samples=counts,
        ),
        Metric(
            name="drachma_oldest_pending_claim_age_seconds",
            help="Age of the oldest claim without devices; 0 if there is none.",
            samples={(): series.oldest_age(pending_claims, now=now)},
        ),
    ]


def _claim_state(claim: ResourceClaim) -> str:
    """Return the state of a claim."""
    if claim.metadata.deletion_timestamp is not None:
        return DELETING
    if claim.status.allocation is None:
        return PENDING
    return RESERVED if claim.status.reserved_for else ALLOCATED


def _pending_pod_metrics(pods: Sequence[PodView], *, now: dt.datetime, limit: int) -> list[Metric]:
    """Return the metrics of pods that wait for a node."""
    waiting_pods = [each for each in pods if _is_waiting(each)]
    pairs = [(reason, each) for each in waiting_pods for reason in _waiting_reasons(each)]
    frequent = series.most_frequent((reason for reason, _ in pairs), limit)
    return [
        Metric(
            name="drachma_pending_pods",
            help="Pods without a node by reason. A pod counts under each reason that the scheduler gives for it.",
            labels=("reason",),
            samples=series.tally((series.bounded(reason, frequent),) for reason, _ in pairs),
        ),
        Metric(
            name="drachma_oldest_pending_pod_age_seconds",
            help="Age of the oldest pod without a node; 0 if there is none.",
            samples={(): series.oldest_age(waiting_pods, now=now)},
        ),
    ]


def _waiting_reasons(subject: PodView) -> Iterator[str]:
    """Yield the reasons why a pod has no node, without counts and names, so that equal reasons are equal texts."""
    scheduled = conditions.find(subject.status.conditions, "PodScheduled")
    if scheduled is None or scheduled.status == "True":
        yield UNTRIED
        return
    match = _COUNTED.match(scheduled.message)
    parts = match["reasons"].split(", ") if match else [scheduled.message or scheduled.reason]
    yield from sorted({_mask_names(_NUMBER.sub("", part)) for part in parts})


def _mask_names(text: str) -> str:
    first_line = (text.splitlines() or [""])[0]
    return _NAMES.sub("*", first_line)[:_LONGEST].strip() or "unknown"


def _is_waiting(subject: PodView) -> bool:
    is_done = subject.status.phase in ("Succeeded", "Failed")
    return not subject.spec.node_name and not is_done and subject.metadata.deletion_timestamp is None
