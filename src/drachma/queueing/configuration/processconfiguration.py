"""Parts of a configuration that concern the process of Kueue's manager alone: read, so that a configuration is known
to be well written, and not used.
"""

from collections.abc import Mapping

from drachma.api import meta
from drachma.api.struct import ABSENT_MAP, ABSENT_TEXT, Int32, Int64, Struct


class ControllerWebhook(Struct, frozen=True, kw_only=True):
    """Where webhooks listen."""

    port: Int32 | None = None
    host: str = ABSENT_TEXT
    cert_dir: str = ABSENT_TEXT


class LeaderElection(Struct, frozen=True, kw_only=True):
    """The lease of whoever works."""

    leader_elect: bool | None = None
    lease_duration: str = ABSENT_TEXT
    renew_deadline: str = ABSENT_TEXT
    retry_period: str = ABSENT_TEXT
    resource_lock: str = ABSENT_TEXT
    resource_name: str = ABSENT_TEXT
    resource_namespace: str = ABSENT_TEXT


class Health(Struct, frozen=True, kw_only=True):
    """Where others ask whether the process is well."""

    health_probe_bind_address: str = ABSENT_TEXT
    readiness_endpoint_name: str = ABSENT_TEXT
    liveness_endpoint_name: str = ABSENT_TEXT


class Controller(Struct, frozen=True, kw_only=True):
    """How many objects of a kind are looked at side by side."""

    group_kind_concurrency: Mapping[str, Int64] = ABSENT_MAP
    cache_sync_timeout: Int64 | None = None


class ClientConnection(Struct, frozen=True, kw_only=True):
    """How often the API server is asked."""

    qps: float | None = None
    burst: Int32 | None = None


class LocalQueueMetrics(Struct, frozen=True, kw_only=True):
    """Which local queues are measured one by one."""

    enable: bool = False
    local_queue_selector: meta.LabelSelector | None = None
