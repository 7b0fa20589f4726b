"""Several profiles in one scheduler: each places the pods of its own ``schedulerName``, from one queue and snapshot."""

from typing import Any

from drachma.api import event, gates, pod
from drachma.api.node import Taint
from drachma.scheduler.framework.resourcescoring import Strategy, StrategyType
from drachma.scheduler.settings import PluginSettings, ProfileSettings
from drachma.testing import node
from drachma.testing import pod as a_pod
from drachma.testing.workloads import PodBuilder
from tests.scenarios import schedulers, test_gangs

_PACK = ProfileSettings(name="pack", plugins=PluginSettings(strategy=Strategy(StrategyType.MOST_ALLOCATED)))
_BLIND = ProfileSettings(name="blind", plugins=PluginSettings(order=("NodeName", "NodeResourcesFit")))


def _a_pod(name: str, scheduler: str = "default-scheduler", *, cpu: str = "1", **spec: Any) -> PodBuilder:
    return a_pod(name).container("c", requests={"cpu": cpu}).spec(scheduler_name=scheduler, **spec)


def _a_node(name: str, cpu: str, **fields: Any) -> Any:
    return node(name, allocatable={"cpu": cpu, "memory": "8Gi", "pods": "110"}, **fields)


async def test_each_pod_is_placed_by_the_profile_that_it_names() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        await world.start(more_profiles=(_PACK, _BLIND))
        await world.create(_a_node("empty", "8"), _a_node("used", "8"))
        await world.create(_a_pod("first", cpu="2").on_node("used"))
        await world.create(_a_pod("spread"), _a_pod("packed", "pack"), _a_pod("other", "somebody"))
        assert await world.node_of("spread") == "empty"
        assert await world.node_of("packed") == "used"
        assert await world.node_of("other") == ""


async def test_plugins_of_one_profile_do_not_reject_pods_of_another() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        await world.start(more_profiles=(_BLIND,))
        await world.create(_a_node("n1", "8", taints=(Taint(key="away", effect="NoSchedule"),)))
        await world.create(_a_pod("blind", "blind"), _a_pod("seeing"))
        assert await world.node_of("blind") == "n1"
        assert await world.node_of("seeing") == ""
        # The pod waits for a plugin that only its own profile has, and is woken by what that plugin hopes for.
        await world.create(_a_node("n2", "8"))
        await world.advance(2)
        assert await world.node_of("seeing") == "n2"


async def test_metrics_and_events_have_the_name_of_the_profile() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        await world.start(more_profiles=(_PACK,))
        await world.create(_a_node("n1", "2"))
        await world.create(_a_pod("a"), _a_pod("b", "pack"), _a_pod("large", "pack", cpu="9"))
        attempts = {
            (profile, result): world.metric("scheduler_schedule_attempts_total", profile=profile, result=result)
            for profile in ("default-scheduler", "pack")
            for result in ("scheduled", "unschedulable")
        }
        assert attempts == {
            ("default-scheduler", "scheduled"): 1,
            ("default-scheduler", "unschedulable"): 0,
            ("pack", "scheduled"): 1,
            ("pack", "unschedulable"): 1,
        }
        assert world.metric("scheduler_unschedulable_pods", plugin="NodeResourcesFit", profile="pack") == 1
        await world.settle()
        listed = await world.client.list(event.Event)
        reporters = {each.involved_object.name: each.reporting_component for each in listed.items}
        assert reporters == {"a": "default-scheduler", "b": "pack", "large": "pack"}


async def test_a_preemption_names_the_profile_of_the_preemptor() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        await world.priorities(5)
        await world.start(more_profiles=(_PACK,))
        await world.create(_a_node("n1", "2"))
        await world.create(_a_pod("small", cpu="2"))
        await world.create(_a_pod("large", "pack", cpu="2", priority_class_name="priority-5"))
        await world.settle()
        assert await world.find(pod.Pod, "small") is None or (await world.pod("small")).metadata.deletion_timestamp
        listed = await world.client.list(event.Event)
        assert {each.reporting_component for each in listed.items if each.reason == "Preempted"} == {"pack"}


async def test_pods_of_one_group_have_one_scheduler() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        await world.start(more_profiles=(_PACK,), gates=gates.ALL.switched({"GenericWorkload": True}))
        await world.create(_a_node("n1", "8"), test_gangs.a_group("g", 2))
        group = pod.PodSchedulingGroup(pod_group_name="g")
        await world.create(_a_pod("a", scheduling_group=group), _a_pod("b", "pack", scheduling_group=group))
        assert await world.why("a") == (
            "all pods in a single pod group should have the same .spec.schedulerName set, "
            'got: "pack" and "default-scheduler"'
        )
