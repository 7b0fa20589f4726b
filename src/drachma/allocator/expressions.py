"""Expressions: the allocator's interface to CEL, and verdicts on many devices at the cost of few evaluations.

A compiled selector knows what it reads of a device. Devices that agree on that get the same verdict, so each
combination of values is evaluated once, however many devices and pools have it; and what came out for a block is kept
with the block. A verdict can also be an error: it stays one of the device, and it is up to the search whether it is
ever met, because upstream evaluates a selector only when its search comes to the device.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Protocol

from drachma import errors
from drachma.allocator import budget, pool, projection
from drachma.api import resourceslice
from drachma.values import semver

_VERDICTS_REMEMBERED: Final = 65_536


class Selector(Protocol):
    """A compiled selector."""

    @property
    def reads(self) -> frozenset[projection.Path] | None:
        """Parts of a device that the verdict depends on; None for the whole device."""

    def matches(self, device: resourceslice.Device, *, driver: str, interrupt: budget.Interrupt | None = None) -> bool:
        """Return True if the device is selected. Raises CelError, and whatever ``interrupt`` raises."""


class Derivation(Protocol):
    """A compiled expression that computes an attribute."""

    def derive(
        self, device: resourceslice.Device, *, driver: str, interrupt: budget.Interrupt | None = None
    ) -> resourceslice.DeviceAttribute:
        """Return the attribute. Raises CelError, and whatever ``interrupt`` raises."""


class Compiler(Protocol):
    """Compiles expressions for one set of features; expected to remember what it compiled."""

    def selector(self, expression: str) -> Selector:
        """Compile a selector. Raises CelError."""

    def derivation(self, expression: str) -> Derivation:
        """Compile the expression of a derived attribute. Raises CelError."""


class Judge:
    """A selector with all verdicts it ever gave. Two judges are equal only if they are the same."""

    __slots__ = ("_projections", "_verdicts", "expression", "problem", "selector")

    def __init__(self, expression: str, compiler: Compiler) -> None:
        self.expression = expression
        self.selector: Selector | None = None
        self.problem = ""
        """Why the expression does not compile; empty if it does."""
        self._verdicts: dict[Hashable, bool | None] = {}
        self._projections: dict[str, projection.Projection] = {}
        try:
            self.selector = compiler.selector(expression)
        except errors.CelError as error:
            self.problem = str(error)

    def judge_block(self, block: pool.Block, budget: budget.Budget) -> tuple[int, int]:
        """Return the selected devices of a block, and those on which the selector fails."""
        verdicts: tuple[int, int] | None = block.cache.get(self)
        if verdicts is None:
            verdicts = self._judge(block, budget)
            block.remember(self, verdicts)
        return verdicts

    def verdict(self, block: pool.Block, place: int, *, interrupt: budget.Interrupt | None = None) -> bool:
        """Return the verdict on one device. Raises CelError."""
        if self.selector is None:
            raise errors.CelError(self.problem)
        return self.selector.matches(block.devices[place], driver=block.pool_id.driver, interrupt=interrupt)

    def _judge(self, block: pool.Block, budget: budget.Budget) -> tuple[int, int]:
        if self.selector is None:
            return 0, block.everything
        odd = _odd(block)
        project = self._projection(block.pool_id.driver)
        if project is None and not odd and block.devices:
            verdict = self._remembered(block.pool_id.driver, block, place=0, budget=budget)
            return (block.everything if verdict else 0), (block.everything if verdict is None else 0)
        selected = failed = 0
        bit = 1
        verdicts = self._verdicts
        for place, device in enumerate(block.devices):
            if odd & bit:
                # The error is about this device's attributes, whatever the expression reads.
                verdict = self._evaluate(block, place, budget)
            else:
                key = block.pool_id.driver if project is None else project(device)
                verdict = verdicts[key] if key in verdicts else self._remembered(key, block, place=place, budget=budget)
            if verdict:
                selected |= bit
            elif verdict is None:
                failed |= bit
            bit <<= 1
        return selected, failed

    def _remembered(self, key: Hashable, block: pool.Block, *, place: int, budget: budget.Budget) -> bool | None:
        if key not in self._verdicts:
            if len(self._verdicts) >= _VERDICTS_REMEMBERED:
                self._verdicts.clear()
            self._verdicts[key] = self._evaluate(block, place, budget)
        return self._verdicts[key]

    def _evaluate(self, block: pool.Block, place: int, budget: budget.Budget) -> bool | None:
        budget.step()
        try:
            return self.verdict(block, place, interrupt=budget.interrupt)
        except errors.CelError:
            return None

    def _projection(self, driver: str) -> projection.Projection | None:
        """Return the projection for devices of a driver, or None if the selector reads only the driver's name."""
        reads = None if self.selector is None else self.selector.reads
        if reads is not None and all(path == ("driver",) for path in reads):
            return None
        if driver not in self._projections:
            self._projections[driver] = projection.of(reads, driver=driver)
        return self._projections[driver]


def _odd(block: pool.Block) -> int:
    """Return the devices with an attribute that CEL cannot read. Every expression fails on them."""
    devices: int | None = block.cache.get(_odd)
    if devices is None:
        devices = 0
        for place, device in enumerate(block.devices):
            for attribute in device.attributes.values():
                if (
                    attribute.string_value is None
                    and attribute.int_value is None
                    and attribute.bool_value is None
                    and not _is_readable(attribute)
                ):
                    devices |= 1 << place
        block.remember(_odd, devices)
    return devices


def _is_readable(attribute: resourceslice.DeviceAttribute) -> bool:
    if attribute.int_values or attribute.bool_values or attribute.string_values:
        return True
    versions = attribute.version_values
    if attribute.version_value is not None:
        versions = (*versions, attribute.version_value)
    try:
        for version in versions:
            semver.SemVer.parse(version)
    except errors.InvalidValueError:
        return False
    return bool(versions)
