"""Stand-ins: pools of v1 that represent what a driver publishes in the first alpha (ADR 13).

There is one for each driver and node, recognised by its name. A driver may publish a device in v1 as well, under the
same name and for the same node. That is one device: a claim that has it in one pool has it in the other. Which pools
are published does not matter for that, since an allocation itself says where its devices may be.
"""

from __future__ import annotations

from typing import Final

from drachma.api import resourceclaim
from drachma.claims import identity

SUFFIX: Final = "v1alpha2"
"""Suffix of the names of stand-ins, which no other pool has."""

NO_NODE: Final = ""
"""Place of devices that are not for one node alone."""

_FIELD: Final = "metadata.name"


def pool_name(node: str) -> str:
    """Return the name of the stand-in for a driver's devices on a node."""
    return f"{node}/{SUFFIX}" if node else SUFFIX


def pool_id(driver: str, node: str) -> identity.PoolID:
    """Return the stand-in for a driver's devices on a node."""
    return identity.PoolID(driver, pool_name(node))


def is_stand_in(pool: str) -> bool:
    """Return True if a pool of this name is a stand-in."""
    return pool == SUFFIX or pool.endswith(f"/{SUFFIX}")


def node_of_pool(pool: str) -> str:
    """Return the node of a stand-in, or the name of any other pool."""
    return pool.removesuffix(SUFFIX).removesuffix("/") if is_stand_in(pool) else pool


def node_of(allocation: resourceclaim.AllocationResult) -> str:
    """Return the only node of an allocation; empty if it is not for one node."""
    selector = allocation.node_selector
    terms = selector.node_selector_terms if selector is not None else ()
    if len(terms) != 1:
        return NO_NODE
    for field in terms[0].match_fields:
        if (field.key, field.operator) == (_FIELD, "In") and len(field.values) == 1:
            return str(field.values[0])
    return NO_NODE


def places_of(allocation: resourceclaim.AllocationResult | None) -> tuple[str, ...]:
    """Return the places of an allocation's devices: its node, or none."""
    if allocation is None:
        return ()
    node = node_of(allocation)
    if node == NO_NODE or _is_of_one_pool(allocation):
        return (node,)
    return (node, NO_NODE)


def _is_of_one_pool(allocation: resourceclaim.AllocationResult) -> bool:
    results = allocation.devices.results
    if not results:
        return False
    driver, pool = results[0].driver, results[0].pool
    return all(each.pool == pool and each.driver == driver for each in results)
