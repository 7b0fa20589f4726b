"""Rules for a whole configuration, in Kueue's order and words.

Called before a configuration becomes active, at the start and when it changes. A refused configuration changes nothing.
"""

import ipaddress
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec

from drachma import errors
from drachma.api import meta, struct
from drachma.queueing.configuration import durations, frameworks, mappingrules, tlsrules
from drachma.queueing.configuration.configuration import (
    INCREMENTAL_DISPATCHER,
    AccessProvider,
    Configuration,
    CustomLabel,
    Integrations,
    MultiKueue,
    RequeuingStrategy,
)
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.configuration.queueingpolicy import AS_KUEUE, QueueingPolicy
from drachma.validation import fielderror, rendering, selectors
from drachma.validation.fielderror import Errors, FieldError
from drachma.validation.path import Path
from drachma.values import labels, names, quotation

_NOT_NEGATIVE: Final = "must be greater than or equal to 0"
_STRATEGY_SETS: Final = (
    ("LessThanOrEqualToFinalShare",),
    ("LessThanInitialShare",),
    ("LessThanOrEqualToFinalShare", "LessThanInitialShare"),
)
_QUOTA_CHECKS: Final = ("IgnoreUndeclared", "BlockUndeclared")
_INTERACTIVE_MODES: Final = ("Never", "IfAvailable", "Always")
_MANAGED_JOBS: Final = Path("managedJobsNamespaceSelector")
_CUSTOM_LABELS: Final = 20
_NAMED: Final[rendering.Fields] = {CustomLabel: frozenset({"name"})}
"""Fields of labels that messages show even if they are empty."""
_TRACKED_VALUES: Final = 16
_TRACKED_WORKLOAD_VALUES: Final = 12
_LABELS_OF_KIND: Final = {"Cohort": 6, "ClusterQueue": 6, "LocalQueue": 6, "Workload": 2}
_LABEL_NAME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*").fullmatch


def check(configuration: Configuration, *, gates: Gates, policy: QueueingPolicy = AS_KUEUE) -> tuple[FieldError, ...]:
    """Return the problems of a configuration."""
    return tuple(_check(configuration, gates, policy))


def _check(configuration: Configuration, gates: Gates, policy: QueueingPolicy) -> Errors:
    yield from _wait_for_pods_ready(configuration, gates)
    yield from _integrations(configuration)
    yield from _multi_kueue(configuration)
    yield from _fair_sharing(configuration)
    yield from _admission_fair_sharing(configuration)
    yield from _certificates(configuration)
    yield from _resources(configuration, gates, policy)
    yield from _managed_namespaces(configuration)
    yield from _retention(configuration)
    yield from tlsrules.check(configuration.tls, Path("tls"))
    yield from _visibility(configuration)
    yield from _custom_labels(configuration.metrics.custom_labels, Path("metrics").child("customLabels"))
    yield from _quota_check_strategy(configuration, gates)


def _wait_for_pods_ready(configuration: Configuration, gates: Gates) -> Errors:
    ready = configuration.wait_for_pods_ready
    if ready is None or gates.on(Gate.DISABLE_WAIT_FOR_PODS_READY):
        return
    at = Path("waitForPodsReady")
    if durations.nanoseconds(ready.timeout) == 0:
        yield fielderror.required(at.child("timeout"), "must be specified")
    yield from _not_negative_duration(ready.timeout, at.child("timeout"))
    yield from _not_negative_duration(ready.recovery_timeout or "", at.child("recoveryTimeout"))
    if ready.requeuing_strategy is not None:
        yield from _requeuing(ready.requeuing_strategy, at.child("requeuingStrategy"))


def _requeuing(strategy: RequeuingStrategy, at: Path) -> Errors:
    if strategy.timestamp is not None and strategy.timestamp not in ("Creation", "Eviction"):
        yield fielderror.not_supported(at.child("timestamp"), strategy.timestamp, ("Creation", "Eviction"))
    for name, number in (
        ("backoffLimitCount", strategy.backoff_limit_count),
        ("backoffBaseSeconds", strategy.backoff_base_seconds),
        ("backoffMaxSeconds", strategy.backoff_max_seconds),
    ):
        if number is not None and number < 0:
            yield fielderror.invalid(at.child(name), number, _NOT_NEGATIVE)


def _integrations(configuration: Configuration) -> Errors:
    at = Path("integrations")
    integrations = configuration.integrations
    if integrations is None:
        yield fielderror.required(at, "cannot be empty")
        return
    if integrations.frameworks is None:
        yield fielderror.required(at.child("frameworks"), "cannot be empty")
        return
    kinds: set[frameworks.GroupVersionKind] = set()
    for position, name in enumerate(integrations.frameworks):
        here = at.child("frameworks").item(position)
        kind = frameworks.KINDS.get(name)
        if kind is None:
            yield fielderror.not_supported(here, name, tuple(frameworks.KINDS))
        elif kind in kinds:
            yield fielderror.duplicate(here, name)
        else:
            kinds.add(kind)
    for position, name in enumerate(integrations.external_frameworks):
        here = at.child("externalFrameworks").item(position)
        kind = frameworks.parse_kind(name)
        if kind is None:
            yield fielderror.invalid(here, name, "must be format, 'Kind.version.group.com'")
        elif kind in kinds:
            yield fielderror.duplicate(here, name)
        else:
            kinds.add(kind)
    if frameworks.POD in integrations.frameworks:
        if configuration.managed_jobs_namespace_selector is None:
            yield fielderror.required(_MANAGED_JOBS, "cannot be empty when pod integration is enabled")
        else:
            yield from _spares_system_namespaces(configuration)


def _managed_namespaces(configuration: Configuration) -> Errors:
    if configuration.managed_jobs_namespace_selector is not None:
        yield from _spares_system_namespaces(configuration)


def _spares_system_namespaces(configuration: Configuration) -> Errors:
    selector = configuration.managed_jobs_namespace_selector
    assert selector is not None
    yield from selectors.check(_document(selector), _MANAGED_JOBS)
    try:
        matcher = labels.Selector.from_parts(
            selector.match_labels, [(each.key, each.operator, each.values) for each in selector.match_expressions]
        )
    except errors.InvalidValueError:
        return
    for namespace in ("kube-system", configuration.namespace):
        if namespace and matcher.matches({"kubernetes.io/metadata.name": namespace}):
            detail = f"should not match the {quotation.quote(namespace)} namespace"
            yield fielderror.invalid(_MANAGED_JOBS, selector, detail)


def _document(selector: meta.LabelSelector) -> dict[str, object]:
    document: dict[str, object] = msgspec.to_builtins(selector)
    return document


def _multi_kueue(configuration: Configuration) -> Errors:
    settings = configuration.multi_kueue
    if settings is None:
        return
    at = Path("multiKueue")
    for name, duration in (("gcInterval", settings.gc_interval), ("workerLostTimeout", settings.worker_lost_timeout)):
        nanos = durations.nanoseconds(duration or "")
        if nanos < 0:
            yield fielderror.invalid(at.child(name), nanos, _NOT_NEGATIVE)
    if settings.origin is not None and (problems := names.label_value(settings.origin)):
        yield fielderror.invalid(at.child("origin"), settings.origin, ",".join(problems))
    yield from _external_frameworks(settings, configuration.integrations, at.child("externalFrameworks"))
    profile = settings.cluster_profile
    if profile is not None:
        access, credentials = (
            at.child("clusterProfile", "accessProviders"),
            at.child("clusterProfile", "credentialsProviders"),
        )
        if profile.access_providers and profile.credentials_providers:
            yield fielderror.forbidden(credentials, "must not be specified when accessProviders is specified")
        if profile.access_providers:
            yield from _providers(profile.access_providers, access)
        else:
            yield from _providers(profile.credentials_providers, credentials)
    dispatcher = settings.incremental_dispatcher_config
    if dispatcher is not None:
        here = at.child("incrementalDispatcherConfig")
        if settings.dispatcher_name != INCREMENTAL_DISPATCHER:
            detail = (
                "incrementalDispatcherConfig is only valid when dispatcherName is set to the incremental dispatcher"
            )
            yield fielderror.invalid(here, dispatcher, detail)
        if dispatcher.step_size is not None and dispatcher.step_size < 1:
            yield fielderror.invalid(here.child("stepSize"), dispatcher.step_size, "must be greater than or equal to 1")


def _external_frameworks(settings: MultiKueue, integrations: Integrations | None, at: Path) -> Errors:
    own = {
        frameworks.KINDS[name]
        for name in (integrations.frameworks or () if integrations is not None else ())
        if name in frameworks.KINDS and name not in frameworks.NOT_DISPATCHED
    }
    kinds: set[frameworks.GroupVersionKind] = set()
    for position, framework in enumerate(settings.external_frameworks):
        here = at.item(position).child("name")
        kind = frameworks.parse_kind(framework.name)
        if kind is None:
            yield fielderror.invalid(here, framework.name, "must be in 'kind.version.group' format")
            continue
        if kind in kinds:
            yield fielderror.duplicate(here, framework.name)
        kinds.add(kind)
        if kind in own:
            yield fielderror.invalid(here, framework.name, "conflicts with a built-in MultiKueue adapter")


def _providers(providers: tuple[AccessProvider, ...], at: Path) -> Errors:
    # Like upstream, paths do not tell which provider is meant.
    here = at.child("execConfig")
    for provider in providers:
        program = provider.exec_config
        for field, value in (
            (at.child("name"), provider.name),
            (here.child("command"), program.command),
            (here.child("apiVersion"), program.api_version),
            *((here.child("env", "name"), variable.name) for variable in program.env),
            (here.child("interactiveMode"), program.interactive_mode),
        ):
            if not value:
                yield fielderror.required(field, "must be specified")
        if program.interactive_mode and program.interactive_mode not in _INTERACTIVE_MODES:
            yield fielderror.not_supported(here.child("interactiveMode"), program.interactive_mode, _INTERACTIVE_MODES)


def _fair_sharing(configuration: Configuration) -> Errors:
    sharing = configuration.fair_sharing
    if sharing is None:
        return
    at = Path("fairSharing").child("preemptionStrategies")
    if not sharing.preemption_strategies:
        yield fielderror.required(at, "must be specified")
    elif sharing.preemption_strategies not in _STRATEGY_SETS:
        yield fielderror.not_supported(at, sharing.preemption_strategies, [",".join(each) for each in _STRATEGY_SETS])


def _admission_fair_sharing(configuration: Configuration) -> Errors:
    sharing = configuration.admission_fair_sharing
    if sharing is None:
        return
    at = Path("admissionFairSharing")
    half_life = durations.show(durations.nanoseconds(sharing.usage_half_life_time))
    yield from _not_negative_duration(sharing.usage_half_life_time, at.child("usageHalfLifeTime"))
    if durations.nanoseconds(sharing.usage_sampling_interval) <= 0:
        # Like upstream, the message shows the value of the other field.
        yield fielderror.invalid(at.child("usageSamplingInterval"), half_life, "must be greater than 0")
    for name in sorted(sharing.resource_weights):
        if sharing.resource_weights[name] < 0:
            yield fielderror.invalid(at.child("resourceWeights").key(name), sharing.resource_weights, _NOT_NEGATIVE)


def _certificates(configuration: Configuration) -> Errors:
    settings = configuration.internal_cert_management
    if settings is None or not settings.enable:
        return
    at = Path("internalCertManagement")
    if settings.webhook_service_name is not None and (problems := names.dns1035_label(settings.webhook_service_name)):
        yield fielderror.invalid(at.child("webhookServiceName"), settings.webhook_service_name, ",".join(problems))
    if settings.webhook_secret_name is not None and (problems := names.dns1123_subdomain(settings.webhook_secret_name)):
        yield fielderror.invalid(at.child("webhookSecretName"), settings.webhook_secret_name, ",".join(problems))


def _resources(configuration: Configuration, gates: Gates, policy: QueueingPolicy) -> Errors:
    resources = configuration.resources
    if resources is None:
        return
    at = Path("resources")
    inputs: set[str] = set()
    for position, each in enumerate(resources.transformations):
        here = at.child("transformations").item(position)
        if each.strategy not in ("Retain", "Replace"):
            yield fielderror.not_supported(here.child("strategy"), each.strategy, ("Retain", "Replace"))
        if each.input in inputs:
            yield fielderror.duplicate(here.child("input"), each.input)
        inputs.add(each.input)
    mappings = at.child("deviceClassMappings")
    yield from mappingrules.check(resources.device_class_mappings, mappings, gates=gates, policy=policy)


def _retention(configuration: Configuration) -> Errors:
    policies = configuration.object_retention_policies
    if policies is None or policies.workloads is None:
        return
    at = Path("objectRetentionPolicies").child("workloads")
    yield from _not_negative_duration(policies.workloads.after_finished or "", at.child("afterFinished"))
    deactivated = policies.workloads.after_deactivated_by_kueue or ""
    yield from _not_negative_duration(deactivated, at.child("afterDeactivatedByKueue"))


def _visibility(configuration: Configuration) -> Errors:
    server = configuration.visibility_server
    if server is None:
        return
    at = Path("visibilityServer")
    if server.bind_address is not None and not _is_address(server.bind_address):
        yield fielderror.invalid(at.child("bindAddress"), server.bind_address, "must be a valid IP address")
    if server.bind_port is not None and not 1 <= server.bind_port <= 65535:
        yield fielderror.invalid(at.child("bindPort"), server.bind_port, "must be a valid port number (1-65535)")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def _custom_labels(entries: tuple[CustomLabel, ...], at: Path) -> Errors:
    if len(entries) > _CUSTOM_LABELS:
        yield fielderror.too_many(at, len(entries), _CUSTOM_LABELS)
    visited: set[str] = set()
    for position, entry in enumerate(entries):
        here = at.item(position)
        if not _LABEL_NAME(entry.name):
            yield fielderror.invalid(here.child("name"), entry.name, "must match ^[a-zA-Z][a-zA-Z0-9_]*$")
        if entry.name in visited:
            yield fielderror.duplicate(here.child("name"), entry.name)
        visited.add(entry.name)
        if entry.source_label_key and entry.source_annotation_key:
            detail = "sourceLabelKey and sourceAnnotationKey are mutually exclusive"
            yield fielderror.invalid(here, rendering.wire(entry, always=_NAMED), detail)
        if entry.source_label_key:
            yield from _label_key(entry.source_label_key, here.child("sourceLabelKey"))
        elif entry.source_annotation_key:
            yield from _label_key(entry.source_annotation_key, here.child("sourceAnnotationKey"))
        else:
            yield from _label_key(entry.name, here.child("name"))
        yield from _tracked_values(entry, here.child("trackedValues"))
    counts = Counter(entry.source_kind or "ClusterQueue" for entry in entries)
    for kind in sorted(counts):
        limit = _LABELS_OF_KIND.get(kind)
        if limit is None:
            yield fielderror.invalid(at, rendering.wire(entries, always=_NAMED), f"unknown source kind: {kind}")
        elif counts[kind] > limit:
            detail = f"too many custom labels for source kind {kind}: found {counts[kind]}, expected <= {limit}"
            yield fielderror.invalid(at, rendering.wire(entries, always=_NAMED), detail)


def _tracked_values(entry: CustomLabel, at: Path) -> Iterator[FieldError]:
    values = entry.tracked_values
    if entry.source_kind == "Workload":
        if not values:
            value_in_message = None if struct.is_absent(values) else values
            yield fielderror.invalid(at, value_in_message, "must not be empty when sourceKind is 'Workload'")
        if len(values) > _TRACKED_WORKLOAD_VALUES:
            detail = f"must not be greater than {_TRACKED_WORKLOAD_VALUES} when sourceKind is 'Workload'"
            yield fielderror.invalid(at, values, detail)
    elif len(values) > _TRACKED_VALUES:
        yield fielderror.too_many(at, len(values), _TRACKED_VALUES)
    if len(set(values)) < len(values):
        yield fielderror.invalid(at, values, "must not contain duplicates")


def _label_key(key: str, at: Path) -> Errors:
    if problems := names.label_key(key):
        yield fielderror.invalid(at, key, "; ".join(problems))


def _quota_check_strategy(configuration: Configuration, gates: Gates) -> Errors:
    resources = configuration.resources
    if resources is None or resources.quota_check_strategy is None or not gates.on(Gate.QUOTA_CHECK_STRATEGY):
        return
    at = Path("resources").child("quotaCheckStrategy")
    strategy = resources.quota_check_strategy
    if resources.exclude_resource_prefixes and strategy == "IgnoreUndeclared":
        detail = "excludeResourcePrefixes is not allowed when quotaCheckStrategy is IgnoreUndeclared"
        yield fielderror.invalid(at, strategy, detail)
    if strategy not in _QUOTA_CHECKS:
        yield fielderror.not_supported(at, strategy, _QUOTA_CHECKS)


def _not_negative_duration(text: str, at: Path) -> Errors:
    nanos = durations.nanoseconds(text)
    if nanos < 0:
        yield fielderror.invalid(at, durations.show(nanos), _NOT_NEGATIVE)
