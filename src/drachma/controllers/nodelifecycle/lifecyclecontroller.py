"""The controller: looks at every node every five seconds, and at the conditions of a node whenever they change.

Taints that keep pods away follow conditions at once. Taints that drive pods off come only so fast in each zone, and
not at all while no node of the cluster is ready.
"""

import functools
import logging
from collections.abc import Callable
from typing import Any, Final

import prometheus_client
from msgspec import structs

from drachma import errors
from drachma.api import lease, node, pod
from drachma.claims import taints
from drachma.client import patches
from drachma.controllers import podwrites
from drachma.controllers.nodelifecycle import health, nodetaints, zones
from drachma.runtime import Surroundings, controller, events, informer, workqueue

PERIOD_SECONDS: Final = 5.0
WORKERS: Final = 8
LEASES: Final = "kube-node-lease"
"""The namespace in which nodes renew their Leases."""

POD_INDEX: Final = "node lifecycle: node"

_ATTEMPTS: Final = 5
_EXCLUDED: Final = "node.kubernetes.io/exclude-disruption"

_log = logging.getLogger(__name__)


class NodeLifecycle:
    """Marks nodes that are not as they should be."""

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
            self.name, time=surroundings.clock, measured=surroundings.queues
        )
        self._grace: Final = (silence or health.Settings()).grace
        self._looked_at = self._clock.monotonic()
        self._known: Final[dict[str, node.Node]] = {}
        self._unready: Final[dict[str, dict[str, None]]] = {}
        informers.of(node.Node).add_handler(informer.Handler(added=self._see, updated=lambda _, new: self._see(new)))
        gauge = functools.partial(prometheus_client.Gauge, labelnames=("zone",), registry=registry)
        self._zone_size: Final = gauge("node_collector_zone_size", "Nodes in a zone.")
        self._zone_health: Final = gauge("node_collector_zone_health", "Percentage of a zone's nodes that are ready.")
        self._zone_unready: Final = gauge("node_collector_unhealthy_nodes_in_zone", "Nodes in a zone that are not.")
        self._evictions: Final = prometheus_client.Counter(
            "node_collector_evictions_total", "Nodes that pods were driven off.", ("zone",), registry=registry
        )

    async def run(self) -> None:
        await controller.together(
            controller.work(self._queue, self._taint_for_scheduling, workers=WORKERS),
            controller.every(PERIOD_SECONDS, self._look_at_all, time=self._clock, name=self.name),
        )

    # Taints that keep pods away

    def _see(self, new: node.Node) -> None:
        self._queue.add(new.metadata.name)

    async def _taint_for_scheduling(self, name: str) -> None:
        host = self._nodes.get(name)
        if host is not None:
            await self._set_taints(host, nodetaints.for_scheduling)

    # Signs of life

    async def _look_at_all(self) -> None:
        nodes = tuple(self._nodes)
        self._notice_own_silence()
        self._greet(nodes)
        zone_health: dict[str, zones.Health] = {}
        for each in nodes:
            zone = zones.key_of(each)
            ready = await self._look_at(each)
            if _EXCLUDED not in each.metadata.labels:
                counted = zone_health.setdefault(zone, zones.Health())
                counted.ready += ready
                counted.unready += not ready
        self._measure(zone_health)
        if self._zones.update(zone_health, now=self._clock.monotonic()):
            await self._change_mode(nodes)
        for zone in tuple(self._unready):
            await self._drive_off(zone)

    def _notice_own_silence(self) -> None:
        """Give all nodes their time again if this process did not look for long, for example because it was stopped.

        Differs from upstream: there nodes count as silent whose signs of life nobody was there to hear.
        """
        now = self._clock.monotonic()
        if now - self._looked_at > self._grace / 2:
            _log.warning("%s: did not look at nodes for %.0f s", self.name, now - self._looked_at)
            self._monitor.start_over(now=now)
        self._looked_at = now

    def _greet(self, nodes: tuple[node.Node, ...]) -> None:
        """Tells of nodes that are new or gone."""
        current = {each.metadata.name: each for each in nodes}
        for name in current.keys() - self._known.keys():
            self._tell(current[name], "RegisteredNode", f"Node {name} event: Registered Node {name} in Controller")
        for name in self._known.keys() - current.keys():
            self._tell(self._known[name], "RemovingNode", f"Node {name} event: Removing Node {name} from Controller")
            self._monitor.forget(name)
        self._known.clear()
        self._known.update(current)

    async def _look_at(self, host: node.Node) -> bool:
        """Whether a node is ready, after what follows from that was done; what fails is done the next time."""
        before = nodetaints.ready(host)
        try:
            host = await self._check_life(host)
            current = nodetaints.ready(host)
            if current is None:
                return False
            await self._follow_readiness(host, current.status)
            if current.status != "True" and before is not None and before.status == "True":
                name = host.metadata.name
                self._tell(host, "NodeNotReady", f"Node {name} status is now: NodeNotReady")
            if current.status != "True":
                await self._mark_pods(host.metadata.name)
            return current.status == "True"
        except errors.DrachmaError as error:
            _log.warning("%s: node %s: %s", self.name, host.metadata.name, error)
            return before is not None and before.status == "True"

    async def _check_life(self, host: node.Node) -> node.Node:
        """The node, with unknown conditions if it has been silent for too long."""
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

    async def _is_lease_newer(self, name: str, seen: lease.Lease | None) -> bool:
        """Whether it is this process that has not heard of a node, and not the node that is silent."""
        try:
            current = await self._client.get(lease.Lease, name, namespace=LEASES)
        except errors.ObjectNotFoundError:
            return False
        return seen is None or current.metadata.resource_version != seen.metadata.resource_version

    async def _mark_pods(self, name: str) -> None:
        """Pods on a node that is not ready are not ready either."""
        for each in self._pods.by(POD_INDEX, name):
            ready = next((condition for condition in each.status.conditions if condition.type == "Ready"), None)
            if ready is None or ready.status == "False":
                continue
            changed = structs.replace(
                ready, status="False", last_transition_time=self._clock.utc().replace(microsecond=0)
            )
            try:
                await podwrites.write_status(self._client, each, {"conditions": [changed]})
            except errors.ObjectNotFoundError:
                continue
            self._recorder.record(each, type=events.WARNING, reason="NodeNotReady", message="Node is not ready")

    # Taints that drive pods off

    async def _follow_readiness(self, host: node.Node, status: str) -> None:
        name, zone = host.metadata.name, zones.key_of(host)
        if status == "True":
            self._unready.get(zone, {}).pop(name, None)
            # Most nodes are ready and have no taints, and all are looked at every few seconds.
            if host.spec.taints:
                await self._swap(host, add=(), remove=(taints.NOT_READY, taints.UNREACHABLE))
            return
        taint_key, opposite = _no_execute_keys(status)
        if nodetaints.has_no_execute(host, opposite):
            # It is tainted already, only for the other reason.
            await self._swap(host, add=(taint_key,), remove=(opposite,))
        elif not nodetaints.has_no_execute(host, taint_key):
            self._unready.setdefault(zone, {})[name] = None

    async def _drive_off(self, zone: str) -> None:
        waiting = self._unready[zone]
        for name in tuple(waiting):
            host = self._nodes.get(name)
            ready = nodetaints.ready(host) if host is not None else None
            if host is None or ready is None or ready.status == "True":
                del waiting[name]
                continue
            if not self._zones.take(zone, now=self._clock.monotonic()):
                return
            taint_key, opposite = _no_execute_keys(ready.status)
            await self._swap(host, add=(taint_key,), remove=(opposite,))
            self._evictions.labels(zone).inc()
            del waiting[name]

    async def _change_mode(self, nodes: tuple[node.Node, ...]) -> None:
        if not self._zones.is_stopped:
            _log.info("%s: some nodes are ready again", self.name)
            self._monitor.start_over(now=self._clock.monotonic())
            return
        _log.warning("%s: no node is ready, so no pod is driven off any node", self.name)
        for each in nodes:
            await self._swap(each, add=(), remove=(taints.NOT_READY, taints.UNREACHABLE))

    async def _swap(self, host: node.Node, *, add: tuple[str, ...], remove: tuple[str, ...]) -> None:
        swap = functools.partial(nodetaints.swapped, add=add, remove=remove, effect=taints.NO_EXECUTE)
        await self._set_taints(host, swap)

    async def _set_taints(self, host: node.Node, new_taints: Callable[..., tuple[node.Taint, ...] | None]) -> None:
        """Gives a node the taints that it is to have; decided again if somebody else changes it meanwhile."""
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

    def _tell(self, about: node.Node, reason: str, message: str) -> None:
        self._recorder.record(about, type=events.NORMAL, reason=reason, message=message)

    def _measure(self, zone_health: dict[str, zones.Health]) -> None:
        for zone, counted in zone_health.items():
            self._zone_size.labels(zone).set(counted.size)
            self._zone_health.labels(zone).set(100 * counted.ready / counted.size)
            self._zone_unready.labels(zone).set(counted.unready)


def _no_execute_keys(status: str) -> tuple[str, str]:
    """The taint for a node whose Ready condition has this status, and the one that it must not have then."""
    if status == "Unknown":
        return taints.UNREACHABLE, taints.NOT_READY
    return taints.NOT_READY, taints.UNREACHABLE
