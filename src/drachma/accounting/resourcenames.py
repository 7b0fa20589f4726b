"""Resource names: those that a node's ledger counts, their units, and those that a device class may back.

Called wherever quantities become the whole numbers of the ledger. Amounts are thousandths for cpu and whole units for
all others, rounded up, as kube-scheduler counts them. Names that it does not count are left out here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drachma.bounds import memory
from drachma.values import names, quantity

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"
DEVICE_CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"

_NATIVE: Final = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})
_MILLI: Final = 10**6
_UNIT: Final = 10**9

Nanos = dict[str, int]
"""Exact amounts by resource name, in billionths."""

Amounts = tuple[tuple[str, int], ...]
"""Amounts of the ledger by resource name, sorted, without zeros; hashable."""


@memory.remember(entries=4096, longest=400)
def is_extended(name: str) -> bool:
    """Return True if the resource is an extended one, of a domain that is not Kubernetes' own."""
    if names.is_native_resource(name) or name.startswith("requests."):
        return False
    return not tuple(names.qualified_name(f"requests.{name}"))


def may_be_devices(name: str) -> bool:
    """Return True if a device class can back the resource: an extended resource, or one named after a class."""
    return name.startswith(DEVICE_CLASS_PREFIX) or is_extended(name)


@memory.remember(entries=4096, longest=400)
def is_counted(name: str) -> bool:
    """Return True if a node's ledger counts the resource."""
    return (
        name in _NATIVE
        or names.is_huge_page_resource(name)
        or "kubernetes.io/" in name
        or name.startswith("attachable-volumes-")
        or is_extended(name)
    )


def counted(name: str, nanos: int) -> int:
    """Return an exact amount as the ledger counts it."""
    return -(-nanos // (_MILLI if name == CPU else _UNIT))


def exact(name: str, amount: int) -> int:
    """Return an amount of the ledger in billionths."""
    return amount * (_MILLI if name == CPU else _UNIT)


def amounts(exact: Nanos) -> Amounts:
    """Return exact amounts as the ledger counts them."""
    rounded = [(name, counted(name, nanos)) for name, nanos in exact.items() if is_counted(name)]
    return tuple(sorted(entry for entry in rounded if entry[1]))


def allocatable(quantities: Mapping[str, quantity.Quantity]) -> dict[str, int]:
    """Return the resources that a node offers, as the ledger counts them."""
    return {name: counted(name, amount.nanos) for name, amount in quantities.items() if is_counted(name)}
