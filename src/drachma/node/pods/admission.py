"""Admission of a bound pod by its node: the kubelet checks the room again before it runs anything."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from drachma.api import node
from drachma.api.pod import Pod
from drachma.claims import podstate
from drachma.node.pods import podresources
from drachma.values import names, quantity

_PODS: Final = "pods"
_CPU: Final = "cpu"
_FIRST: Final = (_CPU, "memory", "ephemeral-storage")


class Verdict(NamedTuple):
    """Result of admission; for a refused pod with the reason and message of its status."""

    is_admitted: bool
    reason: str = ""
    message: str = ""


ADMITTED: Final = Verdict(is_admitted=True)


def admit(pod: Pod, on_node: node.Node, neighbours: Iterable[Pod], *, with_claims: bool) -> Verdict:
    """Decide whether a node has room for a pod in addition to its neighbours that have not ended.

    ``with_claims`` counts the resources of claims (KEP-5517). Extended resources that the node does not list are
    ignored, because claims may provide them.
    """
    allocatable = on_node.status.allocatable
    used: dict[str, int] = {}
    count = 0
    for each in neighbours:
        if podstate.has_ended(each):
            continue
        count += 1
        for name, amount in podresources.requested(each, with_claims=with_claims).items():
            used[name] = used.get(name, 0) + _count(name, amount)
    capacity = _count(_PODS, allocatable[_PODS]) if _PODS in allocatable else 0
    if count + 1 > capacity:
        return _short(_PODS, 1, used=count, capacity=capacity)
    requested = podresources.requested(pod, with_claims=with_claims)
    for name in sorted(requested, key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name)):
        needed = _count(name, requested[name])
        if not needed or (name not in allocatable and name not in _FIRST and not names.is_huge_page_resource(name)):
            continue
        capacity = _count(name, allocatable[name]) if name in allocatable else 0
        if needed > capacity - used.get(name, 0):
            return _short(name, needed, used=used.get(name, 0), capacity=capacity)
    return ADMITTED


def _short(name: str, requested: int, *, used: int, capacity: int) -> Verdict:
    message = f"Node didn't have enough resource: {name}, requested: {requested}, used: {used}, capacity: {capacity}"
    return Verdict(is_admitted=False, reason=f"OutOf{name}", message=message)


def _count(name: str, amount: quantity.Quantity) -> int:
    return amount.milli_value() if name == _CPU else amount.as_int64()
