"""Services and their pods: which pods a service is about, at which ports, and what caused its last change.

What the controllers of Endpoints and of EndpointSlices have in common.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from drachma.api import meta, pod, service
from drachma.claims import conditions
from drachma.runtime import cache, informer

TRIGGER_ANNOTATION: Final = "endpoints.kubernetes.io/last-change-trigger-time"
"""Since when what an object says is so, for whoever measures how long it takes to be said."""

HEADLESS_LABEL: Final = "service.kubernetes.io/headless"
_HEADLESS: Final = "None"
_EXTERNAL: Final = "ExternalName"
_READY: Final = "Ready"


def has_endpoints(of: service.Service) -> bool:
    """Whether controllers say where a service is: not if that is somewhere else, or for others to say."""
    return bool(of.spec.selector) and of.spec.type != _EXTERNAL


def selects(of: service.Service, candidate: pod.Pod) -> bool:
    """Whether a service is about a pod of its namespace."""
    return bool(of.spec.selector) and of.spec.selector.items() <= candidate.metadata.labels.items()


def is_headless(of: service.Service) -> bool:
    """Whether a service has no address of its own."""
    return of.spec.cluster_ip in ("", _HEADLESS)


def is_ready(of: pod.Pod) -> bool:
    """Whether a pod says that it is ready."""
    ready = conditions.find(of.status.conditions, _READY)
    return ready is not None and ready.status == "True"


def hostname(of: service.Service, at: pod.Pod) -> str:
    """The name by which a pod is found below its service; empty where it has none."""
    return at.spec.hostname if at.spec.subdomain == of.metadata.name else ""


def addresses(of: pod.Pod, family: str) -> list[str]:
    """The addresses of a pod of a family that may be endpoints, which those of the machine itself may not."""
    return [each.ip for each in of.status.pod_ips if _is_of(each.ip, family)]


def _is_of(address: str, family: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return f"IPv{parsed.version}" == family and not parsed.is_loopback


def port_number(of: service.ServicePort, at: pod.Pod) -> int | None:
    """A port of a service on a pod; None where the pod has no port of that name."""
    if isinstance(of.target_port, int):
        return of.target_port or of.port
    if not of.target_port:
        return of.port
    sidecars = [each for each in at.spec.init_containers if each.restart_policy == "Always"]
    for container in (*at.spec.containers, *sidecars):
        for port in container.ports:
            if port.name == of.target_port and (port.protocol or "TCP") == (of.protocol or "TCP"):
                return port.container_port
    return None


class ServicePods:
    """The pods of all services; tells of services whenever something may have changed that their endpoints tell."""

    def __init__(
        self,
        services: informer.Informer[service.Service],
        pods: informer.Informer[pod.Pod],
        *,
        concern: Callable[[cache.Key], None],
    ) -> None:
        self._services: Final = services.cache
        self._pods: Final = pods.cache
        self._concern: Final = concern
        services.add_handler(informer.Handler(added=self._see, updated=lambda _, new: self._see(new)))
        pods.add_handler(informer.Handler(added=self._see_pod, updated=self._see_change, deleted=self._see_pod))

    def of(self, selecting: service.Service) -> list[pod.Pod]:
        """The pods that a service is about."""
        return [each for each in self._pods.in_namespace(selecting.metadata.namespace) if selects(selecting, each)]

    def _see(self, of: service.Service) -> None:
        self._concern(cache.key_of(of))

    def _see_change(self, old: pod.Pod, new: pod.Pod) -> None:
        if _essence(old) != _essence(new):
            self._see_pod(old)
            self._see_pod(new)

    def _see_pod(self, of: pod.Pod) -> None:
        for each in self._services.in_namespace(of.metadata.namespace):
            if selects(each, of):
                self._see(each)


def _essence(of: pod.Pod) -> tuple[Any, ...]:
    """What of a pod its endpoints tell."""
    metadata, status = of.metadata, of.status
    ready = [(each.type, each.status) for each in status.conditions if each.type == _READY]
    is_going = metadata.deletion_timestamp is not None
    return metadata.labels, status.pod_ips, status.phase, ready, of.spec.node_name, is_going


def rewritten(
    metadata: Mapping[str, Any], *, labels: Mapping[str, str], annotations: Mapping[str, str], own: Iterable[str] = ()
) -> dict[str, Any]:
    """The metadata of an object with other labels and annotations; of the latter, those of others stay.

    ``own`` are annotations beside that of the last change that nobody else writes.
    """
    others = {**(metadata.get("annotations") or {})}
    for name in (TRIGGER_ANNOTATION, *own):
        others.pop(name, None)
    return {**metadata, "labels": labels, "annotations": {**others, **annotations}}


class TriggerTimes:
    """When the changes happened that endpoints of services follow from."""

    def __init__(self) -> None:
        self._services: Final[dict[cache.Key, dict[str, dt.datetime]]] = {}

    def annotation(self, of: service.Service, pods: Iterable[pod.Pod]) -> dict[str, str]:
        """The annotation that tells of the first change since the last time that this was asked; empty without any.

        A service that was not seen before has changed when it was made.
        """
        key = cache.key_of(of)
        before = self._services.get(key)
        times = {each.metadata.name: since for each in pods if (since := _ready_since(each)) is not None}
        self._services[key] = times
        if before is None:
            created = of.metadata.creation_timestamp
            return {} if created is None else {TRIGGER_ANNOTATION: meta.time_text(created)}
        changed = [since for name, since in times.items() if name not in before or since > before[name]]
        return {TRIGGER_ANNOTATION: meta.time_text(min(changed))} if changed else {}

    def forget(self, of: service.Service) -> None:
        """A service is gone."""
        self._services.pop(cache.key_of(of), None)


def _ready_since(of: pod.Pod) -> dt.datetime | None:
    ready = conditions.find(of.status.conditions, _READY)
    return None if ready is None else ready.last_transition_time
