"""Constraints as a search applies them: one integer for what was chosen so far, one for each device's value.

Of a match constraint the integer holds the elements that all devices so far have in common; it starts with all. Of a
distinct constraint it holds the elements that any device has; it starts with none (KEP-4381, "matchAttribute" and
"distinctAttribute").
"""

from __future__ import annotations

from drachma import errors
from drachma.allocator import attributes, budget, occurrences, screening
from drachma.allocator import claim as claims
from drachma.allocator import view as views

_NOTHING_CHOSEN = (attributes.ALL_ELEMENTS, attributes.NO_ELEMENTS)


class Check:
    """A constraint as it applies to the devices of one option."""

    __slots__ = (
        "_screener", "attribute", "bits", "derived", "distinct", "failing", "number", "occurrences", "untyped",
    )  # fmt: skip

    def __init__(self, number: int, constraint: claims.Constraint, screener: screening.Screener) -> None:
        self._screener = screener
        self.number = number
        """Which of the claim's constraints it is."""
        self.attribute = constraint.attribute
        self.distinct = constraint.distinct
        self.derived = ""
        """The expression that computes the attribute for this option, if there is one."""
        self.take(occurrences.Occurrences(()))
        self.failing = 0
        """Devices whose derived attribute cannot be computed."""
        self.untyped = 0
        """Devices with a value of no known type, which only the first device that is chosen may have."""

    def take(self, values: occurrences.Occurrences) -> None:
        """Take the values of all devices, which other checks may share."""
        self.occurrences = values
        self.bits = values.bits
        """The value of each position; 0 where a device has none that can be compared."""

    def extend(self, elements: int, position: int) -> int | None:
        """Return the elements with one more device, or None if it breaks the constraint. Not for failing devices."""
        bits = self.bits[position]
        if self.untyped and self.untyped >> position & 1 and elements not in _NOTHING_CHOSEN:
            return None
        if not self.distinct:
            return elements & bits or None
        return elements | bits if bits and not elements & bits else None

    def holding(self, elements: int) -> int:
        """Return the devices that have one of these elements."""
        return self.occurrences.holding(elements)

    def elements(self, units: int) -> int:
        """Return all elements that some of these devices have."""
        return self.occurrences.elements(units)

    def failure(self, view: views.View, position: int) -> errors.AllocationError:
        """Return the error of a device whose derived attribute cannot be computed."""
        block, place = view.locate(position)
        try:
            derivation = self._screener.derivation(self.derived)
        except errors.CelError as error:
            return errors.AllocationError(f"compile derived attribute {self.attribute} failed: {error}")
        try:
            derivation.derive(block.devices[place], driver=block.pool_id.driver)
        except errors.CelError as error:
            subject = f"evaluate derived attribute {self.attribute} on device {block.device_id(place)}"
            return errors.AllocationError(f"{subject} failed: {error}")
        raise AssertionError(f"derived attribute {self.attribute} of {block.device_id(place)} did not fail again")

    def derive(self, view: views.View, expression: str, *, among: int, budget: budget.Budget) -> None:
        """Take the values from an expression instead of from what drivers publish, for these devices."""
        self.derived = expression
        lists = self._screener.features.list_type_attributes
        column = view.column(self.attribute, lists=lists)
        numbering = column.numbering
        bits = [0] * len(column.bits)
        self.take(occurrences.Occurrences(bits))
        try:
            derivation = self._screener.derivation(expression)
        except errors.CelError:
            self.failing = among
            return
        for position in views.positions(among):
            block, place = view.locate(position)
            budget.step()
            try:
                driver = block.pool_id.driver
                attribute = derivation.derive(block.devices[place], driver=driver, interrupt=budget.interrupt)
            except errors.CelError:
                self.failing |= 1 << position
                continue
            value = attributes.elements(attribute, lists=lists)
            if isinstance(value, attributes.Untyped):
                self.untyped |= 0 if lists else 1 << position
                bits[position] = 0 if lists else numbering.unique()
            elif value is not None:
                bits[position] = numbering.of(value)


def checks(
    constraints: tuple[claims.Constraint, ...],
    way: claims.Alternative,
    *,
    view: views.View,
    among: int,
    screener: screening.Screener,
    budget: budget.Budget,
) -> tuple[Check, ...]:
    """Return the constraints that apply to one alternative of a request, for these devices."""
    cached: tuple[Check, ...] | None = view.cache.get(way)
    if cached is not None:
        return cached
    applicable: list[Check] = []
    for number, constraint in enumerate(constraints):
        if not constraint.covers(way):
            continue
        check = Check(number, constraint, screener)
        if constraint.attribute in way.derived:
            check.derive(view, way.derived[constraint.attribute], among=among, budget=budget)
        else:
            column = view.column(constraint.attribute, lists=screener.features.list_type_attributes)
            check.take(column.occurrences)
            check.untyped = column.untyped
        applicable.append(check)
    if not way.derived:
        view.remember(way, tuple(applicable))
    return tuple(applicable)
