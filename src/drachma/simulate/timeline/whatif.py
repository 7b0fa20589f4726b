"""Questions about a change: the cluster with it and without it, and the difference for pods and queued workloads."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from drachma.api import meta, node
from drachma.simulate.clusterstate import ClusterState
from drachma.simulate.nodegroup import NodeGroup
from drachma.simulate.timeline import future
from drachma.simulate.timeline.events import NodeOutage
from drachma.simulate.timeline.future import ClusterNow
from drachma.simulate.timeline.jobrun import JobRun


class Standing(NamedTuple):
    """Pods and workloads of a cluster once everything that can start has started."""

    nodes: dict[str, tuple[str, ...]]
    """Nodes of what runs, by namespace and name."""
    waiting: dict[str, str]
    """Reasons of what waits."""
    evicted: frozenset[str]


class GroupSize(NamedTuple):
    """Number of nodes of a node group, without and with a change."""

    group: str
    price: float
    """Price of one node."""
    before: int
    after: int


class Difference(NamedTuple):
    """Difference that a change makes."""

    starts: dict[str, tuple[str, ...]]
    """Runs with the change, and waits without it."""
    waits: dict[str, str]
    """Waits with the change, and runs without it."""
    evicted: tuple[str, ...]
    """Evicted with the change only."""
    moves: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
    """Runs on other nodes."""
    still_waiting: dict[str, str]
    groups: tuple[GroupSize, ...] = ()
    """Node groups without and with the change."""


def compare(
    cluster: ClusterNow,
    applied: Sequence[meta.Object],
    *,
    removed_nodes: Sequence[str] = (),
    groups: Sequence[NodeGroup] = (),
    seed: int = 0,
) -> Difference:
    """Return the effect of added and replaced objects and of removed nodes, with the sizes of node groups.

    A node that the change makes unschedulable is drained. It still belongs to its group.
    """
    before = _stand(cluster, (), seed)
    cordoned = [str(each.metadata.name) for each in applied if isinstance(each, node.Node) and each.spec.unschedulable]
    changed = ClusterNow(
        ClusterState.of(_replaced(cluster.state.objects, applied)),
        tuple(_replaced(cluster.queueing, applied)),
        cluster.now,
        cluster.settings,
    )
    after = _stand(changed, (*removed_nodes, *cordoned), seed)
    return Difference(
        starts={key: nodes for key, nodes in after.nodes.items() if key in before.waiting or key not in before.nodes},
        waits={key: reason for key, reason in after.waiting.items() if key in before.nodes},
        evicted=tuple(sorted(after.evicted - before.evicted)),
        moves={
            key: (before.nodes[key], nodes)
            for key, nodes in after.nodes.items()
            if key in after.evicted and before.nodes.get(key, nodes) != nodes
        },
        still_waiting={key: reason for key, reason in after.waiting.items() if key in before.waiting},
        groups=tuple(
            GroupSize(
                group.name,
                group.price,
                sum(map(group.has, cluster.state.all(node.Node))),
                sum(
                    group.has(each)
                    for each in changed.state.all(node.Node)
                    if str(each.metadata.name) not in removed_nodes
                ),
            )
            for group in groups
        ),
    )


def new_nodes(cluster: ClusterNow, group: NodeGroup, count: int) -> list[meta.Object]:
    """Return more nodes of a group, with their slices, under names that the cluster does not have."""
    names = {str(each.metadata.name) for each in cluster.state.all(node.Node)}
    return [each for name in group.new_names(count, names) for each in group.make(name)]


def _stand(cluster: ClusterNow, drained: Sequence[str], seed: int) -> Standing:
    evicted: set[str] = set()

    def note(what: str, time: float, job: JobRun, where: str) -> None:
        if what == "evict":
            evicted.add(job.key)

    prospect = future.Prospect(cluster, seed=seed).future(future.Assumption(), random.Random(seed), observer=note)
    outage = [NodeOutage(0.0, tuple(drained), None, reason="drain")] if drained else []
    prospect.timeline.run([*outage, *prospect.waiting], until=0.0)
    jobs = prospect.timeline.jobs
    return Standing(
        nodes={
            key: tuple(sorted(each.node for each in job.running.values()))
            for key, job in jobs.items()
            if not job.waiting
        },
        waiting={key: job.reason or "queued" for key, job in jobs.items() if job.waiting},
        evicted=frozenset(evicted),
    )


def _replaced(objects: Iterable[meta.Object], applied: Sequence[meta.Object]) -> list[meta.Object]:
    """Return the objects, with those of the same kind and name replaced."""
    merged = {_identity(each): each for each in objects}
    merged.update({_identity(each): each for each in applied})
    return list(merged.values())


def _identity(each: meta.Object) -> tuple[str, str, str]:
    return type(each).__name__, each.metadata.namespace or "", str(each.metadata.name)
