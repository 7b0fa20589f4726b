"""Simulated cluster: the scheduler's own cycle places pods on the scheduler's own snapshot, and nothing is written.

Everything that the scheduler, the claim controller and the API server would write is noted in the snapshot at once:
claims are created from templates, allocated and reserved, and pods count on their nodes. Nothing is evicted: a pod that
could only be placed instead of others waits.

:meth:`Simulation.fork` costs microseconds. Changes in a fork do not show in the original, nor the other way round.
"""

from __future__ import annotations

import collections
import functools
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import structs

from drachma.api import gates, meta, pod, podgroup, resourceclaim, resourceclaimtemplate
from drachma.claims import identity, ownership, podclaims, podstate, preference, templates
from drachma.runtime import cache, clock
from drachma.scheduler import cycle, profiles
from drachma.scheduler.cycle import gangpreemption, gangsearch, units
from drachma.scheduler.cycle.decision import Placed, Unfit
from drachma.scheduler.framework import hints, plugin
from drachma.scheduler.framework.profile import Profile
from drachma.scheduler.settings import Settings
from drachma.scheduler.snapshot import Snapshot, gangs, podinfo
from drachma.simulate import clusterstate
from drachma.values import forkmap


class Placement(NamedTuple):
    """Pod that got a node."""

    pod: pod.Pod
    node: str
    allocations: tuple[resourceclaim.AllocationResult, ...] = ()
    """Allocations made for the pod; none for claims that were allocated before."""
    rank: int = 0
    """Sum of the ranks of the alternatives that were allocated; 0 if each was the most preferred one (KEP-4816)."""


class Waiting(NamedTuple):
    """Pod that got no node, and the scheduler's message about it."""

    pod: pod.Pod
    reason: str
    unfit: Unfit | None = None
    """Decision of the cycle; None if the pod did not get that far."""


class Refusal(NamedTuple):
    """Pods that were tried together and got no nodes, and the scheduler's message about them."""

    reason: str
    unit: units.Unit | None = None
    short: gangsearch.Short | None = None
    """Decision of the cycle; None if the pods did not get that far."""

    @property
    def rejectors(self) -> frozenset[str]:
        """Plugins whose rejection has to end before another attempt; empty after an error."""
        if self.unit is None or self.short is None:
            return frozenset()
        plugins = frozenset(each for unfit in self.short.all_unfit for each in unfit.diagnosis.plugins)
        return plugins if self.unit.gang is None else plugins | {hints.GANG_SCHEDULING}


class Schedule(NamedTuple):
    """Placed and waiting pods, in the order in which they were tried."""

    placements: tuple[Placement, ...]
    waiting: tuple[Waiting, ...]

    @property
    def rank(self) -> int:
        """Sum of the ranks of all alternatives that were allocated."""
        return sum(each.rank for each in self.placements)


class Simulation:
    """Cluster for what-if questions."""

    def __init__(
        self,
        state: clusterstate.ClusterState,
        *,
        settings: Settings | None = None,
        profile: Profile | None = None,
        seed: int = 0,
    ) -> None:
        """``profile`` replaces the default profile. ``seed`` decides between nodes that are equally good."""
        self._settings = settings or Settings()
        self._seed = seed
        system_clock = clock.SystemClock()
        self._profile = profile or profiles.default(self._settings, clock=system_clock, rng=random.Random(seed))
        self._monotonic = system_clock.monotonic
        self.snapshot = Snapshot(self._settings.gates)
        self._templates = forkmap.ForkMap[cache.Key, resourceclaimtemplate.ResourceClaimTemplate]()
        self._pending = forkmap.ForkMap[cache.Key, pod.Pod]()
        self._preferred = ""
        self.add(state.objects)

    @functools.cached_property
    def _units(self) -> units.Units:
        # Seeding a random generator is expensive, and most forks never need one.
        pod_cycle = cycle.Cycle(
            self._profile, rng=random.Random(self._seed), monotonic=self._monotonic, prefer=self._prefer
        )
        return units.Units(
            pod_cycle,
            self._profile,
            gates=self._settings.gates,
            gang_steps=self._settings.gang_steps,
        )

    def _prefer(self, nodes: int) -> int:
        info = self.snapshot.nodes.find(self._preferred) if self._preferred else None
        return nodes if info is None else nodes & info.bit or nodes

    def fork(self, *, seed: int | None = None) -> Simulation:
        """Return a copy that can be changed separately. Another seed may choose other nodes of equally good ones."""
        copy = Simulation.__new__(Simulation)
        copy._settings = self._settings
        copy._seed = self._seed if seed is None else seed
        copy._profile = self._profile
        copy._monotonic = self._monotonic
        copy.snapshot = self.snapshot.fork()
        copy._templates = self._templates.fork()
        copy._pending = self._pending.fork()
        copy._preferred = ""
        return copy

    @property
    def gates(self) -> gates.Gates:
        """Feature gates of the scheduler."""
        return self._settings.gates

    @property
    def pending(self) -> list[pod.Pod]:
        """Pods without a node, most important first, then oldest first."""
        return sorted(self._pending.values(), key=_rank)

    # Objects

    def add(self, objects: Iterable[meta.Object]) -> None:
        """Add or update objects. Objects that refer to each other may come in any order."""
        ordered = sorted(clusterstate.ClusterState.of(objects).objects, key=_order)
        for each in ordered:
            self._add(each)
        self.snapshot.recount()

    def _add(self, new: meta.Object) -> None:
        match new:
            case resourceclaimtemplate.ResourceClaimTemplate():
                self._templates[cache.key_of(new)] = new
            case pod.Pod():
                self._add_pod(new)
            case _:
                self.snapshot.put(new)

    def _add_pod(self, new: pod.Pod) -> None:
        if new.spec.node_name or self._is_ours(new):
            self.snapshot.gangs.put_pod(new)
        if new.spec.node_name:
            self.snapshot.add_pod(new)
        elif self._is_ours(new):
            self._pending[cache.key_of(new)] = new
            if new.status.nominated_node_name:
                self.snapshot.nominations.put(podinfo.PodInfo(new), new.status.nominated_node_name)

    def _is_ours(self, waiting_pod: pod.Pod) -> bool:
        is_ours = podstate.scheduler_name(waiting_pod) in self._settings.names
        is_deleted = waiting_pod.metadata.deletion_timestamp is not None
        return is_ours and not is_deleted and not podstate.has_ended(waiting_pod)

    def remove(self, old: meta.Object) -> None:
        """Remove an object, given in its current state. Objects that refer to it stay."""
        match old:
            case resourceclaimtemplate.ResourceClaimTemplate():
                self._templates.pop(cache.key_of(old), None)
            case pod.Pod():
                self.snapshot.remove(old)
                self.snapshot.nominations.remove(old.metadata.uid)
                self.snapshot.gangs.remove_pod(old)
                self._pending.pop(cache.key_of(old), None)
            case _:
                self.snapshot.remove(old)

    def remove_node(self, name: str, slices: Iterable[str] = ()) -> None:
        """Remove a node and slices. The node's pods and their claims stay."""
        for each in slices:
            self.snapshot.devices.remove_slice(each)
        self.snapshot.remove_node(name)

    def end(self, ended: pod.Pod) -> None:
        """Remove a pod from its node, and release its claims as the claim controller does after the end of a pod."""
        self.snapshot.remove_pod(ended.metadata.uid)
        collections.deque(self.release_claims(ended), maxlen=0)

    def release_claims(
        self, ended: pod.Pod
    ) -> Iterator[tuple[resourceclaim.ResourceClaim, resourceclaim.ResourceClaim | None]]:
        """Release the claims of a pod that has ended. Yield each as it was before and after, None if it is deleted."""
        for claim in list(self._claims_of(ended)):
            if ownership.is_controlled_by(claim.metadata, ended.metadata.uid):
                self.snapshot.claims.remove(claim)
                yield claim, None
            else:
                users = tuple(each for each in claim.status.reserved_for if each.uid != ended.metadata.uid)
                # The claim controller deallocates a claim without users.
                allocation = claim.status.allocation if users else None
                status = structs.replace(claim.status, reserved_for=users, allocation=allocation)
                self.snapshot.claims.rewrite(claim, status)
                yield claim, structs.replace(claim, status=status)

    def evict(self, evicted: pod.Pod) -> None:
        """Make a pod pending, as if its controller had created it again, with new claims from its templates."""
        self.end(evicted)
        statuses = tuple(each for each in evicted.status.resource_claim_statuses if each.resource_claim_name is None)
        fresh = structs.replace(
            evicted,
            spec=structs.replace(evicted.spec, node_name=""),
            status=pod.PodStatus(resource_claim_statuses=statuses),
        )
        self._pending[cache.key_of(fresh)] = fresh

    # Scheduling

    def schedule(self, pods: Iterable[pod.Pod] | None = None) -> Schedule:
        """Place pods one after the other: all pending pods, or the given ones."""
        placements: list[Placement] = []
        waiting_pods: list[Waiting] = []
        for group in self._group_by_gang(self.pending if pods is None else list(pods)):
            for outcome in self._place_gang(group) if len(group) > 1 else map(self.place, group):
                if isinstance(outcome, Placement):
                    placements.append(outcome)
                else:
                    waiting_pods.append(outcome)
        return Schedule(tuple(placements), tuple(waiting_pods))

    def _group_by_gang(self, pods: list[pod.Pod]) -> Iterator[list[pod.Pod]]:
        """Yield the pods of each gang together, where the first of them stands."""
        if not self._settings.has_gangs:
            yield from ([each] for each in pods)
            return
        groups: dict[object, list[pod.Pod]] = {}
        for number, each in enumerate(pods):
            gang = self.snapshot.gangs.of(each)
            key = gang.key if isinstance(gang, gangs.Gang) else gangs.key_of(each)
            groups.setdefault(key or number, []).append(each)
        yield from groups.values()

    def unit_of(self, member: pod.Pod) -> list[pod.Pod]:
        """Return the pending pods that a pod is scheduled with, including itself."""
        unit = self._units.unit(podinfo.PodInfo(member), self.snapshot)
        if not isinstance(unit.gang, gangs.Gang):
            return [member]
        members = unit.gang.members
        return [each for each in self.pending if each.metadata.uid in members]

    def _place_gang(self, pods: list[pod.Pod]) -> Iterator[Placement | Waiting]:
        """Place enough pods of one gang, or none of them. Place each by itself if the gang needs no others."""
        unit = self._units.unit(podinfo.PodInfo(pods[0]), self.snapshot)
        if not isinstance(unit.gang, gangs.Gang):
            yield from map(self.place, pods)
            return
        candidates: list[podinfo.PodInfo] = []
        for each in pods:
            candidate = self._candidate(each)
            if isinstance(candidate, Waiting):
                yield candidate
            else:
                candidates.append(podinfo.PodInfo(candidate))
        yield from self._place_unit(unit._replace(members=candidates))

    def _place_unit(self, unit: units.Unit) -> Iterator[Placement | Waiting]:
        decision = self._units.decide(unit, self.snapshot)
        match decision:
            case gangsearch.Together(placements=placements, surplus=surplus):
                yield from map(self._carry_out, placements)
                yield from (Waiting(each.info.pod, each.diagnosis.message(), each) for each in surplus)
            case gangsearch.Short():
                text = units.describe(unit, decision)
                yield from (Waiting(each.pod, text, decision.unfit) for each in unit.members)
            case _:
                yield from (Waiting(each.pod, decision.message) for each in unit.members)

    def preempt_for(self, members: Sequence[pod.Pod]) -> gangpreemption.Room | gangpreemption.NoRoom:
        """Return the evictions that would make room for pods of one gang. The pods have their claims."""
        unit = self._units.unit(podinfo.PodInfo(members[0]), self.snapshot)
        return self._units.preempt(unit._replace(members=list(map(podinfo.PodInfo, members))), self.snapshot)

    def _candidate(self, waiting_pod: pod.Pod) -> pod.Pod | Waiting:
        """Return the pod with its claims, if it may be tried now."""
        complete = self.with_claims(waiting_pod)
        if isinstance(complete, Waiting):
            return complete
        rejection = self._profile.pre_enqueue(complete, self.snapshot)
        return complete if rejection is None else Waiting(complete, ", ".join(rejection.reasons))

    def place(self, waiting_pod: pod.Pod, *, preferred: str = "") -> Placement | Waiting:
        """Place one pod, even if it belongs to a gang.

        Among nodes that are equally good, the pod gets the ``preferred`` one.
        """
        complete = self.with_claims(waiting_pod)
        if isinstance(complete, Waiting):
            return complete
        self._preferred = preferred
        decision = self.decide(complete)
        self._preferred = ""
        return decision if isinstance(decision, Waiting) else self._carry_out(decision)

    def _carry_out(self, placed: Placed) -> Placement:
        self.snapshot.commit(placed.assignment)
        self._pending.pop(placed.info.key, None)
        results = tuple(each.result for each in placed.assignment.allocations)
        rank = sum(preference.total_rank(each.claim.spec, each.result) for each in placed.assignment.allocations)
        return Placement(placed.info.pod, placed.node, results, rank)

    def decide(self, waiting_pod: pod.Pod) -> Placed | Waiting:
        """Return the scheduler's decision about a pod that has its claims. Nothing is carried out."""
        rejection = self._profile.pre_enqueue(waiting_pod, self.snapshot)
        if rejection is not None:
            return Waiting(waiting_pod, ", ".join(rejection.reasons))
        decision = self._units.decide(units.Unit((podinfo.PodInfo(waiting_pod),)), self.snapshot)
        match decision:
            case gangsearch.Together():
                return decision.placements[0]
            case gangsearch.Short(unfit=unfit):
                assert unfit is not None, "a pod by itself is tried"
                return Waiting(waiting_pod, unfit.diagnosis.message(), unfit)
            case _:
                return Waiting(waiting_pod, decision.message)

    def post_filter(self, unfit: Unfit) -> plugin.PostFilterResult:
        """Return what may help a pod that fits nowhere, such as evictions. Nothing is carried out."""
        return self._profile.post_filter(unfit.cycle, unfit.diagnosis)

    def attempt(self, pods: Sequence[pod.Pod], gang: gangs.Gang | None = None) -> tuple[Placement, ...] | Refusal:
        """Place pods that wait: one by itself, or those of a gang of which either enough get nodes or none."""
        candidates: list[podinfo.PodInfo] = []
        for each in pods:
            candidate = self._candidate(each) if gang is None else self.with_claims(each)
            if isinstance(candidate, Waiting):
                return Refusal(candidate.reason)
            candidates.append(podinfo.PodInfo(candidate))
        needed = 1 if gang is None else self.snapshot.missing(gang)
        unit = units.Unit(candidates[:1]) if needed <= 1 else units.Unit(candidates, gang, needed)
        decision = self._units.decide(unit, self.snapshot)
        match decision:
            case gangsearch.Together(placements=placements):
                return tuple(map(self._carry_out, placements))
            case gangsearch.Short():
                return Refusal(units.describe(unit, decision), unit, decision)
            case _:
                return Refusal(decision.message)

    def relieve(self, refusal: Refusal) -> units.Relief:
        """Return what may help pods that were refused, such as evictions. Nothing is carried out."""
        if refusal.unit is None or refusal.short is None:
            return units.Relief("")
        return self._units.relieve(refusal.unit, refusal.short, self.snapshot)

    def hints(self) -> Mapping[str, Sequence[hints.Hint]]:
        """Return the changes that can help pods that each plugin of the scheduler has rejected."""
        return self._profile.hints(self.snapshot)

    def find(self, namespace: str, name: str) -> pod.Pod | None:
        """Return a pod of the cluster, with a node or without, or None."""
        waiting_pod = self._pending.get(cache.Key(namespace, name))
        if waiting_pod is not None:
            return waiting_pod
        bookings = (booking for info in self.snapshot.nodes for booking in info.ledger.bookings.values())
        return next((each.pod for each in bookings if cache.key_of(each.pod) == cache.Key(namespace, name)), None)

    def with_claims(self, waiting_pod: pod.Pod) -> pod.Pod | Waiting:
        """Create the claims of a pod from its templates, and return the pod with their names in its status."""
        statuses = list(waiting_pod.status.resource_claim_statuses)
        for entry in self._missing_entries(waiting_pod):
            draft = self._draft(waiting_pod, entry)
            if draft is None:
                name = entry.resource_claim_template_name
                return Waiting(waiting_pod, f'resourceclaimtemplate.resource.k8s.io "{name}" not found')
            if not self._is_created(waiting_pod, draft):
                self.snapshot.claims.observe(draft)
            statuses.append(pod.PodResourceClaimStatus(name=entry.name, resource_claim_name=draft.metadata.name))
        if len(statuses) == len(waiting_pod.status.resource_claim_statuses):
            return waiting_pod
        return structs.replace(
            waiting_pod, status=structs.replace(waiting_pod.status, resource_claim_statuses=tuple(statuses))
        )

    def missing_claims(
        self, waiting_pod: pod.Pod
    ) -> Iterator[tuple[pod.PodResourceClaim, resourceclaim.ResourceClaim]]:
        """Yield the entries of a pod whose claims are to be created, with these claims, as far as templates exist."""
        for entry in self._missing_entries(waiting_pod):
            draft = self._draft(waiting_pod, entry)
            if draft is not None and not self._is_created(waiting_pod, draft):
                yield entry, draft

    def _missing_entries(self, waiting_pod: pod.Pod) -> list[pod.PodResourceClaim]:
        return [
            entry
            for entry in waiting_pod.spec.resource_claims
            if isinstance(podclaims.refer(waiting_pod, entry), podclaims.Missing)
        ]

    def _draft(self, waiting_pod: pod.Pod, entry: pod.PodResourceClaim) -> resourceclaim.ResourceClaim | None:
        """Return the claim for an entry of a pod, with a name, or None without a template."""
        key = cache.Key(waiting_pod.metadata.namespace, str(entry.resource_claim_template_name))
        template = self._templates.get(key)
        if template is None:
            return None
        group = self.snapshot.claim_group(waiting_pod)
        owner = podclaims.consumer(waiting_pod, entry, group)
        draft = templates.claim(template, owner=owner, entry=entry)
        name = _generated_name(group, entry) if owner is group else None
        name = name or f"{draft.metadata.generate_name}simulated"
        uid = f"{owner.metadata.uid}/{entry.name}"
        return structs.replace(
            draft, metadata=structs.replace(draft.metadata, name=name, uid=uid, resource_version="1")
        )

    def _is_created(self, waiting_pod: pod.Pod, draft: resourceclaim.ResourceClaim) -> bool:
        """Return True if the claim of a pod's group exists: for an earlier pod, or in the cluster."""
        metadata = draft.metadata
        is_own = ownership.is_controlled_by(metadata, waiting_pod.metadata.uid)
        return not is_own and self.snapshot.claims.get(metadata.namespace, metadata.name) is not None

    def _claims_of(self, user: pod.Pod) -> Iterator[resourceclaim.ResourceClaim]:
        for name in podclaims.all_names(user):
            claim = self.snapshot.claims.get(user.metadata.namespace, name)
            if claim is not None:
                yield claim


def title(subject: pod.Pod) -> str:
    """Return the name of a pod in plans and reports."""
    return identity.label(subject.metadata)


def _generated_name(group: podgroup.PodGroup | None, entry: pod.PodResourceClaim) -> str | None:
    """Return the name of the claim that a group has for an entry, or None."""
    statuses = () if group is None else group.status.resource_claim_statuses
    return next((each.resource_claim_name for each in statuses if each.name == entry.name), None)


def _order(new: meta.Object) -> int:
    return clusterstate.KINDS.index(type(new))


def _rank(waiting_pod: pod.Pod) -> tuple[int, str, str]:
    created = waiting_pod.metadata.creation_timestamp
    return -(waiting_pod.spec.priority or 0), str(created or ""), title(waiting_pod)
