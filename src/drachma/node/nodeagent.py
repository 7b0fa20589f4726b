"""The agent of one node: it registers the node, keeps its lease, and has a worker for every pod that is bound to it."""

from __future__ import annotations

import asyncio
import logging
import pathlib
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from drachma import errors
from drachma.api import codec, node, pod, resourceclaim
from drachma.api import gates as feature
from drachma.client import Client, patches, target
from drachma.node import (
    admission,
    checkpoint,
    containerdevices,
    containerstate,
    hardware,
    health,
    nodemetrics,
    noderegistration,
    nodestatus,
    pastpod,
    plugins,
    podaddresses,
    podquality,
    podresources,
    podresourcesocket,
    podsetup,
    preparation,
    simulateddrivers,
    simulatedfaults,
    slicepublishing,
)
from drachma.node.directories import Directories
from drachma.node.endpoint.addresses import NodeAddress
from drachma.node.podworker import PodWorker
from drachma.node.probes.watching import Probes
from drachma.node.runtimes import protocol as runtimes
from drachma.runtime import Surroundings, clock, controller, events, informer, queuemetrics

_log = logging.getLogger(__name__)

INDEX: Final = "agent-node"
"""The index of pods by their nodes that agents look in."""

_REPLACEMENT_SECONDS: Final = 10.0
"""Pause before the worker of a pod is replaced that failed unexpectedly."""

_CLEAN_UP_SECONDS: Final = 60.0
_PAST_PODS: Final = target.view_of(target.of(pod.Pod), pastpod.PastPod)


class PodFiles(NamedTuple):
    """Where pods have their volumes, and what all containers have in their environment."""

    folder: pathlib.Path
    environment: Mapping[str, str]
    allows_unenforced: bool = False
    """That containers run whose security context the runtime cannot enforce in full; an event says so."""


class Simulation(NamedTuple):
    """What all simulated drivers of a process share."""

    faults: simulatedfaults.SimulatedFaults
    publishers: slicepublishing.SlicePublishers


class Drivers(preparation.Drivers, Protocol):
    """The drivers of a node: :class:`drachma.node.plugins.Plugins`, or simulated ones."""

    @property
    def health(self) -> health.Reports: ...

    async def run(self, owner: slicepublishing.Owner, /) -> None:
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
        simulation: Simulation | None,
        address: NodeAddress | None,
        files: PodFiles | None,
        metrics: nodemetrics.NodeMetrics,
        recorder: events.Recorder,
        pods: informer.Informer[pod.Pod],
        nodes: informer.Informer[node.Node],
    ) -> None:
        """Without directories the node's drivers are part of a simulation; what they prepared is not kept."""
        self.name: Final = machine.name
        self.clock: Final = around.clock
        self.runtime: Final = runtime
        self._client = around.client
        self._address = address
        self._pod_addresses = None if address is None else podaddresses.PodAddresses(address.host)
        self._machine = machine
        described = codec.decode(machine.node)
        assert isinstance(described, node.Node), "machines are described by nodes"
        self._node = described
        self._stored_node: node.Node | None = None
        self._recorder = recorder
        self._pods = pods
        self._with_claims = around.gates.on(feature.Gate.NODE_ALLOCATABLE_RESOURCES)
        self._counts_claims_in_quality = self._with_claims and around.gates.on(feature.Gate.NODE_ALLOCATABLE_QOS)
        self._directories = directories
        self._gates = around.gates
        self._drivers = self._make_drivers(metrics, simulation, queues=around.queues)
        self._preparation = preparation.Preparation(
            get=self._claim,
            registered=self._drivers,
            file=simulateddrivers.Forgetful() if directories is None else checkpoint.Checkpoint(directories.root),
            metrics=metrics,
            time=around.clock,
            gates=around.gates,
        )
        self._allows_unenforced = files is not None and files.allows_unenforced
        self._setups: podsetup.PodSetups | None = None
        if files is not None and runtime.has_files:
            self._setups = podsetup.PodSetups(
                around.client,
                files.folder,
                base=files.environment,
                allocatable=described.status.allocatable,
                time=around.clock,
            )
        self._registration = noderegistration.NodeRegistration(
            machine,
            client=around.client,
            time=around.clock,
            recorder=recorder,
            status=nodestatus.NodeStatus(
                machine, address=address, runtime=runtime.name, features=self._declared_features()
            ),
            nodes=nodes,
        )
        self._workers: Final[dict[str, PodWorker]] = {}
        self._tasks: Final[dict[str, asyncio.Task[None]]] = {}
        self._is_running = False
        self._has_more_drivers: Final = asyncio.Event()

    def _make_drivers(
        self,
        metrics: nodemetrics.NodeMetrics,
        simulation: Simulation | None,
        *,
        queues: queuemetrics.Metrics,
    ) -> Drivers:
        if self._directories is None:
            assert simulation is not None, "whoever has no directories simulates drivers"
            simulation.faults.health.listen(self.name, self._hear_of_devices)
            return simulateddrivers.SimulatedDrivers(
                self._machine,
                self._claim,
                client=self._client,
                faults=simulation.faults,
                publishers=simulation.publishers,
                time=self.clock,
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
            gates=self._gates,
        )

    # Its node

    async def register(self) -> None:
        """Makes the Node, or brings it up to date; tries until that is done."""
        self._node = self._stored_node = await self._registration.register(self._preparation.damage)

    def hear_node(self, stored: node.Node) -> None:
        """Take note of a change of the stored Node."""
        self._stored_node = stored
        self._registration.hear(stored)

    def miss_node(self) -> None:
        """Take note that the stored Node is gone."""
        self._stored_node = None

    async def run(self) -> None:
        """Runs the node's pods until cancelled."""
        self._is_running = True
        pods = list(self._pods.cache.by(INDEX, self.name))
        if self._pod_addresses is not None:
            self._pod_addresses.recall(pods)
        for of in pods:
            self.take(of)
        parts: list[Coroutine[Any, Any, None]] = [] if self._setups is None else [self._setups.run()]
        parts += [
            self._registration.keep(),
            self._drivers.run(lambda: self._stored_node),
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

    def _declared_features(self) -> list[str]:
        """What the node can do that not every one can."""
        features = [feature.Gate.NODE_ALLOCATABLE_RESOURCES.value] if self._with_claims else []
        features += [feature.Gate.NODE_ALLOCATABLE_QOS.value] if self._counts_claims_in_quality else []
        return features if self._address is None else [*features, "ExtendWebSocketsToKubelet"]

    def addresses(self, of: pod.Pod) -> Mapping[str, Any]:
        if self._address is None or self._pod_addresses is None:
            return {}
        host = self._address.host
        # Containers that really run have the network of their machine.
        own = self._address.pods if self.runtime.has_files else self._pod_addresses.of(of)
        pods = {"podIP": own, "podIPs": _only(own)} if own else {}
        return {"hostIP": host, "hostIPs": _only(host), **pods}

    @property
    def client(self) -> Client:
        return self._client

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
        return [each for each in self._pods.cache.by(INDEX, self.name) if each.metadata.uid in self._workers]

    # Its pods

    def take(self, of: pod.Pod) -> None:
        """A pod of this node is new, or another version of it."""
        uid = of.metadata.uid
        if uid in self._workers:
            self._workers[uid].update(of)
        elif self._is_running:
            self._workers[uid] = PodWorker(self, of)
            task = self._tasks[uid] = asyncio.create_task(self._look_after(uid), name=f"pod {of.metadata.name}")
            task.add_done_callback(lambda _: self._ended(uid))

    def drop(self, of: pod.Pod) -> None:
        """A pod of this node is gone, maybe by force; what runs of it is stopped, and its claims are given back."""
        worker = self._workers.get(of.metadata.uid)
        if worker is not None:
            worker.update(of)
            worker.go()

    async def _look_after(self, uid: str) -> None:
        """Run the worker of a pod. A worker that fails unexpectedly is replaced, as by a restart of the agent."""
        while True:
            worker = self._workers[uid]
            try:
                await worker.run()
                return
            except Exception:
                _log.exception("node %s: pod of uid %s: failed unexpectedly", self.name, uid)
            await self.clock.sleep(_REPLACEMENT_SECONDS)
            self._workers[uid] = PodWorker(self, worker.newest)
            if worker.is_to_go:
                self._workers[uid].go()

    def _ended(self, uid: str) -> None:
        del self._tasks[uid]
        del self._workers[uid]

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
        if self._pod_addresses is not None:
            self._pod_addresses.release(of.metadata.uid)
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
        if self._setups is None:
            return runtimes.Setup(command=container.command, args=container.args)
        setup = await self._setups.setup(of, container)
        if fields := self.runtime.unenforced(setup.security):
            self._judge_unenforced(of, container.name, fields)
        return setup

    def end_setup(self, of: pod.Pod, container: pod.Container) -> None:
        if self._setups is not None:
            self._setups.end_setup(of, container)

    def _judge_unenforced(self, of: pod.Pod, container: str, fields: Sequence[str]) -> None:
        """Refuse a container whose security context cannot be enforced, or warn of it where that is allowed."""
        runtime, names = self.runtime.name.partition("://")[0], ", ".join(fields)
        if not self._allows_unenforced:
            raise runtimes.StartError(
                "CreateContainerConfigError",
                f"container {container}: runtime {runtime} cannot enforce {names}; "
                "--allow-unenforced-security runs such containers without",
            )
        message = f"Container {container} runs without {names}, which runtime {runtime} cannot enforce"
        self.record(of, reason="UnenforcedSecurity", message=message, is_warning=True)

    def health(self, of: pod.Pod) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        if not of.spec.resource_claims:
            return {}
        return {
            each.name: health.statuses(self._preparation.claims, self._drivers.health, of, each)
            for each in of.spec.containers
        }

    async def write_status(self, of: pod.Pod, content: dict[str, Any]) -> pod.Pod:
        return await self._client.patch(
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


def _only(address: str) -> list[dict[str, str]]:
    """Return the list of one address for a patch; without the directive, an address from before would stay in it."""
    return [{"$patch": "replace"}, {"ip": address}]


def _is(of: pod.Pod, namespace: str, name: str) -> bool:
    return of.metadata.name == name and of.metadata.namespace == namespace
