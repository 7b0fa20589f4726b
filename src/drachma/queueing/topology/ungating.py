"""Ungating: the node selectors that the gated pods of an admitted workload get.

Pods with an index get the domain of their rank: the domains of the assignment, each as often as its number of pods.
If any pod of a set lacks a valid rank, or runs in another domain than its rank says, the domains are filled in order.
A pod whose domain is an unhealthy node stays gated until the node is replaced.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from drachma import errors
from drachma.api import meta, pod
from drachma.queueing import conditions
from drachma.queueing.kinds import workload
from drachma.queueing.topology import assignment
from drachma.values import labels, quotation

GATE: Final = "kueue.x-k8s.io/topology"
POD_SET_LABEL: Final = "kueue.x-k8s.io/podset"
WORKLOAD_NAME: Final = "kueue.x-k8s.io/workload"
INDEX_OFFSET: Final = "kueue.x-k8s.io/pod-index-offset"

_ENDED: Final = frozenset({"Succeeded", "Failed"})

_Domain = tuple[str, ...]


class Ungating(NamedTuple):
    """Pod to ungate, and the labels to add to its node selector."""

    pod: pod.Pod
    node_selector: dict[str, str]


class _Ranks(NamedTuple):
    """Indexes of the pods of a set: the first one, and the one after the last."""

    offset: int
    end: int

    def shift(self, offset: int) -> _Ranks:
        return _Ranks(self.offset + offset, self.end + offset)


def find_pods(admitted: workload.Workload, pods: Sequence[pod.Pod]) -> list[Ungating]:
    """Return the gated pods of a workload that can be ungated. Raises InvalidValueError for a bad index offset.

    ``pods`` are those of the namespace. Pods of other workloads, and pods that have ended, do not count.
    """
    admission = admitted.status.admission
    if admission is None or not _is_admitted(admitted):
        return []
    requests = {each.name: each.topology_request for each in admitted.spec.pod_sets}
    ranks = _all_ranks(admission, requests)
    unhealthy = {each.name for each in admitted.status.unhealthy_nodes}
    own_pods = [member for member in pods if workload_name(member) == workload_name(admitted)]
    ungatings: list[Ungating] = []
    for each in admission.pod_set_assignments:
        if each.topology_assignment is None:
            continue
        decoded = assignment.decode(each.topology_assignment)
        members = [
            member
            for member in own_pods
            if member.metadata.labels.get(POD_SET_LABEL) == each.name and member.status.phase not in _ENDED
        ]
        own_ranks = ranks[each.name].shift(_index_offset(members))
        domains = _assign_by_rank(members, decoded, requests.get(each.name), own_ranks, size=each.count or 0)
        if domains is None:
            domains = _assign_in_order(members, decoded)
        has_hostnames = decoded.levels[-1:] == (assignment.HOSTNAME,)
        ungatings += [
            Ungating(member, dict(zip(decoded.levels, domain, strict=True)))
            for member, domain in domains
            if not (has_hostnames and domain[-1] in unhealthy)
        ]
    return ungatings


def is_gated(checked: pod.Pod) -> bool:
    """Return True if a pod waits for its topology domain."""
    return any(gate.name == GATE for gate in checked.spec.scheduling_gates)


def workload_name(owner: meta.Object) -> str:
    """Return the name that a workload and its pods share: that of the first workload of an elastic job."""
    annotations = owner.metadata.annotations
    if workload.SLICE_NAME in annotations:
        return annotations[workload.SLICE_NAME]
    return owner.metadata.name if isinstance(owner, workload.Workload) else annotations.get(WORKLOAD_NAME, "")


def _is_admitted(checked: workload.Workload) -> bool:
    return conditions.is_true(checked.status.conditions, conditions.ADMITTED)


def _all_ranks(
    admission: workload.Admission, requests: Mapping[str, workload.PodSetTopologyRequest | None]
) -> dict[str, _Ranks]:
    """Return the ranks of each pod set. In a group the leader, which has fewer pods, comes before the workers."""
    groups: dict[str, list[workload.PodSetAssignment]] = {}
    for number, each in enumerate(admission.pod_set_assignments):
        request = requests.get(each.name)
        name = None if request is None else request.pod_set_group_name
        groups.setdefault(str(number) if name is None else name, []).append(each)
    ranks: dict[str, _Ranks] = {}
    for members in groups.values():
        first = 0
        # Sorting is stable: of equals the first pod set is the leader.
        for each in sorted(members[:2], key=lambda member: member.count or 0):
            ranks[each.name] = _Ranks(first, first + (each.count or 0))
            first += each.count or 0
        for each in members[2:]:
            ranks[each.name] = _Ranks(0, 0)
    return ranks


def _index_offset(members: Sequence[pod.Pod]) -> int:
    text = members[0].metadata.annotations.get(INDEX_OFFSET) if members else None
    if text is None:
        return 0
    offset = labels.parse_int64(text)
    if offset is None:
        raise errors.InvalidValueError(
            f"pod {members[0].metadata.name}: annotation {INDEX_OFFSET}: {quotation.quote(text)} is no number"
        )
    return offset


def _assign_by_rank(
    members: Sequence[pod.Pod],
    decoded: assignment.Assignment,
    request: workload.PodSetTopologyRequest | None,
    ranks: _Ranks,
    *,
    size: int,
) -> list[tuple[pod.Pod, _Domain]] | None:
    """Return the domains of gated pods by their ranks, or None if ranks cannot be used."""
    if request is None or request.pod_index_label is None:
        return None
    ends = list(itertools.accumulate(domain.pods for domain in decoded.domains))
    gated: list[tuple[pod.Pod, _Domain]] = []
    used_ranks: set[int] = set()
    for member in members:
        rank = _rank(member, request, ranks, size=size)
        if rank is None or rank in used_ranks or not ends or rank >= ends[-1]:
            return None
        used_ranks.add(rank)
        domain = decoded.domains[bisect.bisect_right(ends, rank)].values
        if is_gated(member):
            gated.append((member, domain))
        elif _selected_domain(member, decoded.levels) != domain:
            return None
    return gated


def _rank(member: pod.Pod, request: workload.PodSetTopologyRequest, ranks: _Ranks, *, size: int) -> int | None:
    index = _read_index(member, request.pod_index_label or "", ranks.end)
    if index is None:
        return None
    rank = index - ranks.offset
    if request.sub_group_index_label is not None:
        group_count = request.sub_group_count or 0
        if group_count <= 0:
            return None
        group_size = size // group_count
        group = _read_index(member, request.sub_group_index_label, group_count)
        if group is None or index >= group_size:
            return None
        rank += group * group_size
    return rank if 0 <= rank < size else None


def _read_index(member: pod.Pod, label: str, bound: int) -> int | None:
    text = member.metadata.labels.get(label)
    index = None if text is None else labels.parse_int64(text)
    return index if index is not None and 0 <= index < bound else None


def _assign_in_order(members: Sequence[pod.Pod], decoded: assignment.Assignment) -> list[tuple[pod.Pod, _Domain]]:
    """Fill the domains in their order with gated pods, up to the pods that run there already."""
    gated = iter([member for member in members if is_gated(member)])
    running: dict[_Domain, int] = {}
    for member in members:
        if not is_gated(member):
            domain = _selected_domain(member, decoded.levels)
            running[domain] = running.get(domain, 0) + 1
    places = (domain.values for domain in decoded.domains for _ in range(domain.pods - running.get(domain.values, 0)))
    return list(zip(gated, places, strict=False))


def _selected_domain(member: pod.Pod, levels: Sequence[str]) -> _Domain:
    return tuple(member.spec.node_selector.get(level, "") for level in levels)
