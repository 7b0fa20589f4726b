"""Pod: how its containers were when an agent last wrote its status, for an agent that comes after it.

Another partial view than :mod:`drachma.api.pod`, read once for pods that have run before.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Final

import msgspec

from drachma.api import meta
from drachma.api.struct import Int32, Struct
from drachma.node.containerstate import Record, Running, Stage, State, Terminated, Waiting
from drachma.node.runtimes.protocol import Exit

LOST: Final = Exit(
    137,
    "ContainerStatusUnknown",
    "The container could not be located when the pod was deleted.  The container used to be Running",
)
"""How a container ended that ran when the agent before this one did, and that nobody can find; the kubelet's words."""


class WaitingState(Struct, frozen=True, kw_only=True):
    """Why a container waits."""

    reason: str = ""
    message: str = ""


class RunningState(Struct, frozen=True, kw_only=True):
    """Since when a container runs."""

    started_at: meta.Time | None = None


class TerminatedState(Struct, frozen=True, kw_only=True):
    """How a container ended."""

    container_id: str = msgspec.field(default="", name="containerID")
    exit_code: Int32 = 0
    reason: str = ""
    message: str = ""
    started_at: meta.Time | None = None
    finished_at: meta.Time | None = None


class ContainerState(Struct, frozen=True, kw_only=True):
    """One of the three."""

    waiting: WaitingState | None = None
    running: RunningState | None = None
    terminated: TerminatedState | None = None


class ContainerStatus(Struct, frozen=True, kw_only=True):
    """How a container was."""

    name: str = ""
    container_id: str = msgspec.field(default="", name="containerID")
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    started: bool = False
    ready: bool = False
    restart_count: Int32 = 0


class PastPodStatus(Struct, frozen=True, kw_only=True):
    """How its containers were."""

    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()


class PastPod(meta.Object, frozen=True, kw_only=True):
    """Core Pod; a partial view."""

    status: PastPodStatus = PastPodStatus()


def records(of: PastPod, *, now: dt.datetime) -> dict[str, Record]:
    """What is known of the pod's containers, by their names; times that are missing are now."""
    return {each.name: _record(each, now) for each in _all(of.status)}


def last_attempt(of: Record) -> int:
    """How many runs there were before the one that a record has as its last."""
    is_newest = isinstance(of.state, Waiting) or (of.last is not None and of.state.id == of.last.id)
    return of.restarts if is_newest else of.restarts - 1


def _all(status: PastPodStatus) -> Iterator[ContainerStatus]:
    yield from status.init_container_statuses
    yield from status.container_statuses
    yield from status.ephemeral_container_statuses


def _record(of: ContainerStatus, now: dt.datetime) -> Record:
    last = of.last_state.terminated
    return Record(_state(of, now), None if last is None else _terminated(last, now), int(of.restart_count))


def _state(of: ContainerStatus, now: dt.datetime) -> State:
    if of.state.running is not None:
        stage = Stage.READY if of.ready else Stage.STARTED if of.started else Stage.STARTING
        return Running(of.container_id, of.state.running.started_at or now, stage)
    if of.state.terminated is not None:
        return _terminated(of.state.terminated, now)
    waiting = of.state.waiting
    return Waiting() if waiting is None else Waiting(waiting.reason, waiting.message)


def _terminated(of: TerminatedState, now: dt.datetime) -> Terminated:
    ended = Exit(int(of.exit_code), of.reason, of.message)
    return Terminated(of.container_id, ended, of.started_at or now, of.finished_at or now)
