"""The quality of service class of a pod: how early it is taken from when a node runs short.

What claims add does not count: the class is what the pod's spec says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from drachma.values import quantity

GUARANTEED: Final = "Guaranteed"
BURSTABLE: Final = "Burstable"
BEST_EFFORT: Final = "BestEffort"

COUNTED: Final = ("cpu", "memory")
"""The resources that decide."""

Amounts: TypeAlias = Mapping[str, quantity.Quantity]


def classify(stated: Iterable[tuple[Amounts, Amounts]]) -> str:
    """The class by requests and limits: of the pod as a whole where it states any, else of all its containers."""
    pairs = [(_counted(requests), _counted(limits)) for requests, limits in stated]
    if not any(requests or limits for requests, limits in pairs):
        return BEST_EFFORT
    is_guaranteed = all(set(limits) == set(COUNTED) and requests == limits for requests, limits in pairs)
    return GUARANTEED if is_guaranteed else BURSTABLE


def _counted(amounts: Amounts) -> dict[str, quantity.Quantity]:
    return {name: amounts[name] for name in COUNTED if name in amounts and amounts[name].sign}
