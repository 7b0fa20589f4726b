"""The reconcile of StatefulSets and LeaderWorkerSets: their workloads, and their pods as members of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from drachma import errors
from drachma.queueing.configuration.gates import Gate
from drachma.queueing.integrations import pods
from drachma.queueing.integrations.parents import GroupParent, StatefulSet, WorkloadKey, is_outdated
from drachma.queueing.integrations.podgroup import GROUP_WORKLOAD
from drachma.queueing.jobs import ancestry, construction, matching
from drachma.queueing.jobs.interface import Document, Session, owner_reference, with_metadata, with_spec
from drachma.queueing.jobs.reconciler import ReconcileResult
from drachma.queueing.jobs.settings import QUEUE_LABEL, ClassMissingError, Environment, JobSettings
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import transitions, workloadstate

_OWNER_KIND: Final = "kueue.x-k8s.io/job-owner-gvk"
_OWNER_NAME: Final = "kueue.x-k8s.io/job-owner-name"
_INDEX: Final = "kueue.x-k8s.io/component-workload-index"
_HELD: Final = "StatefulSet scaled to zero; workload on hold"
_RESUMED: Final = "Workload no longer on hold; waiting for quota reservation"


class ParentReconciler:
    """Reconciles one parent. The result has its workloads; ``pods`` has its pods as they are to be, by name."""

    def __init__(
        self,
        parent: GroupParent | None,
        members: Sequence[Document],
        stateful_sets: Mapping[str, Document],
    ) -> None:
        """Without a parent it is gone. ``stateful_sets`` has the sets, by name, that own the pods."""
        self._parent: Final = parent
        self.pods: Final = {each["metadata"]["name"]: each for each in members}
        self._stateful_sets: Final = stateful_sets

    def reconcile(self, environment: Environment, now: datetime, *, settings: JobSettings) -> ReconcileResult:
        """Return the workloads after the reconcile."""
        session = Session(environment, now, settings)
        error = ""
        try:
            if self._parent is None:
                self._release(session)
            elif is_managed(self._parent, environment, settings):
                self._sync_workloads(self._parent, session)
                self._complete_pods(self._parent, session)
        except errors.DrachmaError as problem:
            error = str(problem)
        return ReconcileResult(
            session.workloads, session.new_pod_sets, tuple(session.events), session.requeue_after, error
        )

    def _release(self, session: Session) -> None:
        """Let the workloads and the pods of a parent go that is gone."""
        for each in tuple(session.workloads.values()):
            if each.metadata.deletion_timestamp is not None:
                session.release(each)
        for name, pod in self.pods.items():
            self.pods[name] = pods.without_gates(pod)

    # Workloads

    def _sync_workloads(self, parent: GroupParent, session: Session) -> None:
        keys = parent.workload_keys(session.gates)
        for key in keys:
            wl = session.workloads.get(f"{parent.namespace}/{key.name}")
            if wl is not None:
                self._update(parent, wl, session)
            elif parent.replicas > 0 and not parent.is_copy:
                self._create(parent, key, session)
        present = {f"{parent.namespace}/{key.name}" for key in keys}
        for name in [each for each in session.workloads if each not in present]:
            session.remove(session.workloads[name])

    def _create(self, parent: GroupParent, key: WorkloadKey, session: Session) -> None:
        settings = session.settings
        label_keys, annotation_keys = settings.label_keys, settings.annotation_keys
        try:
            wl, pod_sets = construction.construct(
                parent,
                session,
                name=key.name,
                label_keys=label_keys if parent.copies_labels else (),
                annotation_keys=annotation_keys if parent.copies_labels else (),
            )
        except ClassMissingError:
            matching.record_missing_class(parent, session)
            raise
        annotations = {**wl.metadata.annotations, GROUP_WORKLOAD: "true", **_owner_annotations(parent)}
        if key.replica is not None:
            annotations[_INDEX] = str(key.replica)
        wl = with_metadata(
            wl,
            labels={**wl.metadata.labels, workload.JOB_UID_LABEL: parent.uid},
            annotations=annotations,
            owner_references=(owner_reference(parent.kind, parent.metadata),),
        )
        session.put_with_pod_sets(wl, pod_sets)
        session.record(parent.key, "CreatedWorkload", f"Created Workload: {workloadstate.key(wl)}")

    def _update(self, parent: GroupParent, wl: workload.Workload, session: Session) -> None:
        is_needed = parent.replicas > 0
        if is_needed and not _is_owner(parent, wl):
            owners = (*wl.metadata.owner_references, owner_reference(parent.kind, parent.metadata))
            annotations = {**wl.metadata.annotations, **_owner_annotations(parent)}
            wl = session.put(with_metadata(wl, owner_references=owners, annotations=annotations))
        queue = parent.labels.get(QUEUE_LABEL, "")
        if is_needed and wl.spec.queue_name != queue:
            wl = session.put(with_spec(wl, queue_name=queue))
        wl = matching.sync_admission_gates(parent, wl, session)
        if isinstance(parent, StatefulSet):
            self._sync_hold(wl, session, is_needed=is_needed)
        else:
            matching.sync_priority(parent, wl, session)

    def _sync_hold(self, wl: workload.Workload, session: Session, *, is_needed: bool) -> None:
        """Put the workload of a StatefulSet without replicas on hold, and resume it when there are replicas again."""
        reason, message = "", ""
        if not is_needed and workloadstate.has_reservation(wl) and workloadstate.is_active(wl):
            reason, message = workloadstate.ON_HOLD, _HELD
        elif is_needed and workloadstate.is_on_hold(wl):
            observes = session.gates.on(Gate.UNADMITTED_OBSERVABILITY)
            reason, message = "PendingEvaluation" if observes else "Pending", _RESUMED
        if reason and not workloadstate.is_finished(wl):
            session.put(transitions.unreserve(wl, reason=reason, message=message, now=session.now, gates=session.gates))

    # Pods

    def _complete_pods(self, parent: GroupParent, session: Session) -> None:
        for name, pod in self.pods.items():
            owner = ancestry.controller(pod)
            stateful_set = None if owner is None else self._stateful_sets.get(owner["name"])
            if stateful_set is not None and is_outdated(pod, stateful_set):
                # The set replaces the pod, which it can only do when the pod may run.
                self.pods[name] = pods.without_gates(pod)
            elif not pods.is_terminated(pod) and not pods.is_deleted(pod):
                self.pods[name] = parent.completed_pod(pod, session.gates)


def is_managed(parent: GroupParent, environment: Environment, settings: JobSettings) -> bool:
    """Return True if a parent is queued: it has a queue or needs none, and no owner is admitted in its place."""
    if parent.is_of_another_parent:
        return False
    management = settings.management
    if ancestry.ancestor({"metadata": parent.metadata}, environment.owners, management) is not None:
        return False
    if parent.labels.get(QUEUE_LABEL):
        return True
    namespace = environment.namespace_labels
    return management.without_queue_name and namespace is not None and settings.namespaces.matches(namespace)


def _is_owner(parent: GroupParent, wl: workload.Workload) -> bool:
    return any(each.uid == parent.uid for each in wl.metadata.owner_references)


def _owner_annotations(parent: GroupParent) -> dict[str, str]:
    kind = parent.kind
    return {_OWNER_KIND: f"{kind.api_version}, Kind={kind.kind}", _OWNER_NAME: parent.name}
