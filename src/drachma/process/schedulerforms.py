"""Forms of a KubeSchedulerConfiguration of ``kubescheduler.config.k8s.io/v1``, as users write it."""

from __future__ import annotations

from typing import Any, Final

import msgspec

KIND: Final = "KubeSchedulerConfiguration"
VERSION: Final = "kubescheduler.config.k8s.io/v1"


class LeaderElectionForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    leader_elect: bool = True
    lease_duration: str = "15s"
    renew_deadline: str = "10s"
    retry_period: str = "2s"
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ClientConnectionForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Connection to the API server. drachma limits its own requests, and negotiates the content type."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = ""
    qps: float = 0
    burst: int = 0


class PluginForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    weight: int = 0


class PluginSetForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Plugins of one extension point, in addition to or instead of the default ones."""

    enabled: list[PluginForm] = []
    disabled: list[PluginForm] = []


class PluginsForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Plugins by extension point, in the order in which upstream checks them."""

    pre_filter: PluginSetForm = PluginSetForm()
    filter: PluginSetForm = PluginSetForm()
    post_filter: PluginSetForm = PluginSetForm()
    reserve: PluginSetForm = PluginSetForm()
    pre_score: PluginSetForm = PluginSetForm()
    score: PluginSetForm = PluginSetForm()
    pre_bind: PluginSetForm = PluginSetForm()
    bind: PluginSetForm = PluginSetForm()
    post_bind: PluginSetForm = PluginSetForm()
    permit: PluginSetForm = PluginSetForm()
    pre_enqueue: PluginSetForm = PluginSetForm()
    queue_sort: PluginSetForm = PluginSetForm()
    multi_point: PluginSetForm = PluginSetForm()


class ArgumentsForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    args: dict[str, Any] = {}


class ProfileForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    scheduler_name: str | None = None
    percentage_of_nodes_to_score: int | None = None
    plugins: PluginsForm = PluginsForm()
    plugin_config: list[ArgumentsForm] = []


class ConfigurationForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    api_version: str
    kind: str
    parallelism: int = 16
    leader_election: LeaderElectionForm = LeaderElectionForm()
    client_connection: ClientConnectionForm = ClientConnectionForm()
    enable_profiling: bool = False
    enable_contention_profiling: bool = False
    percentage_of_nodes_to_score: int | None = None
    pod_initial_backoff_seconds: float = 1
    pod_max_backoff_seconds: float = 10
    profiles: tuple[ProfileForm, ...] = ()
    extenders: list[dict[str, Any]] = []
    delay_cache_until_active: bool = False
