"""A cluster in which pods are placed in thought: the scheduler's own cycle on the scheduler's own snapshot.

What the scheduler, the claim controller and the API server would write is noted in the snapshot at once: claims are
made from templates, allocated, reserved; pods count on their nodes. Nothing is evicted: a pod that could only be placed
in the stead of others waits.

:meth:`Simulation.fork` costs microseconds. Forks see nothing of what becomes of each other. An autoscaler that drives
one simulation instead says :meth:`Simulation.start`, adds nodes, places pods, and says :meth:`Simulation.revert`.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import structs

from drachma.api import gates, meta, pod, resourceclaim, resourceclaimtemplate
from drachma.claims import identity, ownership, podclaims, podstate, templates
from drachma.runtime import cache, clock
from drachma.scheduler import cycle, gangpreemption, gangsearch, messages, profiles, settings
from drachma.scheduler.decision import Aborted, Placed, Unfit
from drachma.scheduler.framework import plugin, profile
from drachma.scheduler.snapshot import Snapshot, gangs, podinfo
from drachma.simulate import clusterstate
from drachma.values import forkmap


class Placement(NamedTuple):
    """A pod that has got a node."""

    pod: pod.Pod
    node: str
    allocations: tuple[resourceclaim.AllocationResult, ...] = ()
    """What was allocated for it; nothing for claims that had their devices already."""


class Waiting(NamedTuple):
    """A pod that has got none, and what the scheduler says about it."""

    pod: pod.Pod
    reason: str
    unfit: Unfit | None = None
    """The decision, where the pod came so far."""


class Schedule(NamedTuple):
    """What became of pods, in the order in which they were tried."""

    placements: tuple[Placement, ...]
    waiting: tuple[Waiting, ...]


class _Earlier(NamedTuple):
    """What a simulation goes back to, beside its snapshot."""

    templates: forkmap.ForkMap[cache.Key, resourceclaimtemplate.ResourceClaimTemplate]
    pending: forkmap.ForkMap[cache.Key, pod.Pod]
    cycle: cycle.Cycle


class Simulation:
    """A cluster to be asked "what if"."""

    def __init__(
        self,
        state: clusterstate.ClusterState,
        *,
        chosen: settings.Settings | None = None,
        plugins: profile.Profile | None = None,
        seed: int = 0,
    ) -> None:
        """``plugins`` take the place of the default profile; ``seed`` decides between nodes that are equally good."""
        self._settings = chosen or settings.Settings()
        self._seed = seed
        time = clock.SystemClock()
        self._profile = plugins or profiles.default(self._settings, time=time, chance=random.Random(seed))
        self._monotonic = time.monotonic
        self.snapshot = Snapshot(self._settings.gates)
        self._templates = forkmap.ForkMap[cache.Key, resourceclaimtemplate.ResourceClaimTemplate]()
        self._pending = forkmap.ForkMap[cache.Key, pod.Pod]()
        self._earlier: list[_Earlier] = []
        self._preferred = ""
        self.add(state.objects)

    @functools.cached_property
    def _cycle(self) -> cycle.Cycle:
        # Drawing from a seed is dear: most forks are asked nothing that depends on chance, or nothing at all.
        return cycle.Cycle(
            self._profile, chance=random.Random(self._seed), monotonic=self._monotonic, favoured=self._favoured
        )

    def _favoured(self, nodes: int) -> int:
        info = self.snapshot.nodes.find(self._preferred) if self._preferred else None
        return nodes if info is None else nodes & info.bit or nodes

    def fork(self, *, seed: int | None = None) -> Simulation:
        """The same cluster, to be changed apart; with another seed, other nodes of equally good ones may be chosen."""
        other = Simulation.__new__(Simulation)
        other._settings = self._settings
        other._seed = self._seed if seed is None else seed
        other._profile = self._profile
        other._monotonic = self._monotonic
        other.snapshot = self.snapshot.fork()
        other._templates = self._templates.fork()
        other._pending = self._pending.fork()
        other._earlier = []
        other._preferred = ""
        return other

    def start(self) -> None:
        """Begin what :meth:`revert` takes back; may be said again before that, and costs as much as a fork."""
        self._earlier.append(_Earlier(self._templates, self._pending, self._cycle))
        self.snapshot.start()
        self._templates = self._templates.fork()
        self._pending = self._pending.fork()
        del self._cycle

    def revert(self) -> None:
        """Undo everything since the last :meth:`start` that was not reverted; ValueError where there is none."""
        self.snapshot.revert()
        self._templates, self._pending, self._cycle = self._earlier.pop()

    @property
    def gates(self) -> gates.Gates:
        """The features in force."""
        return self._settings.gates

    @property
    def pending(self) -> list[pod.Pod]:
        """The pods that want a node, the most important first, of equal ones the oldest."""
        return sorted(self._pending.values(), key=_rank)

    # What there is

    def add(self, objects: Iterable[meta.Object]) -> None:
        """Take in objects, new or changed; what pods refer to may come with them in any order."""
        ordered = sorted(clusterstate.ClusterState.of(objects).objects, key=_order)
        for each in ordered:
            self._add(each)
        self.snapshot.recount()

    def _add(self, given: meta.Object) -> None:
        match given:
            case resourceclaimtemplate.ResourceClaimTemplate():
                self._templates[cache.key_of(given)] = given
            case pod.Pod():
                self._add_pod(given)
            case _:
                self.snapshot.put(given)

    def _add_pod(self, given: pod.Pod) -> None:
        if given.spec.node_name or self._is_ours(given):
            self.snapshot.gangs.put_pod(given)
        if given.spec.node_name:
            self.snapshot.add_pod(given)
        elif self._is_ours(given):
            self._pending[cache.key_of(given)] = given
            if given.status.nominated_node_name:
                self.snapshot.nominations.put(podinfo.PodInfo(given), given.status.nominated_node_name)

    def _is_ours(self, waiting: pod.Pod) -> bool:
        scheduler = waiting.spec.scheduler_name or settings.DEFAULT_NAME
        is_going = waiting.metadata.deletion_timestamp is not None
        return scheduler == self._settings.name and not is_going and not podstate.has_ended(waiting)

    def remove(self, gone: meta.Object) -> None:
        """Take away an object that is there as it is given. What refers to it stays as it is."""
        match gone:
            case resourceclaimtemplate.ResourceClaimTemplate():
                self._templates.pop(cache.key_of(gone), None)
            case pod.Pod():
                self.snapshot.remove(gone)
                self.snapshot.nominations.remove(gone.metadata.uid)
                self.snapshot.gangs.remove_pod(gone)
                self._pending.pop(cache.key_of(gone), None)
            case _:
                self.snapshot.remove(gone)

    def remove_node(self, name: str, slices: Iterable[str] = ()) -> None:
        """Take a node away, and slices with it. Its pods and their claims stay as they are."""
        for each in slices:
            self.snapshot.devices.remove_slice(each)
        self.snapshot.remove_node(name)

    def evict(self, moving: pod.Pod) -> None:
        """Have a pod without a node again, as its controller would make it anew: with claims of its own made anew."""
        self.snapshot.remove_pod(moving.metadata.uid)
        for claim in list(self._claims_of(moving)):
            if ownership.is_controlled_by(claim.metadata, moving.metadata.uid):
                self.snapshot.claims.remove(claim)
            else:
                left = tuple(each for each in claim.status.reserved_for if each.uid != moving.metadata.uid)
                # The claim controller takes the devices of a claim back that nobody uses any more.
                allocation = claim.status.allocation if left else None
                self.snapshot.claims.rewrite(
                    claim, structs.replace(claim.status, reserved_for=left, allocation=allocation)
                )
        statuses = tuple(each for each in moving.status.resource_claim_statuses if each.resource_claim_name is None)
        fresh = structs.replace(
            moving,
            spec=structs.replace(moving.spec, node_name=""),
            status=pod.PodStatus(resource_claim_statuses=statuses),
        )
        self._pending[cache.key_of(fresh)] = fresh

    # What becomes of pods

    def schedule(self, pods: Iterable[pod.Pod] | None = None) -> Schedule:
        """Place pods one after the other, all that are pending unless some are named."""
        placements: list[Placement] = []
        waiting: list[Waiting] = []
        for together in self._by_gang(self.pending if pods is None else list(pods)):
            for outcome in self._place_gang(together) if len(together) > 1 else map(self.place, together):
                if isinstance(outcome, Placement):
                    placements.append(outcome)
                else:
                    waiting.append(outcome)
        return Schedule(tuple(placements), tuple(waiting))

    def _by_gang(self, pods: list[pod.Pod]) -> Iterator[list[pod.Pod]]:
        """Pods that are placed together, in the order of the first of them."""
        if not self._settings.has_gangs:
            yield from ([each] for each in pods)
            return
        together: dict[object, list[pod.Pod]] = {}
        for number, each in enumerate(pods):
            together.setdefault(gangs.key_of(each) or number, []).append(each)
        yield from together.values()

    def fellows(self, member: pod.Pod) -> list[pod.Pod]:
        """The pending pods that a pod is placed with, itself among them: it alone where its gang takes nobody else."""
        gang = self.snapshot.gangs.of(member) if self._settings.has_gangs else None
        if not isinstance(gang, gangs.Gang) or self.snapshot.missing(gang) <= 1:
            return [member]
        return [each for each in self.pending if each.metadata.uid in gang.members]

    def _place_gang(self, pods: list[pod.Pod]) -> Iterator[Placement | Waiting]:
        """Place pods of one gang together, or none of them; each by itself where no others are needed."""
        gang = self.snapshot.gangs.of(pods[0])
        needed = self.snapshot.missing(gang) if isinstance(gang, gangs.Gang) else 0
        if not isinstance(gang, gangs.Gang) or needed <= 1:
            yield from map(self.place, pods)
            return
        candidates: list[pod.Pod] = []
        for each in pods:
            candidate = self._candidate(each)
            if isinstance(candidate, Waiting):
                yield candidate
            else:
                candidates.append(candidate)
        if len(candidates) < needed:
            text = messages.few(gang, needed - len(candidates))
            yield from (Waiting(each, text) for each in candidates)
            return
        problem = gangs.disagreement(gang, [*candidates, *self._residents(gang)])
        if problem:
            yield from (Waiting(each, problem) for each in candidates)
            return
        decided = self._search(candidates, needed)(self.snapshot)
        match decided:
            case gangsearch.Together(placements=placements, left=left):
                yield from map(self._carry_out, placements)
                yield from (Waiting(each.info.pod, each.diagnosis.message(), each) for each in left)
            case gangsearch.Short():
                text = messages.short(gang, needed, len(candidates), decided)
                yield from (Waiting(each, text, decided.unfit) for each in candidates)
            case Aborted(message=message):
                yield from (Waiting(each, message) for each in candidates)

    def _search(self, candidates: Sequence[pod.Pod], needed: int) -> gangpreemption.Search:
        return functools.partial(
            gangsearch.search,
            self._cycle,
            members=[podinfo.PodInfo(each) for each in candidates],
            needed=needed,
            steps=self._settings.gang_steps,
        )

    def _residents(self, gang: gangs.Gang) -> Iterator[pod.Pod]:
        return (resident for uid in gang.members if (resident := self.snapshot.nodes.resident(uid)) is not None)

    def preempt_for(self, fellows: Sequence[pod.Pod]) -> gangpreemption.Room | gangpreemption.NoRoom:
        """Whose eviction would make room for pods of one gang that wait with their claims; nothing of it is done."""
        gang = self.snapshot.gangs.of(fellows[0])
        assert isinstance(gang, gangs.Gang), "pods that are placed together are a gang"
        needed = self.snapshot.missing(gang)
        return gangpreemption.preempt(
            self._cycle,
            self.snapshot,
            [podinfo.PodInfo(each) for each in fellows],
            gang=gang,
            search=self._search(fellows, needed),
            tell=functools.partial(messages.short, gang, needed, len(fellows)),
        )

    def _candidate(self, wanting: pod.Pod) -> pod.Pod | Waiting:
        """The pod with its claims, if it may be tried now."""
        complete = self.with_claims(wanting)
        if isinstance(complete, Waiting):
            return complete
        before = self._profile.pre_enqueue(complete, self.snapshot)
        return complete if before is None else Waiting(complete, ", ".join(before.reasons))

    def place(self, wanting: pod.Pod, *, preferred: str = "") -> Placement | Waiting:
        """Place one pod, whatever gang it is of; what it takes is taken then.

        Of nodes that are equally good, ``preferred`` is taken where it is among them.
        """
        complete = self.with_claims(wanting)
        if isinstance(complete, Waiting):
            return complete
        self._preferred = preferred
        decided = self.decide(complete)
        self._preferred = ""
        return decided if isinstance(decided, Waiting) else self._carry_out(decided)

    def _carry_out(self, placed: Placed) -> Placement:
        self.snapshot.commit(placed.assignment)
        self._pending.pop(placed.info.key, None)
        results = tuple(each.result for each in placed.assignment.allocations)
        return Placement(placed.info.pod, placed.node, results)

    def decide(self, wanting: pod.Pod) -> Placed | Waiting:
        """The scheduler's decision about a pod that has its claims; nothing is taken."""
        before = self._profile.pre_enqueue(wanting, self.snapshot)
        if before is not None:
            return Waiting(wanting, ", ".join(before.reasons))
        decided = self._cycle.decide(podinfo.PodInfo(wanting), self.snapshot)
        match decided:
            case Placed():
                return decided
            case Unfit():
                return Waiting(wanting, decided.diagnosis.message(), decided)
            case Aborted():
                return Waiting(wanting, decided.message)

    def post_filter(self, unfit: Unfit) -> plugin.PostFilterResult:
        """What may help a pod that fits nowhere, such as the eviction of others; nothing of it is done."""
        return self._profile.post_filter(unfit.cycle, unfit.diagnosis)

    def find(self, namespace: str, name: str) -> pod.Pod | None:
        """A pod of the cluster, with a node or without."""
        waiting = self._pending.get(cache.Key(namespace, name))
        if waiting is not None:
            return waiting
        bookings = (booking for info in self.snapshot.nodes for booking in info.ledger.bookings.values())
        return next((each.pod for each in bookings if cache.key_of(each.pod) == (namespace, name)), None)

    def with_claims(self, wanting: pod.Pod) -> pod.Pod | Waiting:
        """The pod with the claims that its templates make; they are in the cluster then."""
        statuses = list(wanting.status.resource_claim_statuses)
        for entry in wanting.spec.resource_claims:
            if not isinstance(podclaims.refer(wanting, entry), podclaims.Missing):
                continue
            name = str(entry.resource_claim_template_name)
            template = self._templates.get(cache.Key(wanting.metadata.namespace, name))
            if template is None:
                return Waiting(wanting, f'resourceclaimtemplate.resource.k8s.io "{name}" not found')
            draft = templates.claim(template, owner=wanting, entry=entry)
            claim_name = f"{draft.metadata.generate_name}simulated"
            uid = f"{wanting.metadata.uid}/{entry.name}"
            metadata = structs.replace(draft.metadata, name=claim_name, uid=uid, resource_version="1")
            self.snapshot.claims.observe(structs.replace(draft, metadata=metadata))
            statuses.append(pod.PodResourceClaimStatus(name=entry.name, resource_claim_name=claim_name))
        if len(statuses) == len(wanting.status.resource_claim_statuses):
            return wanting
        return structs.replace(wanting, status=structs.replace(wanting.status, resource_claim_statuses=tuple(statuses)))

    def _claims_of(self, of: pod.Pod) -> Iterator[resourceclaim.ResourceClaim]:
        for name in podclaims.all_names(of):
            claim = self.snapshot.claims.get(of.metadata.namespace, name)
            if claim is not None:
                yield claim


def title(of: pod.Pod) -> str:
    """How plans call a pod."""
    return identity.label(of.metadata)


def _order(given: meta.Object) -> int:
    return clusterstate.KINDS.index(type(given))


def _rank(waiting: pod.Pod) -> tuple[int, str, str]:
    created = waiting.metadata.creation_timestamp
    return -(waiting.spec.priority or 0), str(created or ""), title(waiting)
