"""The writer of generated code: lines, names, constants, and the cost counter compiled in between.

Used by the other ``codegen`` modules. Costs that are known in advance are added up while writing and appear as one
constant where paths part or meet; a counter in the code exists only where a cost depends on values.

Names in generated code are the writer's own. Text of an expression gets there as the literal of a constant only.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final

from drachma.cel.runtime import faults, kinds, values

MAX_LITERAL: Final = 4096


class Unsuitable(Exception):  # noqa: N818
    """The plan has something that is not worth generating code for; the stepwise machine will run it."""


class Surprise(Exception):  # noqa: N818
    """Raised by generated code where it has no fast answer; the program turns to the stepwise machine."""


class Costly(Surprise):
    """The limit of an evaluation is exceeded, which no other way to evaluate it would change."""


class Atom:
    """A value in generated code: how to write it, the class its value surely has, and the value if it is known.

    A quantity may also be had as a number of ``nanos``, which saves a call. ``domain`` marks all attributes or
    capacities of a domain: what is under a name there can be looked up without it.
    """

    __slots__ = ("code", "domain", "known", "nanos", "sure")

    def __init__(self, code: str, sure: type | None = None, known: Any = values.MISSING, nanos: str = "") -> None:
        self.code = code
        self.sure = sure
        self.known = known
        self.nanos = nanos or f"{code}.nanos"
        self.domain: tuple[str, str] | None = None

    @property
    def is_known(self) -> bool:
        """True if the value is a constant."""
        return self.known is not values.MISSING

    @property
    def literal(self) -> str:
        """Value spelled out where that is faster than a name; never followed by a dot or an ``is``."""
        kind = self.known.__class__
        if kind is str and len(self.known) <= MAX_LITERAL:
            return repr(self.known)
        return f"({self.known})" if kind is int or kind is bool else self.code


class Writer:
    """Collects the body of one function."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._indent = 1
        self._names = 0
        self._counted = False
        self.pending = 0
        self.has_loops = False
        self.namespace: dict[str, Any] = {
            "Costly": Costly,
            "Surprise": Surprise, "Optional": values.Optional, "NONE": values.NONE, "MISSING": values.MISSING,
            "LISTS": kinds.LISTS, "MAPS": kinds.MAPS, "Fault": faults.Fault, "UInt": values.UInt,
        }  # fmt: skip

    def source(self, name: str) -> str:
        """Return the function as text: it takes the input and the interrupt, and returns a value and its cost."""
        start = " n = 0\n" if self.has_loops else ""
        return f"def {name}(V, I):\n{start}" + "\n".join(self._lines)

    def line(self, text: str) -> None:
        """Write one line at the current indentation."""
        self._lines.append(" " * self._indent + text)

    @contextlib.contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Return an indented block; its costs are its own and are settled at its end."""
        self.line(head)
        self._indent += 1
        before = self.pending
        self.pending = 0
        length = len(self._lines)
        yield
        self.settle()
        if len(self._lines) == length:
            self.line("pass")
        self.pending = before
        self._indent -= 1

    @contextlib.contextmanager
    def path(self, head: str) -> Iterator[None]:
        """Return an indented block that ends the function; what follows is another path with the costs of before."""
        self.line(head)
        self._indent += 1
        before = self.pending
        yield
        self.pending = before
        self._indent -= 1

    def name(self) -> str:
        """Return a fresh local name."""
        self._names += 1
        return f"t{self._names}"

    def let(self, code: str, sure: type | None = None) -> Atom:
        """Return a local name for the value of an expression."""
        name = self.name()
        self.line(f"{name} = {code}")
        return Atom(name, sure)

    def use(self, value: Any) -> str:
        """Return a global name for an object that generated code needs."""
        for name, existing in self.namespace.items():
            if existing is value:
                return name
        name = f"G{len(self.namespace)}"
        self.namespace[name] = value
        return name

    def constant(self, value: Any) -> Atom:
        """Return a constant of the expression."""
        name = f"K{len(self.namespace)}"
        self.namespace[name] = value
        return Atom(name, value.__class__, value)

    def count(self, cost: int) -> None:
        """Add a cost known in advance."""
        self.pending += cost

    def count_value(self, code: str) -> None:
        """Add a cost that depends on values, given as an expression."""
        total = f"{code} + {self.pending}" if self.pending else code
        self.line(f"c += {total}" if self._counted else f"c = {total}")
        self._counted = True
        self.pending = 0

    def need_counter(self) -> None:
        """Makes sure that the counter exists; called before paths part that will meet again."""
        if not self._counted:
            self.line(f"c = {self.pending}")
            self._counted = True
            self.pending = 0

    def settle(self) -> None:
        """Writes out the costs added up so far."""
        if self.pending:
            self.line(f"c += {self.pending}")
            self.pending = 0

    def give(self, code: str) -> None:
        """Ends the function with a value and the cost of the path that led here."""
        if not self._counted:
            self.line(f"return {code}, {self.pending}")
        elif self.pending:
            self.line(f"return {code}, c + {self.pending}")
        else:
            self.line(f"return {code}, c")

    def give_extra(self, code: str, extra: str) -> None:
        """Like give(), with a cost that depends on values."""
        if self._counted:
            self.line(f"return {code}, c + {self.pending} + {extra}")
        else:
            self.line(f"return {code}, {self.pending} + {extra}")

    @property
    def counted(self) -> bool:
        """True if the counter exists at this point."""
        return self._counted

    def restore(self, *, has_counter: bool) -> None:
        """Goes back to whether the counter existed, after a path that ended."""
        self._counted = has_counter
