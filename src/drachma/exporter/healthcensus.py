"""Counts of devices in use by the health that kubelets report, and the claims of pods. Pure.

A kubelet reports the health of a device in the status of the containers that use it. The metric about claims of pods
has the name and the labels of kube-state-metrics, so that boards and joins that were made for it work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from drachma.api import pod
from drachma.api.resourceclaim import ResourceClaim
from drachma.api.struct import ABSENT_TEXT, ABSENT_TUPLE, ZERO_TEXT, Struct
from drachma.claims import podclaims
from drachma.exporter import series
from drachma.exporter.series import Metric

UNKNOWN: Final = "Unknown"
SEVERAL: Final = "several"
"""Driver of a device whose claim has devices of several drivers: a report does not name the driver."""

_CLAIM_PREFIX: Final = "claim:"
_CLAIM_LABELS: Final = ("namespace", "pod", "uid", "claim_name", "resourceclaim_name", "resourceclaim_template_name")


class ResourceHealth(Struct, frozen=True, kw_only=True):
    """Health of one device."""

    resource_id: str = msgspec.field(default=ZERO_TEXT, name="resourceID")
    health: str = ABSENT_TEXT


class ResourceStatus(Struct, frozen=True, kw_only=True):
    """Health of the devices of a claim; its name is ``claim:NAME`` or ``claim:NAME/REQUEST``."""

    name: str = ZERO_TEXT
    resources: tuple[ResourceHealth, ...] = ABSENT_TUPLE


class ContainerHealth(pod.ContainerStatus, frozen=True, kw_only=True):
    """State of a container with the health of its devices."""

    allocated_resources_status: tuple[ResourceStatus, ...] = ABSENT_TUPLE


class PodHealthStatus(pod.PodStatus, frozen=True, kw_only=True):
    """Status of a pod with the health of its devices."""

    container_statuses: tuple[ContainerHealth, ...] = ABSENT_TUPLE
    init_container_statuses: tuple[ContainerHealth, ...] = ABSENT_TUPLE


class PodView(pod.Pod, frozen=True, kw_only=True):
    """A pod with the health of its devices."""

    status: PodHealthStatus = PodHealthStatus()


def health_metric(pods: Sequence[PodView], claims: Sequence[ResourceClaim], *, limit: int) -> Metric:
    """Return the metric of devices in use by health; at most so many drivers have their own series."""
    drivers_by_claim = {
        (each.metadata.namespace, each.metadata.name): _driver(each) for each in claims if each.status.allocation
    }
    health: dict[tuple[str, str, str], str] = {}
    for each in pods:
        for name, report in _reports(each):
            health[each.metadata.namespace, name, report.resource_id] = report.health or UNKNOWN
    pairs = [
        (drivers_by_claim.get((namespace, name), SEVERAL), state) for (namespace, name, _), state in health.items()
    ]
    known = series.most_frequent((driver for driver, _ in pairs), limit)
    return Metric(
        name="drachma_device_health",
        help="Devices in use by driver and by the health that the kubelet reports.",
        labels=("driver", "health"),
        samples=series.tally((series.bounded(driver, known), state) for driver, state in pairs),
    )


def _driver(claim: ResourceClaim) -> str:
    results = claim.status.allocation.devices.results if claim.status.allocation is not None else ()
    drivers = {each.driver for each in results}
    return drivers.pop() if len(drivers) == 1 else SEVERAL


def _reports(subject: PodView) -> Iterator[tuple[str, ResourceHealth]]:
    """Yield the reports about devices with the name of their ResourceClaim."""
    names: Mapping[str, str] = {entry.name: reference.name for entry, reference in podclaims.named(subject)}
    status = subject.status
    for container in (*status.init_container_statuses, *status.container_statuses):
        for entry in container.allocated_resources_status:
            if not entry.name.startswith(_CLAIM_PREFIX):
                continue
            claim = entry.name.removeprefix(_CLAIM_PREFIX).partition("/")[0]
            for report in entry.resources:
                yield names.get(claim, claim), report


def pod_claim_metric(pods: Sequence[PodView], *, limit: int) -> Metric:
    """Return the claims of pods, one series for each claim of a pod; of pods in order, at most so many series."""
    samples: dict[tuple[str, ...], float] = {}
    for each in sorted(pods, key=lambda subject: (subject.metadata.namespace, subject.metadata.name)):
        names = {entry.name: reference.name for entry, reference in podclaims.named(each)}
        for entry in each.spec.resource_claims:
            if len(samples) >= limit:
                break
            metadata, template = each.metadata, entry.resource_claim_template_name or ""
            key = (metadata.namespace, metadata.name, metadata.uid, entry.name, names.get(entry.name, ""), template)
            samples[key] = 1
    return Metric(
        name="kube_pod_resourceclaim_info",
        help="Claims of pods: the name in the pod, the ResourceClaim, and the template that it was made from.",
        labels=_CLAIM_LABELS,
        samples=samples,
    )
