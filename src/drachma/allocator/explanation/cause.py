"""Causes: why a device cannot be given to a request. Plain data: frozen, comparable, and JSON through msgspec.

Every cause says what was in the way and shows the value and the limit. Devices with equal causes are reported
together, so nothing of the device itself is in a cause unless it is the point. Amounts are written as Kubernetes
spells quantities.
"""

from __future__ import annotations

import msgspec

Value = str | int | bool | tuple[str | int | bool, ...]


class Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="kind"):
    """A piece of an explanation that comes in several kinds."""


class Reading(msgspec.Struct, frozen=True, rename="camel"):
    """Value that an expression read: ``driver``, ``allowMultipleAllocations``, or the full name of an attribute
    or a capacity. The value is None where the device does not have it."""

    name: str
    value: Value | None


class NotReachable(Part, frozen=True, kw_only=True, tag="notReachable"):
    """The device is for other nodes; ``because`` of the slice's or of its own choice of nodes."""

    because: str


class PoolUnusable(Part, frozen=True, kw_only=True, tag="poolUnusable"):
    """Nothing is allocated from the pool at the moment; ``state`` is incomplete, invalid or outdated."""

    pool: str
    state: str
    detail: str


class FeatureOff(Part, frozen=True, kw_only=True, tag="featureOff"):
    """The device can be used only with a feature that is off, here or on the node."""

    feature: str
    detail: str


class ClassSelector(Part, frozen=True, kw_only=True, tag="classSelector"):
    """A selector of the device class does not match."""

    class_name: str
    number: int
    expression: str
    read: tuple[Reading, ...] = ()


class RequestSelector(Part, frozen=True, kw_only=True, tag="requestSelector"):
    """A selector of the request does not match."""

    number: int
    expression: str
    read: tuple[Reading, ...] = ()


class Failure(Part, frozen=True, kw_only=True, tag="failure"):
    """Looking at the device is an error, which ends the allocation if the search comes to it."""

    message: str


class Tainted(Part, frozen=True, kw_only=True, tag="tainted"):
    """The device has taints that the request does not tolerate."""

    taints: tuple[Taint, ...]


class Taint(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A taint that keeps requests away."""

    key: str
    value: str = ""
    effect: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class Held(Part, frozen=True, kw_only=True, tag="held"):
    """The device is allocated; ``claims`` is empty where it is not known to whom."""

    claims: tuple[str, ...] = ()


class CounterExhausted(Part, frozen=True, kw_only=True, tag="counterExhausted"):
    """The device draws more from a counter than is left of it."""

    pool: str
    counter_set: str
    counter: str
    needed: str
    left: str
    claims: tuple[str, ...] = ()
    """Claims that hold devices which draw from it."""


class CapacityShort(Part, frozen=True, kw_only=True, tag="capacityShort"):
    """The device has less of a capacity, or less is left of it, than the request takes."""

    capacity: str
    needed: str
    left: str
    claims: tuple[str, ...] = ()
    """Claims that have shares of the device."""


class CapacityUnsuitable(Part, frozen=True, kw_only=True, tag="capacityUnsuitable"):
    """The device does not have a capacity at all, or its policy does not allow the amount asked for."""

    capacity: str
    requested: str
    detail: str


class GroupsIncompatible(Part, frozen=True, kw_only=True, tag="groupsIncompatible"):
    """The device has no compatibility group in common with what is allocated on its counter set."""

    pool: str
    counter_set: str
    groups: tuple[str, ...]


class ConstraintUnmet(Part, frozen=True, kw_only=True, tag="constraintUnmet"):
    """No choice of devices for the other requests goes with this device's value of an attribute."""

    constraint: int
    attribute: str
    value: Value | None
    """None where the device does not have the attribute, or has one that cannot be compared."""


class InCombination(Part, frozen=True, kw_only=True, tag="inCombination"):
    """Nothing is in the way of the device by itself; only together with everything else it cannot be had."""


Cause = (
    NotReachable
    | PoolUnusable
    | FeatureOff
    | ClassSelector
    | RequestSelector
    | Failure
    | Tainted
    | Held
    | CounterExhausted
    | CapacityShort
    | CapacityUnsuitable
    | GroupsIncompatible
    | ConstraintUnmet
    | InCombination
)

NEAREST_FIRST: tuple[type[Part], ...] = (
    InCombination,
    ConstraintUnmet,
    GroupsIncompatible,
    CounterExhausted,
    CapacityShort,
    CapacityUnsuitable,
    Held,
    Tainted,
    FeatureOff,
    Failure,
    RequestSelector,
    ClassSelector,
    PoolUnusable,
    NotReachable,
)
"""All kinds, those first whose devices came nearest to being usable."""
