"""Checkpoints: the state of a simulation as plain data, from which it can go on in another process.

A checkpoint has no copy of the cluster or of the workload. It has what events changed in the cluster, the claims, the
jobs that wait or run, and the number of events so far, which are read again and skipped. A simulation that writes a
checkpoint goes on from it as well, with a new cluster and a new seed. So a run that is interrupted and resumed has the
same history as a run that is not.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import structs

from drachma import errors
from drachma.api import codec, meta, pod, resourceclaim
from drachma.queueing.kinds import decoding, workload
from drachma.simulate import queueingstate
from drachma.simulate.clusterstate import ClusterState
from drachma.simulate.simulation import Simulation
from drachma.simulate.timeline.clusterevents import Identity, identity_of
from drachma.simulate.timeline.events import Arrival, ClusterChange, Event, EventStream, JobShape
from drachma.simulate.timeline.jobrun import JobRun, RunningPod
from drachma.simulate.timeline.measures import SavedMeasures
from drachma.simulate.timeline.podlifecycle import Observer
from drachma.simulate.timeline.quota import Quota, has_queues
from drachma.simulate.timeline.scaling import Scaling, ScalingRules
from drachma.simulate.timeline.timeline import Timeline

VERSION: Final = 1
_SEED_STEP: Final = 1_000_003
"""Distance of the seeds of the parts between checkpoints."""


class SavedPod(msgspec.Struct, frozen=True, array_like=True):
    """Running pod."""

    index: int
    uid: str
    node: str
    devices: int
    started: float
    claims: dict[str, str]
    """Names of its claims, by the entries of the pod."""


class SavedJob(msgspec.Struct, frozen=True, array_like=True):
    """Job that waits or runs."""

    key: str
    arrived: float
    waiting: list[int]
    running: list[SavedPod]
    started: float | None
    evictions: int
    attempts: int
    reason: str


class SavedChange(msgspec.Struct, frozen=True, array_like=True):
    """Planned change of the cluster, with the documents of its objects."""

    applied: list[dict[str, Any]]
    removed: list[dict[str, Any]]
    title: str


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """State of a simulation."""

    version: int = VERSION
    inputs: str
    """Description of the inputs. A simulation of other inputs cannot go on from here."""
    number: int
    """Number of this checkpoint, from 1 on."""
    now: float
    events: int
    """Number of events so far."""
    changed: list[tuple[Identity, dict[str, Any] | None]]
    claims: list[dict[str, Any]]
    workloads: list[dict[str, Any]]
    jobs: list[SavedJob]
    line: list[str]
    """Keys of jobs whose pods wait for nodes, in their order."""
    agenda: list[tuple[float, str | SavedChange]]
    """Times with the uids of pods that end, or with changes."""
    endless: list[float]
    measures: SavedMeasures


class Base(NamedTuple):
    """Inputs of a simulation, from which its parts are made."""

    objects: tuple[meta.Object, ...]
    queueing: tuple[meta.Object, ...]
    epoch: datetime
    make_cluster: Callable[[ClusterState, int], Simulation]
    """Function that returns the cluster of some objects with a seed."""
    seed: int
    scaling: ScalingRules | None = None
    observer: Observer | None = None


def begin(base: Base) -> Timeline:
    """Return a simulation at its beginning."""
    cluster = base.make_cluster(ClusterState.of(base.objects), base.seed)
    quota = Quota(base.queueing, epoch=base.epoch) if has_queues(base.queueing) else None
    scaling = Scaling(base.scaling, cluster) if base.scaling is not None else None
    return Timeline(cluster, quota=quota, observer=base.observer, scaling=scaling)


def save(timeline: Timeline, stream: EventStream, *, number: int, inputs: str) -> Checkpoint:
    """Return the state of a simulation between two moments."""
    return Checkpoint(
        inputs=inputs,
        number=number,
        now=timeline.now,
        events=stream.taken,
        changed=[
            (identity, None if each is None else _encode(each)) for identity, each in timeline.changed_objects.items()
        ],
        claims=[codec.encode(each) for each in timeline.cluster.snapshot.claims],
        workloads=[decoding.document(each) for each in timeline.quota.workloads] if timeline.quota is not None else [],
        jobs=[_save_job(job) for job in timeline.jobs.values()],
        line=[job.key for job in timeline.line.jobs()],
        agenda=[
            (time, _save_change(item) if isinstance(item, ClusterChange) else item.pod.metadata.uid)
            for time, item in timeline.agenda
        ],
        endless=list(timeline.endless),
        measures=timeline.measures.save(),
    )


def _save_job(job: JobRun) -> SavedJob:
    pods = [
        SavedPod(
            each.index,
            each.pod.metadata.uid,
            each.node,
            each.devices,
            each.started,
            {entry.name: str(entry.resource_claim_name) for entry in each.pod.status.resource_claim_statuses},
        )
        for each in job.running.values()
    ]
    return SavedJob(
        job.key, job.arrival.time, list(job.waiting), pods, job.started, job.evictions, job.attempts, job.reason
    )


def _save_change(change: ClusterChange) -> SavedChange:
    return SavedChange(list(map(_encode, change.applied)), list(map(_encode, change.removed)), change.title)


class Past(NamedTuple):
    """Events before a checkpoint, as far as they still matter."""

    arrivals: Mapping[tuple[str, float], Arrival]
    """Arrivals of jobs that wait or run, by key and time."""
    shape_counts: collections.Counter[JobShape]


def past_of(timeline: Timeline) -> Past:
    """Return the past of a simulation in this process."""
    arrivals = {(job.key, job.arrival.time): job.arrival for job in timeline.jobs.values()}
    return Past(arrivals, timeline.shape_counts)


def skip(events: Iterable[Event], saved: Checkpoint) -> tuple[EventStream, Past]:
    """Return the events after a checkpoint, and the past. Raises InvalidValueError if there are too few events."""
    stream = EventStream(events)
    keys = {(job.key, job.arrived) for job in saved.jobs}
    history = Past(arrivals := {}, collections.Counter())
    while stream.taken < saved.events:
        event = stream.head
        if event is None:
            raise errors.InvalidValueError(
                f"checkpoint: it is after {saved.events:,} events, and the workload has {stream.taken:,}"
            )
        if isinstance(event, Arrival):
            history.shape_counts[event.shape] += 1
            key = f"{event.shape.namespace}/{event.name}", event.time
            if key in keys:
                arrivals[key] = event
        stream.take()
    return stream, history


def resume(saved: Checkpoint, base: Base, past: Past) -> Timeline:
    """Return a simulation that goes on from a checkpoint. Raises InvalidValueError if a job is not in the workload."""
    changed = dict(saved.changed)
    applied = {identity: decode_object(document) for identity, document in changed.items() if document is not None}
    objects = [each for each in base.objects if not isinstance(each, resourceclaim.ResourceClaim)]
    state = ClusterState.of(
        [
            *(each for each in objects if identity_of(each) not in changed),
            *applied.values(),
            *map(codec.decode, saved.claims),
        ]
    )
    cluster = base.make_cluster(state, base.seed + saved.number * _SEED_STEP)
    queueing = [*(each for each in base.queueing if identity_of(each) not in changed), *applied.values()]
    quota = None
    if has_queues(base.queueing):
        workloads = [decoding.decode(each, workload.Workload) for each in saved.workloads]
        quota = Quota(queueing, epoch=base.epoch, now=saved.now, workloads=workloads)
    scaling = Scaling(base.scaling, cluster) if base.scaling is not None else None
    timeline = Timeline(cluster, quota=quota, observer=base.observer, scaling=scaling)
    timeline.now = saved.now
    timeline.measures.restore(saved.measures)
    timeline.changed_objects.update({identity: applied.get(identity) for identity in changed})
    timeline.shape_counts.update(past.shape_counts)
    timeline.endless.extend(saved.endless)
    jobs = [_restore_job(each, past, quota) for each in saved.jobs]
    pods = {each.pod.metadata.uid: each for job in jobs for each in job.running.values()}
    cluster.add(
        [structs.replace(each.pod, spec=structs.replace(each.pod.spec, node_name=each.node)) for each in pods.values()]
    )
    agenda = [
        (time, pods[item] if isinstance(item, str) else _restore_change(time, item)) for time, item in saved.agenda
    ]
    if scaling is not None:
        arrivals = [
            item.applied for _, item in agenda if isinstance(item, ClusterChange) and item.title.startswith("new")
        ]
        scaling.expect(arrivals)
    timeline.resume(jobs, waiting_keys=saved.line, agenda=agenda)
    return timeline


def _restore_job(saved: SavedJob, history: Past, quota: Quota | None) -> JobRun:
    arrival = history.arrivals.get((saved.key, saved.arrived))
    if arrival is None:
        raise errors.InvalidValueError(
            f"checkpoint: job {saved.key}, which arrives at {saved.arrived:g}, is not in the workload"
        )
    job = JobRun(arrival)
    job.waiting[:] = saved.waiting
    job.started, job.evictions, job.attempts = saved.started, saved.evictions, saved.attempts
    job.reason = saved.reason
    if quota is not None and arrival.shape.queue:
        quota.adopt(job)
    for each in saved.running:
        new_pod = job.make_pod(each.index)
        statuses = tuple(
            pod.PodResourceClaimStatus(name=entry, resource_claim_name=name) for entry, name in each.claims.items()
        )
        new_pod = structs.replace(
            new_pod,
            metadata=structs.replace(new_pod.metadata, uid=each.uid),
            status=structs.replace(new_pod.status, resource_claim_statuses=statuses),
        )
        job.running[each.index] = RunningPod(
            job, each.index, running_pod=new_pod, node=each.node, devices=each.devices, now=each.started
        )
    return job


def _restore_change(time: float, saved: SavedChange) -> ClusterChange:
    return ClusterChange(
        time, tuple(map(decode_object, saved.applied)), tuple(map(decode_object, saved.removed)), saved.title
    )


def encode(saved: Checkpoint) -> bytes:
    """Return a checkpoint as the content of a file."""
    return msgspec.msgpack.encode(saved)


def decode(content: bytes, *, title: str, inputs: str) -> Checkpoint:
    """Return the checkpoint of a file. Raises InvalidValueError if it is none, or one of other inputs."""
    try:
        saved = msgspec.msgpack.decode(content, type=Checkpoint)
    except msgspec.MsgspecError as error:
        raise errors.InvalidValueError(f"{title}: is not a checkpoint: {error}") from None
    if saved.version != VERSION:
        raise errors.InvalidValueError(f"{title}: version {saved.version} of checkpoints, expected {VERSION}")
    if saved.inputs != inputs:
        raise errors.InvalidValueError(f"{title}: is a checkpoint of {saved.inputs}, not of {inputs}")
    return saved


def _encode(each: meta.Object) -> dict[str, Any]:
    for (_, kind), resource in queueingstate.models().items():
        if type(each) is resource.model and resource.group.startswith("kueue."):
            return {"apiVersion": f"{resource.group}/{resource.versions[0]}", "kind": kind, **decoding.document(each)}
    return codec.encode(each)


def decode_object(document: Mapping[str, Any]) -> meta.Object:
    """Return an object of the cluster or of the queues. Raises DecodeError."""
    api_version, kind = codec.type_meta(document)
    resource = queueingstate.models().get((api_version.rpartition("/")[0], kind))
    if resource is not None and api_version.startswith("kueue."):
        decoded: meta.Object = decoding.decode(document, resource.model)
        return decoded
    return codec.decode(document)
