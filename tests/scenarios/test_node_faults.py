"""Nodes whose agents are cut off, stopped or restarted: they become ready again, and their pods go on."""

import asyncio
import contextlib
import datetime as dt
import functools
import pathlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, cast

import pytest

from drachma import errors
from drachma.api import gates, lease, node, pod, resourceclaim, resourceslice
from drachma.client import Client, patches, transactions
from drachma.node.pods.noderesources import NodeResources
from drachma.node.simulation import hardware
from drachma.process import components, nodeagents
from drachma.runtime import Surroundings
from drachma.testing import manualclock
from tests.scenarios import controlplane

AGENTS = "agents"
Agents = Callable[[Surroundings], components.Run]


class Network:
    """A client whose requests fail while the network is down, and wait while its process is stopped.

    Watches hear nothing meanwhile.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._goes_on = asyncio.Event()
        self._goes_on.set()
        self.is_down = False

    def stop(self) -> None:
        """Stop the process, as SIGSTOP does."""
        self._goes_on.clear()

    def go_on(self) -> None:
        """Let the process go on, as SIGCONT does."""
        self._goes_on.set()

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)
        if name == "watch":
            return self._watch

        async def request(*arguments: Any, **options: Any) -> Any:
            await self._pass()
            return await call(*arguments, **options)

        return request

    async def _pass(self) -> None:
        await self._goes_on.wait()
        if self.is_down:
            raise errors.UnreachableError("no route to host")

    @contextlib.asynccontextmanager
    async def _watch(self, *arguments: Any, **options: Any) -> AsyncIterator["Network.Events"]:
        await self._pass()
        async with self._client.watch(*arguments, **options) as events:
            yield Network.Events(self, events)

    class Events:
        """Events of a watch, which ends when the network is down."""

        def __init__(self, network: "Network", events: Any) -> None:
            self._network = network
            self._events = events

        async def batch(self) -> Any:
            batch = await self._events.batch()
            await self._network._pass()
            return batch


class JumpingClock(manualclock.ManualClock):
    """A clock whose time of day can be set."""

    def __init__(self) -> None:
        super().__init__()
        self.offset = dt.timedelta()

    def utc(self) -> dt.datetime:
        return super().utc() + self.offset


def _machines(count: int = 2, profile: str = "gpu-server", **options: Any) -> Agents:
    return functools.partial(nodeagents.simulated_machines, machines=hardware.build(profile, count), **options)


def _pretending() -> Agents:
    return functools.partial(nodeagents.simulated_machines, machines=hardware.Hardware((), ()), pretends_nodes=True)


def _pod(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "busybox"}], **spec},
    }


async def _conditions(cluster: controlplane.ControlPlane, name: str) -> dict[str, str]:
    stored_node = await cluster.client.get(node.Node, name)
    return {each.type: each.status for each in stored_node.status.conditions}


async def _pod_conditions(cluster: controlplane.ControlPlane, name: str) -> dict[str, str]:
    stored_pod = await cluster.pod(name)
    return {each.type: each.status for each in stored_pod.status.conditions}


async def _make_node(cluster: controlplane.ControlPlane, name: str = "copied") -> None:
    resources = '{"cpu": "8", "memory": "32Gi", "pods": "110"}'
    await cluster.apply(
        f"apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\n"
        f"status: {{capacity: {resources}, allocatable: {resources}}}\n"
    )


async def _is_ready(cluster: controlplane.ControlPlane, name: str) -> bool:
    stored_node = await cluster.client.get(node.Node, name)
    ready = [each.status for each in stored_node.status.conditions if each.type == "Ready"]
    return ready == ["True"] and not stored_node.spec.taints


@contextlib.asynccontextmanager
async def _with_network() -> AsyncIterator[tuple[controlplane.ControlPlane, Network]]:
    """A cluster of two nodes; the agent of node-1 has a network of its own."""
    async with controlplane.control_plane() as cluster:
        network = Network(cluster.client)
        cluster.launch(AGENTS, _machines(1))
        cluster.launch_on("cut", _second_machine(), cast(Client, network))
        await cluster.settle()
        yield cluster, network


def _second_machine() -> Agents:
    machines = hardware.build("cpu", 2)
    only = hardware.Hardware(machines.machines[1:], machines.classes)
    return functools.partial(nodeagents.simulated_machines, machines=only)


# Nodes that were not ready


async def test_a_node_is_ready_again_after_a_partition() -> None:
    async with _with_network() as (cluster, network):
        await cluster.client.create_document(pod.Pod, _pod("web", nodeName="node-1"))
        await cluster.advance(20)
        assert (await _pod_conditions(cluster, "web"))["Ready"] == "True"
        network.is_down = True
        await cluster.advance(62)
        assert (await _conditions(cluster, "node-1"))["Ready"] == "Unknown"
        assert (await _pod_conditions(cluster, "web"))["Ready"] == "False"
        network.is_down = False
        await cluster.advance(15)
        assert await _is_ready(cluster, "node-1")
        assert (await _pod_conditions(cluster, "web"))["Ready"] == "True"
        await cluster.advance(600)
        assert [each.metadata.name for each in await cluster.all_of(pod.Pod)] == ["web"], "it is not evicted"
        assert await cluster.events("NodeReady") == ["Node node-1 status is now: NodeReady"]


async def test_a_node_is_ready_again_after_its_agent_was_stopped() -> None:
    async with _with_network() as (cluster, network):
        await cluster.client.create_document(pod.Pod, _pod("web", nodeName="node-1"))
        await cluster.advance(20)
        network.stop()
        await cluster.advance(60)
        assert (await _conditions(cluster, "node-1"))["Ready"] == "Unknown"
        network.go_on()
        await cluster.advance(10)
        assert await _is_ready(cluster, "node-1")
        assert (await _pod_conditions(cluster, "web"))["Ready"] == "True"


async def test_nodes_stay_ready_when_the_whole_process_was_stopped() -> None:
    async with controlplane.control_plane() as cluster:
        cluster.launch(AGENTS, _machines(2))
        await cluster.advance(32)
        await cluster.clock.stall(65)
        await cluster.advance(30)
        assert await _is_ready(cluster, "node-0")
        assert await _is_ready(cluster, "node-1")
        assert not await cluster.events("NodeNotReady")


@pytest.mark.parametrize("hours", [pytest.param(2, id="forward"), pytest.param(-2, id="back")])
async def test_a_node_stays_ready_when_the_time_of_day_jumps(hours: int) -> None:
    own = JumpingClock()

    def agents(around: Surroundings) -> components.Run:
        skewed = Surroundings(around.client, shared_informers=around.informers, clock=own, rng=around.rng)
        return _second_machine()(skewed)

    async with controlplane.control_plane() as cluster:
        cluster.launch(AGENTS, _machines(1))
        cluster.launch("skewed", agents)
        await cluster.settle()
        for second in range(0, 600, 5):
            if second == 30:
                own.offset = dt.timedelta(hours=hours)
            await own.advance(5)
            await cluster.advance(5)
            assert (await _conditions(cluster, "node-1"))["Ready"] == "True", f"after {second} s"
        assert await _is_ready(cluster, "node-1")


async def test_a_node_reports_every_five_minutes_and_not_in_between() -> None:
    async with controlplane.control_plane() as cluster:
        cluster.launch(AGENTS, _machines(1))
        await cluster.advance(20)

        async def heartbeats() -> set[dt.datetime | None]:
            stored_node = await cluster.client.get(node.Node, "node-0")
            return {each.last_heartbeat_time for each in stored_node.status.conditions}

        first, since = await heartbeats(), cluster.clock.utc()
        await cluster.advance(260)
        assert await heartbeats() == first
        await cluster.advance(40)
        assert min(filter(None, await heartbeats())) > since
        stored_node = await cluster.client.get(node.Node, "node-0")
        assert {each.last_transition_time for each in stored_node.status.conditions} == first, "nothing has changed"


async def test_what_others_write_over_the_status_of_a_node_is_put_right() -> None:
    async with controlplane.control_plane() as cluster:
        cluster.launch(AGENTS, _machines(1))
        await cluster.advance(20)
        stored_node = await cluster.client.get(node.Node, "node-0")
        wrong = [{"type": "Ready", "status": "False", "reason": "Test"}]
        await cluster.patch_status(stored_node, {"conditions": wrong, "capacity": {"cpu": "1"}})
        await cluster.advance(12)
        stored_node = await cluster.client.get(node.Node, "node-0")
        assert await _is_ready(cluster, "node-0")
        assert str(stored_node.status.capacity["cpu"]) == "96"


# Agents that are restarted


class _Slow:
    """A client whose reads take a second."""

    def __init__(self, client: Client, clock: manualclock.ManualClock) -> None:
        self._client = client
        self._clock = clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def get(self, kind: Any, name: str, **options: Any) -> Any:
        await self._clock.sleep(1)
        return await self._client.get(kind, name, **options)


async def test_a_restarted_agent_knows_the_addresses_of_its_pods(tmp_path: pathlib.Path) -> None:
    served = nodeagents.Served(client_authority=b"", apiserver="https://127.0.0.1:1", root=tmp_path)
    agents = _machines(1, served=served)
    async with controlplane.control_plane() as cluster:
        cluster.launch(AGENTS, agents)
        await cluster.settle()
        for name in ("old-1", "old-2"):
            await cluster.client.create_document(pod.Pod, _pod(name, nodeName="node-0"))
            await cluster.settle()
        before = {each.metadata.name: each.status.pod_ip for each in await cluster.all_of(pod.Pod)}
        await cluster.kill(AGENTS)
        await cluster.client.create_document(pod.Pod, _pod("new", nodeName="node-0"))
        # What containers of older pods did is read first, so a new pod is ahead of them.
        cluster.launch_on(AGENTS, agents, cast(Client, _Slow(cluster.client, cluster.clock)))
        await cluster.advance(5)
        after = {each.metadata.name: each for each in await cluster.all_of(pod.Pod)}
        assert {name: after[name].status.pod_ip for name in before} == before
        assert len({each.status.pod_ip for each in after.values()}) == 3
        assert {len(each.status.pod_ips) for each in after.values()} == {1}


async def test_pods_that_share_an_address_are_told_apart(tmp_path: pathlib.Path) -> None:
    served = nodeagents.Served(client_authority=b"", apiserver="https://127.0.0.1:1", root=tmp_path)
    agents = _machines(1, served=served)
    async with controlplane.control_plane() as cluster:
        cluster.launch(AGENTS, agents)
        await cluster.settle()
        for name in ("first", "second"):
            await cluster.client.create_document(pod.Pod, _pod(name, nodeName="node-0"))
            await cluster.advance(1)
        await cluster.kill(AGENTS)
        shared = (await cluster.pod("first")).status.pod_ip
        fault = {"podIP": shared, "podIPs": [{"$patch": "replace"}, {"ip": shared}]}
        patch = patches.strategic({"status": fault})
        await cluster.client.patch(pod.Pod, "second", patch=patch, namespace="default", subresource="status")
        cluster.launch(AGENTS, agents)
        await cluster.advance(5)
        first, second = await cluster.pod("first"), await cluster.pod("second")
        assert first.status.pod_ip == shared
        assert second.status.pod_ip not in ("", shared)
        for name in ("first", "second"):
            await cluster.client.delete(pod.Pod, name, namespace="default")
        await cluster.advance(5)
        assert not await cluster.all_of(pod.Pod)


_TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.simulation.drachma.dev}}]}}}
"""


class _Picky:
    """A client of an API server that refuses statuses of pods, a second after they came."""

    def __init__(self, client: Client, refusal: errors.RefusedError, clock: manualclock.ManualClock) -> None:
        self._client = client
        self._refusal = refusal
        self._clock = clock
        self.refused = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def patch_stored(self, kind: Any, name: str, **options: Any) -> Any:
        if kind is pod.Pod and options.get("subresource") == "status":
            await self._refuse()
        return await self._client.patch_stored(kind, name, **options)

    async def commit(self, changes: Sequence[transactions.Change]) -> Any:
        for position, change in enumerate(changes):
            if isinstance(change, transactions.PatchStored) and (change.kind, change.subresource) == (
                pod.Pod,
                "status",
            ):
                try:
                    await self._refuse()
                except errors.RefusedError as error:
                    raise errors.CommitRefusedError(error, position) from None
        return await cast(transactions.Transactions, self._client).commit(changes)

    async def _refuse(self) -> None:
        self.refused += 1
        # So that the event about it is not one of several of the same moment, which have the same name.
        await self._clock.sleep(1)
        raise self._refusal


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(errors.InvalidObjectError({"message": "podIPs: Invalid value", "code": 422}), id="invalid"),
        pytest.param(errors.ForbiddenError({"message": "forbidden", "code": 403}), id="forbidden"),
    ],
)
async def test_a_pod_goes_though_its_statuses_are_refused(refusal: errors.RefusedError) -> None:
    async with controlplane.control_plane() as cluster:
        picky = _Picky(cluster.client, refusal, cluster.clock)
        cluster.launch_on(AGENTS, _machines(1), cast(Client, picky))
        await cluster.settle()
        await cluster.apply(_TEMPLATE)
        claim = {"name": "gpu", "resourceClaimTemplateName": "one-gpu"}
        await cluster.client.create_document(pod.Pod, _pod("web", resourceClaims=[claim]))
        await cluster.advance(3600)
        assert picky.refused < 30, "pauses grow"
        (message,) = await cluster.events("FailedStatus")
        assert str(refusal) in message
        await cluster.client.delete(pod.Pod, "web", namespace="default")
        await cluster.advance(60)
        assert not await cluster.all_of(pod.Pod)
        assert not await cluster.all_of(resourceclaim.ResourceClaim), "its device is free again"


# Nodes that others made


async def test_pretended_nodes_are_adopted_again_at_once() -> None:
    async with controlplane.control_plane() as cluster:
        cluster.launch(AGENTS, _pretending())
        await _make_node(cluster)
        await cluster.advance(12)
        assert await _is_ready(cluster, "copied")
        await cluster.kill(AGENTS)
        await cluster.advance(3)
        cluster.launch(AGENTS, _pretending())
        await cluster.client.create_document(pod.Pod, _pod("p"))
        await cluster.advance(3)
        assert (await cluster.pod("p")).status.phase == "Running"
        await cluster.advance(300)
        assert await _is_ready(cluster, "copied")


async def _renew_lease(cluster: controlplane.ControlPlane, name: str) -> None:
    moment = cluster.clock.utc().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": moment}
    patch = patches.merge({"spec": spec})
    try:
        await cluster.client.patch(lease.Lease, name, patch=patch, namespace="kube-node-lease")
    except errors.ObjectNotFoundError:
        metadata = {"name": name, "namespace": "kube-node-lease"}
        document = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
        await cluster.client.create_document(lease.Lease, document)


async def test_a_node_that_another_agent_keeps_is_adopted_when_that_agent_is_gone() -> None:
    async with controlplane.control_plane() as cluster:
        await _renew_lease(cluster, "copied")
        await _make_node(cluster)
        cluster.launch(AGENTS, _pretending())
        for _ in range(15):
            await cluster.advance(10)
            await _renew_lease(cluster, "copied")
            assert "Ready" not in await _conditions(cluster, "copied"), "that is for the other agent to say"
        await cluster.advance(90)
        assert await _is_ready(cluster, "copied")


async def test_a_pretended_node_that_was_deleted_and_made_again_is_adopted_again() -> None:
    async with controlplane.control_plane() as cluster:
        cluster.launch(AGENTS, _pretending())
        await _make_node(cluster)
        await cluster.advance(12)
        await cluster.client.delete(node.Node, "copied")
        await cluster.advance(5)
        await _make_node(cluster)
        await cluster.advance(12)
        assert await _is_ready(cluster, "copied")


# Simulated drivers


async def _published(cluster: controlplane.ControlPlane) -> dict[str, list[str]]:
    slices = await cluster.all_of(resourceslice.ResourceSlice)
    return {each.metadata.name: [device.name for device in each.spec.devices] for each in slices}


async def test_a_deleted_slice_is_published_again() -> None:
    async with controlplane.control_plane() as cluster:
        cluster.launch(AGENTS, _machines(4, "rack"))
        await cluster.settle()
        before = await _published(cluster)
        for name in before:
            await cluster.client.delete(resourceslice.ResourceSlice, name)
        await cluster.advance(5)
        assert await _published(cluster) == before


async def test_another_profile_publishes_its_own_devices() -> None:
    async with controlplane.control_plane() as cluster:
        for profile in ("gpu-server", "nic", "rack", "mig", "gpu-server"):
            cluster.launch(AGENTS, _machines(1, profile))
            await cluster.advance(5)
            built = hardware.build(profile, 1)
            want = {
                each["metadata"]["name"]: [device["name"] for device in each["spec"].get("devices", ())]
                for each in built.all_slices
            }
            assert await _published(cluster) == want, profile
            slices = await cluster.all_of(resourceslice.ResourceSlice)
            pools = {(each.spec.driver, each.spec.pool.name): set[int]() for each in slices}
            for each in slices:
                pools[each.spec.driver, each.spec.pool.name].add(int(each.spec.pool.generation))
            assert all(len(generations) == 1 for generations in pools.values()), "pools are complete"
            stored_node = await cluster.client.get(node.Node, "node-0")
            assert built.machines[0].node["metadata"]["labels"].items() <= stored_node.metadata.labels.items()
            await cluster.kill(AGENTS)


async def test_another_gate_publishes_what_was_dropped_before() -> None:
    off = gates.ALL.switched({"DRAPartitionableDevices": False})
    async with controlplane.control_plane(gates=off) as cluster:
        cluster.launch(AGENTS, _machines(1, "mig"))
        await cluster.advance(5)
        (first, *_) = await cluster.all_of(resourceslice.ResourceSlice)
        await cluster.kill(AGENTS)

        def agents(around: Surroundings) -> components.Run:
            own = Surroundings(around.client, shared_informers=around.informers, clock=around.clock, rng=around.rng)
            return _machines(1, "mig")(own)

        cluster.launch(AGENTS, agents)
        await cluster.advance(5)
        after = await cluster.client.get(resourceslice.ResourceSlice, first.metadata.name)
        assert after.spec.pool.generation > first.spec.pool.generation


async def test_what_people_do_to_published_devices_stays() -> None:
    async with controlplane.control_plane() as cluster:
        cluster.launch(AGENTS, _machines(1))
        await cluster.settle()
        name = f"node-0-{hardware.GPU_DRIVER}"
        current = await cluster.client.get_document(resourceslice.ResourceSlice, name)
        del current["spec"]["devices"][0]
        await cluster.client.update_document(resourceslice.ResourceSlice, current)
        await cluster.advance(60)
        await cluster.kill(AGENTS)
        cluster.launch(AGENTS, _machines(1))
        await cluster.advance(60)
        assert "gpu-0" not in (await _published(cluster))[name]


async def test_a_pod_whose_worker_fails_is_looked_after_again(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = iter([RuntimeError("unforeseen")])
    admit = NodeResources.admit

    def fail_once(self: NodeResources, of: pod.Pod) -> Any:
        for failure in failures:
            raise failure
        return admit(self, of)

    monkeypatch.setattr(NodeResources, "admit", fail_once)
    async with controlplane.control_plane() as cluster:
        cluster.launch(AGENTS, _machines(1, "cpu"))
        await cluster.settle()
        await cluster.client.create_document(pod.Pod, _pod("p"))
        await cluster.advance(5)
        assert (await cluster.client.get(pod.Pod, "p", namespace="default")).status.phase == "Pending"
        await cluster.advance(15)
        assert (await cluster.client.get(pod.Pod, "p", namespace="default")).status.phase == "Running"
