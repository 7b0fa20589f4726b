"""A cache of compiled expressions, bounded in bytes; ``device_programs`` is shared by all that compile the same way.

Validation compiles an expression when it is written, the allocator when it first meets it as a stored one; most
clusters have few different ones. Refusals are remembered too: a bad selector in a popular class is looked at once.
"""

from __future__ import annotations

import functools
import threading
from typing import Final, NamedTuple

from drachma.bounds import memory
from drachma.cel import environment, program

PROGRAM_BYTES: Final = 16 * 1024
"""Bytes of a small program."""

CHARACTER_BYTES: Final = 1000
"""Bytes of a program for every character of its expression; chains of macros take as much."""


class _Refusal(NamedTuple):
    """Text of a refusal. An error would keep the frames that raised it, with all that a request holds."""

    message: str
    is_internal: bool


_Outcome = program.Program | _Refusal


class Cache:
    """Compiled programs of one environment; the least recently used go first. Safe to share between threads."""

    def __init__(self, env: environment.Environment, *, limits: memory.Memory | None = None) -> None:
        """``limits`` is the memory budget of the programs, or None for the budget of the process."""
        self._env = env
        self._lock = threading.Lock()
        self._entries: Final = memory.Cache[tuple[str, bool], _Outcome]("expressions", limits)

    def __len__(self) -> int:
        return len(self._entries)

    def selector(self, expression: str) -> program.Program:
        """Return the program of a selector. Raises CompilationError, also when it did so before."""
        return self._get(expression, derived=False)

    def derivation(self, expression: str) -> program.Program:
        """Return the program of a derived attribute. Raises CompilationError, also when it did so before."""
        return self._get(expression, derived=True)

    def _get(self, expression: str, *, derived: bool) -> program.Program:
        key = (expression, derived)
        entry = self._entries.get(key)
        if entry is None:
            entry = self._compile(expression, derived=derived)
            with self._lock:
                # Two threads may have compiled the same; the first one wins, so that all share its generated code.
                first = self._entries.get(key)
                if first is None:
                    self._entries.put(key, entry, size=_size(expression, entry))
                else:
                    entry = first
        if isinstance(entry, _Refusal):
            raise program.CompilationError(entry.message, internal=entry.is_internal)
        return entry

    def _compile(self, expression: str, *, derived: bool) -> _Outcome:
        # Outside the lock: compiling takes a while, and other callers should not wait for it.
        try:
            return program.compile_expression(expression, self._env, derived=derived)
        except program.CompilationError as error:
            return _Refusal(str(error), error.internal)


def _size(expression: str, entry: _Outcome) -> int:
    if isinstance(entry, _Refusal):
        return 2 * (len(expression) + len(entry.message))
    return PROGRAM_BYTES + CHARACTER_BYTES * len(expression)


@functools.cache
def device_programs(
    *, consumable_capacity: bool, list_type_attributes: bool, expressions: environment.Expressions
) -> Cache:
    """Return the process-wide programs of one device environment; see ``environment.device_environment``."""
    return Cache(
        environment.device_environment(
            consumable_capacity=consumable_capacity,
            list_type_attributes=list_type_attributes,
            expressions=expressions,
        )
    )
