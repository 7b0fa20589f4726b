"""Checks around devices: hardware that is counted twice, webhooks that cannot answer, incompatible versions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from drachma.api.deviceclass import DeviceClass
from drachma.api.node import Node
from drachma.api.resourceslice import ResourceSlice
from drachma.client import absences
from drachma.doctor.cluster import Cluster
from drachma.doctor.finding import Finding, Severity

_SERVICE_LABEL: Final = "kubernetes.io/service-name"
_GREATEST_SKEW: Final = 3
"""Minor versions that a kubelet may be older than the API server."""
_FIRST_STABLE: Final = 34
"""Minor version of the first Kubernetes that serves resource.k8s.io/v1 by default."""


def check(cluster: Cluster) -> Iterator[Finding]:
    """Yield the findings about nodes, webhooks and the API server."""
    yield from _hardware(cluster)
    yield from _webhooks(cluster)
    yield from _versions(cluster)


def _hardware(cluster: Cluster) -> Iterator[Finding]:
    """Yield nodes on which a device plugin and a DRA driver of one vendor both publish devices."""
    drivers: defaultdict[str, set[str]] = defaultdict(set)
    for published in cluster.all(ResourceSlice):
        if published.spec.node_name and published.spec.devices:
            drivers[published.spec.node_name].add(published.spec.driver)
    names = {each.spec.extended_resource_name: each.metadata.name for each in cluster.all(DeviceClass)}
    for node in cluster.all(Node):
        for resource, amount in node.status.allocatable.items():
            vendor, slash, _ = resource.partition("/")
            if not slash or amount.sign <= 0 or vendor.endswith("kubernetes.io"):
                continue
            same = sorted(each for each in drivers[node.metadata.name] if each == vendor or each.endswith(f".{vendor}"))
            owner = names.get(resource)
            if not same and owner is None:
                continue
            reason = f"driver {same[0]} publishes devices there" if same else f"DeviceClass {owner} claims the name"
            yield Finding(
                check="hardware-counted-twice",
                severity=Severity.ERROR,
                subject=f"Node {node.metadata.name}",
                message=f"a device plugin offers {amount} {resource}, and {reason}: both may give out one device",
                advice="run the device plugin and the DRA driver on different nodes",
            )


def _webhooks(cluster: Cluster) -> Iterator[Finding]:
    if cluster.endpoints is None:
        return
    ready: set[tuple[str, str]] = set()
    for each in cluster.endpoints:
        if any(endpoint.conditions.ready is not False for endpoint in each.endpoints):
            ready.add((each.metadata.namespace, each.metadata.labels.get(_SERVICE_LABEL, "")))
    for configuration in cluster.webhooks:
        for webhook in configuration.webhooks:
            service = webhook.client_config.service
            if service is None or (service.namespace, service.name) in ready:
                continue
            is_required = webhook.failure_policy != "Ignore"
            yield Finding(
                check="webhook-without-endpoints",
                severity=Severity.ERROR if is_required else Severity.WARNING,
                subject=f"webhook {webhook.name} of {configuration.metadata.name}",
                message=f"service {service.namespace}/{service.name} has no ready endpoints"
                + (", so requests that match it are refused" if is_required else ""),
                advice="start the component behind it, or delete the webhook configuration that it left",
            )


def _versions(cluster: Cluster) -> Iterator[Finding]:
    for resource in cluster.unserved:
        is_all = resource.startswith("resourceclaims.")
        yield Finding(
            check="kind-not-served",
            severity=Severity.CRITICAL if is_all else Severity.INFO,
            subject=f"resource {resource}",
            message="the API server does not have it"
            + (", so Dynamic Resource Allocation is off" if is_all else f": {absences.consequence(resource)}"),
            advice="enable its API version and feature gate on the API server" if is_all else "",
        )
    server = _minor(cluster.server_version)
    if cluster.api_version and cluster.api_version != "v1":
        yield Finding(
            check="old-api-version",
            severity=Severity.INFO,
            subject="resource.k8s.io",
            message=f"the newest version is {cluster.api_version}; Kubernetes serves v1 from 1.{_FIRST_STABLE} on",
        )
    for node, version in sorted(cluster.kubelet_versions.items()):
        minor = _minor(version)
        if server is None or minor is None or 0 <= server - minor <= _GREATEST_SKEW:
            continue
        relation = "newer than" if minor > server else f"more than {_GREATEST_SKEW} minor versions older than"
        yield Finding(
            check="version-skew",
            severity=Severity.WARNING,
            subject=f"Node {node}",
            message=f"its kubelet {version} is {relation} the API server {cluster.server_version}",
            advice="upgrade the older one",
        )


def _minor(version: str) -> int | None:
    match = re.match(r"v?1\.(\d+)", version)
    return int(match[1]) if match else None
