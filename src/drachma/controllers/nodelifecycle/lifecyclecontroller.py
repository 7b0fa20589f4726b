"""The controller: checks every node every five seconds, and the conditions of a node whenever they change.

Taints that keep pods away follow conditions at once. Taints that evict pods are rate-limited in each zone, and stop
while no node of the cluster is ready.
"""

import functools
import logging
from collections.abc import Callable
from typing import Any, Final

import prometheus_client
from msgspec import structs

from drachma import errors
from drachma.api import lease, node, pod
from drachma.claims import conditions, taints
from drachma.client import patches
from drachma.controllers import objectwrites
from drachma.controllers.nodelifecycle import health, zones
from drachma.runtime import Surroundings, controller, events, informer, workqueue

PERIOD_SECONDS: Final = 5.0
WORKERS: Final = 8
LEASES: Final = "kube-node-lease"
"""Namespace of the Leases of nodes."""

POD_INDEX: Final = "node lifecycle: node"

_ATTEMPTS: Final = 5
_EXCLUDED: Final = "node.kubernetes.io/exclude-disruption"

_log = logging.getLogger(__name__)


class NodeLifecycle:
    """Marks unhealthy nodes."""

    name: Final = "node_lifecycle_controller"

    def __init__(
        self,
        surroundings: Surroundings,
        *,
        silence: health.Settings | None = None,
        pace: zones.Settings | None = None,
    ) -> None:
        informers, registry = surroundings.informers, surroundings.registry
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._recorder: Final = surroundings.recorder("node-controller")
        self._monitor: Final = health.Monitor(silence or health.Settings())
        self._zones: Final = zones.Zones(pace or zones.Settings())
        self._nodes: Final = informers.of(node.Node).cache
        self._leases: Final = informers.of(lease.Lease).cache
        self._pods: Final = informers.of(pod.Pod).cache
        self._pods.add_index(POD_INDEX, lambda each: (each.spec.node_name,) if each.spec.node_name else ())
        self._queue: Final[workqueue.Queue[str]] = workqueue.Queue(
            self.name, clock=surroundings.clock, metrics=surroundings.queues
        )
        self._grace: Final = (silence or health.Settings()).grace
        self._last_check = self._clock.monotonic()
        self._last_nodes: Final[dict[str, node.Node]] = {}
        self._unready: Final[dict[str, dict[str, None]]] = {}
        informers.of(node.Node).add_handler(informer.Handler.on_write(self._enqueue))
        gauge = functools.partial(prometheus_client.Gauge, labelnames=("zone",), registry=registry)
        self._zone_size: Final = gauge("node_collector_zone_size", "Nodes in a zone.")
        self._zone_health: Final = gauge("node_collector_zone_health", "Percentage of a zone's nodes that are ready.")
        self._zone_unready: Final = gauge(
            "node_collector_unhealthy_nodes_in_zone", "Nodes in a zone that are not ready."
        )
        self._evictions: Final = prometheus_client.Counter(
            "node_collector_evictions_total",
            "Nodes that were tainted to evict their pods.",
            ("zone",),
            registry=registry,
        )

    async def run(self) -> None:
        await controller.together(
            controller.work(self._queue, self._taint_for_scheduling, workers=WORKERS),
            controller.every(PERIOD_SECONDS, self._check_all_nodes, clock=self._clock, name=self.name),
        )

    # Taints that keep pods away

    def _enqueue(self, new: node.Node) -> None:
        self._queue.add(new.metadata.name)

    async def _taint_for_scheduling(self, name: str) -> None:
        host = self._nodes.get(name)
        if host is not None:
            await self._set_taints(host, health.scheduling_taints)

    # Signs of life

    async def _check_all_nodes(self) -> None:
        nodes = tuple(self._nodes)
        self._check_own_pause()
        self._record_arrivals(nodes)
        zone_health: dict[str, zones.Health] = {}
        for each in nodes:
            zone = zones.key_of(each)
            ready = await self._check_node(each)
            if _EXCLUDED not in each.metadata.labels:
                zone_counts = zone_health.setdefault(zone, zones.Health())
                zone_counts.ready += ready
                zone_counts.unready += not ready
        self._measure(zone_health)
        if self._zones.update(zone_health, now=self._clock.monotonic()):
            await self._change_mode(nodes)
        for zone in tuple(self._unready):
            await self._taint_zone(zone)

    def _check_own_pause(self) -> None:
        """Give all nodes their time again if this process did not run for long, for example because it was stopped.

        Differs from upstream: there nodes count as silent although no process listened.
        """
        now = self._clock.monotonic()
        if now - self._last_check > self._grace / 2:
            _log.warning("%s: did not check nodes for %.0f s", self.name, now - self._last_check)
            self._monitor.start_over(now=now)
        self._last_check = now

    def _record_arrivals(self, nodes: tuple[node.Node, ...]) -> None:
        """Record events about new and deleted nodes."""
        current = {each.metadata.name: each for each in nodes}
        for name in current.keys() - self._last_nodes.keys():
            self._record(current[name], "RegisteredNode", f"Node {name} event: Registered Node {name} in Controller")
        for name in self._last_nodes.keys() - current.keys():
            self._record(
                self._last_nodes[name], "RemovingNode", f"Node {name} event: Removing Node {name} from Controller"
            )
            self._monitor.forget(name)
        self._last_nodes.clear()
        self._last_nodes.update(current)

    async def _check_node(self, host: node.Node) -> bool:
        """Check a node and act on the result. Return True if it is ready. Failures are retried the next time."""
        before = health.ready_condition(host)
        try:
            host = await self._check_life(host)
            current = health.ready_condition(host)
            if current is None:
                return False
            await self._follow_readiness(host, current.status)
            if current.status != "True" and before is not None and before.status == "True":
                name = host.metadata.name
                self._record(host, "NodeNotReady", f"Node {name} status is now: NodeNotReady")
            if current.status != "True":
                await self._mark_pods(host.metadata.name)
            return current.status == "True"
        except errors.DrachmaError as error:
            _log.warning("%s: node %s: %s", self.name, host.metadata.name, error)
            return before is not None and before.status == "True"

    async def _check_life(self, host: node.Node) -> node.Node:
        """Return the node, with unknown conditions if it has been silent for too long."""
        name = host.metadata.name
        renewal = self._leases.get(name, namespace=LEASES)
        clock = self._clock
        if not self._monitor.is_overdue(host, renewal, now=clock.monotonic(), today=clock.utc()):
            return host
        changed = health.unknown_conditions(host, now=clock.utc())
        if not changed or await self._is_lease_newer(name, renewal):
            return host
        return await self._client.patch(
            node.Node,
            name,
            patch=patches.strategic({"status": {"conditions": changed}}, patches.unchanged(host)),
            subresource="status",
        )

    async def _is_lease_newer(self, name: str, renewal: lease.Lease | None) -> bool:
        """Return True if the server has a newer Lease than the cache, so that the node is not silent."""
        try:
            current = await self._client.get(lease.Lease, name, namespace=LEASES)
        except errors.ObjectNotFoundError:
            return False
        return renewal is None or current.metadata.resource_version != renewal.metadata.resource_version

    async def _mark_pods(self, name: str) -> None:
        """Set the Ready condition of pods on a node that is not ready to False."""
        for each in self._pods.by(POD_INDEX, name):
            ready = conditions.find(each.status.conditions, "Ready")
            if ready is None or ready.status == "False":
                continue
            since = conditions.since(ready, "False", now=self._clock.utc())
            changed = structs.replace(ready, status="False", last_transition_time=since)
            try:
                await objectwrites.write_pod_status(self._client, each, {"conditions": [changed]})
            except errors.ObjectNotFoundError:
                continue
            self._recorder.record(each, type=events.WARNING, reason="NodeNotReady", message="Node is not ready")

    # Taints that drive pods off

    async def _follow_readiness(self, host: node.Node, status: str) -> None:
        name, zone = host.metadata.name, zones.key_of(host)
        if status == "True":
            self._unready.get(zone, {}).pop(name, None)
            # The common case: a ready node without taints.
            if host.spec.taints:
                await self._swap(host, add=(), remove=(taints.NOT_READY, taints.UNREACHABLE))
            return
        taint_key, opposite = _no_execute_keys(status)
        if health.has_no_execute(host, opposite):
            # The node has the taint of the other reason already.
            await self._swap(host, add=(taint_key,), remove=(opposite,))
        elif not health.has_no_execute(host, taint_key):
            self._unready.setdefault(zone, {})[name] = None

    async def _taint_zone(self, zone: str) -> None:
        unready = self._unready[zone]
        for name in tuple(unready):
            host = self._nodes.get(name)
            ready = health.ready_condition(host) if host is not None else None
            if host is None or ready is None or ready.status == "True":
                del unready[name]
                continue
            if not self._zones.take(zone, now=self._clock.monotonic()):
                return
            taint_key, opposite = _no_execute_keys(ready.status)
            await self._swap(host, add=(taint_key,), remove=(opposite,))
            self._evictions.labels(zone).inc()
            del unready[name]

    async def _change_mode(self, nodes: tuple[node.Node, ...]) -> None:
        if not self._zones.is_stopped:
            _log.info("%s: some nodes are ready again", self.name)
            self._monitor.start_over(now=self._clock.monotonic())
            return
        _log.warning("%s: no node is ready, so no pod is evicted from any node", self.name)
        for each in nodes:
            await self._swap(each, add=(), remove=(taints.NOT_READY, taints.UNREACHABLE))

    async def _swap(self, host: node.Node, *, add: tuple[str, ...], remove: tuple[str, ...]) -> None:
        swap = functools.partial(health.swap_taints, add=add, remove=remove, effect=taints.NO_EXECUTE)
        await self._set_taints(host, swap)

    async def _set_taints(self, host: node.Node, new_taints: Callable[..., tuple[node.Taint, ...] | None]) -> None:
        """Set the taints of a node. Decides again if another writer changes it meanwhile."""
        for _ in range(_ATTEMPTS):
            taints = new_taints(host, now=self._clock.utc())
            if taints is None:
                return
            content: dict[str, Any] = {"spec": {"taints": taints or None}}
            patch = patches.merge(content, patches.unchanged(host))
            try:
                await self._client.patch(node.Node, host.metadata.name, patch=patch)
                return
            except errors.ObjectConflictError:
                host = await self._client.get(node.Node, host.metadata.name)
        raise errors.ReconcileError(f"node {host.metadata.name}: changes too often to be tainted")

    # Telling

    def _record(self, node: node.Node, reason: str, message: str) -> None:
        self._recorder.record(node, type=events.NORMAL, reason=reason, message=message)

    def _measure(self, zone_health: dict[str, zones.Health]) -> None:
        for zone, zone_counts in zone_health.items():
            self._zone_size.labels(zone).set(zone_counts.size)
            self._zone_health.labels(zone).set(100 * zone_counts.ready / zone_counts.size)
            self._zone_unready.labels(zone).set(zone_counts.unready)


def _no_execute_keys(status: str) -> tuple[str, str]:
    """Return the taint key for a node whose Ready condition has this status, and the key to remove."""
    if status == "Unknown":
        return taints.UNREACHABLE, taints.NOT_READY
    return taints.NOT_READY, taints.UNREACHABLE
