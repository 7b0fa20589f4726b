"""The overview: usage, and the ten things that need a person most."""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Iterator
from typing import Final, NamedTuple
from urllib import parse

from drachma.claims import conditions
from drachma.queueing.kinds import clusterqueue
from drachma.web import models, rendering
from drachma.web.models import Model
from drachma.web.rows import ClaimState, DeviceState

_MOST_SHOWN: Final = 10
_MOST_OF_KIND: Final = 5
"""Limit for problems of one kind while there are others."""

_STUCK_SECONDS: Final = 300
"""Time after which a deleted claim counts as stuck."""

_UNUSED_SECONDS: Final = 900
"""Time after which devices of a claim without pods count as forgotten."""


class ProblemKind(enum.StrEnum):
    """Kind of a problem, the most urgent first."""

    NODE = "Node not ready"
    DEVICE = "Unhealthy device"
    POOL = "Incomplete pool"
    QUEUE = "Queue cannot admit"
    POD = "Pending pod"
    CLAIM = "Stuck claim"


class Problem(NamedTuple):
    """A thing that needs a person."""

    kind: ProblemKind
    subject: str
    detail: str
    link: str
    since: dt.datetime | None = None


def find_problems(model: Model, now: dt.datetime) -> tuple[list[Problem], int]:
    """Return the most urgent problems, at most ten, and the number of all."""
    by_kind: dict[ProblemKind, list[Problem]] = {kind: [] for kind in ProblemKind}
    for source in (_nodes, _devices, _pools, _queues, _pods):
        for problem in source(model):
            by_kind[problem.kind].append(problem)
    by_kind[ProblemKind.CLAIM] = list(_claims(model, now))
    total = sum(map(len, by_kind.values()))
    selection = {kind: problems[:_MOST_OF_KIND] for kind, problems in by_kind.items()}
    room = _MOST_SHOWN - sum(map(len, selection.values()))
    for kind, problems in by_kind.items():
        more = problems[_MOST_OF_KIND : _MOST_OF_KIND + max(room, 0)]
        selection[kind] += more
        room -= len(more)
    return [each for problems in selection.values() for each in problems][:_MOST_SHOWN], total


def _nodes(model: Model) -> Iterator[Problem]:
    for name, node in sorted(model.nodes.items()):
        ready = conditions.find(node.status.conditions, "Ready")
        if ready is None or ready.status == "True":
            continue
        link = "/devices?" + parse.urlencode({"q": name, "view": "table"})
        detail = ready.message or ready.reason or "its kubelet has stopped reporting"
        yield Problem(ProblemKind.NODE, name, detail, link, ready.last_transition_time)


def _devices(model: Model) -> Iterator[Problem]:
    pools = (pool for pool in model.pools.values() if pool.states.get(DeviceState.UNHEALTHY))
    for cell in (cell for pool in pools for cell in pool.cells):
        if cell.state is DeviceState.UNHEALTHY:
            place = f" on {cell.node}" if cell.node else ""
            users = f"; used by {', '.join(map(str, cell.pods))}" if cell.pods else ""
            yield Problem(
                ProblemKind.DEVICE, f"{cell.id.device}{place}", f"{cell.problem}{users}", rendering.device_href(cell.id)
            )


def _pools(model: Model) -> Iterator[Problem]:
    for pool in model.pools.values():
        if not pool.is_complete:
            detail = f"{len(pool.slices)} of {pool.expected} slices of generation {pool.generation} are published"
            link = "/devices?" + parse.urlencode({"q": pool.id.pool, "view": "table"})
            yield Problem(ProblemKind.POOL, str(pool.id), detail, link)


def _queues(model: Model) -> Iterator[Problem]:
    for name, queue in sorted(model.cluster_queues.items()):
        active = conditions.find(queue.status.conditions, "Active")
        link = "/queues#" + parse.quote(f"queue-{name}")
        if active is not None and active.status == "False":
            yield Problem(ProblemKind.QUEUE, name, active.message or active.reason, link, active.last_transition_time)
        elif queue.spec.stop_policy in (clusterqueue.HOLD, clusterqueue.HOLD_AND_DRAIN):
            yield Problem(ProblemKind.QUEUE, name, f"its stop policy is {queue.spec.stop_policy}", link)


def _pods(model: Model) -> Iterator[Problem]:
    waiting_pods = sorted(model.waiting.values(), key=lambda row: (row.created is None, row.created, row.key))
    for row in waiting_pods:
        yield Problem(ProblemKind.POD, str(row.key), row.reason, rendering.href(row.key, "pods"), row.created)


def _claims(model: Model, now: dt.datetime) -> Iterator[Problem]:
    for row in model.claims.values():
        link = rendering.href(row.key, "claims")
        if row.state is ClaimState.DELETED and _is_past(row.deleted, now, _STUCK_SECONDS):
            users = f"; {', '.join(row.pods)} still uses it" if row.pods else ""
            yield Problem(
                ProblemKind.CLAIM, str(row.key), f"is deleted, and its finalizers keep it{users}", link, row.deleted
            )
        elif row.state is ClaimState.ALLOCATED and _is_past(row.allocated or row.created, now, _UNUSED_SECONDS):
            devices = "1 device" if len(row.devices) == 1 else f"{len(row.devices)} devices"
            yield Problem(
                ProblemKind.CLAIM,
                str(row.key),
                f"holds {devices}, and no pod uses it",
                link,
                row.allocated or row.created,
            )


def _is_past(moment: dt.datetime | None, now: dt.datetime, seconds: int) -> bool:
    return moment is not None and (now - moment).total_seconds() > seconds


class Usage(NamedTuple):
    """Counts of the overview."""

    devices: int
    used: int
    states: dict[DeviceState, int]
    pods: dict[str, int]
    claims: dict[str, int]
    nodes: int
    ready_nodes: int
    pending_workloads: int
    admitted_workloads: int

    @property
    def share(self) -> float:
        """Used share of all devices."""
        return self.used / self.devices if self.devices else 0.0


def measure(model: Model) -> Usage:
    """Return the counts of the overview. Costs the number of pools and claims."""
    states = model.count_states()
    claims: dict[str, int] = {}
    for claim in model.claims.values():
        claims[claim.state] = claims.get(claim.state, 0) + 1
    queues = model.cluster_queues.values()
    return Usage(
        devices=sum(states.values()),
        used=models.used(states),
        states=states,
        pods={status.value: number for status, number in model.pod_counts.items()},
        claims=claims,
        nodes=len(model.nodes),
        ready_nodes=sum(map(models.is_ready, model.nodes.values())),
        pending_workloads=sum(int(each.status.pending_workloads) for each in queues),
        admitted_workloads=sum(int(each.status.admitted_workloads) for each in queues),
    )
