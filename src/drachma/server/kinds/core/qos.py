"""The quality of service class that the status of a pod shows from the beginning."""

from collections.abc import Mapping
from typing import Any

from drachma.accounting import qos
from drachma.api import hooks
from drachma.values import quantity


def of(spec: dict[str, Any]) -> str:
    """The class of a pod by the document of its spec."""
    wholes = [spec["resources"]] if spec.get("resources") else [each.get("resources") or {} for each in _running(spec)]
    return qos.classify((_amounts(each.get("requests") or {}), _amounts(each.get("limits") or {})) for each in wholes)


def _running(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def _amounts(resources: Mapping[str, Any]) -> dict[str, quantity.Quantity]:
    return {name: hooks.decode(quantity.Quantity, resources[name]) for name in qos.COUNTED if name in resources}
