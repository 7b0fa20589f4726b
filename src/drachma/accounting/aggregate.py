"""What the containers of a pod come to together, whatever it is counted in.

Init containers run one after the other before the containers, so a pod needs the larger of what its containers need
together and what any init container needs; sidecars, which are init containers that keep running, add to both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self, TypeVar

from drachma.api import pod


class Amount(Protocol):
    """Numbers, or quantities that know how they are written."""

    def __add__(self, other: Self, /) -> Self: ...

    def __gt__(self, other: Self, /) -> bool: ...


AmountT = TypeVar("AmountT", bound=Amount)


def is_sidecar(container: pod.Container) -> bool:
    """Whether an init container keeps running beside the containers."""
    return container.restart_policy == "Always"


def together(spec: pod.PodSpec, own: Callable[[pod.Container], dict[str, AmountT]]) -> dict[str, AmountT]:
    """The amounts of all containers, where ``own`` has those of one, to be changed at will."""
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
    """Adds amounts, in place."""
    for name, amount in more.items():
        to[name] = to[name] + amount if name in to else amount


def lift(to: dict[str, AmountT], least: dict[str, AmountT]) -> None:
    """Makes amounts at least so large, in place."""
    for name, amount in least.items():
        if name not in to or amount > to[name]:
            to[name] = amount
