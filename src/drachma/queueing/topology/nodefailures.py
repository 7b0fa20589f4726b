"""Node failures: the workloads that have to leave a node, and the pods that wait for it in vain.

A node that is gone or reports no readiness has failed for all its workloads. A node that is not ready, or has a taint
that a workload does not tolerate, has failed for the workload once none of its pods is alive there. One failed node is
replaced by the scheduler; a workload with a second failed node is evicted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from msgspec import structs

from drachma.api import node, pod
from drachma.claims import conditions, taints
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.kinds import resourceflavor, workload
from drachma.queueing.topology import assignment, podusage, ungating
from drachma.queueing.workloads import transitions, workloadstate

REASON: Final = transitions.NODE_FAILURES
POD_CONDITION: Final = "TerminatedByKueue"
POD_REASON: Final = "UnschedulableOnAssignedNode"
POD_MESSAGE: Final = "Pod terminated by Kueue NodeController due to node taint"
POD_EVENT: Final = "PodTerminatedByKueue"

_DELAY: Final = timedelta(seconds=30)
_ENDED: Final = frozenset({"Succeeded", "Failed"})
_EFFECTS: Final = frozenset({taints.NO_SCHEDULE, taints.NO_EXECUTE})


class Cluster(NamedTuple):
    """Objects that decide about the workloads of a node."""

    workloads: Sequence[workload.Workload]
    pods: Sequence[pod.Pod]
    flavors: Mapping[str, resourceflavor.ResourceFlavor]


class Outcome(NamedTuple):
    """Changes that follow from the state of a node."""

    workloads: Sequence[workload.Workload] = ()
    """Workloads with a changed status."""
    failed_pods: Sequence[pod.Pod] = ()
    """Pods to fail, because they wait for the node and will not run there."""
    requeue_after: timedelta = timedelta(0)


def check(name: str, checked: node.Node | None, cluster: Cluster, *, gates: Gates, now: datetime) -> Outcome:
    """Check the workloads of a node, which is None if it was deleted."""
    waits_for_pods = gates.on(Gate.TAS_REPLACE_ON_POD_TERMINATION)
    ready = None if checked is None else _ready_condition(checked)
    has_expired = False
    if ready is not None and ready.status != "True":
        remaining = _DELAY - (now - (ready.last_transition_time or now))
        has_expired = remaining <= timedelta(0)
        if not has_expired and not waits_for_pods:
            return Outcome(requeue_after=remaining)
    inspection = _Inspection(name, cluster, gates=gates, now=now)
    assigned = inspection.assigned_workloads()
    if checked is None or ready is None:
        return Outcome([change for each in assigned if (change := inspection.mark(each)) is not None])
    changes: dict[str, workload.Workload] = {}
    if gates.on(Gate.TAS_REPLACE_OVER_FIXED_TIME) and has_expired:
        for each in assigned:
            change = inspection.mark(each)
            if change is not None:
                changes[workloadstate.key(each)] = change
    failed_pods: list[pod.Pod] = []
    for each in inspection.all_workloads(assigned):
        current = changes.get(workloadstate.key(each), each)
        if workloadstate.is_evicted(current):
            continue
        is_unhealthy, waiting = inspection.status(current, checked, is_ready=ready.status == "True")
        change = inspection.mark(current) if is_unhealthy else inspection.unmark(current)
        if change is not None:
            changes[workloadstate.key(each)] = current = change
        if not workloadstate.is_evicted(current):
            failed_pods += waiting
    return Outcome(list(changes.values()), failed_pods)


class _Inspection:
    """Workloads of one node."""

    def __init__(self, name: str, cluster: Cluster, *, gates: Gates, now: datetime) -> None:
        self._name: Final = name
        self._cluster: Final = cluster
        self._gates: Final = gates
        self._now: Final = now

    def assigned_workloads(self) -> list[workload.Workload]:
        """Return the workloads with pods assigned to the node."""
        return [each for each in self._cluster.workloads if _is_live(each) and _uses(each, self._name)]

    def all_workloads(self, assigned: Iterable[workload.Workload]) -> list[workload.Workload]:
        """Return the assigned workloads, and others whose pods select the node."""
        listed = list(assigned)
        known_names = {workloadstate.key(each) for each in listed}
        late_names = {
            f"{each.metadata.namespace}/{each.metadata.annotations.get(ungating.WORKLOAD_NAME, '')}"
            for each in self._selecting_pods()
        }
        return listed + [
            each
            for each in self._cluster.workloads
            if _is_live(each) and workloadstate.key(each) in late_names - known_names
        ]

    def status(self, checked: workload.Workload, at: node.Node, *, is_ready: bool) -> tuple[bool, list[pod.Pod]]:
        """Return True if the node has failed for a workload, and the workload's pods that wait for the node."""
        waits_for_pods = self._gates.on(Gate.TAS_REPLACE_ON_POD_TERMINATION)
        waiting = self._waiting_pods(checked)
        if not _uses(checked, self._name):
            return False, waiting
        if is_ready:
            has_untolerated, has_temporary = self._taints(checked, at)
            if not has_untolerated and not has_temporary:
                return False, []
            if has_untolerated and not waits_for_pods:
                return True, []
        elif not waits_for_pods:
            return True, []
        return not self._has_live_pods(checked), waiting

    def mark(self, checked: workload.Workload) -> workload.Workload | None:
        """Return the workload with the node as unhealthy, or evicted if it has another unhealthy node already."""
        names = [each.name for each in checked.status.unhealthy_nodes]
        if self._name in names or workloadstate.is_evicted(checked):
            return None
        if names:
            message = (
                "Workload eviction triggered due to multiple TAS assigned node failures, including: "
                f"{', '.join([*names, self._name])}"
            )
            return transitions.evict(checked, reason=REASON, message=message, now=self._now)
        status = structs.replace(checked.status, unhealthy_nodes=(workload.Named(name=self._name),))
        return structs.replace(checked, status=status)

    def unmark(self, checked: workload.Workload) -> workload.Workload | None:
        """Return the workload without the node among its unhealthy ones, or None if it is not among them."""
        unhealthy = tuple(each for each in checked.status.unhealthy_nodes if each.name != self._name)
        if len(unhealthy) == len(checked.status.unhealthy_nodes):
            return None
        nodes = unhealthy or workload.WorkloadStatus().unhealthy_nodes
        return structs.replace(checked, status=structs.replace(checked.status, unhealthy_nodes=nodes))

    def _taints(self, checked: workload.Workload, at: node.Node) -> tuple[bool, bool]:
        """Return if a taint is not tolerated, and if one is tolerated for a limited time only."""
        if not self._gates.on(Gate.TAS_REPLACE_ON_TAINTS):
            return False, False
        effective = [taint for taint in at.spec.taints if taint.effect in _EFFECTS]
        tolerations = self._tolerations(checked)
        untolerated = any(not taints.is_tolerated(taint, each) for taint in effective for each in tolerations)
        temporary = any(
            not taints.is_tolerated(taint, [entry for entry in each if entry.toleration_seconds is None])
            for taint in effective
            for each in tolerations
        )
        return untolerated, temporary

    def _tolerations(self, checked: workload.Workload) -> list[list[pod.Toleration]]:
        """Return the tolerations of each pod set on the node: its own, those of flavors and of admission checks."""
        pod_sets = {each.name: each for each in checked.spec.pod_sets}
        admission = checked.status.admission
        result = []
        for each in admission.pod_set_assignments if admission is not None else ():
            if each.name not in pod_sets or not _has_node(each, self._name):
                continue
            flavors = [self._cluster.flavors[name] for name in each.flavors.values() if name in self._cluster.flavors]
            updates = [
                update
                for state in checked.status.admission_checks
                for update in state.pod_set_updates
                if update.name == each.name
            ]
            result.append(
                [
                    *pod_sets[each.name].template.spec.tolerations,
                    *(entry for flavor in flavors for entry in flavor.spec.tolerations),
                    *(entry for update in updates for entry in update.tolerations),
                ]
            )
        return result

    def _selecting_pods(self) -> list[pod.Pod]:
        return [
            each
            for each in self._cluster.pods
            if podusage.has_topology(each)
            and each.spec.node_selector.get(assignment.HOSTNAME) == self._name
            and ungating.WORKLOAD_NAME in each.metadata.annotations
        ]

    def _waiting_pods(self, checked: workload.Workload) -> list[pod.Pod]:
        return [
            each
            for each in self._selecting_pods()
            if (each.metadata.namespace, each.metadata.annotations[ungating.WORKLOAD_NAME])
            == (checked.metadata.namespace, checked.metadata.name)
            and not each.spec.node_name
            and each.status.phase == "Pending"
            and not ungating.is_gated(each)
        ]

    def _has_live_pods(self, checked: workload.Workload) -> bool:
        return any(
            each.spec.node_name == self._name
            and each.metadata.namespace == checked.metadata.namespace
            and ungating.workload_name(each) == ungating.workload_name(checked)
            and each.metadata.deletion_timestamp is None
            and each.status.phase not in _ENDED
            for each in self._cluster.pods
        )


def _ready_condition(checked: node.Node) -> node.NodeCondition | None:
    return conditions.find(checked.status.conditions, "Ready")


def _is_live(checked: workload.Workload) -> bool:
    return not workloadstate.is_finished(checked) and not workloadstate.is_evicted(checked)


def _uses(checked: workload.Workload, name: str) -> bool:
    admission = checked.status.admission
    return admission is not None and any(_has_node(each, name) for each in admission.pod_set_assignments)


def _has_node(assigned: workload.PodSetAssignment, name: str) -> bool:
    if assigned.topology_assignment is None:
        return False
    decoded = assignment.decode(assigned.topology_assignment)
    return decoded.levels[-1:] == (assignment.HOSTNAME,) and any(
        domain.values[-1] == name and domain.pods for domain in decoded.domains
    )
