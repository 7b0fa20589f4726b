"""Changes of the cluster: nodes and devices that fail and return, and objects that are added, changed or removed.

Pods on failed nodes and devices are lost one after the other. A node joins before its drivers publish its devices, so
pods that need no devices may get it first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from drachma.api import devices as deviceapi
from drachma.api import devicetaintrule, meta, node, resourceslice
from drachma.scheduler.snapshot import kinds
from drachma.simulate import nodeusage
from drachma.simulate.simulation import Simulation
from drachma.simulate.timeline.agenda import Agenda
from drachma.simulate.timeline.capacity import Capacity
from drachma.simulate.timeline.events import ClusterChange, DeviceFault, NodeOutage
from drachma.simulate.timeline.podlifecycle import PodLifecycle
from drachma.simulate.timeline.scaling import Scaling
from drachma.simulate.timeline.waitingline import WaitingLine

if TYPE_CHECKING:
    from drachma.simulate.timeline.quota import Quota

_FOLLOWED: Final = frozenset(row.kind for row in kinds.TABLE)
"""Kinds whose changes can help waiting pods."""

_FAULT: Final = "drachma.dev/fault"
"""Key of the taint of failed devices."""

Identity = tuple[str, str, str]
"""Kind, namespace and name of an object."""


class ClusterEvents:
    """Applies changes to a cluster and to everything that follows it."""

    def __init__(
        self,
        cluster: Simulation,
        *,
        pods: PodLifecycle,
        line: WaitingLine,
        agenda: Agenda,
        capacity: Capacity | None,
        quota: Quota | None,
        scaling: Scaling | None,
        now: Callable[[], float],
        place_all: Callable[[], object],
    ) -> None:
        """``place_all`` lets the scheduler try all pods that a change may help."""
        self.changed_objects: Final[dict[Identity, meta.Object | None]] = {}
        """Objects that events have changed, None for those that are gone."""
        self._cluster: Final = cluster
        self._pods: Final = pods
        self._line: Final = line
        self._agenda: Final = agenda
        self._capacity: Final = capacity
        self._quota: Final = quota
        self._scaling: Final = scaling
        self._now: Final = now
        self._place_all: Final = place_all
        self._fault_numbers: Final = itertools.count()

    def fail_nodes(self, outage: NodeOutage) -> None:
        """Remove nodes, evict their pods, and plan their return."""
        returning: list[meta.Object] = []
        for name in outage.nodes:
            info = self._cluster.snapshot.nodes.find(name)
            if info is None:
                continue
            slices = nodeusage.own_slices(self._cluster.snapshot, name)
            returning += [info.node, *slices]
            uids = list(info.ledger.bookings)
            # The node goes first: pods that leave it must not make room for others there.
            self._cluster.remove_node(name, [str(each.metadata.name) for each in slices])
            for uid in uids:
                running_pod = self._pods.running.get(uid)
                if running_pod is not None:
                    self._pods.lose(running_pod, reason=outage.reason)
            if self._capacity is not None:
                self._capacity.count_node(info.ledger.allocatable, slices, -1)
            self.changed_objects.update(dict.fromkeys(map(identity_of, (info.node, *slices))))
            if self._scaling is not None:
                self._scaling.forget_node(name)
        if self._capacity is not None:
            self._capacity.count_groups()
        if outage.until is not None and returning:
            self._agenda.plan(outage.until, ClusterChange(outage.until, applied=tuple(returning)))

    def fail_devices(self, fault: DeviceFault) -> None:
        """Taint devices, and evict the pods that use them. The repair removes the taint."""
        number = next(self._fault_numbers)
        rules: list[meta.Object] = []
        failed = set()
        for name, device in fault.devices:
            for each in nodeusage.own_slices(self._cluster.snapshot, name):
                if any(own.name == device for own in each.spec.devices):
                    failed.add((each.spec.driver, each.spec.pool.name, device))
                    rules.append(_fault_rule(each, device, number))
        self.change(ClusterChange(self._now(), applied=tuple(rules)))
        for claim in list(self._cluster.snapshot.claims) if failed else ():
            results = claim.status.allocation.devices.results if claim.status.allocation is not None else ()
            if any((each.driver, each.pool, each.device) in failed for each in results):
                for user in claim.status.reserved_for:
                    running_pod = self._pods.running.get(str(user.uid))
                    if running_pod is not None:
                        self._pods.lose(running_pod, reason="device failure")
        if fault.until is not None and rules:
            self._agenda.plan(fault.until, ClusterChange(fault.until, removed=tuple(rules)))

    def change(self, change: ClusterChange) -> None:
        """Add, change and remove objects."""
        for removed in change.removed:
            if isinstance(removed, node.Node):
                self.fail_nodes(NodeOutage(self._now(), (str(removed.metadata.name),), None, reason="removal"))
            else:
                self._cluster.remove(removed)
                self.changed_objects[identity_of(removed)] = None
        new_nodes = [each for each in change.applied if isinstance(each, node.Node) and not self._exists(each)]
        names = {str(each.metadata.name) for each in new_nodes}
        slices = tuple(each for each in change.applied if _is_slice_of(each, names))
        first = tuple(each for each in change.applied if not _is_slice_of(each, names))
        if first or change.removed:
            self._apply(first, removed=change.removed)
        if slices:
            self._place_all()
            self._apply(slices)
        if self._scaling is not None:
            for machine in new_nodes:
                self._scaling.note_node(machine)
        if self._capacity is not None:
            machines = [each for each in first if isinstance(each, node.Node | resourceslice.ResourceSlice)]
            if len(machines) > len(new_nodes):
                self._capacity.count_all()
            else:
                self._capacity.count_new(names)

    def _exists(self, machine: node.Node) -> bool:
        return self._cluster.snapshot.nodes.find(str(machine.metadata.name)) is not None

    def _apply(self, applied: Sequence[meta.Object], removed: Sequence[meta.Object] = ()) -> None:
        """Add objects, and try the pods again that they, or the removal of others, can help."""
        self._cluster.add(applied)
        self.changed_objects.update({identity_of(each): each for each in applied})
        if self._quota is not None:
            self._quota.change(applied, removed, self._now())
        for each in applied:
            for news in kinds.row(type(each)).changes(None, each) if type(each) in _FOLLOWED else ():
                self._line.wake(news)
        for each in removed:
            for news in kinds.row(type(each)).changes(each, None) if type(each) in _FOLLOWED else ():
                self._line.wake(news)

    def scale(self, scaling: Scaling) -> None:
        """Add and remove nodes as the autoscaler would."""
        now = self._now()
        waiting_pods = [job.make_pod(index) for job in self._line.jobs() for index in job.waiting]
        if not scaling.is_due(now):
            if waiting_pods and self._agenda.next_time > scaling.next_scan:
                self._agenda.plan(scaling.next_scan, ClusterChange(scaling.next_scan, title="autoscaler"))
            return
        for change in (*scaling.grow(self._cluster, waiting_pods, now), *scaling.shrink(self._cluster, now)):
            if change.time > now:
                self._agenda.plan(change.time, change)
            else:
                self.change(change)


def identity_of(each: meta.Object) -> Identity:
    """Return kind, namespace and name of an object."""
    return type(each).__name__, each.metadata.namespace or "", str(each.metadata.name)


def _is_slice_of(each: meta.Object, nodes: set[str]) -> bool:
    """Return True for a slice of one of these nodes."""
    return isinstance(each, resourceslice.ResourceSlice) and each.spec.node_name in nodes


def _fault_rule(slice_: resourceslice.ResourceSlice, device: str, number: int) -> devicetaintrule.DeviceTaintRule:
    """Return the rule that taints a failed device."""
    return devicetaintrule.DeviceTaintRule(
        metadata=meta.ObjectMeta(name=f"fault-{number}-{slice_.metadata.name}-{device}"),
        spec=devicetaintrule.DeviceTaintRuleSpec(
            device_selector=devicetaintrule.DeviceTaintSelector(
                driver=slice_.spec.driver, pool=slice_.spec.pool.name, device=device
            ),
            taint=deviceapi.DeviceTaint(key=_FAULT, effect="NoExecute"),
        ),
    )
