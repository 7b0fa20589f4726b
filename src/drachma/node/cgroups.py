"""What the kernel is told about a pod: its cgroup and those of its containers, and who dies first without memory."""

from __future__ import annotations

from typing import Final

import msgspec

from drachma.accounting import aggregate, qos
from drachma.api import pod
from drachma.node import podresources
from drachma.values import names, quantity

PERIOD: Final = 100_000
"""Microseconds over which cpu time is measured."""

_FEWEST_SHARES: Final = 2
_MOST_SHARES: Final = 262_144
_SHORTEST_QUOTA: Final = 1_000
_LAST_TO_DIE: Final = -997
_FIRST_TO_DIE: Final = 1000
_NODE_CRITICAL: Final = "system-node-critical"
_CRITICAL_PRIORITY: Final = 2_000_000_000


class Cgroup(msgspec.Struct, frozen=True, kw_only=True):
    """What a cgroup is set to; None is left as it is. Huge pages are bytes by the size of a page."""

    cpu_shares: int
    cpu_quota: int | None = None
    cpu_period: int | None = None
    memory: int | None = None
    huge_pages: dict[int, int] = {}


def of_pod(of: pod.Pod, *, with_claims: bool, in_quality: bool = False) -> Cgroup:
    """The cgroup of a pod; ``in_quality`` has claims count for its quality of service too."""
    requests = podresources.requested(of, with_claims=with_claims)
    limits = podresources.limited(of, with_claims=with_claims)
    quality = podresources.quality(of, with_claims=in_quality)
    if in_quality:
        # What claims alone bring is all that there is of it.
        limits = {name: requests[name] for name in qos.COUNTED if _is_limited(of, name, in_quality=True)} | limits
    huge_pages = {
        quantity.Quantity.parse(name.removeprefix("hugepages-")).as_int64(): amount.as_int64()
        for name, amount in limits.items()
        if names.is_huge_page_resource(name)
    }
    if quality == qos.BEST_EFFORT:
        return Cgroup(cpu_shares=_FEWEST_SHARES, huge_pages=huge_pages)
    is_guaranteed = quality == qos.GUARANTEED
    has_cpu = is_guaranteed or _is_limited(of, "cpu", in_quality=in_quality)
    has_memory = is_guaranteed or _is_limited(of, "memory", in_quality=in_quality)
    return Cgroup(
        cpu_shares=_shares(requests["cpu"].milli_value() if "cpu" in requests else 0),
        cpu_quota=_quota(limits["cpu"].milli_value()) if has_cpu else None,
        cpu_period=PERIOD if has_cpu else None,
        memory=limits["memory"].as_int64() if has_memory else None,
        huge_pages=huge_pages,
    )


def of_container(of: pod.Pod, container: pod.Container, *, in_quality: bool = False) -> Cgroup:
    """The cgroup of one container; ``in_quality`` has claims count as requests and limits of their containers.

    What is stated for the pod as a whole bounds a container without a limit of its own.
    """
    requests, limits = podresources.stated(of, container, with_claims=in_quality)
    # Who only says how much at most wants all of that.
    own = container.resources.requests.get("cpu")
    share = (requests if own is not None and own.sign else limits).get("cpu")
    if of.spec.resources is not None:
        limits = {**of.spec.resources.limits, **limits}
    cpu, memory = limits.get("cpu"), limits.get("memory")
    quota = _quota(cpu.milli_value()) if cpu is not None else None
    return Cgroup(
        cpu_shares=_shares(share.milli_value() if share is not None else 0),
        cpu_quota=quota,
        cpu_period=PERIOD if quota is not None else None,
        memory=memory.as_int64() if memory is not None and memory.sign else None,
    )


def oom_score(
    of: pod.Pod, container: pod.Container, *, memory: int, with_claims: bool, in_quality: bool = False
) -> int:
    """How soon the kernel ends a container when a machine with so much memory runs out of it; more is sooner."""
    if of.spec.priority_class_name == _NODE_CRITICAL and (of.spec.priority or 0) >= _CRITICAL_PRIORITY:
        return _LAST_TO_DIE
    quality = podresources.quality(of, with_claims=in_quality)
    if quality != qos.BURSTABLE:
        return _LAST_TO_DIE if quality == qos.GUARANTEED else _FIRST_TO_DIE
    own = {each.name: _memory(of, each, with_claims=with_claims) for each in podresources.all_containers(of)}
    rest = _rest_of_budget(of, own)
    requested = own[container.name] + rest
    if aggregate.is_sidecar(container):
        # A sidecar lives at least as long as the containers that need it.
        requested = max(requested, min(own[each.name] + rest for each in of.spec.containers))
    score = _FIRST_TO_DIE - _FIRST_TO_DIE * requested // memory
    # Nothing that is guaranteed dies later than this, and nothing without any requests sooner.
    return min(max(score, _FIRST_TO_DIE + _LAST_TO_DIE), _FIRST_TO_DIE - 1)


def _memory(of: pod.Pod, container: pod.Container, *, with_claims: bool) -> int:
    stated = container.resources.requests.get("memory")
    claims = podresources.memory_share(of, container.name) if with_claims else 0
    return (stated.as_int64() if stated is not None else 0) + claims


def _rest_of_budget(of: pod.Pod, own: dict[str, int]) -> int:
    """What is left for each container of the memory that a pod requests as a whole."""
    whole = of.spec.resources
    if whole is None or "memory" not in whole.requests:
        return 0
    counted = [*of.spec.containers, *filter(aggregate.is_sidecar, of.spec.init_containers)]
    left = whole.requests["memory"].as_int64() - sum(own[each.name] for each in counted)
    return max(left, 0) // len(counted)


def _is_limited(of: pod.Pod, resource: str, *, in_quality: bool) -> bool:
    """Whether there is a limit for the pod as a whole, or for each of its containers."""
    whole = of.spec.resources
    if whole is not None and resource in whole.limits:
        return True
    limits = (podresources.stated(of, each, with_claims=in_quality)[1] for each in podresources.all_containers(of))
    return all(resource in each and each[resource].sign for each in limits)


def _shares(milli: int) -> int:
    return min(max(milli * 1024 // 1000, _FEWEST_SHARES), _MOST_SHARES)


def _quota(milli: int) -> int | None:
    return max(milli * PERIOD // 1000, _SHORTEST_QUOTA) if milli else None
