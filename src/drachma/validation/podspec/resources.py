"""Rules for resources: amounts of containers, pods, overhead and quotas, and the resource claims of a pod.

Amounts are documents in canonical form: names to quantities as texts.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from drachma import errors
from drachma.validation import constraints, fielderror, formats, rendering, rulenotation
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import Path
from drachma.values import names, quantity

POD_LEVEL: Final = ("cpu", "memory")

_CONTAINER: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_COUNTED: Final = frozenset(
    {
        "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
        "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
    }
)  # fmt: skip
QUOTA: Final = _COUNTED | frozenset(
    {
        "cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.storage",
        "requests.ephemeral-storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage",
    }
)  # fmt: skip
"""Resources without a domain that quotas can limit, in addition to huge pages."""
_STANDARD: Final = QUOTA | {"storage"}
_REQUESTED_PAGES: Final = "requests.hugepages-"
_PLAIN: Final = frozenset({"cpu", "memory"})

NameRule = Callable[[str, Path], Found]


def check_container(resources: Mapping[str, Any], at: Path, *, claims: Sequence[str]) -> Errors:
    """Yield the errors of the resources of a container; ``claims`` are the names of the pod's claims."""
    yield from _check_requirements(resources, at, rule=container_resource)
    if resources.get("claims"):
        yield from _check_claim_use(resources["claims"], at.child("claims"), pod_claims=claims)


def check_pod(spec: Mapping[str, Any], at: Path, *, claims: Sequence[str]) -> Errors:
    """Yield the errors of the resources of a whole pod, which must be enough for its containers."""
    resources = spec["resources"]
    if (spec.get("os") or {}).get("name") == "windows":
        yield fielderror.forbidden(at, "may not be set for a windows pod")
        return
    if resources.get("claims") is not None:
        yield fielderror.forbidden(at.child("claims"), "claims may not be set for Resources at pod-level")
    yield from _check_requirements(resources, at, rule=_pod_resource)
    yield from _check_claim_use(resources.get("claims") or (), at.child("claims"), pod_claims=claims)
    yield from _check_aggregates(spec, at)


def check_overhead(overhead: Mapping[str, str], at: Path) -> Errors:
    """Yield the errors of the overhead of a pod."""
    yield from _check_requirements({"limits": overhead}, at, rule=container_resource)


def container_resource(name: str, at: Path) -> Found:
    """Check the name of a resource that a container can request."""
    errors = list(any_resource(name, at))
    if "/" not in name:
        if name not in _CONTAINER and not names.is_huge_page_resource(name):
            errors.append(fielderror.invalid(at, rendering.named(name), "must be a standard resource for containers"))
    elif not names.is_native_resource(name) and not is_extended(name):
        errors.append(fielderror.invalid(at, rendering.named(name), "doesn't follow extended resource name standard"))
    return errors


def quota_resource(name: str, at: Path) -> Found:
    """Check the name of a resource that a quota can limit."""
    errors = any_resource(name, at)
    if "/" in name or is_quota(name):
        return errors
    return [*errors, fielderror.invalid(at, rendering.named(name), "must be a standard resource for quota")]


def is_quota(name: str) -> bool:
    """Return True if a quota can limit a resource without a domain in its name."""
    return name in QUOTA or names.is_huge_page_resource(name) or name.startswith(_REQUESTED_PAGES)


def is_extended(name: str) -> bool:
    """Return True for resources that are not defined by Kubernetes."""
    return not names.extended_resource_name(name)


def amount(name: str, text: str, at: Path) -> Found:
    """Check an amount of a resource: not negative, and whole if the resource is counted."""
    value = quantity.Quantity.parse(text)
    errors = [fielderror.invalid(at, text, constraints.NOT_NEGATIVE)] if value.sign < 0 else []
    if (name in _COUNTED or is_extended(name)) and value.milli_value() % 1000:
        errors.append(fielderror.invalid(at, text, "must be an integer"))
    return errors


def any_resource(name: str, at: Path) -> Found:
    """Check the name of a resource: one of Kubernetes, or one with a domain."""
    errors = fielderror.problems(at, rendering.named(name), names.qualified_name(name))
    is_standard = name in _STANDARD or names.is_huge_page_resource(name) or name.startswith(_REQUESTED_PAGES)
    if errors or "/" in name or is_standard:
        return errors
    return [fielderror.invalid(at, rendering.named(name), "must be a standard resource type or fully qualified")]


def _pod_resource(name: str, at: Path) -> Found:
    errors = any_resource(name, at)
    if errors or name in POD_LEVEL or names.is_huge_page_resource(name):
        return errors
    return [fielderror.not_supported(at, rendering.named(name), ("cpu", "hugepages-", "memory"))]


def _check_requirements(resources: Mapping[str, Any], at: Path, *, rule: NameRule) -> Errors:
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
        yield from _check_limit(name, requests[name], limits.get(name), at=at)
        if names.is_huge_page_resource(name):
            yield from _pages(name, requests[name], path)
    resource_names = {*limits, *requests}
    if any(map(names.is_huge_page_resource, resource_names)) and not resource_names & _PLAIN:
        yield fielderror.forbidden(at, "HugePages require cpu or memory")


def _amount(name: str, text: str, at: Path, *, rule: NameRule) -> Found:
    if name in _PLAIN and text[:1] != "-":
        return ()
    return [*rule(name, at), *amount(name, text, at)]


def _check_limit(name: str, request: str, limit: str | None, *, at: Path) -> Found:
    can_overcommit = names.is_native_resource(name) and not names.is_huge_page_resource(name)
    if limit is None:
        if can_overcommit:
            return ()
        return [fielderror.required(at.child("limits"), "Limit must be set for non overcommitable resources")]
    if request == limit:
        return ()
    amount, most = quantity.Quantity.parse(request), quantity.Quantity.parse(limit)
    if not can_overcommit and amount != most:
        return [fielderror.invalid(at.child("requests"), request, f"must be equal to {name} limit of {limit}")]
    if amount > most:
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
    """Return the sum of ``requests`` or ``limits`` of containers that run at the same time.

    Sidecars run together with everything that starts after them; other init containers run one after the other.
    """
    total = _sum(field, *(spec.get("containers") or ()))
    init: dict[str, quantity.Quantity] = {}
    sidecars: dict[str, quantity.Quantity] = {}
    for container in spec.get("initContainers") or ():
        own = _sum(field, container)
        if container.get("restartPolicy") == "Always":
            total, sidecars = _plus(total, own), _plus(sidecars, own)
            own = sidecars
        else:
            own = _plus(own, sidecars)
        init = _most(init, own)
    return _most(total, init)


def _check_aggregates(spec: Mapping[str, Any], at: Path) -> Errors:
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
        amounts = (container.get("resources") or {}).get(field) or {}
        total = _plus(total, {name: quantity.Quantity.parse(text) for name, text in amounts.items()})
    return total


def _plus(
    first: Mapping[str, quantity.Quantity], second: Mapping[str, quantity.Quantity]
) -> dict[str, quantity.Quantity]:
    return {**first, **{name: first[name] + value if name in first else value for name, value in second.items()}}


def _most(
    first: Mapping[str, quantity.Quantity], second: Mapping[str, quantity.Quantity]
) -> dict[str, quantity.Quantity]:
    return {**first, **{name: max(first[name], value) if name in first else value for name, value in second.items()}}


# Resource claims


def check_claims(claims: Sequence[Mapping[str, Any]], at: Path) -> Errors:
    """Yield the errors of the claims of a pod: unique names, and one source each."""
    previous = set()
    for position, claim in enumerate(claims):
        place, name = at.item(position), claim.get("name", "")
        if not name:
            yield fielderror.required(place.child("name"))
        elif name in previous:
            yield fielderror.duplicate(place.child("name"), name)
        else:
            yield from formats.short_name(name, place.child("name"))
            previous.add(name)
        yield from _CLAIM(claim, place)


def _check_claim_source(claim: Mapping[str, Any], at: Path) -> Errors:
    sources = [claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")]
    if sources.count(None) == 1:
        return
    detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
    if None not in sources:
        detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
    yield fielderror.invalid(at, rendering.internal_fields(claim, *_SHOWN_CLAIM), detail)


def claim_names(claims: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names of claims, sorted."""
    return sorted({claim["name"] for claim in claims if claim.get("name")})


def _check_claim_use(claims: Sequence[Mapping[str, Any]], at: Path, *, pod_claims: Sequence[str]) -> Errors:
    """Check the claims of a container: each is used as a whole or by some of its requests, and nothing twice."""
    previous: set[str] = set()
    for position, claim in enumerate(claims):
        place, name, request = at.item(position), claim.get("name", ""), claim.get("request", "")
        if not name:
            yield fielderror.required(place)
            continue
        if name in previous:
            yield fielderror.duplicate(place, name)
        else:
            key = name
            if request:
                yield from formats.short_name(request, place.child("request"))
                key = f"{name}/{request}"
            if key in previous:
                yield fielderror.duplicate(place, key)
            elif not request:
                overlaps = sum(earlier.startswith(f"{name}/") for earlier in previous)
                yield from (fielderror.duplicate(place, name) for _ in range(overlaps))
            previous.add(key)
        if name not in pod_claims:
            choice = f": {', '.join(pod_claims)}" if pod_claims else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{choice}"
            yield fielderror.not_found(place, name, detail)


_SHOWN_CLAIM: Final = (
    ("Name", "name", ""),
    ("ResourceClaimName", "resourceClaimName", None),
    ("ResourceClaimTemplateName", "resourceClaimTemplateName", None),
)
_CLAIM: Final = rulenotation.load("podspec/resources", globals())["PodResourceClaim"]
