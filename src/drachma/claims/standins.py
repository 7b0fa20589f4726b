"""Stand-ins: pools of v1 that stand for what a driver publishes in the first alpha (ADR 13).

There is one for each driver and node, known by its name. A driver may publish a device in v1 as well, under the same
name and for the same node: that is one device, and whoever holds it in one pool holds it in the other. Which pools
have been published does not matter for that: an allocation says by itself where its devices may be.
"""

from __future__ import annotations

from typing import Final

from drachma.api import resourceclaim
from drachma.claims import identity

SUFFIX: Final = "v1alpha2"
"""What names of stand-ins end in, so that they are nobody else's."""

NO_NODE: Final = ""
"""Where devices are that are not for one node alone."""

_FIELD: Final = "metadata.name"


def pool_name(node: str) -> str:
    """The name of the stand-in for what a driver publishes on a node."""
    return f"{node}/{SUFFIX}" if node else SUFFIX


def pool_id(driver: str, node: str) -> identity.PoolID:
    """The stand-in for what a driver publishes on a node."""
    return identity.PoolID(driver, pool_name(node))


def is_stand_in(pool: str) -> bool:
    """Whether a pool of this name is a stand-in."""
    return pool == SUFFIX or pool.endswith(f"/{SUFFIX}")


def node_of_pool(pool: str) -> str:
    """The node of a stand-in; any other pool has its own name."""
    return pool.removesuffix(SUFFIX).removesuffix("/") if is_stand_in(pool) else pool


def node_of(allocation: resourceclaim.AllocationResult) -> str:
    """The one node that an allocation is for; empty where it is not for one."""
    selector = allocation.node_selector
    terms = selector.node_selector_terms if selector is not None else ()
    if len(terms) != 1:
        return NO_NODE
    for field in terms[0].match_fields:
        if (field.key, field.operator) == (_FIELD, "In") and len(field.values) == 1:
            return str(field.values[0])
    return NO_NODE


def places_of(allocation: resourceclaim.AllocationResult | None) -> tuple[str, ...]:
    """Where the devices of an allocation may be: on its node, or (where others bind it to that) on none."""
    if allocation is None:
        return ()
    node = node_of(allocation)
    if node == NO_NODE or len(identity.pools_of(allocation)) == 1:
        return (node,)
    return (node, NO_NODE)
