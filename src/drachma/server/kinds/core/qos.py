"""The quality of service class of a pod, which its status shows from the beginning."""

from collections.abc import Mapping
from typing import Any, Final

from drachma.api import hooks
from drachma.values import quantity

_COUNTED: Final = ("cpu", "memory")


def of(spec: dict[str, Any]) -> str:
    """Guaranteed where every container is limited to what it requests, BestEffort where none asks for anything."""
    wholes = [spec["resources"]] if spec.get("resources") else [each.get("resources") or {} for each in _running(spec)]
    requests = [_amounts(each.get("requests") or {}) for each in wholes]
    limits = [_amounts(each.get("limits") or {}) for each in wholes]
    if not any(requests) and not any(limits):
        return "BestEffort"
    is_guaranteed = all(
        set(limit) == set(_COUNTED) and request == limit for request, limit in zip(requests, limits, strict=True)
    )
    return "Guaranteed" if is_guaranteed else "Burstable"


def _running(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def _amounts(resources: Mapping[str, Any]) -> dict[str, quantity.Quantity]:
    amounts = {name: hooks.decode(quantity.Quantity, resources[name]) for name in _COUNTED if name in resources}
    return {name: amount for name, amount in amounts.items() if amount != _ZERO}


_ZERO: Final = quantity.Quantity.parse("0")
