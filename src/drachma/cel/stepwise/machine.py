"""The machine itself: the state of one evaluation, and the loop that runs instructions over it.

Errors are values here. Upstream counts cost by watching every step and looking up the values of arguments on a stack by
node id, and after an error some are missing there; :class:`Ledger` does the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from drachma.cel.runtime import faults

LIMIT: Final = 1_000_000
"""Default cost limit of one evaluation."""

CHECK_EVERY: Final = 100
"""Iterations between two calls of the interrupt."""

Interrupt = Callable[[], str | None]
"""Asked now and then while an expression runs; a text is the reason to stop."""

Instruction = Callable[["State"], int]
"""Does one thing and tells the position of the next instruction; below zero is the end."""


class Code(msgspec.Struct, frozen=True):
    """Assembled instructions, and how much room they need."""

    instructions: list[Instruction]
    registers: int
    folds: int
    result: int


class Ledger:
    """The cost so far, and the values of the steps taken, by id."""

    __slots__ = ("_counts", "_ids", "_values", "cost", "limit")

    def __init__(self, limit: int) -> None:
        self.cost = 0
        self.limit = limit
        self._ids: list[int] = []
        self._values: list[Any] = []
        self._counts: dict[int, int] = {}

    def push(self, node_id: int, value: Any) -> None:
        """Note the value of a step; ends the evaluation where the cost is above the limit."""
        self._ids.append(node_id)
        self._values.append(value)
        self._counts[node_id] = self._counts.get(node_id, 0) + 1
        if self.cost > self.limit:
            raise faults.cost_limit()

    def drop(self, node_id: int) -> None:
        """Forget the latest value of a step and everything noted after it."""
        if self._counts.get(node_id):
            self._take(node_id)

    def take(self, node_ids: Sequence[int]) -> list[Any] | None:
        """Return the values of these steps, which are forgotten; None as soon as one is not there."""
        values = []
        for node_id in reversed(node_ids):
            if not self._counts.get(node_id):
                return None
            values.append(self._take(node_id))
        values.reverse()
        return values

    def mark(self) -> tuple[int, int]:
        """Return a point to go back to."""
        return self.cost, len(self._ids)

    def rewind(self, point: tuple[int, int]) -> None:
        """Goes back to a point, as if nothing had been noted since."""
        self.cost, length = point
        while len(self._ids) > length:
            self._counts[self._ids.pop()] -= 1
            self._values.pop()

    def _take(self, node_id: int) -> Any:
        ids, counts = self._ids, self._counts
        while True:
            last = ids.pop()
            value = self._values.pop()
            counts[last] -= 1
            if last == node_id:
                return value


class Frame:
    """A fold under way: its accumulator, its variables and what is left of its range."""

    __slots__ = ("accu", "entries", "first", "initialized", "mutable", "second")

    def __init__(self) -> None:
        self.accu: Any = None
        self.initialized = False
        self.mutable = False
        self.entries: Any = None
        self.first: Any = None
        self.second: Any = None


class State:
    """One evaluation: registers, the ledger, the folds under way and the input."""

    __slots__ = ("frames", "interrupt", "interrupted", "ledger", "registers", "returns", "ticks", "variables")

    def __init__(self, code: Code, variables: Mapping[str, Any], *, limit: int, interrupt: Interrupt | None) -> None:
        self.registers: list[Any] = [None] * code.registers
        self.frames: list[Frame] = [Frame()] * code.folds
        self.ledger = Ledger(limit)
        self.returns: list[int] = []
        self.variables = variables
        self.interrupt = interrupt
        self.interrupted: str | None = None
        self.ticks = 0

    def is_interrupted(self) -> bool:
        """Counts one iteration and asks now and then; once told to stop, every fold stops."""
        if self.interrupted is not None:
            return True
        self.ticks += 1
        if self.interrupt is not None and self.ticks % CHECK_EVERY == 0:
            self.interrupted = self.interrupt()
        return self.interrupted is not None


class Result(msgspec.Struct, frozen=True):
    """Result of an evaluation: a value, which is a Fault or an Abort on failure, and the cost."""

    value: Any
    cost: int
    interrupted: str | None = None


def run(code: Code, variables: Mapping[str, Any], *, limit: int, interrupt: Interrupt | None = None) -> Result:
    """Evaluates assembled code; never raises for what an expression does."""
    state = State(code, variables, limit=limit, interrupt=interrupt)
    instructions = code.instructions
    at = 0
    try:
        while at >= 0:
            at = instructions[at](state)
        value = state.registers[code.result]
    except faults.Abort as abort:
        value = abort
    except RecursionError:
        value = faults.internal("values nested too deeply")
    return Result(value, state.ledger.cost, state.interrupted)
