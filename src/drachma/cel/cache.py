"""A cache of compiled expressions, bounded; ``device_programs`` is the one that all share who compile the same way.

Validation compiles an expression when it is written, the allocator when it first meets it as a stored one; most
clusters have few different ones. Refusals are remembered too: a bad selector in a popular class is looked at once.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from typing import Final

from drachma.cel import environment, program

DEFAULT_SIZE: Final = 1024


class Cache:
    """Compiled programs of one environment; the least recently used go first. Safe to share between threads."""

    def __init__(self, env: environment.Environment, *, size: int = DEFAULT_SIZE) -> None:
        if size < 1:
            raise ValueError(f"cache size {size}: must be at least 1")
        self._env = env
        self._size = size
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[str, bool], program.Program | program.CompilationError] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def selector(self, expression: str) -> program.Program:
        """The program of a selector; raises CompilationError, also when it did so before."""
        return self._get(expression, derived=False)

    def derivation(self, expression: str) -> program.Program:
        """The program of a derived attribute; raises CompilationError, also when it did so before."""
        return self._get(expression, derived=True)

    def _get(self, expression: str, *, derived: bool) -> program.Program:
        key = (expression, derived)
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
        if entry is None:
            entry = self._compile(expression, derived=derived)
            with self._lock:
                # Two threads may have compiled the same; the first one wins, so that all share its generated code.
                entry = self._entries.setdefault(key, entry)
                self._entries.move_to_end(key)
                while len(self._entries) > self._size:
                    self._entries.popitem(last=False)
        if isinstance(entry, program.CompilationError):
            raise program.CompilationError(str(entry), internal=entry.internal)
        return entry

    def _compile(self, expression: str, *, derived: bool) -> program.Program | program.CompilationError:
        # Outside the lock: compiling takes a while, and nobody else should wait for it.
        try:
            return program.compile_expression(expression, self._env, derived=derived)
        except program.CompilationError as error:
            return error


@functools.cache
def device_programs(
    *, consumable_capacity: bool, list_type_attributes: bool, expressions: environment.Expressions
) -> Cache:
    """The programs of one device environment, for everybody in the process; see ``environment.device_environment``."""
    return Cache(
        environment.device_environment(
            consumable_capacity=consumable_capacity,
            list_type_attributes=list_type_attributes,
            expressions=expressions,
        )
    )
