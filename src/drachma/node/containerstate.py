"""How the containers of a pod are, and what that makes of the pod: its phase, its conditions and its status.

Pure: the worker of a pod (:mod:`drachma.node.podworker`) keeps the states, this says what they mean.
"""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from drachma.accounting import aggregate
from drachma.api import meta, pod
from drachma.claims import conditions
from drachma.node.runtimes.protocol import Exit

PENDING: Final = "Pending"
RUNNING: Final = "Running"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"

INITIALIZING: Final = "PodInitializing"
CREATING: Final = "ContainerCreating"


class Waiting(msgspec.Struct, frozen=True):
    """Not started, or not again."""

    reason: str = CREATING
    message: str = ""


class Stage(enum.IntEnum):
    """How far a container that runs is, as its probes say; without any it is ready."""

    STARTING = 0
    STARTED = 1
    READY = 2


class Running(msgspec.Struct, frozen=True):
    """Runs since a moment."""

    id: str
    since: dt.datetime
    stage: Stage = Stage.READY


class Terminated(msgspec.Struct, frozen=True):
    """Has ended."""

    id: str
    exit: Exit
    since: dt.datetime
    until: dt.datetime


State: TypeAlias = Waiting | Running | Terminated


class Record(msgspec.Struct, frozen=True):
    """A container of a pod: how it is, how it ended last time, and how often it was started again."""

    state: State = Waiting()
    last: Terminated | None = None
    restarts: int = 0

    @property
    def is_started(self) -> bool:
        return isinstance(self.state, Running) and self.state.stage >= Stage.STARTED

    @property
    def is_ready(self) -> bool:
        return isinstance(self.state, Running) and self.state.stage >= Stage.READY

    @property
    def has_succeeded(self) -> bool:
        return isinstance(self.state, Terminated) and self.state.exit.code == 0

    @property
    def has_failed(self) -> bool:
        return isinstance(self.state, Terminated) and self.state.exit.code != 0


def runs(of: Record) -> set[str]:
    """The runs that are still spoken of, by their names in the runtime."""
    return {each.id for each in (of.state, of.last) if isinstance(each, Running | Terminated)}


Records: TypeAlias = Mapping[str, Record]
"""By the name of the container."""


def phase(of: pod.Pod, records: Records) -> str:
    """Where a pod is in its life."""
    policy = of.spec.restart_policy or "Always"
    for container in of.spec.init_containers:
        record = records[container.name]
        if aggregate.is_sidecar(container):
            if isinstance(record.state, Waiting) and record.last is None:
                return PENDING
        elif record.has_failed and policy == "Never":
            return FAILED
        elif not record.has_succeeded:
            return PENDING
    states = [records[container.name] for container in of.spec.containers]
    if any(isinstance(each.state, Waiting) and each.last is None for each in states):
        return PENDING
    if policy == "Always" or not all(isinstance(each.state, Terminated) for each in states):
        return RUNNING
    if all(each.has_succeeded for each in states):
        return SUCCEEDED
    return FAILED if policy == "Never" else RUNNING


def status(
    of: pod.Pod,
    records: Records,
    *,
    now: dt.datetime,
    is_ready_to_start: bool,
    devices: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> dict[str, Any]:
    """The part of a pod's status that its node writes, for a patch of it: what is None goes.

    ``devices`` is the health of devices by container.
    """
    current = phase(of, records)
    content: dict[str, Any] = {
        "phase": current,
        "observedGeneration": int(of.metadata.generation),
        "conditions": _conditions(of, records, current, now=now, is_ready_to_start=is_ready_to_start),
        "containerStatuses": [_container(each, records[each.name], devices) for each in of.spec.containers],
    }
    if of.spec.ephemeral_containers:
        content["ephemeralContainerStatuses"] = [
            _container(each, records[each.name], None) for each in of.spec.ephemeral_containers
        ]
    if of.spec.init_containers:
        content["initContainerStatuses"] = [
            _container(each, records[each.name], devices) for each in of.spec.init_containers
        ]
    return content


def refusal(of: pod.Pod, *, reason: str, message: str, now: dt.datetime) -> dict[str, Any]:
    """The status of a pod that its node does not take."""
    return {
        "phase": FAILED,
        "observedGeneration": int(of.metadata.generation),
        "reason": reason,
        "message": f"Pod was rejected: {message}",
        "startTime": meta.time_text(now),
    }


def _conditions(
    of: pod.Pod, records: Records, current: str, *, now: dt.datetime, is_ready_to_start: bool
) -> list[dict[str, Any]]:
    has_ended = current in (SUCCEEDED, FAILED)
    is_initialized = has_ended or all(
        records[each.name].has_succeeded or (aggregate.is_sidecar(each) and records[each.name].is_started)
        for each in of.spec.init_containers
    )
    unready = [each.name for each in of.spec.containers if not records[each.name].is_ready]
    done = {"reason": "PodCompleted"} if current == SUCCEEDED else {"reason": "PodFailed"} if has_ended else {}
    pending_init = {"reason": "ContainersNotInitialized", "message": "containers with incomplete status"}
    not_ready = done or {
        "reason": "ContainersNotReady",
        "message": f"containers with unready status: [{' '.join(unready)}]",
    }
    wanted = [
        ("PodReadyToStartContainers", is_ready_to_start and not has_ended, {}),
        ("Initialized", is_initialized, done if current == SUCCEEDED else {} if is_initialized else pending_init),
        ("Ready", not unready and is_initialized and not has_ended, {} if not unready else not_ready),
        ("ContainersReady", not unready and is_initialized and not has_ended, {} if not unready else not_ready),
        ("PodScheduled", True, {}),
    ]
    return [
        {"type": kind, **_condition(of, kind, "True" if holds else "False", now=now), **reason}
        for kind, holds, reason in wanted
    ]


def _condition(of: pod.Pod, kind: str, value: str, *, now: dt.datetime) -> dict[str, Any]:
    before = conditions.find(of.status.conditions, kind)
    since = conditions.since(before, value, now=now)
    content: dict[str, Any] = {
        "status": value,
        "lastTransitionTime": meta.time_text(since or now),
        "observedGeneration": int(of.metadata.generation),
    }
    # Conditions are merged by their type: what one said before would stay.
    if before is not None and before.reason:
        content |= {"reason": None, "message": None}
    return content


def _container(
    container: pod.Container, record: Record, devices: Mapping[str, Sequence[Mapping[str, Any]]] | None
) -> dict[str, Any]:
    content: dict[str, Any] = {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "state": _state(record.state),
        "lastState": {} if record.last is None else _state(record.last),
        "ready": record.is_ready or (record.has_succeeded and not aggregate.is_sidecar(container)),
        "started": record.is_started,
        "restartCount": record.restarts,
    }
    if not isinstance(record.state, Waiting):
        content["containerID"] = record.state.id
    health = (devices or {}).get(container.name)
    return {**content, "allocatedResourcesStatus": list(health)} if health else content


def _state(state: State) -> dict[str, Any]:
    match state:
        case Waiting(reason, message):
            return {"waiting": {"reason": reason, **({"message": message} if message else {})}}
        case Running(since=since):
            return {"running": {"startedAt": meta.time_text(since)}}
        case Terminated(name, ended, since, until):
            return {
                "terminated": {
                    "containerID": name,
                    "exitCode": ended.code,
                    "reason": ended.reason or ("Completed" if ended.code == 0 else "Error"),
                    **({"message": ended.message} if ended.message else {}),
                    "startedAt": meta.time_text(since),
                    "finishedAt": meta.time_text(until),
                }
            }
