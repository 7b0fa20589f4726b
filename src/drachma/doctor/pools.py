"""Checks of published devices: pools that are incomplete, stale, ambiguous or orphaned."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from drachma.api import node
from drachma.api.resourceslice import ResourceSlice
from drachma.claims import conditions, identity
from drachma.doctor import finding
from drachma.doctor.cluster import Cluster
from drachma.doctor.finding import Finding, Severity

SETTLING_SECONDS = 60.0
"""Time that a driver has to publish all slices of a pool."""

_SHOWN = 5


def check(cluster: Cluster) -> Iterator[Finding]:
    """Yield the findings about pools and slices."""
    pools: defaultdict[identity.PoolID, list[ResourceSlice]] = defaultdict(list)
    for published in cluster.all(ResourceSlice):
        pools[identity.PoolID(published.spec.driver, published.spec.pool.name)].append(published)
    for pool, slices in sorted(pools.items()):
        newest = max(each.spec.pool.generation for each in slices)
        current = [each for each in slices if each.spec.pool.generation == newest]
        yield from _incomplete(cluster, pool, current)
        yield from _stale(cluster, pool, slices, newest=newest)
        yield from _ambiguous(pool, current)
        yield from _counters(pool, current)
    yield from _orphaned(cluster)


def _incomplete(cluster: Cluster, pool: identity.PoolID, current: Sequence[ResourceSlice]) -> Iterator[Finding]:
    counts = sorted({each.spec.pool.resource_slice_count for each in current})
    if len(counts) > 1:
        yield Finding(
            check="pool-count-contradicts",
            severity=Severity.ERROR,
            subject=f"pool {pool}",
            message=f"its slices disagree about their number: {', '.join(map(str, counts))}",
            evidence=_names(current),
            advice=f"restart the driver {pool.driver}, which publishes them",
        )
    elif len(current) < counts[0] and _is_settled(cluster, current):
        yield Finding(
            check="pool-incomplete",
            severity=Severity.ERROR,
            subject=f"pool {pool}",
            message=f"has {len(current)} of {counts[0]} slices, so no device of it is allocated",
            evidence=_names(current),
            advice=f"look at the log of the driver {pool.driver}; it has not published the rest",
        )


def _is_settled(cluster: Cluster, slices: Sequence[ResourceSlice]) -> bool:
    return all(cluster.age(each.metadata.creation_timestamp) > SETTLING_SECONDS for each in slices)


def _stale(
    cluster: Cluster, pool: identity.PoolID, slices: Sequence[ResourceSlice], *, newest: int
) -> Iterator[Finding]:
    for each in slices:
        if each.spec.pool.generation < newest and _is_settled(cluster, slices):
            yield Finding(
                check="slice-stale",
                severity=Severity.WARNING,
                subject=finding.subject_of(each),
                message=f"is of generation {each.spec.pool.generation}; pool {pool} is at {newest}",
                repair=finding.delete(each),
            )


def _ambiguous(pool: identity.PoolID, current: Sequence[ResourceSlice]) -> Iterator[Finding]:
    nodes = sorted({each.spec.node_name for each in current if each.spec.node_name})
    if len(nodes) > 1:
        yield Finding(
            check="pool-name-shared",
            severity=Severity.ERROR,
            subject=f"pool {pool}",
            message=f"{len(nodes)} nodes publish a pool of this name, so none of them is complete",
            evidence=tuple(f"Node {name}" for name in nodes[:_SHOWN]),
            advice=f"give each node of the driver {pool.driver} a pool of its own, usually named after the node",
        )
    names = Counter(device.name for each in current for device in each.spec.devices)
    twice = sorted(name for name, count in names.items() if count > 1)
    if twice and len(nodes) < 2:
        yield Finding(
            check="pool-duplicate-device",
            severity=Severity.ERROR,
            subject=f"pool {pool}",
            message=f"publishes device {twice[0]} {names[twice[0]]} times, so no device of it is allocated",
            evidence=tuple(f"device {name}" for name in twice[:_SHOWN]),
            advice=f"repair the driver {pool.driver}: names of devices are unique in a pool",
        )


def _counters(pool: identity.PoolID, current: Sequence[ResourceSlice]) -> Iterator[Finding]:
    sets = {each.name: each.counters for published in current for each in published.spec.shared_counters}
    for published in current:
        for device in published.spec.devices:
            for use in device.consumes_counters:
                missing_counters = [name for name in use.counters if name not in sets.get(use.counter_set, {})]
                if missing_counters:
                    yield Finding(
                        check="pool-counter-missing",
                        severity=Severity.ERROR,
                        subject=f"pool {pool}",
                        message=f"device {device.name} consumes counter {use.counter_set}/{missing_counters[0]}, "
                        "which the pool does not have",
                        evidence=(finding.subject_of(published),),
                        advice=f"repair the driver {pool.driver}: publish the counter set in the same pool",
                    )
                    return


def _orphaned(cluster: Cluster) -> Iterator[Finding]:
    nodes = {each.metadata.name: each for each in cluster.all(node.Node)}
    for published in cluster.all(ResourceSlice):
        name = published.spec.node_name
        if not name:
            continue
        if name not in nodes:
            yield Finding(
                check="slice-orphaned",
                severity=Severity.WARNING,
                subject=finding.subject_of(published),
                message=f"is for node {name}, which does not exist",
                repair=finding.delete(published),
            )
        elif not conditions.is_true(nodes[name].status.conditions, "Ready"):
            yield Finding(
                check="slice-on-unready-node",
                severity=Severity.WARNING,
                subject=finding.subject_of(published),
                message=f"publishes {len(published.spec.devices)} devices of node {name}, which is not ready",
                advice=f"kubectl describe node {name}",
            )


def _names(slices: Sequence[ResourceSlice]) -> tuple[str, ...]:
    examples = tuple(finding.subject_of(each) for each in slices[:_SHOWN])
    return examples if len(slices) <= _SHOWN else (*examples, f"and {len(slices) - _SHOWN} more")
