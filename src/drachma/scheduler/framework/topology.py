"""Topologies: by a label of nodes, those with the same value are one domain, such as a zone, a rack, or a host.

Plugins that look at other pods count them node by node (:mod:`drachma.scheduler.framework.residents`), and then by
domain. Most nodes are a domain of their own by ``kubernetes.io/hostname``, whose value is their name: those are kept as
one set, so that asking about hosts costs no more than asking about zones.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final, NamedTuple

from drachma.scheduler.snapshot import nodeinfo
from drachma.scheduler.snapshot import nodes as snapshotnodes

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"

Counts = Mapping[int, int]
"""Sets of nodes by a number that each of them has."""


class Topology(NamedTuple):
    """The domains of some nodes by one label."""

    alone: int
    """The nodes that are a domain of their own."""
    shared: tuple[int, ...]
    """All other domains, as sets of nodes."""

    @property
    def members(self) -> int:
        """The nodes that have the label."""
        return functools.reduce(int.__or__, self.shared, self.alone)

    def around(self, nodes: int) -> int:
        """All nodes in the domains of some nodes."""
        around = nodes & self.alone
        for domain in self.shared:
            if domain & nodes:
                around |= domain
        return around

    def number(self, among: int) -> int:
        """How many domains some nodes are in."""
        return (self.alone & among).bit_count() + sum(1 for domain in self.shared if domain & among)

    def totals(self, counts: Counts, *, among: int) -> dict[int, int]:
        """The nodes by the total of their domain, where only nodes of ``among`` are counted.

        ``counts`` has a number for each of those.
        """
        totals: dict[int, int] = {0: self.alone & ~among}
        for count, nodes in counts.items():
            same = nodes & self.alone & among
            if same:
                totals[count] = totals.get(count, 0) | same
        for domain in self.shared:
            counted = domain & among
            total = sum(count * (nodes & counted).bit_count() for count, nodes in counts.items()) if counted else 0
            totals[total] = totals.get(total, 0) | domain
        return {total: nodes for total, nodes in totals.items() if nodes}


def of(nodes: snapshotnodes.Nodes, key: str) -> Topology:
    """The domains of all nodes by a label; nodes without it are in none."""
    everyone = nodes.everyone
    classes = nodes.properties.classes(("domain", key), functools.partial(_value, key), among=everyone)
    alone = classes.get(_OWN_NAME, 0) & everyone
    shared: list[int] = []
    for value, members in classes.items():
        same = members & everyone
        if not same or value is None or value == _OWN_NAME:
            continue
        namesake = nodes.find(value)
        if namesake is not None and namesake.bit & alone:
            # The label of one node is the name of another.
            same |= namesake.bit
            alone &= ~namesake.bit
        shared.append(same)
    return Topology(alone, tuple(shared))


_OWN_NAME: Final = "\0"
"""What stands for a value that is the node's name; no label can have it."""


def _value(key: str, info: nodeinfo.NodeInfo) -> str | None:
    value = info.node.metadata.labels.get(key)
    return _OWN_NAME if value == info.name else value
