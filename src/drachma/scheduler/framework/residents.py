"""Residents: the pods on nodes, counted by namespace and labels, a node at a time.

Answers are kept by the snapshot (:mod:`drachma.scheduler.snapshot.nodeclass`): the next pod with the same question only
has the nodes asked on which pods came, went or changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from drachma.scheduler.snapshot import nodeinfo
from drachma.scheduler.snapshot import nodes as snapshotnodes
from drachma.values import labels


class Group(NamedTuple):
    """Pods with certain labels, in some namespaces or in all. Hashable."""

    namespaces: frozenset[str] | None
    selector: labels.Selector

    def has(self, namespace: str, pod_labels: Mapping[str, str]) -> bool:
        """Whether a pod belongs to it."""
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


def counts(nodes: snapshotnodes.Nodes, *groups: Group, counts_terminating: bool = True) -> dict[int, int]:
    """All nodes, by how many pods they have that belong to all of these groups; more nodes may be in the sets."""
    question = _Question(groups, counts_terminating)
    return nodes.resources.classes(question, question.ask, among=nodes.everyone)
