"""Agreement: a check, value by value, if the usable devices of a claim's requests can meet its constraints.

For every value of an attribute that must match, the table of devices that each request has and needs shows why no
value suffices. Devices with a value that other requests cannot have drop out, which may leave other values short.
This is repeated until nothing changes. For values that must differ, the table shows their number.

These are bounds: what drops out here cannot be used, what stays may still be unusable in combination.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from drachma import errors
from drachma.allocator import allocator as allocators
from drachma.allocator import attributes, constraint, matching
from drachma.allocator import problem as problems
from drachma.allocator import view as views
from drachma.allocator.explanation import cause, reading, report
from drachma.api import resourceclaim, resourceslice

MAX_VALUES: Final = 64
"""Most values of an attribute that a report lists."""

_Element = tuple[str, int | str]


class Rejection(NamedTuple):
    """A device that drops out of an option."""

    option: problems.Option
    position: int
    cause: cause.Cause


class Agreement:
    """The constraints of one claim over the devices that nothing else keeps away."""

    def __init__(
        self,
        source: allocators.Allocator,
        problem: problems.Problem,
        *,
        claim: int,
        usable: dict[problems.Option, int],
    ) -> None:
        """``usable`` has the options of the claim; it is changed as devices drop out."""
        self._source = source
        self._problem = problem
        self._usable = usable
        self._levels = [level for level in problem.levels if level.claim == claim]
        self._spec = problem.claims[claim].spec.devices.constraints
        self._numbers = range(len(problem.claims[claim].constraints))
        self._indexes: dict[tuple[problems.Option, int], dict[_Element, int]] = {}
        self.rejections: list[Rejection] = []
        self._reject_failing()
        self.reports = tuple(self._report(number) for number in self._numbers)
        while self._reject_outsiders():
            pass

    def _reject_failing(self) -> None:
        for option in self._options():
            for check in option.checks:
                for position in views.positions(check.failing & self._usable[option]):
                    message = str(check.failure(self._problem.view, position))
                    self._reject(option, position, cause.Failure(message=message))

    def _reject_outsiders(self) -> bool:
        """Drop the devices that cannot be part of any choice that meets a constraint; whether there were any."""
        rejections_before = len(self.rejections)
        for number in self._numbers:
            for option in self._options():
                check = _check(option, number)
                if check is not None:
                    devices = 0
                    for element, holders in self._index(option, check).items():
                        if check.distinct or self._agreed(number, option, element):
                            devices |= holders
                    for position in views.positions(self._usable[option] & ~devices):
                        self._reject(option, position, self._cause(check, position))
        return len(self.rejections) > rejections_before

    def _agreed(self, number: int, option: problems.Option, element: _Element) -> bool:
        """Return True if this option and all other requests can have devices with this element."""
        demands: list[matching.Demand] = []
        for depth, level in enumerate(self._levels):
            options = (option,) if depth == self._depth(option) else level.options
            holders = [self._holding(number, entry, element) for entry in options]
            if not any(units.bit_count() >= entry.count for entry, units in zip(options, holders, strict=True)):
                return False
            if len(options) == 1 and self._is_countable(options[0]):
                demands.append((holders[0], options[0].count))
        return matching.can_serve(demands)

    def _report(self, number: int) -> report.ConstraintReport:
        covered = [option for option in self._options() if _check(option, number) is not None]
        elements: dict[_Element, None] = {}
        distinct = False
        for option in covered:
            check = _check(option, number)
            assert check is not None, "covered options are those with a check"
            distinct = check.distinct
            elements.update(dict.fromkeys(self._index(option, check)))
        values = [self._value(number, covered, element, distinct=distinct) for element in elements]
        device_count = sum(
            min(option.count for option in level.options)
            for level in self._levels
            if all(_check(option, number) is not None for option in level.options)
        )
        if distinct:
            satisfiable = self._has_distinct(number, list(elements))
        else:
            satisfiable = any(value.enough for value in values) or not covered
        spec = self._spec[number]
        return report.ConstraintReport(
            number=number,
            kind="distinctAttribute" if spec.match_attribute is None else "matchAttribute",
            attribute=_attribute(spec),
            requests=tuple(map(str, spec.requests)),
            wanted=device_count,
            values=tuple(values[:MAX_VALUES]),
            more_values=max(len(values) - MAX_VALUES, 0),
            satisfiable=satisfiable,
        )

    def _value(
        self, number: int, covered: list[problems.Option], element: _Element, *, distinct: bool
    ) -> report.ValueReport:
        supplies = tuple(
            report.Supply(
                request=option.way.full_name,
                have=self._holding(number, option, element).bit_count(),
                want=option.count,
            )
            for option in covered
        )
        if distinct:
            enough = any(supply.have for supply in supplies)
        else:
            enough = any(self._agreed(number, option, element) for option in covered)
        return report.ValueReport(value=_shown(element), supplies=supplies, enough=enough)

    def _has_distinct(self, number: int, elements: list[_Element]) -> bool:
        demands: list[matching.Demand] = []
        for level in self._levels:
            if len(level.options) == 1 and _check(level.options[0], number) is not None:
                option = level.options[0]
                units = sum(
                    1 << place for place, element in enumerate(elements) if self._holding(number, option, element)
                )
                demands.append((units, option.count))
        return matching.can_serve(demands)

    def _holding(self, number: int, option: problems.Option, element: _Element) -> int:
        """Return the option's usable devices with an element, or all of them if the constraint does not apply."""
        check = _check(option, number)
        holders = -1 if check is None else self._index(option, check).get(element, 0)
        return self._usable[option] & holders

    def _index(self, option: problems.Option, check: constraint.Check) -> dict[_Element, int]:
        """Return the option's devices by the elements of their value, as they were before any dropped out."""
        key = (option, check.number)
        if key not in self._indexes:
            index = self._indexes[key] = {}
            for position in views.positions(self._usable[option]):
                for element in self._of(check, position):
                    index[element] = index.get(element, 0) | 1 << position
        return self._indexes[key]

    def _is_countable(self, option: problems.Option) -> bool:
        return not option.way.admin_access and not self._usable[option] & self._problem.shared

    def _of(self, check: constraint.Check, position: int) -> tuple[_Element, ...]:
        """Return the elements of a device's value, or none if it cannot be compared."""
        lists = self._source.features.list_type_attributes
        value = attributes.elements(self._attribute(check, position), lists=lists)
        if isinstance(value, attributes.Untyped):
            # Without list attributes such a value is there, and is like no other.
            return () if lists else (("untyped", position),)
        return value or ()

    def _attribute(self, check: constraint.Check, position: int) -> resourceslice.DeviceAttribute | None:
        block, place = self._problem.view.locate(position)
        device, driver = block.devices[place], block.pool_id.driver
        if not check.derived:
            return attributes.lookup(device.attributes, check.attribute, driver=driver)
        try:
            return self._source.screener.derivation(check.derived).derive(device, driver=driver)
        except errors.CelError:
            return None

    def _cause(self, check: constraint.Check, position: int) -> cause.ConstraintUnmet:
        value = reading.attribute_value(self._attribute(check, position)) if self._of(check, position) else None
        return cause.ConstraintUnmet(constraint=check.number, attribute=check.attribute, value=value)

    def _reject(self, option: problems.Option, position: int, why: cause.Cause) -> None:
        self._usable[option] &= ~(1 << position)
        self.rejections.append(Rejection(option, position, why))

    def _options(self) -> Iterable[problems.Option]:
        return (option for level in self._levels for option in level.options)

    def _depth(self, option: problems.Option) -> int:
        return next(depth for depth, level in enumerate(self._levels) if option in level.options)


def _check(option: problems.Option, number: int) -> constraint.Check | None:
    return next((check for check in option.checks if check.number == number), None)


def _attribute(spec: resourceclaim.DeviceConstraint) -> str:
    return str(spec.match_attribute or spec.distinct_attribute or "")


def _shown(element: _Element) -> cause.Value:
    kind, value = element
    return "(no known type)" if kind == "untyped" else value
