"""Services and their pods: selected pods, ports, and the time of the last change.

Shared by the controllers of Endpoints and of EndpointSlices.
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
"""Time of the change that an update reflects, for measuring its latency."""

HEADLESS_LABEL: Final = "service.kubernetes.io/headless"
_HEADLESS: Final = "None"
_EXTERNAL: Final = "ExternalName"
_READY: Final = "Ready"


def has_endpoints(service: service.Service) -> bool:
    """Return True if controllers manage the endpoints of a service: it selects pods and is not an external name."""
    return bool(service.spec.selector) and service.spec.type != _EXTERNAL


def selects(service: service.Service, candidate: pod.Pod) -> bool:
    """Return True if a service selects a pod of its namespace."""
    return bool(service.spec.selector) and service.spec.selector.items() <= candidate.metadata.labels.items()


def is_headless(service: service.Service) -> bool:
    """Return True if a service has no cluster IP."""
    return service.spec.cluster_ip in ("", _HEADLESS)


def is_ready(pod: pod.Pod) -> bool:
    """Return True if a pod is ready."""
    ready = conditions.find(pod.status.conditions, _READY)
    return ready is not None and ready.status == "True"


def hostname(service: service.Service, at: pod.Pod) -> str:
    """Return the DNS name of a pod below its service, or an empty text."""
    return at.spec.hostname if at.spec.subdomain == service.metadata.name else ""


def addresses(pod: pod.Pod, family: str) -> list[str]:
    """Return the addresses of a pod of a family, without loopback addresses."""
    return [each.ip for each in pod.status.pod_ips if _is_of(each.ip, family)]


def _is_of(address: str, family: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return f"IPv{parsed.version}" == family and not parsed.is_loopback


def port_number(service_port: service.ServicePort, at: pod.Pod) -> int | None:
    """Return the number of a service port on a pod, or None if the pod has no port of that name."""
    if isinstance(service_port.target_port, int):
        return service_port.target_port or service_port.port
    if not service_port.target_port:
        return service_port.port
    sidecars = [each for each in at.spec.init_containers if each.restart_policy == "Always"]
    for container in (*at.spec.containers, *sidecars):
        for port in container.ports:
            if port.name == service_port.target_port and (port.protocol or "TCP") == (service_port.protocol or "TCP"):
                return port.container_port
    return None


class ServicePods:
    """Pods of all services. Calls back with a service whenever its endpoints may have changed."""

    def __init__(
        self,
        services: informer.Informer[service.Service],
        pods: informer.Informer[pod.Pod],
        *,
        enqueue: Callable[[cache.Key], None],
    ) -> None:
        self._services: Final = services.cache
        self._pods: Final = pods.cache
        self._enqueue_key: Final = enqueue
        services.add_handler(informer.Handler.on_write(self._enqueue))
        pods.add_handler(
            informer.Handler(added=self._handle_pod, updated=self._handle_update, deleted=self._handle_pod)
        )

    def of(self, selecting: service.Service) -> list[pod.Pod]:
        """Return the pods that a service selects."""
        return [each for each in self._pods.list_namespace(selecting.metadata.namespace) if selects(selecting, each)]

    def _enqueue(self, service: service.Service) -> None:
        self._enqueue_key(cache.key_of(service))

    def _handle_update(self, old: pod.Pod, new: pod.Pod) -> None:
        if _essence(old) != _essence(new):
            self._handle_pod(old)
            self._handle_pod(new)

    def _handle_pod(self, pod: pod.Pod) -> None:
        for each in self._services.list_namespace(pod.metadata.namespace):
            if selects(each, pod):
                self._enqueue(each)


def _essence(pod: pod.Pod) -> tuple[Any, ...]:
    """Return the fields of a pod that its endpoints show."""
    metadata, status = pod.metadata, pod.status
    ready = [(each.type, each.status) for each in status.conditions if each.type == _READY]
    is_going = metadata.deletion_timestamp is not None
    return metadata.labels, status.pod_ips, status.phase, ready, pod.spec.node_name, is_going


def rewritten(
    metadata: Mapping[str, Any], *, labels: Mapping[str, str], annotations: Mapping[str, str], own: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the metadata of an object with other labels and annotations. Annotations of other writers stay.

    ``own`` are further annotations that only the caller writes.
    """
    foreign = {**(metadata.get("annotations") or {})}
    for name in (TRIGGER_ANNOTATION, *own):
        foreign.pop(name, None)
    return {**metadata, "labels": labels, "annotations": {**foreign, **annotations}}


class TriggerTimes:
    """Times of the changes that caused the last updates of services."""

    def __init__(self) -> None:
        self._services: Final[dict[cache.Key, dict[str, dt.datetime]]] = {}

    def annotation(self, service: service.Service, pods: Iterable[pod.Pod]) -> dict[str, str]:
        """Return the annotation with the time of the first change since the last call; empty without a change.

        A new service has changed when it was created.
        """
        key = cache.key_of(service)
        before = self._services.get(key)
        times = {each.metadata.name: since for each in pods if (since := _ready_since(each)) is not None}
        self._services[key] = times
        if before is None:
            created = service.metadata.creation_timestamp
            return {} if created is None else {TRIGGER_ANNOTATION: meta.time_text(created)}
        changed = [since for name, since in times.items() if name not in before or since > before[name]]
        return {TRIGGER_ANNOTATION: meta.time_text(min(changed))} if changed else {}

    def forget(self, service: service.Service) -> None:
        """Forget a deleted service."""
        self._services.pop(cache.key_of(service), None)


def _ready_since(pod: pod.Pod) -> dt.datetime | None:
    ready = conditions.find(pod.status.conditions, _READY)
    return None if ready is None else ready.last_transition_time
