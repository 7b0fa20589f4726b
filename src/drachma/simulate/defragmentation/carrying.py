"""Moves in a running cluster: one eviction after the other, and an end at the first surprise.

Taint rules protect the devices of the plan while it runs, and are removed at its end. After each eviction the carrier
waits for the pod that its controller creates instead, until that pod is ready. Then it reads the cluster again, and
simulates the rest of the plan on it. Anything that the plan did not foresee ends it: an eviction that a budget does not
allow in time, a pod that is gone or does not get ready, new users of devices that the plan empties, or a rest of the
plan that no longer works.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from drachma import errors
from drachma.api import devicetaintrule, pod
from drachma.claims import conditions, identity, ownership
from drachma.client import Client, Selection
from drachma.runtime import clock as clocks
from drachma.scheduler.settings import Settings
from drachma.simulate import livecluster, simulation
from drachma.simulate.defragmentation import protection, wholes
from drachma.simulate.defragmentation.moves import Cluster, Move
from drachma.simulate.defragmentation.search import Plan

_PAUSE: Final = 1.0
"""Seconds between two looks at the cluster."""

Rule = devicetaintrule.DeviceTaintRule


class SurpriseError(errors.DrachmaError):
    """Something that the plan did not foresee. Its moves so far stay."""


class Carrier:
    """Carries out plans in one cluster."""

    def __init__(
        self,
        client: Client,
        *,
        clock: clocks.Clock,
        settings: Settings | None = None,
        patience: float = 300.0,
        report: Callable[[str], None] = lambda line: None,
    ) -> None:
        """``patience`` is the number of seconds that a move may take. ``report`` gets a line for each move."""
        self._client: Final = client
        self._clock: Final = clock
        self._settings: Final = settings or Settings()
        self._patience: Final = patience
        self._report: Final = report

    async def carry_out(self, plan: Plan) -> None:
        """Make the moves of a plan.

        Raises:
            SurpriseError: the cluster is not as the plan foresees.
            errors.RefusedError: the user may not evict pods, or not create taint rules.
        """
        successors: dict[str, str] = {}
        try:
            for number, move in enumerate(plan.moves):
                await self._protect([*plan.protected, *move.avoids])
                successor = await self._move(move, successors.get(move.pod.metadata.uid, move.pod.metadata.uid))
                successors[move.pod.metadata.uid] = successor.metadata.uid
                old, new = simulation.title(move.pod), simulation.title(successor)
                self._report(
                    f"{number + 1}/{len(plan.moves)} pod {old} on node {move.origin} is now {new} on node "
                    f"{successor.spec.node_name}: {move.gain}"
                )
                await self._check(plan, plan.moves[number + 1 :], successors)
        finally:
            await self._protect([])

    async def _protect(self, protected: Sequence[wholes.Whole]) -> None:
        """Create the taint rules for wholes, and delete all other rules of defragmentation."""
        selection = Selection(labels=f"{protection.LABEL}=true")
        try:
            listed = await self._client.list(Rule, selection)
        except errors.ObjectNotFoundError:
            raise SurpriseError("the server has no DeviceTaintRules, which protect devices during moves") from None
        existing = {each.metadata.name for each in listed.items}
        if protected:
            state = await livecluster.read(self._client)
            snapshot = simulation.Simulation(state, settings=self._settings).snapshot
            rules = {each.metadata.name: each for each in protection.rules(snapshot, protected)}
        else:
            rules = {}
        for name, rule in rules.items():
            if name not in existing:
                await self._client.create(protection.unsaved(rule))
        for name in existing - rules.keys():
            await self._client.delete(Rule, name)

    async def _move(self, move: Move, uid: str) -> pod.Pod:
        """Evict the pod of a move, and return its successor once that is ready."""
        title = f"pod {simulation.title(move.pod)}"
        controller = ownership.controller_of(move.pod)
        assert controller is not None, "only pods with a controller are moved"
        siblings = await self._siblings(move.pod, controller.uid)
        current = siblings.get(uid)
        if current is None or current.metadata.deletion_timestamp is not None:
            raise SurpriseError(f"{title} is gone")
        if current.spec.node_name != move.origin:
            raise SurpriseError(f"{title} is on node {current.spec.node_name}, not on {move.origin}")
        deadline = self._clock.monotonic() + self._patience
        await self._evict(current, deadline)
        while True:
            now = await self._siblings(move.pod, controller.uid)
            news = [each for name, each in now.items() if name not in siblings]
            successor = next(filter(_is_settled, news), None)
            if uid not in now and successor is not None:
                return successor
            if self._clock.monotonic() >= deadline:
                raise SurpriseError(f"{title} was evicted, and {_problem(news)} after {self._patience:g} seconds")
            await self._clock.sleep(_PAUSE)

    async def _siblings(self, member: pod.Pod, controller: str) -> dict[str, pod.Pod]:
        """Return the pods of a pod's controller by uid."""
        pods = await livecluster.everything(self._client, pod.Pod, Selection(namespace=member.metadata.namespace))
        return {
            each.metadata.uid: each
            for each in pods
            if isinstance(each, pod.Pod) and ownership.is_controlled_by(each.metadata, controller)
        }

    async def _evict(self, member: pod.Pod, deadline: float) -> None:
        while True:
            try:
                await self._client.evict(member)
            except errors.ThrottledError as error:
                if self._clock.monotonic() >= deadline:
                    raise SurpriseError(f"pod {simulation.title(member)} cannot be evicted: {error}") from None
                await self._clock.sleep(_PAUSE)
            else:
                return

    async def _check(self, plan: Plan, next_moves: Sequence[Move], successors: dict[str, str]) -> None:
        """Raise SurpriseError unless the rest of a plan still brings back its wholes."""
        state = await livecluster.read(self._client)
        cluster = simulation.Simulation(state, settings=self._settings)
        users = wholes.users(cluster.snapshot)
        current = Cluster(cluster, users.pods, {}).protecting(plan.protected)
        for move in next_moves:
            title = f"pod {simulation.title(move.pod)}"
            uid = successors.get(move.pod.metadata.uid, move.pod.metadata.uid)
            if uid not in users.pods:
                raise SurpriseError(f"{title} is gone")
            outcome = current.move(uid, move.avoids)
            if isinstance(outcome, simulation.Waiting):
                raise SurpriseError(f"{title} fits nowhere else any more: {outcome.reason}")
            _, current = outcome
        users = wholes.users(current.simulation.snapshot)
        for unit in plan.brought_back:
            claims = users.claims_of(unit.devices)
            if claims:
                raise SurpriseError(f"{unit.title} has a new user: claim {identity.label(claims[0].metadata)}")


def _is_settled(successor: pod.Pod) -> bool:
    """Return True if a pod has a node and is ready, or has ended well."""
    if not successor.spec.node_name:
        return False
    ready = conditions.find(successor.status.conditions, "Ready")
    return (ready is not None and ready.status == "True") or successor.status.phase == "Succeeded"


def _problem(news: Sequence[pod.Pod]) -> str:
    if not news:
        return "its controller has made no other"
    title = f"pod {simulation.title(news[0])}"
    if not news[0].spec.node_name:
        scheduled = conditions.find(news[0].status.conditions, "PodScheduled")
        return f"{title} has no node{f' ({scheduled.message})' if scheduled is not None else ''}"
    return f"{title} on node {news[0].spec.node_name} is not ready"
