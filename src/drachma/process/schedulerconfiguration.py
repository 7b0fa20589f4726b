"""KubeSchedulerConfiguration of ``kubescheduler.config.k8s.io/v1``: upstream's file, as settings of a scheduler.

Fields that only tune upstream's implementation have no effect here. A value that would change decisions in a way that
drachma does not know is refused, with its field.
"""

from __future__ import annotations

import logging
import pathlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import yaml
from msgspec import structs

from drachma import errors
from drachma.cel.runtime import instants
from drachma.process import schedulerplugins
from drachma.process.schedulerplugins import PluginsForm
from drachma.runtime import lease
from drachma.scheduler import Settings

_KIND: Final = "KubeSchedulerConfiguration"
_VERSION: Final = "kubescheduler.config.k8s.io/v1"
_NAME: Final = "default-scheduler"

_log = logging.getLogger(__name__)


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


class ArgumentsForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    args: dict[str, Any] = {}


class ProfileForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    scheduler_name: str = _NAME
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

    @property
    def profile(self) -> ProfileForm:
        return self.profiles[0] if self.profiles else ProfileForm()


class SchedulerConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a scheduler and of its process."""

    settings: Settings
    lease_name: lease.LeaseName | None
    """Lease of the leader, or None without leader election."""
    timing: lease.Timing
    kubeconfig: pathlib.Path | None


def read(path: pathlib.Path, settings: Settings) -> SchedulerConfiguration:
    """Return the configuration in a file; ``settings`` has the values that such a file cannot have.

    Raises:
        errors.InvalidValueError: the file cannot be read, or has a value that is wrong or not supported.
    """
    try:
        return convert(yaml.safe_load(path.read_text("utf-8")), settings)
    except OSError as error:
        raise errors.InvalidValueError(f"configuration {path}: {error.strerror}") from None
    except (UnicodeError, yaml.YAMLError) as error:
        raise errors.InvalidValueError(f"configuration {path}: not YAML: {error}") from None
    except errors.InvalidValueError as error:
        raise errors.InvalidValueError(f"configuration {path}: {error}") from None


def convert(document: object, settings: Settings) -> SchedulerConfiguration:
    """Return the configuration of a document. Raises errors.InvalidValueError with the field."""
    if not isinstance(document, dict) or (document.get("kind"), document.get("apiVersion")) != (_KIND, _VERSION):
        raise errors.InvalidValueError(f"expected a {_KIND} of {_VERSION}")
    try:
        form = msgspec.convert(document, ConfigurationForm)
    except msgspec.ValidationError as error:
        raise errors.InvalidValueError(str(error)) from None
    _check(form)
    profile = form.profile
    pauses = structs.replace(
        settings.pauses, initial=form.pod_initial_backoff_seconds, maximum=form.pod_max_backoff_seconds
    )
    configured = structs.replace(settings, name=profile.scheduler_name, pauses=pauses)
    for number, each in enumerate(profile.plugin_config):
        configured = _with_arguments(configured, each, f"profiles[0].pluginConfig[{number}]")
    plugins = schedulerplugins.choose(profile.plugins, configured, "profiles[0].plugins")
    configured = structs.replace(configured, plugins=structs.replace(plugins, strategy=configured.plugins.strategy))
    election = form.leader_election
    connection = form.client_connection.kubeconfig
    return SchedulerConfiguration(
        settings=configured,
        lease_name=lease.LeaseName(election.resource_namespace, election.resource_name)
        if election.leader_elect
        else None,
        timing=_timing(election),
        kubeconfig=pathlib.Path(connection) if connection else None,
    )


def _refuse(field: str, value: object, rule: str) -> errors.InvalidValueError:
    return errors.InvalidValueError(f"{field}: {value!r}: {rule}")


def _check(form: ConfigurationForm) -> None:
    """Refuse what is wrong, and what would change decisions. Raises errors.InvalidValueError."""
    if form.parallelism <= 0:
        raise _refuse("parallelism", form.parallelism, "expected a number above 0")
    if len(form.profiles) > 1:
        names = [each.scheduler_name for each in form.profiles]
        raise _refuse("profiles", names, "only one profile is supported; run a scheduler for each schedulerName")
    profile = form.profile
    if not profile.scheduler_name:
        raise _refuse("profiles[0].schedulerName", "", "expected a name")
    for field, percentage in (
        ("percentageOfNodesToScore", form.percentage_of_nodes_to_score),
        ("profiles[0].percentageOfNodesToScore", profile.percentage_of_nodes_to_score),
    ):
        if percentage not in (None, 0, 100):
            raise _refuse(field, percentage, "not supported: all nodes are scored; expected 0 or 100")
    if form.pod_initial_backoff_seconds <= 0:
        raise _refuse("podInitialBackoffSeconds", form.pod_initial_backoff_seconds, "expected a number above 0")
    if form.pod_max_backoff_seconds < form.pod_initial_backoff_seconds:
        rule = f"expected at least podInitialBackoffSeconds, {form.pod_initial_backoff_seconds:g}"
        raise _refuse("podMaxBackoffSeconds", form.pod_max_backoff_seconds, rule)
    if form.extenders:
        addresses = [each.get("urlPrefix", "") for each in form.extenders]
        raise _refuse("extenders", addresses, "extenders are not supported")
    if form.delay_cache_until_active:
        raise _refuse("delayCacheUntilActive", "true", "not supported: replicas always fill their caches")
    if form.client_connection.qps or form.client_connection.burst:
        _log.info("clientConnection.qps and clientConnection.burst have no effect")


def _timing(election: LeaderElectionForm) -> lease.Timing:
    place = "leaderElection"
    if election.resource_lock != "leases":
        raise _refuse(f"{place}.resourceLock", election.resource_lock, "expected 'leases'")
    for field, name in (("resourceName", election.resource_name), ("resourceNamespace", election.resource_namespace)):
        if not name:
            raise _refuse(f"{place}.{field}", name, "expected a name")
    timing = lease.Timing(
        valid=_seconds(f"{place}.leaseDuration", election.lease_duration),
        renew=_seconds(f"{place}.renewDeadline", election.renew_deadline),
        retry=_seconds(f"{place}.retryPeriod", election.retry_period),
    )
    if not timing.renew < timing.valid:
        raise _refuse(f"{place}.renewDeadline", election.renew_deadline, "expected less than leaseDuration")
    if not timing.retry < timing.renew:
        raise _refuse(f"{place}.retryPeriod", election.retry_period, "expected less than renewDeadline")
    return timing


def _seconds(field: str, value: object) -> float:
    duration = instants.parse_duration(value) if isinstance(value, str) else None
    if duration is None or duration.nanos <= 0:
        raise _refuse(field, value, "expected a duration above 0, such as 15s")
    return duration.nanos / 10**9


# Arguments of plugins

_RESOURCES: Final = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
_STRATEGIES: Final = ("LeastAllocated", "MostAllocated")

_FIXED: Final[Mapping[str, Mapping[str, tuple[object, ...]]]] = {
    "DefaultPreemption": {"minCandidateNodesPercentage": (10,), "minCandidateNodesAbsolute": (100,)},
    "InterPodAffinity": {"hardPodAffinityWeight": (1,), "ignorePreferredTermsOfExistingPods": (False,)},
    "NodeAffinity": {"addedAffinity": (None, {})},
    "NodeResourcesBalancedAllocation": {"resources": (_RESOURCES,)},
    "NodeResourcesFit": {"ignoredResources": (None, []), "ignoredResourceGroups": (None, [])},
    "PodTopologySpread": {"defaultConstraints": (None, []), "defaultingType": ("System",)},
    "VolumeBinding": {"shape": (None, [])},
}
"""Arguments by plugin, with the values that they may have: upstream's defaults."""


def _with_arguments(settings: Settings, form: ArgumentsForm, place: str) -> Settings:
    """Return settings with the arguments of one plugin. Raises errors.InvalidValueError."""
    fixed = _FIXED.get(form.name, {})
    for key, value in form.args.items():
        field = f"{place}.args.{key}"
        if key in ("apiVersion", "kind"):
            expected_value = _VERSION if key == "apiVersion" else f"{form.name}Args"
            if value != expected_value:
                raise _refuse(field, value, f"expected {expected_value!r}")
        elif key in fixed:
            if value not in fixed[key]:
                raise _refuse(field, value, f"not supported; expected {fixed[key][-1]!r}")
        elif (form.name, key) == ("DynamicResources", "filterTimeout"):
            settings = structs.replace(settings, filter_seconds=_seconds(field, value))
        elif (form.name, key) == ("DynamicResources", "bindingTimeout"):
            settings = structs.replace(settings, binding_seconds=_seconds(field, value))
        elif (form.name, key) == ("VolumeBinding", "bindTimeoutSeconds"):
            if not isinstance(value, int) or value < 0:
                raise _refuse(field, value, "expected a number of seconds, at least 0")
            settings = structs.replace(settings, volume_binding_seconds=float(value))
        elif (form.name, key) == ("NodeResourcesFit", "scoringStrategy"):
            strategy = _strategy(field, value)
            settings = structs.replace(settings, plugins=structs.replace(settings.plugins, strategy=strategy))
        else:
            raise _refuse(field, value, f"{form.name} has no such argument here")
    return settings


def _strategy(field: str, value: object) -> str:
    if not isinstance(value, dict):
        raise _refuse(field, value, "expected an object")
    for key, part in value.items():
        if key == "type":
            if part not in _STRATEGIES:
                raise _refuse(f"{field}.type", part, f"not supported; expected one of {', '.join(_STRATEGIES)}")
        elif key == "resources":
            if part not in (None, [], _RESOURCES):
                raise _refuse(f"{field}.resources", part, f"not supported; expected {_RESOURCES!r}")
        else:
            raise _refuse(f"{field}.{key}", part, "not supported")
    return str(value.get("type", _STRATEGIES[0]))
