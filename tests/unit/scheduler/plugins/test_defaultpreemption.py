"""Preemption: choice of victims, and disruption budgets."""

from __future__ import annotations

from typing import Any

from drachma.api import meta, poddisruptionbudget
from drachma.scheduler.cycle.decision import Unfit
from drachma.scheduler.framework.eviction import Eviction
from drachma.scheduler.snapshot import podinfo
from drachma.testing import node
from drachma.testing import pod as a_pod
from tests.unit.scheduler import worlds


def a_world(*nodes: str) -> worlds.World:
    world = worlds.World()
    for name in nodes:
        world.put_node(node(name, allocatable={"cpu": "2", "pods": "10"}))
    return world


def a_running(name: str, on: str, *, app: str, cpu: str = "1", priority: int = 0) -> Any:
    made = a_pod(name).uid(name).label("app", app).container("c", requests={"cpu": cpu})
    return made.spec(priority=priority).on_node(on).build()


def a_budget(app: str, allowed: int, **status: Any) -> poddisruptionbudget.PodDisruptionBudget:
    return poddisruptionbudget.PodDisruptionBudget(
        metadata=meta.ObjectMeta(name=app, namespace="default"),
        spec=poddisruptionbudget.PodDisruptionBudgetSpec(selector=meta.LabelSelector(match_labels={"app": app})),
        status=poddisruptionbudget.PodDisruptionBudgetStatus(disruptions_allowed=allowed, **status),
    )


def eviction(world: worlds.World, cpu: str) -> tuple[str, list[str], int]:
    """Return the node, the victims and the number of exceeded budgets of the eviction for a pod with a cpu request."""
    waiting = a_pod("urgent").uid("urgent").container("c", requests={"cpu": cpu}).spec(priority=100).build()
    unfit = world.decide(podinfo.PodInfo(waiting))
    assert isinstance(unfit, Unfit)
    (proposed,) = world.profile.post_filter(unfit.cycle, unfit.diagnosis).remedies
    assert isinstance(proposed, Eviction)
    return proposed.node, [victim.metadata.name for victim in proposed.victims], proposed.violations


def test_a_node_without_a_budget_is_chosen() -> None:
    world = a_world("n1", "n2")
    # By priorities alone it would be the pod on n1.
    world.snapshot.add_pod(a_running("kept", "n1", app="kept", cpu="2"))
    world.snapshot.add_pod(a_running("other", "n2", app="other", cpu="2", priority=50))
    assert eviction(world, "2") == ("n1", ["kept"], 0)
    world.snapshot.budgets.put(a_budget("kept", 0))
    assert eviction(world, "2") == ("n2", ["other"], 0)


def test_of_pods_on_a_node_those_of_a_budget_stay() -> None:
    world = a_world("n1")
    world.snapshot.add_pod(a_running("kept", "n1", app="kept"))
    world.snapshot.add_pod(a_running("other", "n1", app="other", priority=50))
    assert eviction(world, "1") == ("n1", ["kept"], 0)
    world.snapshot.budgets.put(a_budget("kept", 0))
    assert eviction(world, "1") == ("n1", ["other"], 0)


def test_a_budget_is_overdrawn_where_nothing_else_helps() -> None:
    world = a_world("n1")
    for name, priority in (("a", 10), ("b", 0)):
        world.snapshot.add_pod(a_running(name, "n1", app="kept", priority=priority))
    world.snapshot.budgets.put(a_budget("kept", 1))
    assert eviction(world, "2") == ("n1", ["a", "b"], 1)


def test_who_is_evicted_already_does_not_count_again() -> None:
    world = a_world("n1")
    world.snapshot.add_pod(a_running("a", "n1", app="kept", cpu="2"))
    world.snapshot.budgets.put(a_budget("kept", 0, disrupted_pods={"a": world.clock.utc()}))
    assert eviction(world, "2") == ("n1", ["a"], 0)


def test_a_budget_that_is_gone_keeps_nobody() -> None:
    world = a_world("n1")
    world.snapshot.add_pod(a_running("a", "n1", app="kept", cpu="2"))
    world.snapshot.budgets.put(a_budget("kept", 0))
    assert eviction(world, "2") == ("n1", ["a"], 1)
    world.snapshot.budgets.remove(a_budget("kept", 0))
    assert eviction(world, "2") == ("n1", ["a"], 0)
