"""States of containers, and the phase, conditions and status of their pod that follow from them. Pure.

The worker of a container (:mod:`drachma.node.pods.containerworker`) keeps its record, and the worker of the pod writes
the status. After a restart of the agent, records are rebuilt from the stored status.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from drachma.accounting import aggregate
from drachma.api import meta
from drachma.api.pod import Container, Pod
from drachma.claims import conditions
from drachma.node.pods import resizing
from drachma.node.podview.pod import ContainerStatus, PodView, TerminatedState
from drachma.node.probes.watching import Stage
from drachma.node.runtimes.protocol import Exit

PENDING: Final = "Pending"
RUNNING: Final = "Running"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
ENDED: Final = (SUCCEEDED, FAILED)

CREATING: Final = "ContainerCreating"
INITIALIZING: Final = "PodInitializing"
"""Reason of containers that have not started, in pods with init containers."""

LOST: Final = Exit(
    137,
    "ContainerStatusUnknown",
    "The container could not be located when the pod was deleted.  The container used to be Running",
)
"""Exit of a container that ran under an earlier agent and cannot be found; the kubelet's words."""

ResourceStatuses: TypeAlias = Mapping[str, Sequence[Mapping[str, Any]]]
"""``allocatedResourcesStatus`` by the name of the container."""


class Waiting(msgspec.Struct, frozen=True):
    """State of a container that has not started, or not started again."""

    reason: str = CREATING
    message: str = ""


class Running(msgspec.Struct, frozen=True):
    """State of a running container."""

    id: str
    since: dt.datetime
    stage: Stage = Stage.READY


class Terminated(msgspec.Struct, frozen=True):
    """State of a container that has ended."""

    id: str
    exit: Exit
    since: dt.datetime
    until: dt.datetime


State: TypeAlias = Waiting | Running | Terminated


class Record(msgspec.Struct, frozen=True):
    """A container's state, the end of its previous run, and the number of its restarts."""

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

    @property
    def run_ids(self) -> set[str]:
        """Runtime ids of the runs that the record mentions."""
        return {each.id for each in (self.state, self.last) if isinstance(each, Running | Terminated)}

    @property
    def last_attempt(self) -> int:
        """Number of runs before the run that ``last`` describes."""
        is_newest = isinstance(self.state, Waiting) or (self.last is not None and self.state.id == self.last.id)
        return self.restarts if is_newest else self.restarts - 1


Records: TypeAlias = Mapping[str, Record]
"""By the name of the container."""


def phase(pod: Pod, records: Records) -> str:
    """Return the phase of a pod."""
    policy = pod.spec.restart_policy or "Always"
    for container in pod.spec.init_containers:
        record = records[container.name]
        if aggregate.is_sidecar(container):
            if isinstance(record.state, Waiting) and record.last is None:
                return PENDING
        elif record.has_failed and policy == "Never":
            return FAILED
        elif not record.has_succeeded:
            return PENDING
    states = [records[container.name] for container in pod.spec.containers]
    if any(isinstance(each.state, Waiting) and each.last is None for each in states):
        return PENDING
    if policy == "Always" or not all(isinstance(each.state, Terminated) for each in states):
        return RUNNING
    if all(each.has_succeeded for each in states):
        return SUCCEEDED
    return FAILED if policy == "Never" else RUNNING


class Resources(NamedTuple):
    """Resources of a container: those in force, and the requests that the node has allocated."""

    shown: Mapping[str, Any]
    allocated: Mapping[str, str]


class ResizeState(NamedTuple):
    """State of an in-place resize: the reason why it waits, if it does, and True while containers are changed."""

    waiting: resizing.Waiting | None = None
    is_in_progress: bool = False


_NO_RESIZE: Final = ResizeState()


def status(
    pod: Pod,
    records: Records,
    *,
    now: dt.datetime,
    is_ready_to_start: bool,
    devices: ResourceStatuses | None = None,
    resources: Mapping[str, Resources] | None = None,
    resize: ResizeState = _NO_RESIZE,
) -> dict[str, Any]:
    """Return the node's part of a pod's status, for a patch: None removes a field."""
    current = phase(pod, records)
    if pod.spec.init_containers:
        records = {name: _initializing(record) for name, record in records.items()}
    content: dict[str, Any] = {
        "phase": current,
        "observedGeneration": int(pod.metadata.generation),
        "conditions": [
            *_conditions(pod, records, current, now=now, is_ready_to_start=is_ready_to_start),
            *_resize_conditions(pod, resize, now=now),
        ],
        "containerStatuses": [_container(each, records[each.name], devices, resources) for each in pod.spec.containers],
    }
    if pod.spec.ephemeral_containers:
        content["ephemeralContainerStatuses"] = [
            _container(each, records[each.name], None) for each in pod.spec.ephemeral_containers
        ]
    if pod.spec.init_containers:
        content["initContainerStatuses"] = [
            _container(each, records[each.name], devices, resources) for each in pod.spec.init_containers
        ]
    return content


def refusal(pod: Pod, *, reason: str, message: str, now: dt.datetime) -> dict[str, Any]:
    """Return the status of a pod that its node does not admit."""
    return failure(pod, reason=reason, message=f"Pod was rejected: {message}", now=now)


def failure(pod: Pod, *, reason: str, message: str, now: dt.datetime) -> dict[str, Any]:
    """Return the status of a pod that fails before its containers start."""
    return {
        "phase": FAILED,
        "observedGeneration": int(pod.metadata.generation),
        "reason": reason,
        "message": message,
        "startTime": meta.time_text(now),
    }


def recall(view: PodView, *, now: dt.datetime) -> dict[str, Record]:
    """Return the records of a pod's containers from its stored status; ``now`` stands for missing times."""
    return {each.name: _recalled_record(each, now) for each in view.status.containers()}


def _conditions(
    pod: Pod, records: Records, current: str, *, now: dt.datetime, is_ready_to_start: bool
) -> list[dict[str, Any]]:
    has_ended = current in ENDED
    is_initialized = has_ended or all(
        records[each.name].has_succeeded or (aggregate.is_sidecar(each) and records[each.name].is_started)
        for each in pod.spec.init_containers
    )
    unready = [each.name for each in pod.spec.containers if not records[each.name].is_ready]
    done = {"reason": "PodCompleted"} if current == SUCCEEDED else {"reason": "PodFailed"} if has_ended else {}
    pending_init = {"reason": "ContainersNotInitialized", "message": "containers with incomplete status"}
    not_ready = done or {
        "reason": "ContainersNotReady",
        "message": f"containers with unready status: [{' '.join(unready)}]",
    }
    entries = [
        ("PodReadyToStartContainers", is_ready_to_start and not has_ended, {}),
        ("Initialized", is_initialized, done if current == SUCCEEDED else {} if is_initialized else pending_init),
        ("Ready", not unready and is_initialized and not has_ended, {} if not unready else not_ready),
        ("ContainersReady", not unready and is_initialized and not has_ended, {} if not unready else not_ready),
        ("PodScheduled", True, {}),
    ]
    return [
        {"type": kind, **_condition(pod, kind, "True" if holds else "False", now=now), **reason}
        for kind, holds, reason in entries
    ]


def _condition(pod: Pod, kind: str, value: str, *, now: dt.datetime) -> dict[str, Any]:
    previous = conditions.find(pod.status.conditions, kind)
    since = conditions.since(previous, value, now=now)
    content: dict[str, Any] = {
        "status": value,
        "lastTransitionTime": meta.time_text(since or now),
        "observedGeneration": int(pod.metadata.generation),
    }
    # Conditions are merged by their type, so a stored reason would stay.
    if previous is not None and previous.reason:
        content |= {"reason": None, "message": None}
    return content


def _resize_conditions(pod: Pod, resize: ResizeState, *, now: dt.datetime) -> Iterator[dict[str, Any]]:
    """Yield the conditions of a resize, and the removal of those that no longer hold."""
    waiting = resize.waiting
    reasons: dict[str, dict[str, str]] = {}
    if waiting is not None:
        reasons[resizing.PENDING] = {"reason": waiting.reason, "message": waiting.message}
    if resize.is_in_progress:
        reasons[resizing.IN_PROGRESS] = {}
    for kind in (resizing.PENDING, resizing.IN_PROGRESS):
        if kind in reasons:
            yield {"type": kind, **_condition(pod, kind, "True", now=now), **reasons[kind]}
        elif conditions.find(pod.status.conditions, kind) is not None:
            yield {"type": kind, "$patch": "delete"}


def _container(
    container: Container,
    record: Record,
    devices: ResourceStatuses | None,
    resources: Mapping[str, Resources] | None = None,
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
    own = (resources or {}).get(container.name)
    if own is not None and isinstance(record.state, Running):
        content["resources"] = dict(own.shown)
        if own.allocated:
            content["allocatedResources"] = dict(own.allocated)
    health = (devices or {}).get(container.name)
    return {**content, "allocatedResourcesStatus": list(health)} if health else content


def _initializing(record: Record) -> Record:
    """Return a record whose container waits for init containers, as the kubelet reports it."""
    if isinstance(record.state, Waiting) and record.state.reason == CREATING:
        return msgspec.structs.replace(record, state=Waiting(INITIALIZING, record.state.message))
    return record


def _state(state: State) -> dict[str, Any]:
    match state:
        case Waiting(reason, message):
            return {"waiting": {"reason": reason, **({"message": message} if message else {})}}
        case Running(since=since):
            return {"running": {"startedAt": meta.time_text(since)}}
        case Terminated(name, exit_, since, until):
            return {
                "terminated": {
                    "containerID": name,
                    "exitCode": exit_.code,
                    "reason": exit_.reason or ("Completed" if exit_.code == 0 else "Error"),
                    **({"message": exit_.message} if exit_.message else {}),
                    "startedAt": meta.time_text(since),
                    "finishedAt": meta.time_text(until),
                }
            }


def _recalled_record(container: ContainerStatus, now: dt.datetime) -> Record:
    last = container.last_state.terminated
    return Record(
        _recalled_state(container, now),
        None if last is None else _recalled_end(last, now),
        int(container.restart_count),
    )


def _recalled_state(container: ContainerStatus, now: dt.datetime) -> State:
    if container.state.running is not None:
        stage = Stage.READY if container.ready else Stage.STARTED if container.started else Stage.STARTING
        return Running(container.container_id, container.state.running.started_at or now, stage)
    if container.state.terminated is not None:
        return _recalled_end(container.state.terminated, now)
    state = container.state.waiting
    return Waiting() if state is None else Waiting(state.reason, state.message)


def _recalled_end(state: TerminatedState, now: dt.datetime) -> Terminated:
    exit_ = Exit(int(state.exit_code), state.reason, state.message)
    return Terminated(state.container_id, exit_, state.started_at or now, state.finished_at or now)
