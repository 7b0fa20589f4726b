"""Totals over the containers of a pod, for any sort of amounts.

Init containers run one after the other before the containers. So a pod needs the larger of the total of its containers
and the need of any init container. Sidecars, which are init containers that keep running, add to both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self, TypeVar

from drachma.api import pod


class Amount(Protocol):
    """Numbers, or quantities that keep their format."""

    def __add__(self, other: Self, /) -> Self: ...

    def __gt__(self, other: Self, /) -> bool: ...


AmountT = TypeVar("AmountT", bound=Amount)


def is_sidecar(container: pod.Container) -> bool:
    """Return True if an init container keeps running next to the containers."""
    return container.restart_policy == "Always"


def together(spec: pod.PodSpec, own: Callable[[pod.Container], dict[str, AmountT]]) -> dict[str, AmountT]:
    """Return the total of all containers, where ``own`` returns a new dict with the amounts of one."""
    amounts: dict[str, AmountT] = {}
    for container in spec.containers:
        add(amounts, own(container))
    if not spec.init_containers:
        return amounts
    sidecars: dict[str, AmountT] = {}
    peak: dict[str, AmountT] = {}
    for container in spec.init_containers:
        mine = own(container)
        if is_sidecar(container):
            add(amounts, mine)
            add(sidecars, mine)
            lift(peak, sidecars)
        else:
            add(mine, sidecars)
            lift(peak, mine)
    lift(amounts, peak)
    return amounts


def add(to: dict[str, AmountT], more: dict[str, AmountT]) -> None:
    """Add amounts in place."""
    for name, amount in more.items():
        to[name] = to[name] + amount if name in to else amount


def lift(to: dict[str, AmountT], least: dict[str, AmountT]) -> None:
    """Raise amounts to at least these, in place."""
    for name, amount in least.items():
        if name not in to or amount > to[name]:
            to[name] = amount
