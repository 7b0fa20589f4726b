"""PodView: the fields of a Pod that only its node reads.

Informers decode :class:`drachma.api.pod.Pod`, which every component of a process shares. Decoding the fields below for
each event of each pod would take about twice the time and memory. So an agent reads this view of a pod once, when its
containers really run or when they ran before the agent started.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from drachma.api import meta
from drachma.api.struct import Int32, Struct
from drachma.node.podview.containers import Container
from drachma.node.podview.security import PodSecurityContext
from drachma.node.podview.volumes import Volume


class PodViewSpec(Struct, frozen=True, kw_only=True):
    """Specification of the pod."""

    init_containers: tuple[Container, ...] = ()
    containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = ()
    node_name: str = ""
    service_account_name: str = ""
    security_context: PodSecurityContext | None = None
    host_pid: bool = msgspec.field(default=False, name="hostPID")
    host_ipc: bool = msgspec.field(default=False, name="hostIPC")
    host_users: bool | None = None


class WaitingState(Struct, frozen=True, kw_only=True):
    """State of a container that waits to start."""

    reason: str = ""
    message: str = ""


class RunningState(Struct, frozen=True, kw_only=True):
    """State of a running container."""

    started_at: meta.Time | None = None


class TerminatedState(Struct, frozen=True, kw_only=True):
    """State of a container that has ended."""

    container_id: str = msgspec.field(default="", name="containerID")
    exit_code: Int32 = 0
    reason: str = ""
    message: str = ""
    started_at: meta.Time | None = None
    finished_at: meta.Time | None = None


class ContainerState(Struct, frozen=True, kw_only=True):
    """State of a container: one of the three."""

    waiting: WaitingState | None = None
    running: RunningState | None = None
    terminated: TerminatedState | None = None


class ContainerStatus(Struct, frozen=True, kw_only=True):
    """Status of a container as an agent last wrote it."""

    name: str = ""
    container_id: str = msgspec.field(default="", name="containerID")
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    started: bool = False
    ready: bool = False
    restart_count: Int32 = 0


class Address(Struct, frozen=True, kw_only=True):
    """An IP address of the pod."""

    ip: str = ""


class PodViewStatus(Struct, frozen=True, kw_only=True):
    """Addresses of the pod, and the statuses of its containers."""

    host_ip: str = msgspec.field(default="", name="hostIP")
    pod_ip: str = msgspec.field(default="", name="podIP")
    pod_ips: tuple[Address, ...] = msgspec.field(default=(), name="podIPs")
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()

    def containers(self) -> Iterator[ContainerStatus]:
        """Yield the statuses of containers of all sorts."""
        yield from self.init_container_statuses
        yield from self.container_statuses
        yield from self.ephemeral_container_statuses


class PodView(meta.Object, frozen=True, kw_only=True):
    """Core Pod; a partial view."""

    spec: PodViewSpec = PodViewSpec()
    status: PodViewStatus = PodViewStatus()

    def container(self, name: str) -> Container:
        """Return a container of any sort by its name. The pod must have it."""
        return next(each for each in self._containers() if each.name == name)

    def has_container(self, name: str) -> bool:
        """Return True if the pod has a container of any sort with this name."""
        return any(each.name == name for each in self._containers())

    def _containers(self) -> Iterator[Container]:
        yield from self.spec.init_containers
        yield from self.spec.containers
        yield from self.spec.ephemeral_containers
