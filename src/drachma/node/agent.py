"""The agents of nodes: each registers its node, keeps its lease, and has a worker for every pod that is bound to it.

One process can have one of them or thousands: they share the informer of pods.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import logging
import pathlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from drachma import errors
from drachma.api import codec, deviceclass, lease, meta, node, pod, resourceclaim, resourceslice
from drachma.api import gates as feature
from drachma.client import Client, Selection, patches, target
from drachma.client.protocol import EVERYTHING
from drachma.node import (
    admission,
    checkpoint,
    containerdevices,
    containerstate,
    hardware,
    health,
    nodemetrics,
    pastpod,
    plugins,
    podquality,
    podresources,
    podresourcesocket,
    podsetup,
    preparation,
    simulateddrivers,
    simulatedfaults,
)
from drachma.node.directories import Directories
from drachma.node.endpoint.addresses import Addresses, NodeAddress
from drachma.node.podworker import PodWorker
from drachma.node.probes.watching import Probes
from drachma.node.runtimes import protocol as runtimes
from drachma.runtime import Surroundings, clock, controller, events, informer, queuemetrics

_log = logging.getLogger(__name__)

_INDEX: Final = "agent-node"
_LEASE_NAMESPACE: Final = "kube-node-lease"
_LEASE_SECONDS: Final = 40
_RENEW_SECONDS: Final = 10.0
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 7.0
_CLEAN_UP_SECONDS: Final = 60.0
_COMPONENT: Final = "kubelet"
_USER_PREFIX: Final = "system:node:"
"""As whom each node acts, where components are somebody."""

_PAST_PODS: Final = target.view_of(target.of(pod.Pod), pastpod.PastPod)
_ADMIN: Final = "kubernetes-admin"
"""Who offers device classes: that is not for nodes to do."""


class PodFiles(NamedTuple):
    """Where pods have their volumes, and what all containers have in their environment."""

    folder: pathlib.Path
    environment: Mapping[str, str]


class Agents:
    """All agents of a process, as one component of it."""

    name: Final = "node agents"

    def __init__(
        self,
        around: Surroundings,
        machines: hardware.Hardware,
        runtime: runtimes.Runtime,
        *,
        selection: Selection = EVERYTHING,
        directories: Callable[[str], Directories] | None = None,
        addresses: Addresses | None = None,
        files: PodFiles | None = None,
        pretends_nodes: bool = False,
    ) -> None:
        """``selection`` is which pods may be seen: one node sees its own only.

        Where it ``pretends_nodes``, nodes that others create get an agent too, unless somebody keeps their lease.

        ``directories`` are those of a node by its name; without any, drivers are simulated. ``addresses`` say
        where nodes are reached, if they are; ``files`` are for containers that see any.
        """
        self._addresses = addresses
        self._around = around
        self._runtime = runtime
        self._machines = machines
        self._faults = None if directories is not None else _faults(around)
        self._pods = around.informers.of(pod.Pod, selection)
        self._pods.cache.add_index(_INDEX, lambda of: (of.spec.node_name,) if of.spec.node_name else ())
        metrics = nodemetrics.NodeMetrics(around.registry)
        recorder = around.recorder(_COMPONENT)

        def build(machine: hardware.Machine, address: NodeAddress | None = None) -> Agent:
            return Agent(
                around.acting_as(f"{_USER_PREFIX}{machine.name}"),
                machine,
                runtime=runtime,
                directories=None if directories is None else directories(machine.name),
                faults=self._faults,
                address=address,
                files=files,
                metrics=metrics,
                recorder=recorder,
                pods=self._pods,
            )

        self._build = build
        self._agents: Final = {
            each.name: build(each, None if addresses is None else addresses.of(each.name)) for each in machines.machines
        }
        self._group: asyncio.TaskGroup | None = None
        self._has_group: Final = asyncio.Event()
        self._started: Final[dict[str, asyncio.Task[None]]] = {}
        self._newcomers: Final[asyncio.Queue[str] | None] = asyncio.Queue() if pretends_nodes else None
        if self._newcomers is not None:
            around.informers.of(node.Node).add_handler(informer.Handler(added=self._see_node))
        self._pods.add_handler(
            informer.Handler(added=self._heard, updated=lambda _old, new: self._heard(new), deleted=self._removed)
        )

    async def run(self) -> None:
        """Registers all nodes and runs their pods until cancelled."""
        await self._offer()
        await controller.side_by_side([agent.register for agent in self._agents.values()])
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                self._has_group.set()
                for agent in self._agents.values():
                    group.create_task(agent.run(), name=f"agent of {agent.name}")
                if self._faults is not None:
                    group.create_task(self._faults.run(), name="faults of devices")
                if self._newcomers is not None:
                    group.create_task(self._pretend(self._newcomers, group), name="agents of other nodes")
        finally:
            await self._runtime.close()

    async def start(self, machine: hardware.Machine) -> None:
        """Has one more machine, once all run; returns when its node is registered.

        Raises:
            errors.InvalidValueError: there is one of its name.
        """
        await self._has_group.wait()
        assert self._group is not None, "was waited for"
        if machine.name in self._agents:
            raise errors.InvalidValueError(f"machine {machine.name}: there is one of this name")
        address = None if self._addresses is None else self._addresses.add(machine.name)
        agent = self._agents[machine.name] = self._build(machine, address)
        await agent.register()
        self._started[machine.name] = self._group.create_task(agent.run(), name=f"agent of {machine.name}")

    async def stop(self, name: str) -> None:
        """Switches off a machine that was started; nothing happens if there is none. What the API has of it stays."""
        task = self._started.pop(name, None)
        if task is None:
            return
        task.cancel()
        await asyncio.wait([task])
        del self._agents[name]
        if self._addresses is not None:
            self._addresses.remove(name)

    async def _offer(self) -> None:
        """Makes device classes, and slices of what belongs to no node alone where no real driver does."""
        admin = self._around.acting_as(_ADMIN).client
        offered: list[tuple[type[meta.Object], dict[str, Any]]] = [
            (deviceclass.DeviceClass, each) for each in self._machines.classes
        ]
        if self._faults is not None:
            offered += [(resourceslice.ResourceSlice, each) for each in self._machines.slices]
        for kind, document in offered:
            with contextlib.suppress(errors.ObjectExistsError):
                await admin.create_document(kind, document)

    def _see_node(self, of: node.Node) -> None:
        if self._newcomers is not None and of.metadata.name not in self._agents:
            self._newcomers.put_nowait(of.metadata.name)

    async def _pretend(self, newcomers: asyncio.Queue[str], group: asyncio.TaskGroup) -> None:
        """Gives nodes that others made an agent each, unless they have one somewhere else."""
        while True:
            name = await newcomers.get()
            if name in self._agents or await self._is_kept(name):
                continue
            agent = self._agents[name] = self._build(hardware.pretended(name))
            await agent.register()
            group.create_task(agent.run(), name=f"agent of {name}")

    async def _is_kept(self, name: str) -> bool:
        """Whether somebody renews the lease of a node."""
        try:
            known = await self._around.acting_as(_ADMIN).client.get(lease.Lease, name, namespace=_LEASE_NAMESPACE)
        except errors.ObjectNotFoundError:
            return False
        if not known.spec.renew_time:
            return False
        age = self._around.clock.utc() - dt.datetime.fromisoformat(known.spec.renew_time)
        return age.total_seconds() < _LEASE_SECONDS

    def at(self, address: str) -> Agent | None:
        """The agent of the node that is reached at an address."""
        name = None if self._addresses is None else self._addresses.node_at(address)
        return None if name is None else self._agents.get(name)

    def _heard(self, of: pod.Pod) -> None:
        agent = self._agents.get(of.spec.node_name)
        if agent is not None:
            agent.take(of)

    def _removed(self, of: pod.Pod) -> None:
        agent = self._agents.get(of.spec.node_name)
        if agent is not None:
            agent.drop(of)


class Drivers(preparation.Drivers, Protocol):
    """The drivers of a node: :class:`drachma.node.plugins.Plugins`, or simulated ones."""

    @property
    def health(self) -> health.DeviceHealth: ...

    async def run(self, owner: node.Node) -> None:
        """Looks after the drivers of a node that is registered; returns when that needs nothing more."""


class Agent:
    """One node."""

    def __init__(
        self,
        around: Surroundings,
        machine: hardware.Machine,
        *,
        runtime: runtimes.Runtime,
        directories: Directories | None,
        faults: simulatedfaults.SimulatedFaults | None,
        address: NodeAddress | None,
        files: PodFiles | None,
        metrics: nodemetrics.NodeMetrics,
        recorder: events.Recorder,
        pods: informer.Informer[pod.Pod],
    ) -> None:
        """Without directories the node's drivers are simulated, with ``faults``; what they prepared is not kept."""
        self.name: Final = machine.name
        self.clock: Final = around.clock
        self.runtime: Final = runtime
        self._client = around.client
        self._address = address
        self._machine = machine
        described = codec.decode(machine.node)
        assert isinstance(described, node.Node), "machines are described by nodes"
        self._node = described
        self._recorder = recorder
        self._pods = pods
        self._with_claims = around.gates.on(feature.Gate.NODE_ALLOCATABLE_RESOURCES)
        self._counts_claims_in_quality = self._with_claims and around.gates.on(feature.Gate.NODE_ALLOCATABLE_QOS)
        self._directories = directories
        self._drivers = self._make_drivers(metrics, faults, queues=around.queues)
        self._preparation = preparation.Preparation(
            get=self._claim,
            registered=self._drivers,
            file=simulateddrivers.Forgetful() if directories is None else checkpoint.Checkpoint(directories.root),
            metrics=metrics,
            time=around.clock,
            gates=around.gates,
        )
        self._setups: podsetup.PodSetups | None = None
        if files is not None and runtime.has_files:
            self._setups = podsetup.PodSetups(
                around.client,
                files.folder,
                base=files.environment,
                allocatable=described.status.allocatable,
                time=around.clock,
            )
        self._workers: Final[dict[str, PodWorker]] = {}
        self._tasks: Final[dict[str, asyncio.Task[None]]] = {}
        self._is_running = False
        self._has_more_drivers: Final = asyncio.Event()

    def _make_drivers(
        self,
        metrics: nodemetrics.NodeMetrics,
        faults: simulatedfaults.SimulatedFaults | None,
        *,
        queues: queuemetrics.Metrics,
    ) -> Drivers:
        if self._directories is None:
            assert faults is not None, "whoever has no directories simulates drivers"
            return simulateddrivers.SimulatedDrivers(
                self._machine, self._claim, client=self._client, faults=faults, time=self.clock
            )
        self._directories.make()
        return plugins.Plugins(
            self.name,
            self._directories.registry,
            client=self._client,
            metrics=metrics,
            queues=queues,
            time=self.clock,
            joined=self._try_again,
            heard=self._hear_of_devices,
        )

    # Its node

    async def register(self) -> None:
        """Makes the Node, or brings it up to date; tries until that is done."""
        pause = _FIRST_PAUSE
        while True:
            try:
                self._node = await self._register()
                return
            except (errors.RefusedError, errors.UnreachableError) as error:
                _log.warning("node %s: not registered, will try again: %s", self.name, error)
            await self.clock.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _register(self) -> node.Node:
        before: dict[str, Any] = {}
        try:
            await self._client.create_document(node.Node, self._machine.node)
        except errors.ObjectExistsError:
            before = await self._client.get_document(node.Node, self.name)
        registered = await self._client.patch(
            node.Node,
            self.name,
            patch=patches.strategic({"status": self._status()}),
            subresource="status",
        )
        self._tell(registered, before)
        await self._renew()
        return registered

    def _tell(self, registered: node.Node, before: Mapping[str, Any]) -> None:
        """What people should know about how the agent came up again."""
        boot = _boot_id(self._machine.node)
        if _boot_id(before) and boot and _boot_id(before) != boot:
            message = f"Node {self.name} has been rebooted, boot id: {boot}"
            self._recorder.record(registered, type="Warning", reason="Rebooted", message=message)
        if self._preparation.damage:
            message = f"Prepared claims are learnt anew from pods: {self._preparation.damage}"
            self._recorder.record(registered, type="Warning", reason="DamagedCheckpoint", message=message)

    async def run(self) -> None:
        """Runs the node's pods until cancelled."""
        self._is_running = True
        for of in self._pods.cache.by(_INDEX, self.name):
            self.take(of)
        parts: list[Coroutine[Any, Any, None]] = [] if self._setups is None else [self._setups.run()]
        parts += [
            controller.every(_RENEW_SECONDS, self._renew, time=self.clock, name=f"lease of {self.name}"),
            self._drivers.run(self._node),
        ]
        if self._directories is not None:
            path = self._directories.pod_resources
            socket = podresourcesocket.PodResourceSocket(path, self._preparation.claims, pods=self._running_pods)
            parts += [self._clean_up(), socket.run()]
        try:
            await controller.together(*parts)
        finally:
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _status(self) -> dict[str, Any]:
        now = self.clock.utc().strftime("%Y-%m-%dT%H:%M:%SZ")
        facts = {
            "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
            "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
            "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
        }
        conditions = [
            {
                "type": kind,
                "status": value,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": now,
                "lastTransitionTime": now,
            }
            for kind, (value, reason, message) in facts.items()
        ]
        given: dict[str, Any] = self._machine.node.get("status") or {}
        info = {"containerRuntimeVersion": self.runtime.name, **(given.get("nodeInfo") or {})}
        declared = sorted({*(given.get("declaredFeatures") or ()), *self._declared_features()})
        return {
            **given,
            "conditions": conditions,
            "nodeInfo": info,
            "declaredFeatures": declared,
            **self._reached(),
        }

    def _reached(self) -> dict[str, Any]:
        """Where the API server finds what the node serves."""
        if self._address is None:
            return {}
        return {
            "addresses": [
                {"type": "InternalIP", "address": self._address.host},
                {"type": "Hostname", "address": self.name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._address.port}},
        }

    def _declared_features(self) -> list[str]:
        """What the node can do that not every one can."""
        features = [feature.Gate.NODE_ALLOCATABLE_RESOURCES.value] if self._with_claims else []
        features += [feature.Gate.NODE_ALLOCATABLE_QOS.value] if self._counts_claims_in_quality else []
        return features if self._address is None else [*features, "ExtendWebSocketsToKubelet"]

    @property
    def addresses(self) -> Mapping[str, Any]:
        if self._address is None:
            return {}
        host = self._address.host
        found: dict[str, Any] = {"hostIP": host, "hostIPs": [{"ip": host}]}
        # Containers that really run have the network of their machine.
        return {**found, "podIP": host, "podIPs": [{"ip": host}]} if self.runtime.has_files else found

    @property
    def client(self) -> Client:
        return self._client

    async def _renew(self) -> None:
        now = self.clock.utc().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = lease.LeaseSpec(holder_identity=self.name, lease_duration_seconds=_LEASE_SECONDS, renew_time=now)
        try:
            await self._client.patch(
                lease.Lease, self.name, patch=patches.merge({"spec": spec}), namespace=_LEASE_NAMESPACE
            )
        except errors.ObjectNotFoundError:
            metadata = meta.ObjectMeta(name=self.name, namespace=_LEASE_NAMESPACE)
            with contextlib.suppress(errors.ObjectExistsError):
                await self._client.create(lease.Lease(metadata=metadata, spec=spec))

    # Its drivers

    def _try_again(self) -> None:
        """There is one more driver: what could not be done for want of it is tried at once."""
        self._has_more_drivers.set()
        for worker in self._workers.values():
            worker.try_again()

    def _hear_of_devices(self, driver: str, changed: set[health.DeviceID]) -> None:
        for uid in health.concerned_pods(self._preparation.claims, driver, changed):
            if uid in self._workers:
                self._workers[uid].look_again()

    async def _clean_up(self) -> None:
        """Gives back what pods left that went without this agent, now and again."""
        while True:
            self._has_more_drivers.clear()
            problems = await self._preparation.unprepare_gone(self._workers)
            for uid, problem in problems.items():
                _log.warning("node %s: claims of the pod of uid %s, which is gone: %s", self.name, uid, problem)
            await clock.sleep_unless(self._has_more_drivers, _CLEAN_UP_SECONDS, time=self.clock)

    def _running_pods(self) -> list[pod.Pod]:
        return [each for each in self._pods.cache.by(_INDEX, self.name) if each.metadata.uid in self._workers]

    # Its pods

    def take(self, of: pod.Pod) -> None:
        """A pod of this node is new, or another version of it."""
        uid = of.metadata.uid
        if uid in self._workers:
            self._workers[uid].update(of)
        elif self._is_running:
            worker = self._workers[uid] = PodWorker(self, of)
            task = self._tasks[uid] = asyncio.create_task(worker.run(), name=f"pod {of.metadata.name}")
            task.add_done_callback(lambda ended: self._ended(uid, ended))

    def drop(self, of: pod.Pod) -> None:
        """A pod of this node is gone, maybe by force; what runs of it is stopped, and its claims are given back."""
        worker = self._workers.get(of.metadata.uid)
        if worker is not None:
            worker.update(of)
            worker.go()

    def _ended(self, uid: str, task: asyncio.Task[None]) -> None:
        del self._tasks[uid]
        del self._workers[uid]
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("node %s: pod of uid %s: failed unexpectedly", self.name, uid, exc_info=error)

    def worker(self, namespace: str, name: str) -> PodWorker | None:
        """The worker of a pod of this node."""
        return next((each for each in self._workers.values() if _is(each.newest, namespace, name)), None)

    def workers(self) -> list[PodWorker]:
        """Those of all its pods."""
        return list(self._workers.values())

    def judge(self, of: pod.Pod) -> admission.Verdict:
        others = [each for each in self._running_pods() if each.metadata.uid != of.metadata.uid]
        return admission.judge(of, self._node, others, with_claims=self._with_claims)

    async def recall(self, of: pod.Pod) -> containerstate.Records:
        try:
            past = await self._client.get(_PAST_PODS, of.metadata.name, namespace=of.metadata.namespace)
        except errors.ObjectNotFoundError:
            return {}
        except (errors.RefusedError, errors.UnreachableError) as error:
            raise errors.NodeError(f"how its containers were cannot be learnt: {error}") from error
        return pastpod.records(past, now=self.clock.utc())

    async def prepare(self, of: pod.Pod) -> None:
        await self._preparation.prepare(of)
        if self._counts_claims_in_quality:
            self._tell_quality(of)

    def _tell_quality(self, of: pod.Pod) -> None:
        """Says what claims make of a pod's quality of service; its status keeps what the spec alone makes of it."""
        quality = self._quality(of)
        if quality.name == podresources.quality(of):
            return
        scores = ", ".join(f"{each.name} {quality.oom_scores[each.name]}" for each in of.spec.containers)
        shares = quality.cgroup.cpu_shares
        message = f"Quality of service with claims is {quality.name}: cpu shares {shares}, OOM scores: {scores}"
        self.record(of, reason="QualityOfService", message=message)

    def _quality(self, of: pod.Pod) -> podquality.PodQuality:
        return podquality.of_pod(of, memory=self._node.status.capacity["memory"].as_int64(), counts_claims=True)

    def bounds(self, of: pod.Pod, container: pod.Container) -> runtimes.Bounds | None:
        if not self._counts_claims_in_quality:
            return None
        quality = self._quality(of)
        if container.name not in quality.containers:
            # Who debugs a pod is not held to what the pod asked for.
            return None
        return runtimes.Bounds(
            quality=quality.name,
            pod=quality.cgroup,
            container=quality.containers[container.name],
            oom_score=quality.oom_scores[container.name],
        )

    async def unprepare(self, of: pod.Pod) -> None:
        await self._preparation.unprepare(of)

    def devices(self, of: pod.Pod, container: pod.Container) -> Sequence[str]:
        return containerdevices.cdi_devices(self._preparation.claims, of, container)

    async def mount(self, of: pod.Pod) -> None:
        if self._setups is not None:
            await self._setups.begin(of)

    def clean_up(self, of: pod.Pod) -> None:
        self.runtime.forget(of.metadata.uid)
        if self._setups is not None:
            self._setups.forget(of)

    def probes(self, of: pod.Pod, container: pod.Container) -> Probes | None:
        return None if self._setups is None else self._setups.probes(of, container)

    async def after_start(self, of: pod.Pod, container: str, run: runtimes.Container) -> str | None:
        return None if self._setups is None else await self._setups.after_start(of, container, run)

    async def last_words(self, of: pod.Pod, container: str, run: runtimes.Container, ended: runtimes.Exit) -> str:
        return "" if self._setups is None else await self._setups.last_words(of, container, run, ended)

    async def before_stop(self, of: pod.Pod, container: str, run: runtimes.Container, *, seconds: float) -> str | None:
        return None if self._setups is None else await self._setups.before_stop(of, container, run, seconds=seconds)

    async def setup(self, of: pod.Pod, container: pod.Container) -> runtimes.Setup:
        if self._setups is not None:
            return await self._setups.setup(of, container)
        return runtimes.Setup(command=container.command, args=container.args)

    def health(self, of: pod.Pod) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        if not of.spec.resource_claims:
            return {}
        return {
            each.name: health.statuses(self._preparation.claims, self._drivers.health, of, each)
            for each in of.spec.containers
        }

    async def write_status(self, of: pod.Pod, content: dict[str, Any]) -> None:
        await self._client.patch(
            pod.Pod,
            of.metadata.name,
            patch=patches.strategic({"status": content}, patches.same(of)),
            namespace=of.metadata.namespace,
            subresource="status",
        )

    async def delete(self, of: pod.Pod) -> None:
        await self._client.delete(
            pod.Pod,
            of.metadata.name,
            namespace=of.metadata.namespace,
            preconditions=patches.same(of),
            grace_period_seconds=0,
        )

    def record(self, of: pod.Pod, *, reason: str, message: str, is_warning: bool = False) -> None:
        self._recorder.record(of, type="Warning" if is_warning else "Normal", reason=reason, message=message)

    async def _claim(self, namespace: str, name: str) -> resourceclaim.ResourceClaim:
        return await self._client.get(resourceclaim.ResourceClaim, name, namespace=namespace)


def _faults(around: Surroundings) -> simulatedfaults.SimulatedFaults:
    slices = around.informers.of(resourceslice.ResourceSlice)
    return simulatedfaults.SimulatedFaults(slices, client=around.acting_as(_ADMIN).client, time=around.clock)


def _boot_id(document: Mapping[str, Any]) -> str:
    """Which boot of its machine a Node tells of; empty where it does not say."""
    return str(((document.get("status") or {}).get("nodeInfo") or {}).get("bootID", ""))


def _is(of: pod.Pod, namespace: str, name: str) -> bool:
    return of.metadata.name == name and of.metadata.namespace == namespace
