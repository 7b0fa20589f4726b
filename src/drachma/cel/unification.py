"""Which types fit which: assignability with type variables, as the checker needs it to choose overloads.

A ``Substitution`` holds what is known of the type variables of one expression. Assigning is symmetric where dyn is
involved and binds variables on either side; a failed attempt leaves nothing bound. Null may be assigned to objects,
opaque types, durations, timestamps and wrappers, which upstream keeps for compatibility.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from drachma.cel import types
from drachma.cel.types import Kind, Type

_SCALARS = frozenset(
    {
        Kind.BOOL,
        Kind.BYTES,
        Kind.DOUBLE,
        Kind.DURATION,
        Kind.INT,
        Kind.STRING,
        Kind.STRUCT,
        Kind.TIMESTAMP,
        Kind.UINT,
    }
)
_NULLABLE = frozenset({Kind.DURATION, Kind.NULL, Kind.OPAQUE, Kind.STRUCT, Kind.TIMESTAMP})
_UNCHECKED = frozenset({Kind.ANY, Kind.DYN, Kind.ERROR})
_DYNAMIC = frozenset({Kind.ANY, Kind.DYN})
_NESTED = frozenset({Kind.LIST, Kind.MAP, Kind.OPAQUE})


def most_general(first: Type, second: Type) -> Type:
    """Return the less specific of two types that fit each other."""
    return first if _less_specific(first, second) else second


def _less_specific(first: Type, second: Type) -> bool:
    """Return True if the first is equal to the second or has dyn or a variable where the second has more."""
    if first.kind in _DYNAMIC or first.kind is Kind.TYPE_PARAM:
        return True
    if second.kind in _DYNAMIC or second.kind is Kind.TYPE_PARAM or first.kind is not second.kind:
        return False
    if first.kind in _NESTED:
        if first.name != second.name or len(first.params) != len(second.params):
            return False
        for left, right in zip(first.params, second.params, strict=True):  # noqa: SIM110 - one frame a level
            if not _less_specific(left, right):
                return False
        return True
    return first.kind is Kind.TYPE or first.name == second.name


def instantiate(type_: Type, variables: Mapping[str, Type]) -> Type:
    """Return the type with its parameters replaced by variables."""
    if not type_.open:
        return type_
    if type_.kind is Kind.TYPE_PARAM:
        return variables.get(type_.name, type_)
    return types.with_params(type_, tuple([instantiate(param, variables) for param in type_.params]))


class Substitution:
    """Bindings of the type variables of one expression."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, Type] = {}

    def assign(self, first: Type, second: Type) -> bool:
        """Return True if the types fit each other; if they do, variables are bound so that they keep fitting."""
        if first is second:
            return True
        if not first.open and not second.open:
            return self._assign(first, second)
        return self.assign_all((first,), (second,))

    def assign_all(self, first: Sequence[Type], second: Sequence[Type]) -> bool:
        """Like assign(), for two sequences of one length: all of them fit, or nothing is bound."""
        before = dict(self._known)
        for left, right in zip(first, second, strict=True):
            if not self._assign(left, right):
                self._known = before
                return False
        return True

    def apply(self, type_: Type) -> Type:
        """Return the type with bound variables replaced."""
        return self._apply(type_, None, {})

    def close(self, type_: Type, memory: dict[Type, Type] | None = None) -> Type:
        """Return the type with bound variables replaced, and free ones by dyn.

        ``memory`` saves work where many types are closed with nothing bound in between.
        """
        return self._apply(type_, types.DYN, {} if memory is None else memory)

    def _apply(self, type_: Type, free: Type | None, memory: dict[Type, Type]) -> Type:
        if not type_.open:
            return type_
        result = memory.get(type_)
        if result is None:
            if type_.kind is Kind.TYPE_PARAM:
                binding = self._known.get(type_.name)
                result = (free or type_) if binding is None else self._apply(binding, free, memory)
            else:
                params = []
                for param in type_.params:
                    params.append(self._apply(param, free, memory))  # noqa: PERF401 - one frame a level
                result = types.with_params(type_, tuple(params))
            memory[type_] = result
        return result

    def _assign(self, first: Type, second: Type) -> bool:
        kind1, kind2 = first.kind, second.kind
        if kind2 is Kind.TYPE_PARAM:
            fits, was_bound = self._bind(second, first)
            if fits or was_bound:
                return fits
        if kind1 is Kind.TYPE_PARAM:
            return self._bind(first, second)[0]
        if kind1 in _UNCHECKED or kind2 in _UNCHECKED:
            return True
        if kind1 is Kind.NULL:
            return kind2 in _NULLABLE or second.nullable
        if kind2 is Kind.NULL:
            return kind1 in _NULLABLE or first.nullable
        if kind1 is not kind2:
            return False
        if kind1 in _SCALARS:
            return first.name == second.name
        if kind1 is Kind.TYPE:
            return True
        if first.name != second.name or len(first.params) != len(second.params):
            return False
        for left, right in zip(first.params, second.params, strict=True):  # noqa: SIM110 - one frame a level
            if not self._assign(left, right):
                return False
        return True

    def _bind(self, variable: Type, type_: Type) -> tuple[bool, bool]:
        """Return if the variable can stand for the type, and if it was bound before."""
        if type_ == variable:
            return True, True
        binding = self._known.get(variable.name)
        if binding is None:
            if self._occurs(variable, type_):
                return False, False
            self._known[variable.name] = type_
            return True, False
        if type_ == binding:
            return True, True
        if not self._assign(type_, binding):
            return False, True
        general = most_general(type_, binding)
        if not self._occurs(variable, general):
            self._known[variable.name] = general
        return True, True

    def _occurs(self, variable: Type, type_: Type) -> bool:
        if variable == type_:
            return True
        if type_.kind is Kind.TYPE_PARAM:
            binding = self._known.get(type_.name)
            return binding is not None and self._occurs(variable, binding)
        for param in type_.params:  # noqa: SIM110 - one frame a level
            if self._occurs(variable, param):
                return True
        return False
