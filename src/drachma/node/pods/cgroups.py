"""Cgroups of a pod and its containers, and the OOM scores of the containers."""

from __future__ import annotations

from typing import Final

from drachma.accounting import aggregate, qos
from drachma.api.pod import Container, Pod
from drachma.node.pods import podresources
from drachma.node.runtimes.protocol import Cgroup
from drachma.values import names, quantity

PERIOD: Final = 100_000
"""CPU period in microseconds."""

_FEWEST_SHARES: Final = 2
_MOST_SHARES: Final = 262_144
_SHORTEST_QUOTA: Final = 1_000
_LOWEST_SCORE: Final = -997
_HIGHEST_SCORE: Final = 1000
_NODE_CRITICAL: Final = "system-node-critical"
_CRITICAL_PRIORITY: Final = 2_000_000_000


def pod_cgroup(pod: Pod, *, with_claims: bool, in_quality: bool = False) -> Cgroup:
    """Return the cgroup of a pod. With ``in_quality``, claims count for its quality of service too."""
    requests = podresources.requested(pod, with_claims=with_claims)
    limits = podresources.limited(pod, with_claims=with_claims)
    quality = podresources.quality(pod, with_claims=in_quality)
    if in_quality:
        # A resource that only claims request is limited to that request.
        limits = {name: requests[name] for name in qos.COUNTED if _is_limited(pod, name, in_quality=True)} | limits
    huge_pages = {
        quantity.Quantity.parse(name.removeprefix("hugepages-")).as_int64(): amount.as_int64()
        for name, amount in limits.items()
        if names.is_huge_page_resource(name)
    }
    if quality == qos.BEST_EFFORT:
        return Cgroup(cpu_shares=_FEWEST_SHARES, huge_pages=huge_pages)
    is_guaranteed = quality == qos.GUARANTEED
    has_cpu = is_guaranteed or _is_limited(pod, "cpu", in_quality=in_quality)
    has_memory = is_guaranteed or _is_limited(pod, "memory", in_quality=in_quality)
    return Cgroup(
        cpu_shares=_shares(requests["cpu"].milli_value() if "cpu" in requests else 0),
        cpu_quota=_quota(limits["cpu"].milli_value()) if has_cpu else None,
        cpu_period=PERIOD if has_cpu else None,
        memory=limits["memory"].as_int64() if has_memory else None,
        huge_pages=huge_pages,
    )


def container_cgroup(pod: Pod, container: Container, *, with_claims: bool = False, in_quality: bool = False) -> Cgroup:
    """Return the cgroup of a container.

    With ``with_claims``, claims add to its requests, and to limits that it has. With ``in_quality``, they are limits
    too where it has none. Pod-level limits apply to a container without a limit of its own.
    """
    requests, limits = podresources.stated(pod, container, with_claims=in_quality)
    if with_claims and not in_quality:
        requests, limits = podresources.widened(pod, container)
    # Without a request, the limit is the request.
    own = container.resources.requests.get("cpu")
    share = (requests if own is not None and own.sign else limits).get("cpu")
    if pod.spec.resources is not None:
        limits = {**pod.spec.resources.limits, **limits}
    cpu, memory = limits.get("cpu"), limits.get("memory")
    quota = _quota(cpu.milli_value()) if cpu is not None else None
    return Cgroup(
        cpu_shares=_shares(share.milli_value() if share is not None else 0),
        cpu_quota=quota,
        cpu_period=PERIOD if quota is not None else None,
        memory=memory.as_int64() if memory is not None and memory.sign else None,
    )


def oom_score(pod: Pod, container: Container, *, memory: int, with_claims: bool, in_quality: bool = False) -> int:
    """Return the OOM score of a container on a machine with ``memory`` bytes; the highest score is killed first."""
    if pod.spec.priority_class_name == _NODE_CRITICAL and (pod.spec.priority or 0) >= _CRITICAL_PRIORITY:
        return _LOWEST_SCORE
    quality = podresources.quality(pod, with_claims=in_quality)
    if quality != qos.BURSTABLE:
        return _LOWEST_SCORE if quality == qos.GUARANTEED else _HIGHEST_SCORE
    memory_by_name = {
        each.name: _memory(pod, each, with_claims=with_claims) for each in podresources.all_containers(pod)
    }
    extra = _budget_share(pod, memory_by_name)
    requested = memory_by_name[container.name] + extra
    if aggregate.is_sidecar(container):
        # A sidecar must not be killed before the containers that need it.
        requested = max(requested, min(memory_by_name[each.name] + extra for each in pod.spec.containers))
    score = _HIGHEST_SCORE - _HIGHEST_SCORE * requested // memory
    # Between the scores of guaranteed and best-effort containers.
    return min(max(score, _HIGHEST_SCORE + _LOWEST_SCORE), _HIGHEST_SCORE - 1)


def _memory(pod: Pod, container: Container, *, with_claims: bool) -> int:
    stated = container.resources.requests.get("memory")
    claims = podresources.memory_share(pod, container.name) if with_claims else 0
    return (stated.as_int64() if stated is not None else 0) + claims


def _budget_share(pod: Pod, memory_by_name: dict[str, int]) -> int:
    """Return each container's share of the pod-level memory request that no container requests."""
    budget = pod.spec.resources
    if budget is None or "memory" not in budget.requests:
        return 0
    sharers = [*pod.spec.containers, *filter(aggregate.is_sidecar, pod.spec.init_containers)]
    unclaimed = budget.requests["memory"].as_int64() - sum(memory_by_name[each.name] for each in sharers)
    return max(unclaimed, 0) // len(sharers)


def _is_limited(pod: Pod, resource: str, *, in_quality: bool) -> bool:
    """Return True if a resource has a pod-level limit, or a limit in each container."""
    budget = pod.spec.resources
    if budget is not None and resource in budget.limits:
        return True
    limits = (podresources.stated(pod, each, with_claims=in_quality)[1] for each in podresources.all_containers(pod))
    return all(resource in each and each[resource].sign for each in limits)


def _shares(milli: int) -> int:
    return min(max(milli * 1024 // 1000, _FEWEST_SHARES), _MOST_SHARES)


def _quota(milli: int) -> int | None:
    return max(milli * PERIOD // 1000, _SHORTEST_QUOTA) if milli else None
