"""Claims through all stages: allocation, sharing, races with other writers, what is given back, and restarts."""

import asyncio
import collections
import random
from typing import Any

import pytest

from drachma import errors
from drachma.api import deviceclass, gates, nodeselector, pod, resourceclaim, resourceslice
from drachma.claims import wellknown
from drachma.client import patches
from drachma.scheduler import profiles, settings
from drachma.scheduler.framework import resourcescoring
from drachma.testing import builder, claim, claim_template, device, device_class, node, resource_slice, subrequest
from drachma.testing import pod as a_pod
from tests.scenarios import schedulers
from tests.unit.controllers import worlds

DRIVER = "gpu.example.com"


def gpus(node_name: str, count: int = 2) -> builder.Builder[resourceslice.ResourceSlice]:
    names = [f"gpu-{number}" for number in range(count)]
    return resource_slice(f"slice-{node_name}", driver=DRIVER, pool=node_name).on_node(node_name).devices(*names)


def gpu_class() -> builder.Builder[deviceclass.DeviceClass]:
    return device_class("gpu", f'device.driver == "{DRIVER}"')


def a_claim(name: str, **request: Any) -> builder.Builder[resourceclaim.ResourceClaim]:
    return claim(name).request("gpu", device_class="gpu", **request)


def using(name: str, *claims: str, **fields: object) -> builder.Builder[pod.Pod]:
    made = a_pod(name).spec(**fields).container("c", claims=tuple(f"x{number}" for number in range(len(claims))))
    for number, used in enumerate(claims):
        made = made.claim(f"x{number}", claim=used)
    return made


async def test_pod_gets_its_devices_and_an_event() -> None:
    async with schedulers.cluster() as world:
        await world.create(node("n1"), gpus("n1"), gpu_class(), a_claim("c", count=2), using("p", "c"))

        assert await world.node_of("p") == "n1"
        assert await world.devices("c") == ["n1/gpu-0", "n1/gpu-1"]
        assert await world.users("c") == ["p"]
        assert (await world.claim("c")).metadata.finalizers == (wellknown.CLAIM_FINALIZER,)
        assert (await world.claim("c")).status.allocation.allocation_timestamp is not None  # type: ignore[union-attr]
        assert await world.events("Scheduled") == ["Normal Scheduled: Successfully assigned default/p to n1"]


async def test_pod_waits_for_its_claim_without_a_condition() -> None:
    async with schedulers.cluster() as world:
        await world.create(node("n1"), gpus("n1"), gpu_class(), using("p", "c"))
        assert await world.condition("p") == ("", "", "")

        await world.create(a_claim("c"))
        assert await world.node_of("p") == "n1"


async def test_a_claim_under_two_names_is_allocated_and_reserved_once() -> None:
    async with schedulers.cluster() as world:
        await world.create(node("n1"), gpus("n1"), gpu_class(), a_claim("c"), using("p", "c", "c"))

        assert await world.node_of("p") == "n1"
        assert await world.devices("c") == ["n1/gpu-0"]
        assert await world.users("c") == ["p"]


async def test_the_more_important_of_two_waiting_pods_gets_the_device_that_comes() -> None:
    async with schedulers.cluster() as world:
        await world.priorities(5)
        await world.create(node("n1"), gpu_class(), a_claim("c"), a_claim("d"))
        await world.create(using("usual", "c"), using("important", "d", priority_class_name="priority-5"))
        await world.advance(3)

        await world.create(gpus("n1", 1))

        assert await world.node_of("important") == "n1"
        assert await world.node_of("usual") == ""


async def test_a_claim_that_ends_in_one_write_frees_its_devices() -> None:
    """It never shows without its devices: the write that takes them away is the last one of it."""
    async with schedulers.cluster() as world:
        await world.create(node("n1"), gpus("n1", 1), gpu_class(), a_claim("c"), a_claim("d"))
        await world.create(using("first", "c"), using("second", "d"))
        assert await world.node_of("second") == ""
        for kind, name in ((pod.Pod, "first"), (resourceclaim.ResourceClaim, "c")):
            await world.client.delete(kind, name, namespace="default", grace_period_seconds=0)
        await world.advance(20)

        assert await world.node_of("second") == "n1"


async def test_two_pods_on_one_unallocated_claim() -> None:
    async with schedulers.cluster() as world:
        await world.create(node("n1"), node("n2"), gpus("n1"), gpus("n2"), gpu_class(), a_claim("c"))
        for name in ("p1", "p2"):
            await world.put(using(name, "c"))
        await world.settle()
        await world.advance(2)

        assert await world.node_of("p1") == await world.node_of("p2") != ""
        assert sorted(await world.users("c")) == ["p1", "p2"]


async def test_claim_allocated_elsewhere_restricts_nodes() -> None:
    async with schedulers.cluster() as world:
        await world.create(node("n1"), gpus("n1"), gpu_class(), a_claim("c"), using("p1", "c"))
        await world.create(node("n2"), gpus("n2"))
        await world.client.patch(type(node("n1").build()), "n1", patch=patches.merge({"spec": {"unschedulable": True}}))
        await world.create(using("p2", "c"))

        status, reason, message = await world.condition("p2")
        assert (status, reason) == ("False", "Unschedulable")
        assert message.startswith(
            "0/2 nodes are available: 1 node(s) were unschedulable, 1 resourceclaim not available on the node."
        )


async def test_an_unused_claim_that_blocks_is_deallocated() -> None:
    async with schedulers.cluster() as world:
        # Both claims can only be had on n2; "a" is left allocated on n1 by an earlier attempt.
        nic = resource_slice("nics", driver="nic.example.com", pool="n2").on_node("n2").devices("nic-0")
        nics = device_class("nic", 'device.driver == "nic.example.com"')
        await world.create(node("n1"), node("n2"), gpus("n1"), gpus("n2"), gpu_class(), nic, nics)
        left = a_claim("a").allocated(  # type: ignore[attr-defined]
            ("gpu", DRIVER, "n1", "gpu-0"), node_selector=_only("n1")
        )
        await world.create(left, claim("b").request("nic", device_class="nic"), using("p", "a", "b"))

        await world.advance(3)
        failed = await world.events("FailedScheduling")
        message = (
            "Warning FailedScheduling: 0/2 nodes are available: 1 cannot allocate all claims, "
            "1 resourceclaim not available on the node. deallocation of ResourceClaim completed, "
            "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
        )
        assert failed == [message]
        assert await world.node_of("p") == "n2"
        assert await world.devices("a") == ["n2/gpu-0"]


async def test_a_claim_in_use_is_not_deallocated() -> None:
    async with schedulers.cluster() as world:
        nic = resource_slice("nics", driver="nic.example.com", pool="n2").on_node("n2").devices("nic-0")
        nics = device_class("nic", 'device.driver == "nic.example.com"')
        await world.create(node("n1"), gpus("n1"), gpu_class(), a_claim("a"), using("user", "a"))
        await world.create(node("n2"), nic, nics, claim("b").request("nic", device_class="nic"), using("p", "a", "b"))
        await world.advance(5)

        assert await world.node_of("p") == ""
        assert await world.devices("a") == ["n1/gpu-0"]
        assert (await world.condition("p"))[2] == (
            "0/2 nodes are available: 1 cannot allocate all claims, 1 resourceclaim not available on the node. "
            "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
        )


class Interference:
    """Does something once, right before a certain write of the scheduler."""

    def __init__(self, verb: str, *, subresource: str = "") -> None:
        self._verb = verb
        self._subresource = subresource
        self.act: Any = None
        self.count = 0

    async def __call__(self, verb: str, kind: Any, *args: Any, **kwargs: Any) -> None:
        is_meant = verb == self._verb and kind is resourceclaim.ResourceClaim
        if is_meant and kwargs.get("subresource", "") == self._subresource and self.act is not None:
            act, self.act = self.act, None
            self.count += 1
            await act()


async def test_claim_deleted_while_it_is_being_allocated() -> None:
    meddling = Interference("patch")
    async with schedulers.cluster(wrap=worlds.meddling(meddling)) as world:
        await world.create(node("n1"), gpus("n1", 1), gpu_class(), a_claim("c"))
        meddling.act = lambda: world.client.delete(resourceclaim.ResourceClaim, "c", namespace="default")
        await world.create(using("p", "c"))

        assert meddling.count == 1
        assert await world.node_of("p") == ""
        assert (await world.condition("p"))[1] == "SchedulerError"
        # Nothing of it is left: another claim gets the device.
        await world.create(a_claim("other"), using("q", "other"))
        assert await world.devices("other") == ["n1/gpu-0"]


async def test_claim_deleted_after_the_finalizer_is_there() -> None:
    meddling = Interference("patch", subresource="status")
    async with schedulers.cluster(wrap=worlds.meddling(meddling)) as world:
        await world.create(node("n1"), gpus("n1", 1), gpu_class(), a_claim("c"))
        meddling.act = lambda: world.client.delete(resourceclaim.ResourceClaim, "c", namespace="default")
        await world.create(using("p", "c"))
        await world.advance(0.1)

        assert await world.node_of("p") == ""
        assert (await world.condition("p"))[1] == "SchedulerError"
        # The controller takes the finalizer off, and the claim goes.
        with pytest.raises(errors.ObjectNotFoundError):
            await world.claim("c")


async def test_claim_deleted_and_recreated_while_it_is_being_allocated() -> None:
    meddling = Interference("patch")
    async with schedulers.cluster(wrap=worlds.meddling(meddling)) as world:
        await world.create(node("n1"), gpus("n1"), gpu_class(), a_claim("c"))

        async def recreate() -> None:
            await world.client.delete(resourceclaim.ResourceClaim, "c", namespace="default")
            await world.client.create(a_claim("c", count=2).build())

        meddling.act = recreate
        await world.create(using("p", "c"))
        await world.advance(3)

        # The new claim is another one: it was looked at anew, and wants two devices.
        assert await world.node_of("p") == "n1"
        assert await world.devices("c") == ["n1/gpu-0", "n1/gpu-1"]


async def test_claim_allocated_by_somebody_else_meanwhile() -> None:
    meddling = Interference("patch", subresource="status")
    async with schedulers.cluster(wrap=worlds.meddling(meddling)) as world:
        await world.create(node("n1"), node("n2"), gpus("n1", 1), gpu_class(), a_claim("c"))
        await world.create(gpus("n2", 1))

        async def allocate() -> None:
            result = a_claim("c").allocated(("gpu", DRIVER, "n2", "gpu-0"), node_selector=_only("n2")).build()  # type: ignore[attr-defined]
            await world.client.patch(
                resourceclaim.ResourceClaim,
                "c",
                namespace="default",
                subresource="status",
                patch=patches.merge({"status": {"allocation": result.status.allocation}}),
            )

        await world.client.patch(type(node("n1").build()), "n2", patch=patches.merge({"spec": {"unschedulable": True}}))
        await world.settle()
        meddling.act = allocate
        await world.create(using("p", "c"))
        await world.advance(0.1)
        assert "got allocated elsewhere in the meantime" in (await world.condition("p"))[2]

        await world.client.patch(type(node("n1").build()), "n2", patch=patches.merge({"spec": {"unschedulable": None}}))
        await world.advance(3)
        assert await world.node_of("p") == "n2"
        # What was in flight on n1 was given back.
        await world.create(a_claim("d"), using("q", "d"))
        assert await world.devices("d") == ["n1/gpu-0"]


async def test_benign_changes_meanwhile_are_no_reason_to_fail() -> None:
    meddling = Interference("patch", subresource="status")
    async with schedulers.cluster(wrap=worlds.meddling(meddling)) as world:
        await world.create(node("n1"), gpus("n1"), gpu_class(), a_claim("c"))

        async def label() -> None:
            await world.client.patch(
                resourceclaim.ResourceClaim,
                "c",
                namespace="default",
                patch=patches.merge({"metadata": {"labels": {"seen": "yes"}}}),
            )

        meddling.act = label
        await world.create(using("p", "c"))
        await world.advance(1)
        assert meddling.count == 1
        assert await world.node_of("p") == "n1"


async def test_reservations_are_given_back_when_another_claim_cannot_be_had() -> None:
    meddling = Interference("patch")
    async with schedulers.cluster(wrap=worlds.meddling(meddling)) as world:
        await world.create(node("n1"), gpus("n1"), gpu_class(), a_claim("a"), using("other", "a"))
        await world.create(a_claim("b"))
        meddling.act = lambda: world.client.delete(resourceclaim.ResourceClaim, "b", namespace="default")
        await world.create(using("p", "a", "b"))

        assert await world.node_of("p") == ""
        assert await world.users("a") == ["other"]


async def test_at_most_256_consumers() -> None:
    async with schedulers.cluster() as world:
        await world.create(node("n1", allocatable={"pods": "400"}), gpus("n1"), gpu_class(), a_claim("c"))
        for number in range(257):
            await world.put(using(f"p{number}", "c"))
        await world.settle()
        await world.advance(12)

        bound = [number for number in range(257) if await world.node_of(f"p{number}")]
        assert len(bound) == 256
        assert len(await world.users("c")) == 256
        late = next(number for number in range(257) if number not in bound)
        _, reason, message = await world.condition(f"p{late}")
        assert reason == "Unschedulable"
        assert "resource claim default/c has 256 consumers, which is the maximum" in message

        await world.client.delete(pod.Pod, f"p{bound[0]}", namespace="default", grace_period_seconds=0)
        await world.advance(12)
        assert await world.node_of(f"p{late}") == "n1", "woken when a place is free"


async def test_many_pods_of_one_claim_are_bound_without_conflicts() -> None:
    """Reservations of one claim follow each other, so that none of them backs off.

    Every write takes a few turns of the event loop, as on a server elsewhere.
    """

    async def take_time(*_: Any, **__: Any) -> None:
        for _turn in range(20):
            await asyncio.sleep(0)

    async with schedulers.cluster(wrap=worlds.meddling(take_time)) as world:
        await world.create(node("n1", allocatable={"pods": "400"}), gpus("n1"), gpu_class(), a_claim("c"))
        await world.create(using("first", "c"))
        for number in range(60):
            await world.put(using(f"p{number}", "c"))
        await world.settle()
        assert len(await world.users("c")) == 61
        assert all([await world.node_of(f"p{number}") for number in range(60)]), "no time passes, so no pod backs off"


async def test_an_event_names_the_claim_that_a_pod_waits_for_once() -> None:
    async with schedulers.cluster() as world:
        await world.create(node("n1"), gpus("n1"), gpu_class(), using("p", "c"))
        await world.advance(5)
        assert await world.events("WaitingForResourceClaim") == []
        await world.advance(120)
        text = 'Normal WaitingForResourceClaim: not scheduled yet: could not find ResourceClaim "default/c"'
        assert await world.events("WaitingForResourceClaim") == [text]
        assert await world.condition("p") == ("", "", ""), "as in Kubernetes, there is no condition"


async def test_without_the_feature_pods_get_nodes_as_if_they_had_no_claims() -> None:
    off = gates.ALL.switched({gates.Gate.CORE: False})
    async with schedulers.cluster(gates=off) as world:
        await world.create(node("n1"), using("p", "c"))
        assert await world.node_of("p") == "n1"


@pytest.mark.parametrize("writes", [pytest.param(count, id=f"killed-before-write-{count}") for count in range(4)])
async def test_killed_at_any_write_nothing_leaks(writes: int) -> None:
    async with schedulers.cluster(scheduler=False) as world:
        done = 0

        async def before(verb: str, *_: Any, **__: Any) -> None:
            nonlocal done
            if verb in ("patch", "create", "bind"):
                done += 1
                if done > writes:
                    # As if the process were gone.
                    await asyncio.Event().wait()

        await world.create(node("n1"), gpus("n1", 1), gpu_class(), a_claim("c"))
        await world.start(client=worlds.meddling(before)(world.client))
        await world.create(using("p", "c"))
        await world.kill()
        assert done > writes

        await world.start("second")
        await world.advance(3)
        assert await world.node_of("p") == "n1"
        assert await world.devices("c") == ["n1/gpu-0"]
        assert await world.users("c") == ["p"]


async def test_extended_resources_become_a_claim() -> None:
    async with schedulers.cluster() as world:
        backed = device_class("gpu", f'device.driver == "{DRIVER}"').extended_resource("example.com/gpu")
        pods = (
            a_pod("p")
            .init_container("prepare", requests={"example.com/gpu": "2"})
            .container("first", requests={"example.com/gpu": "1"})
            .container("second", requests={"cpu": "1"})
        )
        await world.create(node("n1"), gpus("n1"), backed, pods)

        assert await world.node_of("p") == "n1"
        status = (await world.pod("p")).status.extended_resource_claim_status
        assert status is not None
        assert await world.devices(status.resource_claim_name) == ["n1/gpu-0", "n1/gpu-1"]
        assert [(each.container_name, each.request_name) for each in status.request_mappings] == [
            ("first", "container-1-request-0"),
            ("prepare", "container-1-request-0"),
            ("prepare", "container-0-request-0"),
        ]
        assert (await world.claim(status.resource_claim_name)).metadata.annotations == {
            "resource.kubernetes.io/extended-resource-claim": "true"
        }


async def test_extended_resources_of_a_device_plugin_need_no_claim() -> None:
    async with schedulers.cluster() as world:
        backed = device_class("gpu", f'device.driver == "{DRIVER}"').extended_resource("example.com/gpu")
        plugged = node("n2", allocatable={"cpu": "4", "memory": "8Gi", "pods": "110", "example.com/gpu": "1"})
        want = a_pod("p").container("c", requests={"example.com/gpu": "1"})
        await world.create(node("n1"), plugged, backed, want)

        assert await world.node_of("p") == "n2"
        assert (await world.pod("p")).status.extended_resource_claim_status is None


async def test_extended_resources_that_are_scored_spread_pods_by_their_devices() -> None:
    """The workload ExtendedResourceScoring of upstream's benchmark: its classes have one name for the resource."""
    resources = (*resourcescoring.CPU_AND_MEMORY, resourcescoring.ScoredResource("example.com/gpu"))
    plugins = settings.PluginSettings(strategy=resourcescoring.Strategy(resources=resources))
    async with schedulers.cluster(scheduler=False) as world:
        configured = settings.Settings(plugins=plugins)
        await world.start(plugins=profiles.default(configured, clock=world.clock, rng=random.Random(1)))
        classes = [
            device_class(name, f'device.driver == "{DRIVER}"').extended_resource("example.com/gpu")
            for name in ("first", "second")
        ]
        await world.create(node("bare"), *classes)
        for name, number in (("n1", 8), ("n2", 4), ("n3", 4)):
            await world.create(node(name), gpus(name, number))
        pods = [f"p{number}" for number in range(8)]
        for name in pods:
            await world.create(a_pod(name).container("c", requests={"example.com/gpu": "1"}))
        placed = collections.Counter([await world.node_of(name) for name in pods])
        # Without scores of devices, the nodes are equal, and pods would be spread evenly.
        assert placed == {"n1": 4, "n2": 2, "n3": 2}


async def test_an_extended_resource_claim_that_is_left_over_goes_first() -> None:
    failing = Interference("patch", subresource="status")

    async def refuse() -> None:
        raise errors.ServerFaultError({"code": 500, "message": "the disk is on fire"})

    async with schedulers.cluster(wrap=worlds.meddling(failing)) as world:
        backed = device_class("gpu", f'device.driver == "{DRIVER}"').extended_resource("example.com/gpu")
        await world.create(node("n1"), gpus("n1", 1), backed)
        failing.act = refuse
        await world.create(a_pod("p").container("c", requests={"example.com/gpu": "1"}))
        assert "the disk is on fire" in (await world.condition("p"))[2]
        assert await world.world.all_of(resourceclaim.ResourceClaim) == ()

        await world.advance(3)
        assert await world.node_of("p") == "n1"
        assert len(await world.world.all_of(resourceclaim.ResourceClaim)) == 1


async def test_template_claims_are_made_and_used() -> None:
    async with schedulers.cluster() as world:
        template = claim_template("t").request("gpu", device_class="gpu")
        await world.create(node("n1"), gpus("n1", 2), gpu_class(), template)
        for name in ("p1", "p2", "p3"):
            await world.create(a_pod(name).container("c", claims=("x",)).claim("x", template="t"))

        assert [await world.node_of(name) for name in ("p1", "p2", "p3")] == ["n1", "n1", ""]
        assert (await world.condition("p3"))[2] == (
            "0/1 nodes are available: 1 cannot allocate all claims. "
            "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        )
        await world.world.delete(await world.pod("p1"), grace_period_seconds=0)
        await world.settle()
        await world.advance(1)
        assert await world.node_of("p3") == "n1"


async def test_prioritized_list_prefers_the_node_with_the_better_alternative() -> None:
    """KEP-4816, first story: the model a researcher prefers is on one node only."""
    async with schedulers.cluster() as world:
        big = resource_slice("s2", driver=DRIVER, pool="n2").on_node("n2")
        small = resource_slice("s1", driver=DRIVER, pool="n1").on_node("n1")
        choice = claim("c").first_available(
            "gpu",
            subrequest("h100", "gpu", select=f'device.attributes["{DRIVER}"].model == "h100"'),
            subrequest("a100", "gpu", select=f'device.attributes["{DRIVER}"].model == "a100"', count=2),
        )
        await world.create(node("n1"), node("n2"), gpu_class())
        await world.create(
            small.devices(device("a").attributes(model="a100"), device("b").attributes(model="a100")),
            big.devices(device("a").attributes(model="h100")),
            choice,
            using("p", "c"),
        )
        assert await world.node_of("p") == "n2"


def _only(name: str) -> nodeselector.NodeSelector:
    field = nodeselector.NodeSelectorRequirement(key="metadata.name", operator="In", values=(name,))
    return nodeselector.NodeSelector(node_selector_terms=(nodeselector.NodeSelectorTerm(match_fields=(field,)),))


class LosingBindings:
    """A client whose server is killed right after a binding: no answer comes, and reading fails for a while."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._unreadable = 0
        self.claim_writes = 0

    def __getattr__(self, name: str) -> Any:
        if name == "commit":
            raise AttributeError(name)
        return getattr(self._client, name)

    async def bind(self, bound: pod.Pod, *, node: str) -> None:
        await self._client.bind(bound, node=node)
        self._unreadable = 2
        raise errors.UnreachableError("broken off")

    async def patch(self, kind: Any, *arguments: Any, **options: Any) -> Any:
        self.claim_writes += kind is resourceclaim.ResourceClaim
        return await self._client.patch(kind, *arguments, **options)

    async def get(self, kind: Any, *arguments: Any, **options: Any) -> Any:
        if kind is pod.Pod and self._unreadable:
            self._unreadable -= 1
            raise errors.UnreachableError("no connection")
        return await self._client.get(kind, *arguments, **options)


async def test_a_pod_that_was_bound_without_an_answer_keeps_its_reservation() -> None:
    clients: list[LosingBindings] = []

    def wrap(client: Any) -> Any:
        clients.append(LosingBindings(client))
        return clients[-1]

    async with schedulers.cluster(wrap=wrap) as world:
        await world.create(node("n1"), gpus("n1", 1), gpu_class(), a_claim("c"), using("p", "c"))
        await world.advance(3)
        assert await world.node_of("p") == "n1"
        assert await world.users("c") == ["p"]
        # Finalizer and allocation; the reservation is not taken back.
        assert [client.claim_writes for client in clients] == [2]
