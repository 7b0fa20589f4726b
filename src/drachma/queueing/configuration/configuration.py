"""Configuration of queueing: the document ``config.kueue.x-k8s.io/v1beta2``, and its defaults.

All fields are declared, so that a misspelt field is noticed; fields that only concern Kueue's own process are not used.
Durations are kept as written; :mod:`durations` parses them.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import structs

from drachma import errors
from drachma.api import codec, devices, meta, pod
from drachma.api.struct import ABSENT_MAP, ABSENT_TEXT, ABSENT_TUPLE, Int32, Int64, Struct
from drachma.queueing.configuration import durations
from drachma.queueing.configuration import gates as featuregates

API_VERSIONS: Final = ("config.kueue.x-k8s.io/v1beta2", "config.kueue.x-k8s.io/v1beta1")
DEFAULT_NAMESPACE: Final = "kueue-system"
INCREMENTAL_DISPATCHER: Final = "kueue.x-k8s.io/multikueue-dispatcher-incremental"

_DEFAULT_FRAMEWORKS: Final = ("batch/job",)
_DEFAULT_READY_TIMEOUT: Final = "30m0s"
_DEFAULT_SAMPLING_INTERVAL: Final = "5m0s"


# Settings of the process of Kueue's manager: decoded, so that a configuration is known to be well formed, and not used.


class ControllerWebhook(Struct, frozen=True, kw_only=True):
    """Address of the webhook server."""

    port: Int32 | None = None
    host: str = ABSENT_TEXT
    cert_dir: str = ABSENT_TEXT


class LeaderElection(Struct, frozen=True, kw_only=True):
    """Lease of the active manager."""

    leader_elect: bool | None = None
    lease_duration: str = ABSENT_TEXT
    renew_deadline: str = ABSENT_TEXT
    retry_period: str = ABSENT_TEXT
    resource_lock: str = ABSENT_TEXT
    resource_name: str = ABSENT_TEXT
    resource_namespace: str = ABSENT_TEXT


class Health(Struct, frozen=True, kw_only=True):
    """Addresses of the health endpoints."""

    health_probe_bind_address: str = ABSENT_TEXT
    readiness_endpoint_name: str = ABSENT_TEXT
    liveness_endpoint_name: str = ABSENT_TEXT


class Controller(Struct, frozen=True, kw_only=True):
    """Concurrency of controllers."""

    group_kind_concurrency: Mapping[str, Int64] = ABSENT_MAP
    cache_sync_timeout: Int64 | None = None


class ClientConnection(Struct, frozen=True, kw_only=True):
    """Rate limits of the client."""

    qps: float | None = None
    burst: Int32 | None = None


class LocalQueueMetrics(Struct, frozen=True, kw_only=True):
    """Local queues that have metrics of their own."""

    enable: bool = False
    local_queue_selector: meta.LabelSelector | None = None


# Settings that queueing uses


class RequeuingStrategy(Struct, frozen=True, kw_only=True):
    """Backoff of a workload whose pods did not become ready."""

    timestamp: str | None = None
    backoff_limit_count: Int32 | None = None
    backoff_base_seconds: Int32 | None = None
    backoff_max_seconds: Int32 | None = None


class WaitForPodsReady(Struct, frozen=True, kw_only=True):
    """Time that the pods of an admitted workload may take to become ready."""

    timeout: str = ABSENT_TEXT
    block_admission: bool | None = None
    requeuing_strategy: RequeuingStrategy | None = None
    recovery_timeout: str | None = None


class CounterSource(Struct, frozen=True, kw_only=True):
    """Charge by a counter that devices consume."""

    name: str = ABSENT_TEXT
    driver: str = ABSENT_TEXT
    device_selector: devices.DeviceSelector = devices.DeviceSelector()


class CapacitySource(Struct, frozen=True, kw_only=True):
    """Charge by a capacity of shared devices."""

    name: str = ABSENT_TEXT
    driver: str = ABSENT_TEXT
    device_selector: devices.DeviceSelector = devices.DeviceSelector()


class Source(Struct, frozen=True, kw_only=True):
    """Measure that a mapping charges instead of the number of devices; exactly one field is set."""

    counter: CounterSource | None = None
    capacity: CapacitySource | None = None


class DeviceClassMapping(Struct, frozen=True, kw_only=True):
    """A resource of quotas, and the device classes that are charged to it."""

    name: str = ABSENT_TEXT
    device_class_names: tuple[str, ...] = ABSENT_TUPLE
    sources: tuple[Source, ...] = ABSENT_TUPLE


class ResourceTransformation(Struct, frozen=True, kw_only=True):
    """Resources that are charged for a requested one, in addition to it or in its place."""

    input: str = ABSENT_TEXT
    strategy: str | None = None
    multiply_by: str = ABSENT_TEXT
    outputs: pod.ResourceList = ABSENT_MAP


class Resources(Struct, frozen=True, kw_only=True):
    """Requests that are charged, and their transformations."""

    quota_check_strategy: str | None = None
    exclude_resource_prefixes: tuple[str, ...] = ABSENT_TUPLE
    transformations: tuple[ResourceTransformation, ...] = ABSENT_TUPLE
    device_class_mappings: tuple[DeviceClassMapping, ...] = ABSENT_TUPLE


class FairSharing(Struct, frozen=True, kw_only=True):
    """Sharing of a cohort's unused quota by weight, and the strategies that justify preemption."""

    preemption_strategies: tuple[str, ...] = ABSENT_TUPLE


class AdmissionFairSharing(Struct, frozen=True, kw_only=True):
    """Ordering of workloads by the past usage of their local queue."""

    usage_half_life_time: str = ABSENT_TEXT
    usage_sampling_interval: str = ABSENT_TEXT
    resource_weights: Mapping[str, float] = ABSENT_MAP


class Integrations(Struct, frozen=True, kw_only=True):
    """Kinds of jobs that are managed."""

    frameworks: tuple[str, ...] | None = None
    external_frameworks: tuple[str, ...] = ABSENT_TUPLE
    label_keys_to_copy: tuple[str, ...] = ABSENT_TUPLE


class InternalCertManagement(Struct, frozen=True, kw_only=True):
    """Certificates of Kueue's webhooks."""

    enable: bool | None = None
    webhook_service_name: str | None = None
    webhook_secret_name: str | None = None


class TLSOptions(Struct, frozen=True, kw_only=True):
    """TLS options of Kueue's servers."""

    min_version: str = ABSENT_TEXT
    cipher_suites: tuple[str, ...] = ABSENT_TUPLE
    curve_preferences: tuple[Int32, ...] = ABSENT_TUPLE


class WorkloadRetention(Struct, frozen=True, kw_only=True):
    """Retention of workloads."""

    after_finished: str | None = None
    after_deactivated_by_kueue: str | None = None


class ObjectRetentionPolicies(Struct, frozen=True, kw_only=True):
    """Retention of objects."""

    workloads: WorkloadRetention | None = None


class VisibilityServer(Struct, frozen=True, kw_only=True):
    """Address of the server of pending workloads."""

    bind_address: str | None = None
    bind_port: Int32 | None = None


class CustomLabel(Struct, frozen=True, kw_only=True):
    """A label of metrics that is taken from an object."""

    name: str = ABSENT_TEXT
    source_label_key: str = ABSENT_TEXT
    source_annotation_key: str = ABSENT_TEXT
    source_kind: str | None = None
    tracked_values: tuple[str, ...] = ABSENT_TUPLE


class Metrics(Struct, frozen=True, kw_only=True):
    """Metrics options."""

    bind_address: str = ABSENT_TEXT
    enable_cluster_queue_resources: bool | None = None
    custom_labels: tuple[CustomLabel, ...] = ABSENT_TUPLE
    local_queue_metrics: LocalQueueMetrics | None = None


class ExternalFramework(Struct, frozen=True, kw_only=True):
    """A kind of job that other clusters run."""

    name: str = ABSENT_TEXT


class ExecEnvVar(Struct, frozen=True, kw_only=True):
    """An environment variable of a credential program."""

    name: str = ABSENT_TEXT
    value: str = ABSENT_TEXT


class ExecConfig(Struct, frozen=True, kw_only=True):
    """A credential program."""

    command: str = ABSENT_TEXT
    args: tuple[str, ...] = ABSENT_TUPLE
    env: tuple[ExecEnvVar, ...] = ABSENT_TUPLE
    api_version: str = ABSENT_TEXT
    install_hint: str = ABSENT_TEXT
    provide_cluster_info: bool = False
    interactive_mode: str = ABSENT_TEXT


class AccessProvider(Struct, frozen=True, kw_only=True):
    """Access to another cluster."""

    name: str = ABSENT_TEXT
    exec_config: ExecConfig = ExecConfig()


class ClusterProfile(Struct, frozen=True, kw_only=True):
    """Access to other clusters."""

    access_providers: tuple[AccessProvider, ...] = ABSENT_TUPLE
    credentials_providers: tuple[AccessProvider, ...] = ABSENT_TUPLE


class IncrementalDispatcher(Struct, frozen=True, kw_only=True):
    """Number of clusters that are tried at a time."""

    step_size: Int32 | None = None


class MultiKueue(Struct, frozen=True, kw_only=True):
    """Dispatching to other clusters."""

    gc_interval: str | None = None
    origin: str | None = None
    worker_lost_timeout: str | None = None
    dispatcher_name: str | None = None
    external_frameworks: tuple[ExternalFramework, ...] = ABSENT_TUPLE
    cluster_profile: ClusterProfile | None = None
    incremental_dispatcher_config: IncrementalDispatcher | None = None


class Configuration(Struct, frozen=True, kw_only=True):
    """The whole document."""

    namespace: str | None = None
    manage_jobs_without_queue_name: bool | None = None
    managed_jobs_namespace_selector: meta.LabelSelector | None = None
    internal_cert_management: InternalCertManagement | None = None
    wait_for_pods_ready: WaitForPodsReady | None = None
    integrations: Integrations | None = None
    multi_kueue: MultiKueue | None = None
    fair_sharing: FairSharing | None = None
    admission_fair_sharing: AdmissionFairSharing | None = None
    resources: Resources | None = None
    feature_gates: Mapping[str, bool] = ABSENT_MAP
    object_retention_policies: ObjectRetentionPolicies | None = None
    visibility_server: VisibilityServer | None = None
    metrics: Metrics = Metrics()
    tls: TLSOptions | None = None
    webhook: ControllerWebhook | None = None
    leader_election: LeaderElection | None = None
    health: Health | None = None
    pprof_bind_address: str = ABSENT_TEXT
    controller: Controller | None = None
    client_connection: ClientConnection | None = None

    @property
    def gates(self) -> featuregates.Gates:
        """Feature gates of the configuration. Raises errors.InvalidValueError for an unknown gate."""
        return featuregates.DEFAULT.switched(self.feature_gates)


def decode(document: Any) -> Configuration:
    """Return the configuration of a document; null fields are absent. Raises errors.DecodeError for a wrong form."""
    try:
        return codec.view(document, Configuration)
    except errors.DecodeError as error:
        raise errors.DecodeError(f"Configuration: {error}") from None


def default(configuration: Configuration) -> Configuration:
    """Return the configuration with Kueue's defaults."""
    namespace = configuration.namespace or DEFAULT_NAMESPACE
    ready = configuration.wait_for_pods_ready or WaitForPodsReady()
    timeout = ready.timeout or _DEFAULT_READY_TIMEOUT
    strategy = ready.requeuing_strategy or RequeuingStrategy()
    outside = meta.LabelSelectorRequirement(
        key="kubernetes.io/metadata.name", operator="NotIn", values=("kube-system", namespace)
    )
    integrations = configuration.integrations or Integrations()
    past_usage = configuration.admission_fair_sharing
    if past_usage is not None and not durations.nanoseconds(past_usage.usage_sampling_interval):
        past_usage = structs.replace(past_usage, usage_sampling_interval=_DEFAULT_SAMPLING_INTERVAL)
    resources = configuration.resources
    if resources is not None and resources.transformations:
        resources = structs.replace(
            resources,
            transformations=tuple(
                structs.replace(each, strategy=each.strategy or "Retain") for each in resources.transformations
            ),
        )
    return structs.replace(
        configuration,
        namespace=namespace,
        wait_for_pods_ready=structs.replace(
            ready,
            timeout=timeout,
            block_admission=bool(ready.block_admission),
            recovery_timeout=ready.recovery_timeout or timeout,
            requeuing_strategy=structs.replace(
                strategy,
                timestamp=strategy.timestamp or "Eviction",
                backoff_base_seconds=_or(strategy.backoff_base_seconds, 60),
                backoff_max_seconds=_or(strategy.backoff_max_seconds, 3600),
            ),
        ),
        integrations=structs.replace(integrations, frameworks=integrations.frameworks or _DEFAULT_FRAMEWORKS),
        managed_jobs_namespace_selector=configuration.managed_jobs_namespace_selector
        or meta.LabelSelector(match_expressions=(outside,)),
        admission_fair_sharing=past_usage,
        resources=resources,
    )


def _or(number: int | None, otherwise: int) -> int:
    return otherwise if number is None else number
