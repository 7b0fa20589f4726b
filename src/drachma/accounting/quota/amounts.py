"""Amounts of resources by name, with upstream's arithmetic: they keep the spelling of what was added up."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, TypeAlias

from drachma.values import quantity

Amounts: TypeAlias = Mapping[str, quantity.Quantity]

ZERO: Final = quantity.Quantity.from_int(0)
ONE: Final = quantity.Quantity.from_int(1)


def add(left: Amounts, right: Amounts) -> dict[str, quantity.Quantity]:
    """The sum for every name of either."""
    total = dict(left)
    for name, amount in right.items():
        total[name] = total[name] + amount if name in total else amount
    return total


def excess(new: Amounts, old: Amounts) -> dict[str, quantity.Quantity]:
    """By how much there is more of each name than before; what became less is left out."""
    more = {name: amount - old[name] if name in old else amount for name, amount in new.items()}
    return {name: amount for name, amount in more.items() if amount > ZERO}


def masked(amounts: Amounts, names: Collection[str]) -> dict[str, quantity.Quantity]:
    """The amounts of some names."""
    return {name: amount for name, amount in amounts.items() if name in names}


def text(amounts: Amounts) -> str:
    """How refusals write them: ``limits.cpu=2,pods=1``."""
    return ",".join(f"{name}={amounts[name]}" for name in sorted(amounts))


def names_text(names: Iterable[str]) -> str:
    """How refusals write names."""
    return ",".join(sorted(names))
