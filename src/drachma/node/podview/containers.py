"""Containers of a pod as its node reads them: environment, mounts, probes and lifecycle hooks."""

from __future__ import annotations

from drachma.api.pod import ContainerPort, ResourceRequirements
from drachma.api.struct import Int32, Int64, Struct
from drachma.node.podview.security import SecurityContext
from drachma.values import quantity


class KeySelector(Struct, frozen=True, kw_only=True):
    """A key of a ConfigMap or Secret."""

    name: str = ""
    key: str = ""
    optional: bool = False


class FieldSelector(Struct, frozen=True, kw_only=True):
    """A field of the pod itself."""

    field_path: str = ""


class ResourceFieldSelector(Struct, frozen=True, kw_only=True):
    """A resource request or limit of a container, in units of the divisor."""

    container_name: str = ""
    resource: str = ""
    divisor: quantity.Quantity | None = None


class EnvVarSource(Struct, frozen=True, kw_only=True):
    """Source of the value of an environment variable."""

    config_map_key_ref: KeySelector | None = None
    secret_key_ref: KeySelector | None = None
    field_ref: FieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None


class EnvVar(Struct, frozen=True, kw_only=True):
    """An environment variable."""

    name: str = ""
    value: str = ""
    value_from: EnvVarSource | None = None


class ObjectSource(Struct, frozen=True, kw_only=True):
    """A ConfigMap or Secret as a whole."""

    name: str = ""
    optional: bool = False


class EnvFromSource(Struct, frozen=True, kw_only=True):
    """All keys of a ConfigMap or Secret as environment variables."""

    prefix: str = ""
    config_map_ref: ObjectSource | None = None
    secret_ref: ObjectSource | None = None


class VolumeMount(Struct, frozen=True, kw_only=True):
    """A volume mounted in a container."""

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
    """A header of an HTTP probe."""

    name: str = ""
    value: str = ""


class HttpGetAction(Struct, frozen=True, kw_only=True):
    """An HTTP request to the container."""

    path: str = ""
    port: int | str = 0
    host: str = ""
    scheme: str = ""
    http_headers: tuple[HttpHeader, ...] = ()


class TcpSocketAction(Struct, frozen=True, kw_only=True):
    """A TCP connection to the container."""

    port: int | str = 0
    host: str = ""


class GrpcAction(Struct, frozen=True, kw_only=True):
    """A gRPC health check of the container."""

    port: Int32 = 0
    service: str = ""


class Probe(Struct, frozen=True, kw_only=True):
    """A probe of a container, with its period and thresholds."""

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
    """Action of a lifecycle hook."""

    exec: ExecAction | None = None
    http_get: HttpGetAction | None = None
    sleep: SleepAction | None = None


class Lifecycle(Struct, frozen=True, kw_only=True):
    """Hooks after the start and before the stop of a container."""

    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None


class ResizePolicy(Struct, frozen=True, kw_only=True):
    """Treatment of a container when one of its resources is resized: ``NotRequired`` or ``RestartContainer``."""

    resource_name: str = ""
    restart_policy: str = ""


class Container(Struct, frozen=True, kw_only=True):
    """A container of any sort: init, regular or ephemeral."""

    name: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    ports: tuple[ContainerPort, ...] = ()
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[EnvFromSource, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    resize_policy: tuple[ResizePolicy, ...] = ()
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
