"""Whether a node has room for a pod that was bound to it, as the kubelet judges it again before it runs anything."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from drachma.api import node, pod
from drachma.claims import podstate
from drachma.node import podresources
from drachma.values import names, quantity

_PODS: Final = "pods"
_CPU: Final = "cpu"
_FIRST: Final = (_CPU, "memory", "ephemeral-storage")


class Verdict(NamedTuple):
    """Whether a pod is let in; if not, the reason and the message that its status gets."""

    is_admitted: bool
    reason: str = ""
    message: str = ""


ADMITTED: Final = Verdict(is_admitted=True)


def judge(of: pod.Pod, where: node.Node, others: Iterable[pod.Pod], *, with_claims: bool) -> Verdict:
    """The verdict on a pod beside others that have not ended; ``with_claims`` counts what claims add (KEP-5517).

    Extended resources that the node does not have are not looked at: others may stand for them.
    """
    allocatable = where.status.allocatable
    used: dict[str, int] = {}
    count = 0
    for each in others:
        if podstate.has_ended(each):
            continue
        count += 1
        for name, taken in podresources.requested(each, with_claims=with_claims).items():
            used[name] = used.get(name, 0) + _counted(name, taken)
    capacity = _counted(_PODS, allocatable[_PODS]) if _PODS in allocatable else 0
    if count + 1 > capacity:
        return _short(_PODS, 1, used=count, capacity=capacity)
    requested = podresources.requested(of, with_claims=with_claims)
    for name in sorted(requested, key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name)):
        amount = _counted(name, requested[name])
        if not amount or (name not in allocatable and name not in _FIRST and not names.is_huge_page_resource(name)):
            continue
        capacity = _counted(name, allocatable[name]) if name in allocatable else 0
        if amount > capacity - used.get(name, 0):
            return _short(name, amount, used=used.get(name, 0), capacity=capacity)
    return ADMITTED


def _short(name: str, requested: int, *, used: int, capacity: int) -> Verdict:
    message = f"Node didn't have enough resource: {name}, requested: {requested}, used: {used}, capacity: {capacity}"
    return Verdict(is_admitted=False, reason=f"OutOf{name}", message=message)


def _counted(name: str, amount: quantity.Quantity) -> int:
    return amount.milli_value() if name == _CPU else amount.as_int64()
