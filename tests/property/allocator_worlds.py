"""Small random clusters and claims for the allocator, with a tiny language in place of CEL.

``any`` and ``none``; ``a=1`` compares an attribute and fails on devices that do not have it; ``a?1`` does not fail.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

from drachma import errors
from drachma.allocator import budget, projection
from drachma.allocator.features import Features
from drachma.api import deviceclass, devices, meta, resourceclaim, resourceslice
from drachma.values import quantity

DRIVERS = ("a.example.com", "b.example.com")
FEATURES = Features(
    admin_access=True,
    compatibility_groups=True,
    consumable_capacity=True,
    derived_attributes=True,
    device_taints=True,
    list_type_attributes=True,
    partitionable_devices=True,
    prioritized_list=True,
)


class TinyExpression:
    """An expression of the tiny language."""

    def __init__(self, text: str) -> None:
        self.text = text

    @property
    def reads(self) -> frozenset[projection.Path] | None:
        """What it looks at."""
        if self.text in ("any", "none"):
            return frozenset()
        return frozenset(("attributes", driver, self.text[0]) for driver in DRIVERS)

    def matches(self, device: resourceslice.Device, *, driver: str, interrupt: budget.Interrupt | None = None) -> bool:
        """Whether it holds."""
        del driver, interrupt
        return matches(self.text, device)

    def derive(
        self, device: resourceslice.Device, *, driver: str, interrupt: budget.Interrupt | None = None
    ) -> resourceslice.DeviceAttribute:
        """The value of an attribute, plus one."""
        del driver, interrupt
        return derive(self.text, device)


class TinyCompiler:
    """Compiles the tiny language."""

    def selector(self, expression: str) -> TinyExpression:
        """A selector."""
        return TinyExpression(expression)

    def derivation(self, expression: str) -> TinyExpression:
        """A derived attribute."""
        return TinyExpression(expression)


def matches(text: str, device: resourceslice.Device) -> bool:
    """Whether an expression of the tiny language holds; CelError where it reads what is not there."""
    if text in ("any", "none"):
        return text == "any"
    name, operator, wanted = text[0], text[1], int(text[2:])
    if name not in device.attributes:
        if operator == "=":
            raise errors.CelError(f"{name} is missing")
        return False
    return device.attributes[name].int_value == wanted


def derive(text: str, device: resourceslice.Device) -> resourceslice.DeviceAttribute:
    """One more than an attribute; CelError where it is not there or not a number."""
    found = device.attributes.get(text)
    if found is None or found.int_value is None:
        raise errors.CelError(f"{text} is missing")
    return resourceslice.DeviceAttribute(int_value=found.int_value + 1)


class World(NamedTuple):
    """A cluster of one node, what is allocated there, and claims."""

    slices: tuple[resourceslice.ResourceSlice, ...]
    classes: tuple[deviceclass.DeviceClass, ...]
    claims: tuple[resourceclaim.ResourceClaim, ...]
    taken: frozenset[str]
    consumed: dict[str, int]
    """How much of the memory of shared devices is consumed."""
    features: Features = FEATURES


def amount(value: int) -> quantity.Quantity:
    """A whole number as a quantity."""
    return quantity.Quantity.parse(str(value))


_FAILING = st.sampled_from(["any", "any", "a?1", "a=1", "b=0"])
_TAME = st.sampled_from(["any", "any", "a?1", "a?0", "b?1"])
_RARELY = st.sampled_from([False, False, False, True])


@st.composite
def _attributes(draw: st.DrawFn) -> dict[str, resourceslice.DeviceAttribute]:
    found: dict[str, resourceslice.DeviceAttribute] = {}
    for name in ("a", "b"):
        match draw(st.integers(0, 5)):
            case 0:
                continue
            case 1 if name == "b":
                values = draw(st.lists(st.integers(0, 2), min_size=1, max_size=2, unique=True))
                found[name] = resourceslice.DeviceAttribute(int_values=tuple(values))
            case _:
                found[name] = resourceslice.DeviceAttribute(int_value=draw(st.integers(0, 2)))
    return found


@st.composite
def _device(draw: st.DrawFn, name: str, *, counters: bool, special: bool) -> resourceslice.Device:
    fields: dict[str, Any] = {"name": name, "attributes": draw(_attributes())}
    if special and draw(_RARELY):
        fields["allow_multiple_allocations"] = True
    if special:
        fields["capacity"] = {"memory": resourceslice.DeviceCapacity(value=amount(draw(st.integers(1, 4))))}
    if special and draw(_RARELY):
        fields["taints"] = (devices.DeviceTaint(key="k", effect=draw(st.sampled_from(["NoSchedule", "None"]))),)
    if counters and draw(st.booleans()):
        taken = {
            name: resourceslice.Counter(value=amount(draw(st.integers(0, 2))))
            for name in draw(st.sampled_from([("x",), ("x", "y")]))
        }
        groups = draw(st.sampled_from([(), (), ("g",), ("g", "h"), ("h",)])) if special else ()
        fields["consumes_counters"] = (
            resourceslice.DeviceCounterConsumption(counter_set="s", counters=taken, compatibility_groups=groups),
        )
    return resourceslice.Device(**fields)


@st.composite
def _pool(draw: st.DrawFn, number: int, *, devices_left: int, special: bool) -> list[resourceslice.ResourceSlice]:
    driver = draw(st.sampled_from(DRIVERS))
    counters = draw(st.booleans())
    names = [f"d{place}" for place in range(draw(st.integers(1, devices_left)))]
    split = draw(st.integers(0, len(names)))
    found = [draw(_device(name, counters=counters, special=special)) for name in names]
    parts = [part for part in (tuple(found[:split]), tuple(found[split:])) if part]
    total = len(parts) + (1 if counters else 0)
    pool = resourceslice.ResourcePool(name=f"p{number}", generation=1, resource_slice_count=total)
    slices = [
        resourceslice.ResourceSlice(
            metadata=meta.ObjectMeta(name=f"p{number}-{place}"),
            spec=resourceslice.ResourceSliceSpec(driver=driver, pool=pool, node_name="n", devices=part),
        )
        for place, part in enumerate(parts)
    ]
    if counters:
        limits = {name: resourceslice.Counter(value=amount(draw(st.integers(1, 4)))) for name in ("x", "y")}
        sets = (resourceslice.CounterSet(name="s", counters=limits),)
        slices.append(
            resourceslice.ResourceSlice(
                metadata=meta.ObjectMeta(name=f"p{number}-counters"),
                spec=resourceslice.ResourceSliceSpec(driver=driver, pool=pool, node_name="n", shared_counters=sets),
            )
        )
    return slices


def _selectors(texts: list[str]) -> tuple[devices.DeviceSelector, ...]:
    return tuple(devices.DeviceSelector(cel=devices.CELDeviceSelector(expression=text)) for text in texts)


@st.composite
def _wish(draw: st.DrawFn, *, special: bool, failing: bool, most: int) -> dict[str, Any]:
    everything = draw(st.sampled_from([False] * 5 + [True]))
    fields: dict[str, Any] = {
        "device_class_name": draw(st.sampled_from(["c0", "c0", "c1"])),
        "selectors": _selectors(draw(st.lists(_FAILING if failing else _TAME, max_size=1))),
        "allocation_mode": "All" if everything else "ExactCount",
        "count": 0 if everything else draw(st.sampled_from([1, 1, *range(1, most + 1)])),
    }
    if special and draw(_RARELY):
        fields["tolerations"] = (devices.DeviceToleration(operator="Exists"),)
    if special and draw(_RARELY):
        requests = {"memory": amount(draw(st.integers(1, 3)))}
        fields["capacity"] = resourceclaim.CapacityRequirements(requests=requests)
    if special and draw(_RARELY):
        derived = resourceclaim.DeviceDerivedAttribute(name="a.example.com/b", expression="a")
        fields["derived_attributes"] = (derived,)
    return fields


@st.composite
def _claim(
    draw: st.DrawFn, number: int, *, special: bool, failing: bool, requests: int, most: int
) -> resourceclaim.ResourceClaim:
    wanted: list[resourceclaim.DeviceRequest] = []
    for place in range(draw(st.integers(1, requests))):
        if draw(_RARELY):
            alternatives = tuple(
                resourceclaim.DeviceSubRequest(
                    name=f"s{sub}", **draw(_wish(special=special, failing=failing, most=most))
                )
                for sub in range(draw(st.integers(1, 3)))
            )
            wanted.append(resourceclaim.DeviceRequest(name=f"r{place}", first_available=alternatives))
        else:
            fields = draw(_wish(special=special, failing=failing, most=most))
            if special and draw(st.sampled_from([False] * 7 + [True])):
                fields["admin_access"] = True
            exactly = resourceclaim.ExactDeviceRequest(**fields)
            wanted.append(resourceclaim.DeviceRequest(name=f"r{place}", exactly=exactly))
    constraints: list[resourceclaim.DeviceConstraint] = []
    for _ in range(draw(st.integers(0, 2))):
        attribute = draw(st.sampled_from(["a.example.com/a", "a.example.com/b", "b.example.com/b"]))
        kind = draw(st.sampled_from(["match_attribute", "match_attribute", "distinct_attribute"]))
        names = draw(st.sampled_from([(), (), ("r0",), ("r0", "r1"), ("r1/s0",)]))
        constraints.append(resourceclaim.DeviceConstraint(requests=names, **{kind: attribute}))
    return resourceclaim.ResourceClaim(
        metadata=meta.ObjectMeta(name=f"claim{number}", namespace="ns"),
        spec=resourceclaim.ResourceClaimSpec(
            devices=resourceclaim.DeviceClaim(requests=tuple(wanted), constraints=tuple(constraints))
        ),
    )


@st.composite
def worlds(
    draw: st.DrawFn, *, special: bool = True, failing: bool = True, requests: int = 3, most: int = 3, size: int = 7
) -> World:
    """A world; ``special`` devices and requests have all features, ``failing`` selectors can fail.

    A claim has up to ``requests`` requests, each of which asks for ``most`` devices at most.
    """
    slices: list[resourceslice.ResourceSlice] = []
    left = size
    for number in range(draw(st.integers(1, 3))):
        if left > 0:
            slices += draw(_pool(number, devices_left=left, special=special))
            left = size - sum(len(entry.spec.devices) for entry in slices)
    classes = tuple(
        deviceclass.DeviceClass(
            metadata=meta.ObjectMeta(name=f"c{number}"),
            spec=deviceclass.DeviceClassSpec(
                selectors=_selectors(draw(st.lists(_FAILING if failing else _TAME, max_size=1)))
            ),
        )
        for number in range(2)
    )
    claims = tuple(
        draw(_claim(number, special=special, failing=failing, requests=requests, most=most))
        for number in range(draw(st.integers(1, 2)))
    )
    taken: set[str] = set()
    consumed: dict[str, int] = {}
    for entry in slices:
        for device in entry.spec.devices:
            device_id = f"{entry.spec.driver}/{entry.spec.pool.name}/{device.name}"
            if device.allow_multiple_allocations and draw(_RARELY):
                consumed[device_id] = 1
            elif draw(_RARELY):
                taken.add(device_id)
    lists = draw(st.sampled_from([True, True, False]))
    features = msgspec.structs.replace(FEATURES, list_type_attributes=lists)
    return World(tuple(slices), classes, claims, frozenset(taken), consumed, features)
