"""Selectors: the allocator's view of :mod:`drachma.cel`, with everything compiled once.

The default :class:`drachma.allocator.expressions.Compiler`.
"""

from __future__ import annotations

from drachma.allocator import budget, projection
from drachma.allocator import features as gates
from drachma.api import resourceslice
from drachma.cel import cache, environment, program
from drachma.cel import device as celdevice


class CompiledExpression:
    """An expression over a device: selector or derived attribute, as it was compiled."""

    __slots__ = ("_program",)

    def __init__(self, compiled: program.Program) -> None:
        self._program = compiled

    @property
    def reads(self) -> frozenset[projection.Path] | None:
        """Parts of a device that the result depends on; None for the whole device."""
        return self._program.reads

    def matches(self, device: resourceslice.Device, *, driver: str, interrupt: budget.Interrupt | None = None) -> bool:
        """Return True if the device is selected. Raises CelError."""
        return self._program.matches(celdevice.Device.of(device, driver), interrupt=interrupt)

    def derive(
        self, device: resourceslice.Device, *, driver: str, interrupt: budget.Interrupt | None = None
    ) -> resourceslice.DeviceAttribute:
        """Return the computed attribute. Raises CelError."""
        return self._program.derive(celdevice.Device.of(device, driver), interrupt=interrupt)


class SelectorCompiler:
    """Compiles in the environment that the features give, expressions as the API server stored them.

    All compilers for the same features share one bounded cache of programs.
    """

    def __init__(self, features: gates.Features) -> None:
        self._programs = cache.device_programs(
            consumable_capacity=features.consumable_capacity,
            list_type_attributes=features.list_type_attributes,
            expressions=environment.Expressions.STORED,
        )

    def selector(self, expression: str) -> CompiledExpression:
        """Compile a selector. Raises CelError."""
        return CompiledExpression(self._programs.selector(expression))

    def derivation(self, expression: str) -> CompiledExpression:
        """Compile the expression of a derived attribute. Raises CelError."""
        return CompiledExpression(self._programs.derivation(expression))
