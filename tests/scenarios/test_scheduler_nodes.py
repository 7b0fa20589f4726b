"""Where pods without claims go and why not: filters, scores, order, gates, preemption, and what wakes a pod."""

import logging
from typing import Any

import pytest

from drachma.api import node as nodes
from drachma.api import nodeselector, pod
from drachma.client import patches
from drachma.scheduler import binder
from drachma.scheduler.cycle import units
from drachma.testing import node
from drachma.testing import pod as a_pod
from tests.scenarios import schedulers

NOT_HELPFUL = " preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
NO_VICTIMS = " preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."


def small(name: str, cpu: str = "1", **spec: Any) -> Any:
    return a_pod(name).container("c", requests={"cpu": cpu}).spec(**spec)


def affinity(*terms: nodeselector.NodeSelectorTerm, preferred: Any = ()) -> pod.Affinity:
    required = nodeselector.NodeSelector(node_selector_terms=terms) if terms else None
    fields: dict[str, Any] = {"required_during_scheduling_ignored_during_execution": required}
    if preferred:
        fields["preferred_during_scheduling_ignored_during_execution"] = preferred
    return pod.Affinity(node_affinity=pod.NodeAffinity(**fields))


def labelled(key: str, *values: str) -> nodeselector.NodeSelectorTerm:
    wanted = nodeselector.NodeSelectorRequirement(key=key, operator="In", values=values)
    return nodeselector.NodeSelectorTerm(match_expressions=(wanted,))


def named(*values: str) -> nodeselector.NodeSelectorTerm:
    wanted = nodeselector.NodeSelectorRequirement(key="metadata.name", operator="In", values=values)
    return nodeselector.NodeSelectorTerm(match_fields=(wanted,))


def port(number: int) -> pod.Container:
    return pod.Container(
        name="c", image="pause", ports=(pod.ContainerPort(container_port=number, host_port=number, protocol="TCP"),)
    )


async def patch_node(world: schedulers.SchedulerWorld, name: str, content: Any, subresource: str = "") -> None:
    await world.client.patch(nodes.Node, name, patch=patches.merge(content), subresource=subresource)
    await world.settle()


TAINT = nodes.Taint(key="dedicated", value="ml", effect="NoSchedule")


@pytest.mark.parametrize(
    ("made", "waiting", "want_message"),
    [
        pytest.param(
            node("n1", taints=(TAINT,)),
            small("p"),
            "0/1 nodes are available: 1 node(s) had untolerated taint(s)." + NOT_HELPFUL,
            id="taint",
        ),
        pytest.param(
            node("n1"),
            small("p", node_selector={"zone": "a"}),
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector." + NOT_HELPFUL,
            id="node-selector",
        ),
        pytest.param(
            node("n1"),
            small("p", affinity=affinity(labelled("zone", "a"))),
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector." + NOT_HELPFUL,
            id="required-affinity",
        ),
        pytest.param(
            node("n1"),
            small("p", affinity=affinity(named("elsewhere"))),
            "0/1 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity]." + NOT_HELPFUL,
            id="named-node-that-does-not-exist",
        ),
        pytest.param(
            node("n1"),
            small("p", cpu="5"),
            "0/1 nodes are available: 1 Insufficient cpu." + NOT_HELPFUL,
            id="larger-than-the-node",
        ),
        pytest.param(
            node("n1", allocatable={"cpu": "1", "memory": "1Gi", "pods": "0"}),
            small("p", cpu="2"),
            "0/1 nodes are available: 1 Insufficient cpu, 1 Too many pods." + NOT_HELPFUL,
            id="all-reasons-of-a-node",
        ),
    ],
)
async def test_why_not(made: Any, waiting: Any, want_message: str) -> None:
    async with schedulers.cluster() as world:
        await world.create(made, waiting)
        assert await world.condition("p") == ("False", "Unschedulable", want_message)
        assert await world.events("FailedScheduling") == [f"Warning FailedScheduling: {want_message}"]


async def test_no_nodes_at_all() -> None:
    async with schedulers.cluster() as world:
        await world.create(small("p"))
        assert await world.condition("p") == ("False", "Unschedulable", "no nodes available to schedule pods")
        await world.create(node("n1"))
        await world.advance(2)
        assert await world.node_of("p") == "n1"


async def test_full_node_and_what_wakes_the_pod() -> None:
    async with schedulers.cluster() as world:
        await world.create(node("n1"), small("first", cpu="3"), small("p", cpu="2"))
        assert (await world.condition("p"))[2] == "0/1 nodes are available: 1 Insufficient cpu." + NO_VICTIMS

        # Labels do not help a pod that is short of cpu.
        await patch_node(world, "n1", {"metadata": {"labels": {"zone": "a"}}})
        assert (
            world.metric("scheduler_schedule_attempts_total", result="unschedulable", profile="default-scheduler") == 1
        )
        await world.world.delete(await world.pod("first"), grace_period_seconds=0)
        await world.advance(1)
        assert await world.node_of("p") == "n1"


async def test_cordoned_node() -> None:
    async with schedulers.cluster() as world:
        await world.create(node("n1"))
        await patch_node(world, "n1", {"spec": {"unschedulable": True}})
        await world.create(small("p"))
        assert (await world.condition("p"))[2] == (
            "0/1 nodes are available: 1 node(s) were unschedulable." + NOT_HELPFUL
        )
        await patch_node(world, "n1", {"spec": {"unschedulable": None}})
        await world.advance(1)
        assert await world.node_of("p") == "n1"


async def test_toleration_and_label_added_later_wake_the_pod() -> None:
    async with schedulers.cluster() as world:
        await world.create(node("n1", taints=(TAINT,)), small("tainted"), small("picky", node_selector={"zone": "a"}))
        tolerations = [{"key": "dedicated", "operator": "Exists"}]
        current = await world.client.get_document(pod.Pod, "tainted", namespace="default")
        tolerations += current["spec"].get("tolerations", [])
        await world.client.patch(
            pod.Pod, "tainted", namespace="default", patch=patches.merge({"spec": {"tolerations": tolerations}})
        )
        await world.advance(1)
        assert await world.node_of("tainted") == "n1"

        await patch_node(world, "n1", {"spec": {"taints": None}, "metadata": {"labels": {"zone": "a"}}})
        await world.advance(1)
        assert await world.node_of("picky") == "n1"


async def test_host_ports_are_used_once() -> None:
    async with schedulers.cluster() as world:
        await world.create(node("n1"), a_pod("first").spec(containers=(port(80),)))
        await world.create(a_pod("second").spec(containers=(port(80),)), a_pod("third").spec(containers=(port(81),)))
        assert [await world.node_of(name) for name in ("first", "second", "third")] == ["n1", "", "n1"]
        assert (await world.condition("second"))[2] == (
            "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports." + NO_VICTIMS
        )
        await world.world.delete(await world.pod("first"), grace_period_seconds=0)
        await world.advance(1)
        assert await world.node_of("second") == "n1"


async def test_scheduling_gates() -> None:
    async with schedulers.cluster() as world:
        gated = small("p", scheduling_gates=(pod.PodSchedulingGate(name="example.com/wait"),))
        await world.create(node("n1"), gated)
        assert await world.node_of("p") == ""
        assert world.metric("scheduler_pending_pods", queue="gated") == 1
        await world.client.patch(
            pod.Pod, "p", namespace="default", patch=patches.merge({"spec": {"schedulingGates": None}})
        )
        await world.settle()
        assert await world.node_of("p") == "n1"


async def test_other_schedulers_pods_are_left_alone() -> None:
    async with schedulers.cluster() as world:
        await world.create(node("n1"), small("p", scheduler_name="other"))
        assert (await world.node_of("p"), await world.condition("p")) == ("", ("", "", ""))
        await world.start("other", name="other")
        assert await world.node_of("p") == "n1"


async def test_most_important_pod_first() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        await world.create(node("n1", allocatable={"cpu": "1", "memory": "1Gi", "pods": "110"}))
        await world.priorities(1, 10)
        await world.create(
            small("low", priority_class_name="priority-1"), small("high", priority_class_name="priority-10")
        )
        await world.start()
        assert [await world.node_of(name) for name in ("low", "high")] == ["", "n1"]


async def test_least_allocated_node_wins() -> None:
    async with schedulers.cluster() as world:
        await world.create(node("n1"), small("a", cpu="2"), node("n2"), small("b", cpu="1"))
        assert await world.node_of("b") == "n2"


async def test_preferred_affinity_wins_over_the_emptier_node() -> None:
    async with schedulers.cluster() as world:
        wish = pod.PreferredSchedulingTerm(weight=1, preference=labelled("disk", "ssd"))
        await world.create(node("n1", labels={"disk": "ssd"}), small("a", cpu="2"), node("n2"))
        await world.create(small("b", affinity=affinity(preferred=(wish,))))
        assert await world.node_of("b") == "n1"


async def test_discouraging_taint_is_avoided() -> None:
    async with schedulers.cluster() as world:
        taint = nodes.Taint(key="old", effect="PreferNoSchedule")
        await world.create(node("n1", taints=(taint,)), node("n2"), small("a", cpu="2"), small("b"))
        assert [await world.node_of(name) for name in ("a", "b")] == ["n2", "n2"]


async def test_preemption_evicts_the_least_important_and_no_more_than_needed() -> None:
    async with schedulers.cluster() as world:
        await world.priorities(1, 5, 50, 100)
        await world.create(
            node("n1"),
            small("a", cpu="2", priority_class_name="priority-5"),
            small("b", cpu="2", priority_class_name="priority-1"),
        )
        await world.create(small("urgent", cpu="2", priority_class_name="priority-100"))

        condition = await world.condition("urgent")
        assert condition[2] == (
            "0/1 nodes are available: 1 Insufficient cpu. "
            "preemption: found a potential placement for pod on node n1, preempting 1 victims"
        )
        assert (await world.pod("urgent")).status.nominated_node_name == "n1"
        victim = await world.pod("b")
        assert victim.metadata.deletion_timestamp is not None
        reasons = {entry.type: (entry.reason, entry.message) for entry in victim.status.conditions}
        assert reasons["DisruptionTarget"] == (
            "PreemptionByScheduler",
            "default-scheduler: preempting to accommodate a higher priority pod",
        )
        # Nobody else gets the room that was made.
        await world.create(small("late", cpu="2", priority_class_name="priority-50"))
        await world.world.delete(victim, grace_period_seconds=0)
        await world.advance(2)
        assert [await world.node_of(name) for name in ("a", "urgent", "late")] == ["n1", "n1", ""]


async def test_pods_that_never_preempt() -> None:
    async with schedulers.cluster() as world:
        await world.priorities(1)
        await world.priorities(9, preemption_policy="Never")
        await world.create(node("n1"), small("a", cpu="4", priority_class_name="priority-1"))
        await world.create(small("polite", cpu="1", priority_class_name="priority-9"))
        assert (await world.condition("polite"))[2] == (
            "0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never."
        )


async def test_finished_pods_take_no_room() -> None:
    async with schedulers.cluster() as world:
        await world.create(node("n1"), small("a", cpu="4"), small("b", cpu="4"))
        await world.world.patch_status(await world.pod("a"), {"phase": "Succeeded"})
        await world.advance(1)
        assert await world.node_of("b") == "n1"


async def test_pods_of_a_node_that_was_away_still_count() -> None:
    async with schedulers.cluster() as world:
        await world.create(node("n1"), small("a", cpu="4"))
        await world.world.delete(node("n1").build())
        await world.settle()
        await world.create(node("n1"), small("b", cpu="1"))
        assert await world.node_of("b") == ""


async def test_waits_after_failures_grow() -> None:
    async with schedulers.cluster() as world:
        await world.create(small("p"))
        attempts = []
        for _ in range(8):
            count = world.metric(
                "scheduler_schedule_attempts_total", result="unschedulable", profile="default-scheduler"
            )
            attempts.append(count)
            await world.advance(2)
        # Without nodes there is nobody to wake the pod: it is tried at the full second after 1, 2, 4 and 8 seconds.
        assert attempts == [1, 2, 2, 3, 3, 4, 4, 4]


async def test_extension_points_are_timed() -> None:
    async with schedulers.cluster() as world:
        await world.create(node("n1"), small("p"), small("q", cpu="9"))
        for point in ("PreFilter", "Filter", "Score", "Reserve", "PreBind", "Bind", "PostFilter"):
            labels = {"extension_point": point, "status": "Success", "profile": "default-scheduler"}
            assert world.metric("scheduler_framework_extension_point_duration_seconds_count", **labels), point
        assert world.metric("scheduler_pending_pods", queue="unschedulable") == 1
        labels = {"plugin": "NodeResourcesFit", "profile": "default-scheduler"}
        assert world.metric("scheduler_unschedulable_pods", **labels) == 1
        assert world.metric("scheduler_cache_size", type="nodes") == 1
        assert world.metric("scheduler_pod_scheduling_attempts_count") == 1


@pytest.mark.parametrize(
    ("place", "name"),
    [
        pytest.param(units.Units, "decide", id="decision"),
        pytest.param(units.Units, "unit", id="before-the-decision"),
        pytest.param(binder.Binder, "bind", id="binding"),
    ],
)
async def test_a_defect_ends_neither_the_scheduler_nor_the_pod(
    place: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The cluster fails a test in which a component logs a defect, and this one does so on purpose.
    monkeypatch.setattr(logging.getLogger("drachma.runtime.defects"), "propagate", False)
    async with schedulers.cluster() as world:
        await world.create(node("n1"))

        def fail(*_: object) -> None:
            raise OverflowError("a number is too large")

        with monkeypatch.context() as patched:
            patched.setattr(place, name, fail)
            await world.create(small("p"))
            message = "the scheduler has a defect: OverflowError: a number is too large"
            assert (await world.condition("p"))[1:] == ("SchedulerError", message)
        await world.advance(10)
        assert await world.node_of("p") == "n1"
