"""Checks of objects against the limit ranges of their namespace, in upstream's words.

Amounts are compared in thousandths if they fit into 64 bits, and in whole units otherwise, as upstream does.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from drachma.accounting import aggregate
from drachma.api import limitrange, persistentvolumeclaim, pod
from drachma.values import quantity

Amounts = Mapping[str, quantity.Quantity]

CONTAINER: Final = "Container"
POD: Final = "Pod"
VOLUME_CLAIM: Final = "PersistentVolumeClaim"

_MOST_MILLI: Final = (2**63 - 1) // 1000
_WHOLE: Final = ("cpu", "memory")
_NOTHING: Final = quantity.Quantity.from_int(0)


def pod_problems(subject: pod.Pod, limits: Sequence[limitrange.LimitRangeItem]) -> Iterator[str]:
    """Yield the problems of a pod and its containers."""
    for item in limits:
        if item.type == CONTAINER:
            for container in (*subject.spec.containers, *subject.spec.init_containers):
                yield from _bounds(item, container.resources.requests, container.resources.limits)
        elif item.type == POD:
            yield from _bounds(item, _together(subject, field="requests"), _together(subject, field="limits"))


def volume_claim_problems(
    subject: persistentvolumeclaim.PersistentVolumeClaim, limits: Sequence[limitrange.LimitRangeItem]
) -> Iterator[str]:
    """Yield the problems of a volume claim, of which only requests count."""
    requests = subject.spec.resources.requests
    for item in limits:
        if item.type != VOLUME_CLAIM:
            continue
        for name, least in sorted(item.min.items()):
            yield from _check_minimum(item.type, name, least, requests=requests, limits={})
        for name, most in sorted(item.max.items()):
            yield from _requests_at_most(item.type, name, most, requests=requests)


def _bounds(item: limitrange.LimitRangeItem, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, least in sorted(item.min.items()):
        yield from _check_minimum(item.type, name, least, requests=requests, limits=limits)
    for name, most in sorted(item.max.items()):
        yield from _check_maximum(item.type, name, most, requests=requests, limits=limits)
    for name, ratio in sorted(item.max_limit_request_ratio.items()):
        yield from _ratio(item.type, name, ratio, requests=requests, limits=limits)


def _check_minimum(
    kind: str, name: str, least: quantity.Quantity, *, requests: Amounts, limits: Amounts
) -> Iterator[str]:
    rule = f"minimum {name} usage per {kind} is {least}"
    request, limit = requests.get(name), limits.get(name)
    requested, limited, enforced = _comparable(request, limit, least)
    if request is None:
        yield f"{rule}.  No request is specified"
    elif requested < enforced:
        yield f"{rule}, but request is {request}"
    elif limit is not None and limited < enforced:
        yield f"{rule}, but limit is {limit}"


def _check_maximum(
    kind: str, name: str, most: quantity.Quantity, *, requests: Amounts, limits: Amounts
) -> Iterator[str]:
    rule = f"maximum {name} usage per {kind} is {most}"
    request, limit = requests.get(name), limits.get(name)
    requested, limited, enforced = _comparable(request, limit, most)
    if limit is None:
        yield f"{rule}.  No limit is specified"
    elif limited > enforced:
        yield f"{rule}, but limit is {limit}"
    elif request is not None and requested > enforced:
        yield f"{rule}, but request is {request}"


def _requests_at_most(kind: str, name: str, most: quantity.Quantity, *, requests: Amounts) -> Iterator[str]:
    rule = f"maximum {name} usage per {kind} is {most}"
    request = requests.get(name)
    requested, _, enforced = _comparable(request, None, most)
    if request is None:
        yield f"{rule}.  No request is specified"
    elif requested > enforced:
        yield f"{rule}, but request is {request}"


def _ratio(kind: str, name: str, most: quantity.Quantity, *, requests: Amounts, limits: Amounts) -> Iterator[str]:
    rule = f"{name} max limit to request ratio per {kind} is {most}"
    requested, limited, _ = _comparable(requests.get(name), limits.get(name), most)
    if not requested:
        yield f"{rule}, but no request is specified or request is 0"
    elif not limited:
        yield f"{rule}, but no limit is specified or limit is 0"
    else:
        ratio = limited / requested
        is_small = most.as_int64() <= _MOST_MILLI
        if ratio * 1000 > most.milli_value() if is_small else ratio > most.as_int64():
            yield f"{rule}, but provided ratio is {ratio:f}"


def _comparable(*amounts: quantity.Quantity | None) -> list[int]:
    quantities = [_NOTHING if each is None else each for each in amounts]
    integers = [each.as_int64() for each in quantities]
    return [each.milli_value() for each in quantities] if max(integers) <= _MOST_MILLI else integers


def _together(subject: pod.Pod, *, field: str) -> dict[str, quantity.Quantity]:
    """Return the totals of all containers, replaced by what the pod states as a whole, without overhead."""
    total = aggregate.together(subject.spec, lambda container: dict(_stated(container.resources, field=field)))
    if subject.spec.resources is not None:
        stated = _stated(subject.spec.resources, field=field)
        total |= {name: stated[name] for name in _WHOLE if name in stated}
    return total


def _stated(resources: pod.ResourceRequirements, *, field: str) -> Amounts:
    return resources.requests if field == "requests" else resources.limits
