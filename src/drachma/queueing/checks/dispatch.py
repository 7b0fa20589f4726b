"""The admission check that dispatches workloads to other clusters (MultiKueue).

A workload with quota is copied to all clusters of its check. The first cluster that admits its copy gets the job, and
the copies elsewhere are removed. The states of the copy decide about the workload: an admitted copy makes the check
Ready, a finished one finishes the workload, an evicted or lost one is tried again. Nothing is written here.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from msgspec import structs

from drachma.api import meta
from drachma.queueing import conditions
from drachma.queueing.jobs import construction
from drachma.queueing.jobs.interface import Document
from drachma.queueing.kinds import multikueue, workload
from drachma.queueing.workloads import transitions, workloadstate
from drachma.queueing.workloads.workloadevents import NORMAL, WARNING, Event

CONFIG_KIND: Final = "MultiKueueConfig"
READY: Final = "Ready"
RETRY: Final = "Retry"

_OUT_OF_SYNC: Final = "OutOfSync"


class Act(enum.Enum):
    """A change in another cluster."""

    CREATE = enum.auto()
    """Create the copy of the workload, and the claim templates that it needs."""
    REMOVE = enum.auto()
    """Delete the copy and its job."""
    UPDATE_PRIORITY = enum.auto()
    """Give the copy the priority of the workload."""
    SYNC_JOB = enum.auto()
    """Create the job, or copy its status back."""
    DEACTIVATE = enum.auto()
    """Stop the copy of an evicted workload."""


class Action(NamedTuple):
    """A change in one cluster."""

    act: Act
    cluster: str


class Dispatched(NamedTuple):
    """A workload, its copies in other clusters, and the clusters that do not answer."""

    local: workload.Workload
    local_spec: Document
    check: str
    copies: Mapping[str, workload.Workload | None]
    """Copies by cluster, of the clusters that answer."""
    copy_specs: Mapping[str, Document]
    lost_since: Mapping[str, datetime]
    """Clusters that do not answer, and the time since which they do not."""


class Decision(NamedTuple):
    """Result of one step: the workload, changes in other clusters, and events."""

    workload: workload.Workload
    actions: Sequence[Action] = ()
    events: Sequence[Event] = ()
    requeue_after: timedelta = timedelta()


class Settings(NamedTuple):
    """Times and modes of dispatching."""

    worker_lost_timeout: timedelta
    nominates_all: bool = True
    """False if another controller nominates clusters."""


def reject(wl: workload.Workload, check: str, message: str, now: datetime) -> workload.Workload:
    """Return a workload whose check is rejected, because no cluster can run it."""
    return _with_check(wl, check, "Rejected", message, now)


def decide(group: Dispatched, now: datetime, settings: Settings) -> Decision:
    """Take one step."""
    return _Step(group, now, settings).run()


class _Step:
    def __init__(self, group: Dispatched, now: datetime, settings: Settings) -> None:
        self._group: Final = group
        self._local: Final = group.local
        self._now: Final = now
        self._settings: Final = settings
        self._actions: Final[list[Action]] = []
        self._copies: Final = dict(group.copies)
        self._state: Final = next(each for each in group.local.status.admission_checks if each.name == group.check)

    def run(self) -> Decision:
        local = self._local
        if workloadstate.is_finished(local) or not workloadstate.has_reservation(local):
            self._remove(*self._copies)
            wait = self._settings.worker_lost_timeout if self._group.lost_since else timedelta()
            return Decision(local, self._actions, requeue_after=wait)
        for rule in (self._finished, self._evicted, self._out_of_sync, self._admitted):
            decision = rule()
            if decision is not None:
                return decision
        return self._nominate()

    # Rules

    def _finished(self) -> Decision | None:
        """Finish the workload with its copy. A copy that is out of sync with its job is dispatched again."""
        condition, cluster = self._earliest(conditions.FINISHED)
        if condition is None:
            return None
        if condition.reason == _OUT_OF_SYNC:
            if self._state.state != READY:
                return Decision(self._local)
            problem = "is out of sync with its user job, resetting for re-dispatch"
            return self._retry(f'Remote workload on worker cluster "{cluster}" {problem}', event_type=WARNING)
        finished = transitions.finished(self._local, reason=condition.reason, message=condition.message, now=self._now)
        return Decision(finished, [Action(Act.SYNC_JOB, cluster)])

    def _evicted(self) -> Decision | None:
        condition, cluster = self._earliest(conditions.EVICTED)
        if condition is None:
            return None
        if workloadstate.is_evicted(self._local):
            return Decision(self._local, [Action(Act.SYNC_JOB, cluster)])
        if self._state.state != READY:
            return None
        name = self._local.status.cluster_name or cluster
        message = f'Workload evicted on worker cluster: "{name}", resetting for re-admission. Previously: "{READY}"'
        after = _with_check(self._local, self._group.check, RETRY, message, self._now, with_previous=False)
        return Decision(after, events=[self._event(NORMAL, message)])

    def _out_of_sync(self) -> Decision | None:
        """Update or remove copies whose spec is no longer that of the workload."""
        for cluster, copy in tuple(self._copies.items()):
            if copy is None or _comparable(self._group.copy_specs[cluster]) == _comparable(self._group.local_spec):
                continue
            if _differs_in_priority_only(self._group.copy_specs[cluster], self._group.local_spec):
                self._actions.append(Action(Act.UPDATE_PRIORITY, cluster))
            else:
                self._remove(cluster)
        return None

    def _admitted(self) -> Decision | None:
        condition, cluster = self._earliest(conditions.ADMITTED)
        if condition is None:
            return self._lost() if self._state.state == READY else None
        self._remove(*(each for each in self._copies if each != cluster))
        if workloadstate.is_evicted(self._local):
            return Decision(self._local, [*self._actions, Action(Act.DEACTIVATE, cluster)])
        self._actions.append(Action(Act.SYNC_JOB, cluster))
        if self._state.state in (RETRY, "Rejected", READY):
            return Decision(self._local, self._actions, requeue_after=self._settings.worker_lost_timeout)
        message = f'The workload was admitted on "{cluster}"'
        after = _with_check(self._local, self._group.check, READY, message, self._now, with_previous=False)
        after = workloadstate.with_status(after, cluster_name=cluster, nominated_cluster_names=())
        wait = self._settings.worker_lost_timeout
        return Decision(after, self._actions, [self._event(NORMAL, message)], wait)

    def _lost(self) -> Decision:
        """Wait for the cluster that runs the workload, or try again if it stays away."""
        cluster = self._local.status.cluster_name or ""
        if not cluster:
            problem = "this is unexpected, please report it"
            return self._retry(f"Admission check is Ready but no admitting cluster is recorded; {problem}")
        since = self._group.lost_since.get(cluster)
        if since is None:
            return self._retry("Admitting remote no longer exists")
        time_left = since + self._settings.worker_lost_timeout - self._now
        if time_left > timedelta():
            return Decision(self._local, self._actions, requeue_after=time_left)
        return self._retry("Admitting remote lost")

    def _nominate(self) -> Decision:
        """Copy the workload to the nominated clusters, once all other checks are passed."""
        local = self._local
        other_checks = (each for each in local.status.admission_checks if each.name != self._group.check)
        is_waiting = (
            self._state.state != workloadstate.PENDING
            or local.status.cluster_name is not None
            or workloadstate.is_evicted(local)
        )
        if is_waiting or any(each.state != READY for each in other_checks):
            return Decision(local, self._actions)
        nominated = tuple(local.status.nominated_cluster_names)
        if self._settings.nominates_all and set(nominated) != set(self._copies):
            nominated = tuple(sorted(self._copies))
            local = workloadstate.with_status(local, nominated_cluster_names=nominated)
        for cluster, copy in self._copies.items():
            if cluster in nominated and copy is None:
                self._actions.append(Action(Act.CREATE, cluster))
            elif cluster not in nominated:
                self._remove(cluster)
        return Decision(local, self._actions)

    # Parts

    def _earliest(self, kind: str) -> tuple[meta.Condition | None, str]:
        """Return the condition of a copy that has been true for longest, and its cluster.

        The copy of the cluster that runs the workload counts first: an older copy is left in a cluster that was lost.
        """
        best: meta.Condition | None = None
        cluster = ""
        admitting = self._local.status.cluster_name
        if admitting is not None and (own := self._copies.get(admitting)) is not None:
            condition = conditions.find(own.status.conditions, kind)
            if condition is not None and condition.status == "True":
                return condition, admitting
        for name, copy in self._copies.items():
            condition = None if copy is None else conditions.find(copy.status.conditions, kind)
            if condition is None or condition.status != "True":
                continue
            since = condition.last_transition_time
            if best is None or (since is not None and since < (best.last_transition_time or since)):
                best, cluster = condition, name
        return best, cluster

    def _remove(self, *clusters: str) -> None:
        for cluster in clusters:
            if self._copies[cluster] is not None:
                self._actions.append(Action(Act.REMOVE, cluster))
                self._copies[cluster] = None

    def _retry(self, message: str, *, event_type: str = NORMAL) -> Decision:
        after = _with_check(self._local, self._group.check, RETRY, message, self._now)
        state = next(each for each in after.status.admission_checks if each.name == self._group.check)
        return Decision(after, self._actions, [self._event(event_type, state.message)])

    def _event(self, event_type: str, message: str) -> Event:
        return Event(workloadstate.key(self._local), event_type, "MultiKueue", message)


def _with_check(
    wl: workload.Workload, check: str, state: str, message: str, now: datetime, *, with_previous: bool = True
) -> workload.Workload:
    states = tuple(
        structs.replace(
            each,
            state=state,
            message=f'{message}, Previously: "{each.state}"' if with_previous else message,
            last_transition_time=now,
        )
        if each.name == check
        else each
        for each in wl.status.admission_checks
    )
    return workloadstate.with_status(wl, admission_checks=states)


# Copies


def copy_workload(document: Document, origin: str) -> dict[str, Any]:
    """Return the copy of a workload for another cluster."""
    metadata = clone_metadata(document["metadata"])
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != workload.JOB_UID_LABEL}
    spec = {key: value for key, value in document["spec"].items() if key != "preemptionGates"}
    return {
        "apiVersion": document["apiVersion"],
        "kind": document["kind"],
        "metadata": {**metadata, "labels": {**labels, multikueue.ORIGIN: origin}},
        "spec": spec,
    }


def clone_metadata(metadata: Document) -> dict[str, Any]:
    """Return the metadata of an object for its copy in another cluster."""
    return {name: metadata[name] for name in ("name", "namespace", "labels", "annotations") if metadata.get(name)}


def copied_job_metadata(metadata: Document, *, workload_name: str, origin: str) -> dict[str, Any]:
    """Return the metadata of a job's copy, which names its workload and the cluster that it comes from."""
    clone = clone_metadata(metadata)
    return {
        **clone,
        "labels": {**(clone.get("labels") or {}), multikueue.ORIGIN: origin},
        "annotations": {**(clone.get("annotations") or {}), construction.PREBUILT: workload_name},
    }


def claim_templates(pod_sets: Sequence[Document]) -> list[str]:
    """Return the names of the claim templates of pods."""
    names = (
        claim.get("resourceClaimTemplateName")
        for each in pod_sets
        for claim in ((each.get("template") or {}).get("spec") or {}).get("resourceClaims") or ()
    )
    return sorted({name for name in names if name})


def _comparable(spec: Document) -> dict[str, Any]:
    return {name: value for name, value in spec.items() if name != "preemptionGates"}


def _differs_in_priority_only(copy_spec: Document, spec: Document) -> bool:
    names = ("priority", "priorityClassRef", "preemptionGates")

    def rest(part: Document) -> dict[str, Any]:
        return {name: value for name, value in part.items() if name not in names}

    return rest(copy_spec) == rest(spec)
