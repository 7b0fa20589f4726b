"""Screening: the devices of a view that a request could be given, each device checked by itself.

A :class:`RequestShape` is all of a request that decides this: selectors of class and request, capacity asked for,
tolerations. Requests of the same shape, in whatever claim, share one; and a view, or a block shown to many nodes, is
screened once per shape. What devices are in use, and what goes together, is the business of the search.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final, NamedTuple

from drachma import errors
from drachma.allocator import budget, capacity, expressions, pool
from drachma.allocator import features as gates
from drachma.allocator import view as views
from drachma.api import deviceclass, devices, resourceclaim, resourceslice
from drachma.api.gates import Gate
from drachma.claims import taints
from drachma.values import quantity

_NO_KEY_HINT: Final = (
    ". consider using CEL optional chaining (.? followed by orValue()) "
    "or guarding the check with has() for optional fields"
)
_SHAPES_REMEMBERED: Final = 4096
_CHARACTERS_REMEMBERED: Final = 64 * 1024
"""Characters of expressions whose programs are kept; a program takes up to 1,000 bytes for each."""


class Screen(NamedTuple):
    """Sets of devices of a view."""

    candidates: int
    """Devices that could be allocated."""
    selected: int
    """Selected devices with enough capacity; ``All`` requests every one of them, candidate or not."""
    errors: int
    """Devices that cannot be checked without an error."""


class _BlockScreen(NamedTuple):
    selected: int
    failed: int
    fitting: int
    unfit: int
    allowed: int


class RequestShape:
    """Screening of devices for a request. :class:`Screener` makes one for all requests that are alike."""

    __slots__ = ("_amounts", "_features", "capacity", "class_judges", "class_name", "request_judges", "tolerations")

    def __init__(
        self,
        class_name: str,
        *,
        class_judges: tuple[expressions.Judge, ...],
        request_judges: tuple[expressions.Judge, ...],
        capacity: resourceclaim.CapacityRequirements | None,
        tolerations: tuple[devices.DeviceToleration, ...],
        features: gates.Features,
    ) -> None:
        self.class_name = class_name
        self.class_judges = class_judges
        self.request_judges = request_judges
        self.capacity = capacity
        self.tolerations = tolerations
        self._features = features
        self._amounts: dict[Hashable, dict[str, quantity.Quantity] | None] = {}

    def screen(self, view: views.View, budget: budget.Budget) -> Screen:
        """Screen the devices of a view."""
        screen: Screen | None = view.cache.get(self)
        if screen is None:
            if view.natural is view:
                screen = self._screen(view, budget)
            else:
                screen = Screen(*map(view.arrange, self.screen(view.natural, budget)))
            view.remember(self, screen)
        return screen

    def amounts(self, device: resourceslice.Device) -> dict[str, quantity.Quantity] | None:
        """Return the capacity that the request consumes of a device, None if it does not fit. Raises CapacityError."""
        if self.capacity is None and not any(entry.request_policy for entry in device.capacity.values()):
            key: Hashable = None
        else:
            key = _spelled(device.capacity)
            if key in self._amounts:
                return self._amounts[key]
        amounts = capacity.consumption(
            self.capacity, device.capacity, fractional=self._features.fractional_capacity_range
        )
        if key is not None:
            self._amounts[key] = amounts
        return amounts

    def fits_empty(self, device: resourceslice.Device) -> bool:
        """Return True if an unused device has the capacity that the request consumes. Raises CapacityError."""
        if self.capacity is None and all(_is_plain(entry) for entry in device.capacity.values()):
            # The request takes all there is.
            return True
        amounts = self.amounts(device)
        return amounts is not None and all(
            amount <= capacity.value_of(device.capacity[name]) for name, amount in amounts.items()
        )

    def _screen(self, view: views.View, budget: budget.Budget) -> Screen:
        selected = failed = fitting = unfit = allocatable = 0
        for block, offset in zip(view.blocks, view.offsets, strict=True):
            part = self._block_screen(block, budget)
            selected |= part.selected << offset
            failed |= part.failed << offset
            fitting |= part.fitting << offset
            unfit |= part.unfit << offset
            allocatable |= part.allowed << offset
        for position in view.placement_errors:
            failed |= selected & (1 << position)
        selected &= ~(view.misplaced | failed)
        failed |= selected & unfit
        selected &= fitting
        if view.skipping and not self._may_skip(view):
            allocatable &= ~view.skipping
        return Screen(selected & allocatable, selected, failed)

    def _may_skip(self, view: views.View) -> bool:
        declared = Gate.OPTIONAL_NODE_OPERATIONS in view.node.declared_features
        return self._features.optional_node_operations and declared

    def _block_screen(self, block: pool.Block, budget: budget.Budget) -> _BlockScreen:
        screen: _BlockScreen | None = block.cache.get(self)
        if screen is None:
            screen = self._screen_block(block, budget)
            block.remember(self, screen)
        return screen

    def _screen_block(self, block: pool.Block, budget: budget.Budget) -> _BlockScreen:
        selected = block.everything
        if not self._features.device_binding:
            selected &= ~block.conditional
        failed = 0
        for judge in (*self.class_judges, *self.request_judges):
            if not selected:
                break
            yes, errs = judge.judge_block(block, budget)
            failed |= selected & errs
            selected &= yes
        fitting, unfit = self._capacity_masks(block, selected)
        allocatable = block.everything
        if not self._features.partitionable_devices:
            allocatable &= ~block.consuming
        if self._features.device_taints:
            for place in views.positions(block.tainted & selected):
                if taints.first_untolerated(block.devices[place].taints, self.tolerations) is not None:
                    allocatable &= ~(1 << place)
        return _BlockScreen(selected, failed, fitting, unfit, allocatable)

    def _capacity_masks(self, block: pool.Block, selected: int) -> tuple[int, int]:
        """Return the selected devices with enough capacity, and those whose capacity cannot be computed."""
        if not self._features.consumable_capacity:
            return selected, 0
        fitting = unfit = 0
        for place in views.positions(selected):
            try:
                if self.fits_empty(block.devices[place]):
                    fitting |= 1 << place
            except capacity.CapacityError:
                unfit |= 1 << place
        return fitting, unfit


class Screener:
    """Makes shapes and judges, one for all that are alike, for one compiler and set of features."""

    def __init__(self, compiler: expressions.Compiler, features: gates.Features) -> None:
        self._compiler = compiler
        self.features = features
        self._judges: dict[str, expressions.Judge] = {}
        self._characters = 0
        self._shapes: dict[Hashable, RequestShape] = {}
        self._derivations: dict[str, expressions.Derivation] = {}

    def shape(
        self,
        device_class: deviceclass.DeviceClass,
        selectors: tuple[devices.DeviceSelector, ...],
        *,
        capacity: resourceclaim.CapacityRequirements | None,
        tolerations: tuple[devices.DeviceToleration, ...],
    ) -> RequestShape:
        """Return the shape of a request. Raises AllocationError for a class selector of unknown type."""
        amounts = None
        if capacity is not None:
            amounts = frozenset((name, amount.nanos, amount.text) for name, amount in capacity.requests.items())
        key = (device_class.metadata.name, device_class.spec.selectors, selectors, amounts, tolerations)
        shape = self._shapes.get(key)
        if shape is None:
            for number, selector in enumerate(device_class.spec.selectors):
                if selector.cel is None:
                    raise errors.AllocationError(
                        f"class {device_class.metadata.name}: selector #{number}: "
                        "CEL expression empty (unsupported selector type?)"
                    )
            if len(self._shapes) >= _SHAPES_REMEMBERED or self._characters > _CHARACTERS_REMEMBERED:
                self._shapes.clear()
                self._judges.clear()
                self._characters = 0
            shape = self._shapes[key] = RequestShape(
                str(device_class.metadata.name),
                class_judges=self._judges_of(device_class.spec.selectors),
                request_judges=self._judges_of(selectors),
                capacity=capacity,
                tolerations=tolerations,
                features=self.features,
            )
        return shape

    def derivation(self, expression: str) -> expressions.Derivation:
        """Return a derived attribute's compiled expression. Raises CelError."""
        derivation = self._derivations.get(expression)
        if derivation is None:
            derivation = self._derivations[expression] = self._compiler.derivation(expression)
        return derivation

    def _judges_of(self, selectors: tuple[devices.DeviceSelector, ...]) -> tuple[expressions.Judge, ...]:
        texts = [str(selector.cel.expression) for selector in selectors if selector.cel is not None]
        for text in texts:
            if text not in self._judges:
                self._judges[text] = expressions.Judge(text, self._compiler)
                self._characters += len(text)
        return tuple(self._judges[text] for text in texts)


def failure(
    shape: RequestShape, view: views.View, position: int, *, claim: str, request: str, device: str
) -> errors.AllocationError:
    """Return the error of a device that :attr:`Screen.errors` contains.

    ``claim`` and ``request`` name what the device was looked at for; ``device`` is how a message about its capacity
    calls it.
    """
    block, place = view.locate(position)
    for owner, judges in ((f"class {shape.class_name}", shape.class_judges), (f"claim {claim}", shape.request_judges)):
        for number, judge in enumerate(judges):
            if judge.problem:
                return errors.AllocationError(f"{owner}: selector #{number}: CEL compile error: {judge.problem}")
            try:
                judge.verdict(block, place)
            except errors.CelError as error:
                subject = f"{owner}: selector #{number} on device {view.device_id(position)}"
                return errors.AllocationError(f"{subject}: CEL runtime error: {_add_hint(str(error))}")
    if position in view.placement_errors:
        return errors.AllocationError(view.placement_errors[position])
    try:
        shape.fits_empty(block.devices[place])
    except capacity.CapacityError as error:
        return errors.AllocationError(
            f"claim {claim}, request {request}: checking capacity for device {device}: {error}"
        )
    raise AssertionError(f"device {view.device_id(position)} was screened as an error, and is none")


def _is_plain(entry: resourceslice.DeviceCapacity) -> bool:
    return entry.request_policy is None and capacity.value_of(entry).nanos >= 0


def _spelled(capacities: Mapping[str, resourceslice.DeviceCapacity]) -> Hashable:
    """Return capacities as a key. Amounts keep their spelling because results repeat it."""
    return tuple((name, *map(_texts, (entry.value, entry.request_policy))) for name, entry in capacities.items())


def _texts(
    part: quantity.Quantity | resourceslice.CapacityRequestPolicy | resourceslice.CapacityRequestPolicyRange | None,
) -> Hashable:
    match part:
        case quantity.Quantity():
            return part.text
        case resourceslice.CapacityRequestPolicy():
            return _texts(part.default), _texts(part.valid_range), tuple(map(_texts, part.valid_values))
        case resourceslice.CapacityRequestPolicyRange():
            return _texts(part.min), _texts(part.max), _texts(part.step)
        case None:
            return None


def _add_hint(message: str) -> str:
    return message + _NO_KEY_HINT if "no such key:" in message else message
