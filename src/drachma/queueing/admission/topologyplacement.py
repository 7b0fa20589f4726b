"""Placement of a workload on topologies, as part of its flavor assignment.

Quota comes first. Pod sets that fit into the quota are placed next to the admitted workloads. If that is impossible,
or if quota needs preemption, the pod sets must at least find places on empty nodes, because preemption cannot help
otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import structs

from drachma.queueing.admission.flavorassignment import Assignment, Mode, PodSetAssignment, Reason
from drachma.queueing.admission.snapshot import QueueState, Snapshot
from drachma.queueing.admission.topologies import FlavorRequests, Places, Topologies, admitted_places
from drachma.queueing.admission.topologyrequests import (
    RequestBuilder,
    RequestError,
    has_unhealthy_node,
    is_explicit,
)
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.kinds import workload
from drachma.queueing.topology import assignment as compact
from drachma.queueing.workloads import workloadstate
from drachma.queueing.workloads.placedpods import PlacedPods
from drachma.queueing.workloads.workloadinfo import WorkloadInfo


class TopologyPlacement:
    """Places of one workload."""

    def __init__(
        self,
        info: WorkloadInfo,
        queue: QueueState,
        topologies: Topologies,
        *,
        gates: Gates,
        replaced: WorkloadInfo | None = None,
    ) -> None:
        self._info = info
        self._queue = queue
        self._topologies = topologies
        self._gates = gates
        self._builder = RequestBuilder(info, queue, topologies, gates=gates, replaced=replaced)

    @property
    def is_used(self) -> bool:
        """True if topologies matter at all."""
        return self._gates.on(Gate.TAS)

    def assign(self, assignment: Assignment) -> Assignment:
        """Add places to an assignment whose quota fits or can be preempted, or change its mode."""
        if not self.is_used:
            return assignment
        assignment, requests = self._builder.build(assignment)
        if assignment.mode is Mode.FIT:
            places = self._search(requests)
            if places.failure is None:
                return self._with_places(assignment, places)
            failed = places.failure
            assignment = _change(
                assignment, [failed.pod_set], Mode.PREEMPT, reason=failed.reason, pod_set=failed.pod_set
            )
        if assignment.mode is Mode.PREEMPT and not self._info.workload.status.unhealthy_nodes:
            # A node is not replaced by preempting other workloads.
            places = self._search(requests, ignores_usage=True)
            if places.failure is None:
                names = [each.name for flavor in requests.values() for each in flavor]
                return _change(assignment, names, Mode.PREEMPT)
            failed = places.failure
            assignment = _mark_failed(assignment, failed.pod_set, failed.flavor)
            return _change(assignment, [failed.pod_set], Mode.NO_FIT)
        return assignment

    def requests(self, assignment: Assignment) -> FlavorRequests:
        """Return the pod sets of an assignment that have no places yet."""
        return self._builder.build(assignment).requests if self.is_used else {}

    def has_room(self, requests: FlavorRequests) -> bool:
        """Return True if pod sets find places now."""
        return not requests or self._search(requests).failure is None

    def reserve(self, assignment: Assignment, victims: Iterable[WorkloadInfo], snapshot: Snapshot) -> Assignment:
        """Add the places that an assignment gets once its victims are gone.

        Without victims, the places are those on empty nodes, which nothing later in the cycle may take.
        """
        wl = self._info.workload
        is_placed = self._queue.is_topology_only or any(map(is_explicit, wl.spec.pod_sets))
        if not self.is_used or assignment.mode is not Mode.PREEMPT or not is_placed or is_node_failed(wl):
            return assignment
        assignment, requests = self._builder.build(assignment)
        victims = tuple(victims)
        with snapshot.without_usage(victims):
            places = self._search(requests, ignores_usage=not victims)
        return self._with_places(assignment, places)

    def usage(self, assignment: Assignment) -> tuple[PlacedPods, ...]:
        """Return the places of an assignment beyond those that the workload holds already."""
        if not self.is_used:
            return ()
        held_places = admitted_places(self._info.workload)
        pods = {each.name: each.pod for each in self._info.pod_sets}
        usage: list[PlacedPods] = []
        for each in assignment.pod_sets:
            if each.topology is None:
                continue
            try:
                flavor = self._builder.topology_flavor(each)
            except RequestError:
                continue
            domains = each.topology.domains
            if each.name in held_places:
                placed = {domain.values: domain.pods for domain in held_places[each.name].domains}
                more = (domain._replace(pods=domain.pods - placed.get(domain.values, 0)) for domain in domains)
                domains = tuple(domain for domain in more if domain.pods > 0)
            usage.append(PlacedPods(flavor, pods.get(each.name, {}), domains))
        return tuple(usage)

    def _search(self, requests: FlavorRequests, *, ignores_usage: bool = False) -> Places:
        return self._topologies.place(requests, self._info.workload, ignores_usage=ignores_usage)

    def _with_places(self, assignment: Assignment, places: Places) -> Assignment:
        return structs.replace(
            assignment, pod_sets=tuple(_with_place(each, places.assignments) for each in assignment.pod_sets)
        )


def is_node_failed(wl: workload.Workload) -> bool:
    """Return True if an admitted workload has pods on a node that failed."""
    if not wl.status.unhealthy_nodes or not workloadstate.is_admitted(wl):
        return False
    return any(has_unhealthy_node(wl, places) for places in admitted_places(wl).values())


def needs_second_pass(wl: workload.Workload) -> bool:
    """Return True if a workload that holds quota has to be placed: after provisioning, or after a node failure."""
    if workloadstate.is_finished(wl) or workloadstate.is_evicted(wl) or not workloadstate.has_reservation(wl):
        return False
    is_provisioned = (
        bool(wl.status.admission_checks)
        and workloadstate.has_all_checks_ready(wl)
        and workloadstate.awaits_topology(wl)
        and not workloadstate.is_admitted(wl)
    )
    return is_provisioned or is_node_failed(wl)


def _with_place(assigned: PodSetAssignment, places: Mapping[str, compact.Assignment]) -> PodSetAssignment:
    place = places.get(assigned.name)
    if place is None:
        return assigned
    delayed = None if assigned.delayed is None else workloadstate.READY
    return structs.replace(assigned, topology=place, delayed=delayed)


def _change(
    assignment: Assignment, names: Iterable[str], mode: Mode, *, reason: str = "", pod_set: str = ""
) -> Assignment:
    """Return the assignment with a mode for some pod sets and as a whole, and a reason for one of them."""
    changed = frozenset(names)
    if not changed:
        return assignment
    pod_sets = tuple(each.with_mode(mode) if each.name in changed else each for each in assignment.pod_sets)
    if reason:
        pod_sets = tuple(
            structs.replace(each, reasons=(*each.reasons, reason)) if each.name == pod_set else each
            for each in pod_sets
        )
    return structs.replace(assignment, pod_sets=pod_sets, overall=mode)


def _mark_failed(assignment: Assignment, pod_set: str, flavor: str) -> Assignment:
    """Return the assignment with the failed placement in the attempts of a pod set."""

    def marked(each: PodSetAssignment) -> PodSetAssignment:
        if each.name != pod_set:
            return each
        attempts = tuple(
            structs.replace(attempt, mode=Mode.NO_FIT, no_fit_reason=Reason.TOPOLOGY_PLACEMENT_FAILED)
            if attempt.flavor == flavor
            else attempt
            for attempt in each.attempts
        )
        return structs.replace(each, attempts=attempts)

    return structs.replace(assignment, pod_sets=tuple(map(marked, assignment.pod_sets)))
