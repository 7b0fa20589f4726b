"""Requests for places on topologies: pod sets that need one, flavors that can provide one, and delays of the search.

A pod set needs a place if it requests one, or if all flavors of its queue have a topology. Places come from exactly one
flavor of the pod set. The search is delayed while a flavor's nodes are not provisioned yet, and left to another cluster
if the queue dispatches workloads to it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec import structs

from drachma.api import pod
from drachma.queueing.admission import flavormatching
from drachma.queueing.admission.flavorassignment import Assignment, PodSetAssignment
from drachma.queueing.admission.snapshot import Group, QueueState
from drachma.queueing.admission.topologies import FlavorRequests, Topologies, admitted_places
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.kinds import decoding, resourceflavor, workload
from drachma.queueing.topology import assignment as compact
from drachma.queueing.topology import shape
from drachma.queueing.topology.shape import PodSetRequest
from drachma.queueing.workloads import podsetinfo, requests, workloadstate
from drachma.queueing.workloads.workloadinfo import WorkloadInfo
from drachma.values import quotation

_NO_TOPOLOGY: Final = "workload requires Topology, but there is no TAS cache information"
_NO_FLAVOR: Final = "no TAS flavor assigned"
_ELASTIC: Final = "{} topology is not supported with ElasticJobsViaWorkloadSlices"


class RequestError(Exception):
    """A pod set whose place cannot be searched; the text is Kueue's message."""


def is_explicit(pod_set: workload.PodSet) -> bool:
    """Return True if a pod set itself requests a topology."""
    request = pod_set.topology_request
    return request is not None and (
        request.unconstrained is not None
        or request.required is not None
        or request.preferred is not None
        or request.pod_set_slice_required_topology is not None
        or request.pod_set_slice_size is not None
        or bool(request.podset_slice_required_topology_constraints)
    )


def needs_place(pod_set: workload.PodSet, queue: QueueState) -> bool:
    """Return True if a pod set must be placed on a topology."""
    return queue.is_topology_only or is_explicit(pod_set)


def check(queue: QueueState, group: Group, topologies: Topologies, *, gates: Gates) -> flavormatching.Check:
    """Return the comparison of flavors of a queue's resource group with the topology that pod sets need."""
    if not gates.on(Gate.TAS):
        return lambda _flavor, _pod_set: None
    return functools.partial(_mismatch, queue=queue, group=group, topologies=topologies)


def _mismatch(
    flavor: resourceflavor.ResourceFlavor,
    pod_set: workload.PodSet,
    *,
    queue: QueueState,
    group: Group,
    topologies: Topologies,
) -> str | None:
    """Return the reason why a flavor does not provide the topology that a pod set needs, or None if it does."""
    quoted = quotation.quote(flavor.metadata.name)
    if not is_explicit(pod_set):
        if queue.is_topology_only or flavor.spec.topology_name is None:
            return None
        return f"Flavor {quoted} supports only TopologyAwareScheduling"
    if flavor.spec.topology_name is None:
        if group.resources.isdisjoint(requests.pod_requests(pod_set)):
            # Its quota is for resources that no node provides.
            return None
        return f"Flavor {quoted} does not support TopologyAwareScheduling"
    tree = topologies.tree(flavor.metadata.name)
    if tree is None:
        return f"Flavor {quoted} information missing in TAS cache"
    if not shape.has_levels(tree, pod_set.topology_request):
        return f"Flavor {quoted} does not contain the requested level"
    return None


class Requested(NamedTuple):
    """Requests by flavor, and the assignment with the problems and delays of single pod sets."""

    assignment: Assignment
    requests: FlavorRequests


class RequestBuilder:
    """Builds the requests of one workload in its queue."""

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
        self._replaced = replaced
        self._flavors = frozenset(name for group in queue.groups for name in group.flavors if name in topologies)
        self._pods = {each.name: each.pod for each in info.pod_sets}

    def topology_flavor(self, assigned: PodSetAssignment) -> str:
        """Return the flavor of a pod set that has a topology. Raises RequestError unless there is exactly one."""
        names = sorted({each.name for each in assigned.flavors.values()} & self._flavors)
        if not names:
            raise RequestError(_NO_FLAVOR)
        if len(names) > 1:
            raise RequestError(f"more than one TAS flavor assigned: {', '.join(names)}")
        return names[0]

    def build(self, assignment: Assignment) -> Requested:
        """Return the requests of all pod sets that need a place and have none."""
        by_flavor: dict[str, list[PodSetRequest]] = {}
        pod_sets = {each.name: each for each in assignment.pod_sets}
        is_valid = True
        for pod_set in self._info.workload.spec.pod_sets:
            assigned = pod_sets.get(pod_set.name)
            if assigned is None or not self._is_missing(pod_set, assigned):
                continue
            try:
                flavor, request = self._request(pod_set, assigned)
            except RequestError as error:
                pod_sets[pod_set.name] = structs.replace(assigned, error=str(error))
                is_valid = False
                continue
            if request is None:
                pod_sets[pod_set.name] = structs.replace(assigned, delayed=workloadstate.PENDING)
            else:
                by_flavor.setdefault(flavor, []).append(request)
        after = structs.replace(assignment, pod_sets=tuple(pod_sets.values()))
        return Requested(after if is_valid else structs.replace(after, overall=None), by_flavor)

    def _is_missing(self, pod_set: workload.PodSet, assigned: PodSetAssignment) -> bool:
        if not needs_place(pod_set, self._queue) or assigned.error or not assigned.count:
            return False
        return assigned.topology is None or has_unhealthy_node(self._info.workload, assigned.topology)

    def _request(self, pod_set: workload.PodSet, assigned: PodSetAssignment) -> tuple[str, PodSetRequest | None]:
        """Return the flavor and the request, or None if the search is delayed. Raises RequestError."""
        previous = self._previous(pod_set)
        if not self._flavors:
            raise RequestError(_NO_TOPOLOGY)
        flavor = self.topology_flavor(assigned)
        is_first = not self._info.has_reservation
        if self._queue.is_dispatched or (is_first and flavor in self._queue.provisioned_flavors):
            return flavor, None
        updated, problem = _with_updates(pod_set, self._info.workload.status.admission_checks)
        request = pod_set.topology_request
        return flavor, PodSetRequest(
            pod_set=updated,
            pods=assigned.count,
            per_pod=self._pods.get(pod_set.name, {}),
            group=None if request is None else request.pod_set_group_name,
            is_implied=not is_explicit(pod_set),
            previous=previous,
            claims=self._topologies.claims(self._info.workload, pod_set),
            problem=problem,
        )

    def _previous(self, pod_set: workload.PodSet) -> compact.Assignment | None:
        """Return the places of the workload that this one replaces. Raises RequestError."""
        if not (
            self._gates.on(Gate.ELASTIC_JOBS_WITH_TAS) and workloadstate.is_elastic(self._info.workload, self._gates)
        ):
            return None
        request = pod_set.topology_request
        for name in ("required", "preferred"):
            if request is not None and getattr(request, name) is not None:
                raise RequestError(_ELASTIC.format(name))
        return None if self._replaced is None else admitted_places(self._replaced.workload).get(pod_set.name)


def has_unhealthy_node(wl: workload.Workload, places: compact.Assignment) -> bool:
    """Return True if pods are placed on a node that failed."""
    failed = {each.name for each in wl.status.unhealthy_nodes}
    return any(domain.values[-1] in failed for domain in places.domains)


def _with_updates(
    pod_set: workload.PodSet, checks: Iterable[workload.AdmissionCheckState]
) -> tuple[workload.PodSet, str]:
    """Return a pod set with the updates of its checks, or with a problem if they contradict it."""
    updates = [
        update
        for check in checks
        if check.state == workloadstate.READY
        for update in check.pod_set_updates
        if update.name == pod_set.name
    ]
    if not updates:
        return pod_set, ""
    info = podsetinfo.template_info(decoding.document(pod_set.template))
    try:
        for update in updates:
            info = info.merged(podsetinfo.update_info(update))
    except podsetinfo.PodSetConflictError as error:
        return pod_set, f"invalid podSetUpdate for PodSet {pod_set.name}, error: {error}"
    spec = structs.replace(
        pod_set.template.spec,
        node_selector=info.node_selector,
        tolerations=tuple(decoding.decode(each, pod.Toleration) for each in info.tolerations),
    )
    return structs.replace(pod_set, template=structs.replace(pod_set.template, spec=spec)), ""
