"""Topologies: domains of nodes with the same value of a label, such as a zone, a rack or a host.

Plugins that depend on other pods count them by node (:func:`pod_counts`) and then by domain. By
``kubernetes.io/hostname`` most nodes are a domain of their own, since the value is their name. These nodes are kept as
one set, so that a question about hosts costs no more than one about zones.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final, NamedTuple

from drachma.scheduler.snapshot import nodeinfo
from drachma.scheduler.snapshot import nodes as snapshotnodes
from drachma.values import labels

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"

Counts = Mapping[int, int]
"""Sets of nodes by a number."""


class Topology(NamedTuple):
    """Domains of nodes by one label."""

    alone: int
    """Nodes that are a domain of their own."""
    grouped: tuple[int, ...]
    """All other domains, each as a set of nodes."""

    @property
    def members(self) -> int:
        """Nodes with the label."""
        return functools.reduce(int.__or__, self.grouped, self.alone)

    def around(self, nodes: int) -> int:
        """Return all nodes in the domains of some nodes."""
        around = nodes & self.alone
        for domain in self.grouped:
            if domain & nodes:
                around |= domain
        return around

    def number(self, among: int) -> int:
        """Return the number of domains of some nodes."""
        return (self.alone & among).bit_count() + sum(1 for domain in self.grouped if domain & among)

    def totals(self, counts: Counts, *, among: int) -> dict[int, int]:
        """Return the nodes by the total of their domain, counting only nodes in ``among``.

        ``counts`` has a number for each of those.
        """
        totals: dict[int, int] = {0: self.alone & ~among}
        for count, nodes in counts.items():
            same = nodes & self.alone & among
            if same:
                totals[count] = totals.get(count, 0) | same
        for domain in self.grouped:
            counted_nodes = domain & among
            total = (
                sum(count * (nodes & counted_nodes).bit_count() for count, nodes in counts.items())
                if counted_nodes
                else 0
            )
            totals[total] = totals.get(total, 0) | domain
        return {total: nodes for total, nodes in totals.items() if nodes}


def of(nodes: snapshotnodes.Nodes, key: str) -> Topology:
    """Return the domains of all nodes by a label. Nodes without the label are in none."""
    all_nodes = nodes.all_nodes
    classes = nodes.properties.classes(("domain", key), functools.partial(_value, key), among=all_nodes)
    alone = classes.get(_OWN_NAME, 0) & all_nodes
    grouped: list[int] = []
    for value, members in classes.items():
        same = members & all_nodes
        if not same or value is None or value == _OWN_NAME:
            continue
        namesake = nodes.find(value)
        if namesake is not None and namesake.bit & alone:
            # The label of one node is the name of another.
            same |= namesake.bit
            alone &= ~namesake.bit
        grouped.append(same)
    return Topology(alone, tuple(grouped))


_OWN_NAME: Final = "\0"
"""Placeholder for a value that is the node's name. No label can have it."""


def _value(key: str, info: nodeinfo.NodeInfo) -> str | None:
    value = info.node.metadata.labels.get(key)
    return _OWN_NAME if value == info.name else value


class Group(NamedTuple):
    """Pods with certain labels, in some namespaces or in all. Hashable."""

    namespaces: frozenset[str] | None
    selector: labels.Selector

    def has(self, namespace: str, pod_labels: Mapping[str, str]) -> bool:
        """Return True if a pod belongs to the group."""
        is_there = self.namespaces is None or namespace in self.namespaces
        return is_there and self.selector.matches(pod_labels)


class _Question(NamedTuple):
    groups: tuple[Group, ...]
    counts_terminating: bool

    def ask(self, info: nodeinfo.NodeInfo) -> int:
        number = 0
        for booking in info.ledger.bookings.values():
            metadata = booking.pod.metadata
            if not self.counts_terminating and metadata.deletion_timestamp is not None:
                continue
            for group in self.groups:
                if not group.has(metadata.namespace, metadata.labels):
                    break
            else:
                number += 1
        return number


def pod_counts(nodes: snapshotnodes.Nodes, *groups: Group, counts_terminating: bool = True) -> dict[int, int]:
    """Return all nodes by their number of pods that belong to all of these groups. The sets may have more nodes."""
    question = _Question(groups, counts_terminating)
    return nodes.resources.classes(question, question.ask, among=nodes.all_nodes)
