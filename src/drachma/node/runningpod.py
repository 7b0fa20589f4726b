"""Pod: the part of it that only whoever really runs containers reads: variables, volumes, streams, probes.

Agents whose containers are imagined do without. Another partial view than :mod:`drachma.api.pod`, read when a pod
begins.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from drachma.api import meta
from drachma.api.pod import ContainerPort, ResourceRequirements
from drachma.api.struct import Int32, Int64, Struct
from drachma.node.securitycontext import PodSecurityContext, SecurityContext
from drachma.values import quantity


class KeySelector(Struct, frozen=True, kw_only=True):
    """A key of a config map or secret."""

    name: str = ""
    key: str = ""
    optional: bool = False


class FieldSelector(Struct, frozen=True, kw_only=True):
    """A field of the pod itself."""

    field_path: str = ""


class ResourceFieldSelector(Struct, frozen=True, kw_only=True):
    """What a container asks for, or may have, of a resource, in units of the divisor."""

    container_name: str = ""
    resource: str = ""
    divisor: quantity.Quantity | None = None


class EnvVarSource(Struct, frozen=True, kw_only=True):
    """Where the value of a variable comes from."""

    config_map_key_ref: KeySelector | None = None
    secret_key_ref: KeySelector | None = None
    field_ref: FieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None


class EnvVar(Struct, frozen=True, kw_only=True):
    """A variable."""

    name: str = ""
    value: str = ""
    value_from: EnvVarSource | None = None


class ObjectSource(Struct, frozen=True, kw_only=True):
    """A config map or secret as a whole."""

    name: str = ""
    optional: bool = False


class EnvFromSource(Struct, frozen=True, kw_only=True):
    """Variables for all keys of something."""

    prefix: str = ""
    config_map_ref: ObjectSource | None = None
    secret_ref: ObjectSource | None = None


class VolumeMount(Struct, frozen=True, kw_only=True):
    """Where a container sees a volume."""

    name: str = ""
    mount_path: str = ""
    sub_path: str = ""
    sub_path_expr: str = ""
    read_only: bool = False
    recursive_read_only: str = ""
    bind_mount_options: tuple[str, ...] = ()


class ExecAction(Struct, frozen=True, kw_only=True):
    """A command in the container."""

    command: tuple[str, ...] = ()


class HttpHeader(Struct, frozen=True, kw_only=True):
    """A header of a probe."""

    name: str = ""
    value: str = ""


class HttpGetAction(Struct, frozen=True, kw_only=True):
    """A request to the container."""

    path: str = ""
    port: int | str = 0
    host: str = ""
    scheme: str = ""
    http_headers: tuple[HttpHeader, ...] = ()


class TcpSocketAction(Struct, frozen=True, kw_only=True):
    """A connection to the container."""

    port: int | str = 0
    host: str = ""


class GrpcAction(Struct, frozen=True, kw_only=True):
    """A health check of the container."""

    port: Int32 = 0
    service: str = ""


class Probe(Struct, frozen=True, kw_only=True):
    """A question to a container, how often it is asked, and how many answers count."""

    exec: ExecAction | None = None
    http_get: HttpGetAction | None = None
    tcp_socket: TcpSocketAction | None = None
    grpc: GrpcAction | None = None
    initial_delay_seconds: Int32 = 0
    timeout_seconds: Int32 = 1
    period_seconds: Int32 = 10
    success_threshold: Int32 = 1
    failure_threshold: Int32 = 3
    termination_grace_period_seconds: Int64 | None = None


class SleepAction(Struct, frozen=True, kw_only=True):
    """A pause."""

    seconds: Int64 = 0


class LifecycleHandler(Struct, frozen=True, kw_only=True):
    """What is done when a container begins or is to end."""

    exec: ExecAction | None = None
    http_get: HttpGetAction | None = None
    sleep: SleepAction | None = None


class Lifecycle(Struct, frozen=True, kw_only=True):
    """What is done once a container has begun, and before it is stopped."""

    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None


class Container(Struct, frozen=True, kw_only=True):
    """A container."""

    name: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    ports: tuple[ContainerPort, ...] = ()
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[EnvFromSource, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    volume_mounts: tuple[VolumeMount, ...] = ()
    stdin: bool = False
    tty: bool = False
    startup_probe: Probe | None = None
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    lifecycle: Lifecycle = Lifecycle()
    termination_message_path: str = ""
    termination_message_policy: str = ""
    security_context: SecurityContext | None = None


class KeyToPath(Struct, frozen=True, kw_only=True):
    """The file that a key becomes."""

    key: str = ""
    path: str = ""
    mode: Int32 | None = None


class ClaimVolume(Struct, frozen=True, kw_only=True):
    """The volume that a claim has."""

    claim_name: str = ""
    read_only: bool = False


class EmptyDirVolume(Struct, frozen=True, kw_only=True):
    """A directory that lives as long as the pod."""

    medium: str = ""


class HostPathVolume(Struct, frozen=True, kw_only=True):
    """A file or directory of the machine."""

    path: str = ""
    type: str = ""


class KeysVolume(Struct, frozen=True, kw_only=True):
    """Keys of a config map as files."""

    name: str = ""
    items: tuple[KeyToPath, ...] = ()
    default_mode: Int32 = 0o644
    optional: bool = False


class SecretVolume(Struct, frozen=True, kw_only=True):
    """Keys of a secret as files."""

    secret_name: str = ""
    items: tuple[KeyToPath, ...] = ()
    default_mode: Int32 = 0o644
    optional: bool = False


class DownwardFile(Struct, frozen=True, kw_only=True):
    """A field of the pod as a file."""

    path: str = ""
    field_ref: FieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    mode: Int32 | None = None


class DownwardVolume(Struct, frozen=True, kw_only=True):
    """Fields of the pod as files."""

    items: tuple[DownwardFile, ...] = ()
    default_mode: Int32 = 0o644


class TokenFile(Struct, frozen=True, kw_only=True):
    """A token of the pod's service account as a file."""

    path: str = ""
    audience: str = ""
    expiration_seconds: Int64 = 3600


class Projection(Struct, frozen=True, kw_only=True):
    """A part of a projected volume."""

    config_map: KeysVolume | None = None
    secret: KeysVolume | None = None
    downward_api: DownwardVolume | None = msgspec.field(default=None, name="downwardAPI")
    service_account_token: TokenFile | None = None


class ProjectedVolume(Struct, frozen=True, kw_only=True):
    """Files of several sources in one directory."""

    sources: tuple[Projection, ...] = ()
    default_mode: Int32 = 0o644


class Volume(Struct, frozen=True, kw_only=True):
    """A volume; one that has none of these is of another kind."""

    name: str = ""
    empty_dir: EmptyDirVolume | None = None
    host_path: HostPathVolume | None = None
    config_map: KeysVolume | None = None
    secret: SecretVolume | None = None
    downward_api: DownwardVolume | None = msgspec.field(default=None, name="downwardAPI")
    projected: ProjectedVolume | None = None
    persistent_volume_claim: ClaimVolume | None = None


class RunningPodSpec(Struct, frozen=True, kw_only=True):
    """What the pod wants."""

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


class Address(Struct, frozen=True, kw_only=True):
    """An address."""

    ip: str = ""


class RunningPodStatus(Struct, frozen=True, kw_only=True):
    """Where the pod is reached."""

    host_ip: str = msgspec.field(default="", name="hostIP")
    pod_ip: str = msgspec.field(default="", name="podIP")
    pod_ips: tuple[Address, ...] = msgspec.field(default=(), name="podIPs")


class RunningPod(meta.Object, frozen=True, kw_only=True):
    """Core Pod; a partial view."""

    spec: RunningPodSpec = RunningPodSpec()
    status: RunningPodStatus = RunningPodStatus()

    def container(self, name: str) -> Container:
        """A container of any sort by its name, which it has."""
        return next(each for each in self._containers() if each.name == name)

    def has_container(self, name: str) -> bool:
        """Whether it has a container of a name, of any sort."""
        return any(each.name == name for each in self._containers())

    def _containers(self) -> Iterator[Container]:
        yield from self.spec.init_containers
        yield from self.spec.containers
        yield from self.spec.ephemeral_containers
