"""Rules for amounts of resources: of containers, of a pod as a whole, of its overhead, of quotas.

Amounts are documents in canonical form: names to quantities as texts.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from drachma import errors
from drachma.validation import fielderror, rendering
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import Path
from drachma.validation.podspec import choices, claims
from drachma.values import names, quantity

POD_LEVEL: Final = ("cpu", "memory")

_CONTAINER: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_COUNTED: Final = frozenset(
    [
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    ]
)
QUOTA: Final = _COUNTED | frozenset(
    [
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.storage",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
    ]
)
"""What quotas can limit without a domain before it, besides huge pages."""
_STANDARD: Final = QUOTA | {"storage"}
_REQUESTED_PAGES: Final = "requests.hugepages-"
_PLAIN: Final = frozenset({"cpu", "memory"})

NameRule = Callable[[str, Path], Found]


def check_container(resources: Mapping[str, Any], at: Path, *, known: Sequence[str]) -> Errors:
    """What a container asks for; ``known`` are the names of the pod's claims."""
    yield from _requirements(resources, at, rule=container_resource)
    if resources.get("claims"):
        yield from claims.check_use(resources["claims"], at.child("claims"), known=known)


def check_pod(spec: Mapping[str, Any], at: Path, *, known: Sequence[str]) -> Errors:
    """What a pod asks for as a whole, which must be enough for its containers."""
    resources = spec["resources"]
    if (spec.get("os") or {}).get("name") == "windows":
        yield fielderror.forbidden(at, "may not be set for a windows pod")
        return
    if resources.get("claims") is not None:
        yield fielderror.forbidden(at.child("claims"), "claims may not be set for Resources at pod-level")
    yield from _requirements(resources, at, rule=_pod_resource)
    yield from claims.check_use(resources.get("claims") or (), at.child("claims"), known=known)
    yield from _consistency(spec, at)


def check_overhead(overhead: Mapping[str, str], at: Path) -> Errors:
    """What a pod costs beside its containers."""
    yield from _requirements({"limits": overhead}, at, rule=container_resource)


def container_resource(name: str, at: Path) -> Found:
    """The name of what a container can ask for."""
    found = list(any_resource(name, at))
    if "/" not in name:
        if name not in _CONTAINER and not names.is_huge_page_resource(name):
            found.append(fielderror.invalid(at, rendering.named(name), "must be a standard resource for containers"))
    elif not names.is_native_resource(name) and not is_extended(name):
        found.append(fielderror.invalid(at, rendering.named(name), "doesn't follow extended resource name standard"))
    return found


def quota_resource(name: str, at: Path) -> Found:
    """The name of what a quota can limit."""
    found = any_resource(name, at)
    if "/" in name or is_quota(name):
        return found
    return [*found, fielderror.invalid(at, rendering.named(name), "must be a standard resource for quota")]


def is_quota(name: str) -> bool:
    """Whether a quota can limit it without a domain before its name."""
    return name in QUOTA or names.is_huge_page_resource(name) or name.startswith(_REQUESTED_PAGES)


def is_extended(name: str) -> bool:
    """Whether it is a resource that somebody outside Kubernetes has defined."""
    return not names.extended_resource_name(name)


def amount(name: str, text: str, at: Path) -> Found:
    """How much of a resource: not negative, and whole where it is counted."""
    value = quantity.Quantity.parse(text)
    found = [fielderror.invalid(at, text, choices.NOT_NEGATIVE)] if value.sign < 0 else []
    if (name in _COUNTED or is_extended(name)) and value.milli_value() % 1000:
        found.append(fielderror.invalid(at, text, "must be an integer"))
    return found


def any_resource(name: str, at: Path) -> Found:
    """The name of any resource: one of Kubernetes' own, or one with a domain before it."""
    found = fielderror.problems(at, rendering.named(name), names.qualified_name(name))
    is_standard = name in _STANDARD or names.is_huge_page_resource(name) or name.startswith(_REQUESTED_PAGES)
    if found or "/" in name or is_standard:
        return found
    return [fielderror.invalid(at, rendering.named(name), "must be a standard resource type or fully qualified")]


def _pod_resource(name: str, at: Path) -> Found:
    found = any_resource(name, at)
    if found or name in POD_LEVEL or names.is_huge_page_resource(name):
        return found
    return [fielderror.not_supported(at, rendering.named(name), ("cpu", "hugepages-", "memory"))]


def _requirements(resources: Mapping[str, Any], at: Path, *, rule: NameRule) -> Errors:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if not limits and not requests:
        return
    for name in sorted(limits):
        path = at.child("limits").key(name)
        yield from _amount(name, limits[name], path, rule=rule)
        if names.is_huge_page_resource(name):
            yield from _pages(name, limits[name], path)
    for name in sorted(requests):
        path = at.child("requests").key(name)
        yield from _amount(name, requests[name], path, rule=rule)
        yield from _within_limit(name, requests[name], limits.get(name), at=at)
        if names.is_huge_page_resource(name):
            yield from _pages(name, requests[name], path)
    asked = {*limits, *requests}
    if any(map(names.is_huge_page_resource, asked)) and not asked & _PLAIN:
        yield fielderror.forbidden(at, "HugePages require cpu or memory")


def _amount(name: str, text: str, at: Path, *, rule: NameRule) -> Found:
    if name in _PLAIN and text[:1] != "-":
        return ()
    return [*rule(name, at), *amount(name, text, at)]


def _within_limit(name: str, request: str, limit: str | None, *, at: Path) -> Found:
    can_overcommit = names.is_native_resource(name) and not names.is_huge_page_resource(name)
    if limit is None:
        if can_overcommit:
            return ()
        return [fielderror.required(at.child("limits"), "Limit must be set for non overcommitable resources")]
    if request == limit:
        return ()
    wanted, most = quantity.Quantity.parse(request), quantity.Quantity.parse(limit)
    if not can_overcommit and wanted != most:
        return [fielderror.invalid(at.child("requests"), request, f"must be equal to {name} limit of {limit}")]
    if wanted > most:
        detail = f"must be less than or equal to {name} limit of {limit}"
        return [fielderror.invalid(at.child("requests"), request, detail)]
    return ()


def _pages(name: str, text: str, at: Path) -> Found:
    try:
        size = quantity.Quantity.parse(name.removeprefix("hugepages-"))
    except errors.InvalidValueError:
        size = quantity.Quantity.from_int(0)
    is_sized = size.sign > 0 and not size.milli_value() % 1000
    if is_sized and not quantity.Quantity.parse(text).as_int64() % size.as_int64():
        return ()
    return [fielderror.invalid(at, text, f"{text} is not positive integer multiple of {name}")]


# A pod and its containers together


def aggregate(spec: Mapping[str, Any], field: str) -> dict[str, quantity.Quantity]:
    """What all containers of a pod need at once of ``requests`` or ``limits``.

    Sidecars run beside all that comes after them; other init containers run alone, one after the other.
    """
    total = _sum(field, *(spec.get("containers") or ()))
    first: dict[str, quantity.Quantity] = {}
    beside: dict[str, quantity.Quantity] = {}
    for container in spec.get("initContainers") or ():
        own = _sum(field, container)
        if container.get("restartPolicy") == "Always":
            total, beside = _plus(total, own), _plus(beside, own)
            own = beside
        else:
            own = _plus(own, beside)
        first = _most(first, own)
    return _most(total, first)


def _consistency(spec: Mapping[str, Any], at: Path) -> Errors:
    resources = spec["resources"]
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for name, needed in sorted(aggregate(spec, "requests").items()):
        if name in requests and needed > quantity.Quantity.parse(requests[name]):
            detail = f"must be greater than or equal to aggregate container requests of {needed}"
            yield fielderror.invalid(at.child("requests").key(name), requests[name], detail)
    for name, needed in sorted(aggregate(spec, "limits").items()):
        if not names.is_huge_page_resource(name) or name not in limits:
            continue
        if needed > quantity.Quantity.parse(limits[name]):
            detail = f"must be greater than or equal to aggregate container limits of {needed}"
            yield fielderror.invalid(at.child("limits").key(name), limits[name], detail)
    for position, container in enumerate(spec.get("containers") or ()):
        own = (container.get("resources") or {}).get("limits") or {}
        for name in sorted(own):
            if name in limits and quantity.Quantity.parse(own[name]) > quantity.Quantity.parse(limits[name]):
                detail = f"must be less than or equal to pod limits of {limits[name]}"
                path = at.child("containers").item(position).key(name).child("limits")
                yield fielderror.invalid(path, own[name], detail)


def _sum(field: str, *containers: Mapping[str, Any]) -> dict[str, quantity.Quantity]:
    total: dict[str, quantity.Quantity] = {}
    for container in containers:
        given = (container.get("resources") or {}).get(field) or {}
        total = _plus(total, {name: quantity.Quantity.parse(text) for name, text in given.items()})
    return total


def _plus(
    left: Mapping[str, quantity.Quantity], right: Mapping[str, quantity.Quantity]
) -> dict[str, quantity.Quantity]:
    return {**left, **{name: left[name] + value if name in left else value for name, value in right.items()}}


def _most(
    left: Mapping[str, quantity.Quantity], right: Mapping[str, quantity.Quantity]
) -> dict[str, quantity.Quantity]:
    return {**left, **{name: max(left[name], value) if name in left else value for name, value in right.items()}}
