"""Quality of service class of a pod, which decides on evictions when a node runs short.

Claims do not count: the class follows from the pod's spec.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from drachma.values import quantity

GUARANTEED: Final = "Guaranteed"
BURSTABLE: Final = "Burstable"
BEST_EFFORT: Final = "BestEffort"

COUNTED: Final = ("cpu", "memory")
"""Resources that decide."""

Amounts: TypeAlias = Mapping[str, quantity.Quantity]


def classify(stated: Iterable[tuple[Amounts, Amounts]]) -> str:
    """Return the class by requests and limits: of the pod as a whole if it states any, else of its containers."""
    pairs = [(_counted(requests), _counted(limits)) for requests, limits in stated]
    if not any(requests or limits for requests, limits in pairs):
        return BEST_EFFORT
    is_guaranteed = all(set(limits) == set(COUNTED) and requests == limits for requests, limits in pairs)
    return GUARANTEED if is_guaranteed else BURSTABLE


def _counted(amounts: Amounts) -> dict[str, quantity.Quantity]:
    return {name: amounts[name] for name in COUNTED if name in amounts and amounts[name].sign}
